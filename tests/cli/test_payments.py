"""`cambist payment …`: the review of a mismatch and the money in suspense (docs/cli.md "Commands";
docs/payments.md "Money that cannot count")."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from tests.cli.conftest import Call


async def _mismatch(data: Path, account_id: str) -> str:
    async with open_app(Settings(data_dir=data)) as app:
        async with app.ports.storage.unit() as unit:
            account = await unit[Account].get(account_id)
        assert account is not None
        caller = Caller(account=account, mode=Mode.LIVE, key_id="svc_live_test")
        order = PaymentOrder(amount_rub="100.00")
        made = await create_payment(app.ports, caller, str(uuid4()), lambda: order)
        underpaid = Simulation(status=InvoiceStatus.PAID, amount_kopecks=60_00)
        return (await simulate_payment(app.ports, made.resource, underpaid)).id


@pytest.fixture
def account_id(call: Call) -> str:
    found: str = call("account", "create", "Tea", "--json").document["account_id"]
    return found


@pytest.fixture
def mismatch(folder: Path, account_id: str) -> str:
    """A live payment of 100 RUB for which 60 came."""
    return asyncio.run(_mismatch(folder / "cambist-data", account_id))


def test_resolved_to_paid_it_is_paid_with_what_came(call: Call, mismatch: str) -> None:
    outcome = call("payment", "resolve", mismatch, "paid", "--json")
    assert (outcome.status, outcome.document) == (
        0,
        {"payment_id": mismatch, "status": "paid", "amount_rub": "100.00", "actual_amount_rub": "60.00"},
    )
    again = call("payment", "resolve", mismatch, "failed", "--json")
    assert (again.status, again.document["error"]["code"]) == (1, "INVALID_STATUS")


def test_resolved_to_failed_the_money_is_listed_in_suspense(call: Call, mismatch: str, account_id: str) -> None:
    assert call("payment", "suspense", "--json").document == {"data": []}
    assert call("payment", "resolve", mismatch, "failed").status == 0
    [row] = call("payment", "suspense", "--account", account_id, "--json").document["data"]
    assert (row["payment_id"], row["amount_rub"], row["reason"]) == (mismatch, "60.00", "mismatch_rejected")
    assert call("payment", "suspense", "--account", "acc_other", "--json").document == {"data": []}


@pytest.mark.parametrize(("arguments", "status"), [(("--amount", "1e3"), 1), (("--amount", "70.00"), 1)])
def test_an_amount_that_is_none_or_contradicts_the_bank_is_refused(
    call: Call, mismatch: str, arguments: tuple[str, ...], status: int
) -> None:
    outcome = call("payment", "resolve", mismatch, "paid", *arguments, "--json")
    assert (outcome.status, outcome.document["error"]["code"]) == (status, "VALIDATION_ERROR")


def test_wrong_usage_is_2(call: Call) -> None:
    assert call("payment", "resolve", "pay_1", "maybe").status == 2


def test_payments_are_listed_and_shown(call: Call, mismatch: str, account_id: str) -> None:
    listed = call("payment", "list", account_id, "--status", "amount_mismatch", "--json").document
    assert ([each["id"] for each in listed["data"]], listed["total"]) == ([mismatch], 1)
    assert call("payment", "list", account_id, "--mode", "test", "--json").document["data"] == []
    shown = call("payment", "show", mismatch, "--json").document
    assert shown == listed["data"][0]
    assert (shown["amount_rub"], shown["actual_amount_rub"]) == ("100.00", "60.00")
    assert "100.00" in call("payment", "list", account_id).out


def test_unknown_payment_or_account_is_refused(call: Call) -> None:
    assert call("payment", "show", "pay_1", "--json").document["error"]["code"] == "PAYMENT_NOT_FOUND"
    assert call("payment", "list", "acc_1", "--json").document["error"]["code"] == "ACCOUNT_NOT_FOUND"
