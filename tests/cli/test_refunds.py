"""`cambist refund …` and `cambist payment return`: the operator's acts on money that goes back (docs/cli.md "Commands";
docs/payments.md "How it ends"; docs/refunds.md "How it ends")."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from tests.cli.conftest import Call

NOBODY = "ref_00000000-0000-4000-8000-000000000000"


def inside(folder: Path, work: Callable[[Ports], Awaitable[str]]) -> str:
    """Do something in the app of the working folder."""

    async def run() -> str:
        async with open_app(Settings(data_dir=folder / "cambist-data")) as app:
            return await work(app.ports)

    return asyncio.run(run())


def paid(account_id: str, kopecks: int = 100_00) -> Callable[[Ports], Awaitable[str]]:
    """A live payment of 100 RUB for which so much came."""

    async def work(ports: Ports) -> str:
        async with ports.storage.unit() as unit:
            account = await unit[Account].get(account_id)
        assert account is not None
        caller = Caller(account=account, mode=Mode.LIVE, key_id="svc_live_test")
        made = await create_payment(ports, caller, str(uuid4()), lambda: PaymentOrder(amount_rub="100.00"))
        simulation = Simulation(status=InvoiceStatus.PAID, amount_kopecks=kopecks)
        return (await simulate_payment(ports, made.resource, simulation)).id

    return work


async def jobs_done(ports: Ports) -> str:
    await run_due(ports)
    return ""


@pytest.fixture
def account_id(call: Call) -> str:
    found: str = call("account", "create", "Tea", "--json").document["account_id"]
    return found


@pytest.fixture
def payment_id(folder: Path, account_id: str) -> str:
    return inside(folder, paid(account_id))


def test_created_approved_and_executed(call: Call, folder: Path, payment_id: str, account_id: str) -> None:
    """Also while the refund API is off for the account."""
    made = call("refund", "create", payment_id, "--amount", "40", "--reason", "by phone", "--json")
    document = made.document
    refund_id = document["refund_id"]
    assert (made.status, document) == (
        0,
        {
            "refund_id": refund_id,
            "payment_id": payment_id,
            "account_id": account_id,
            "mode": "live",
            "amount_rub": "40.00",
            "status": "pending",
            "pending_reason": "awaiting_approval",
            "external_id": None,
            "reason": "by phone",
            "failure_reason": None,
            "created_at": document["created_at"],
            "completed_at": None,
            "contradicted_at": None,
        },
    )
    approved = call("refund", "approve", refund_id, "--json")
    assert (approved.status, approved.document["pending_reason"]) == (0, None)
    inside(folder, jobs_done)
    [row] = call("refund", "list", "--json").document["data"]
    assert (row["refund_id"], row["status"]) == (refund_id, "completed")
    again = call("refund", "approve", refund_id, "--json")
    assert (again.status, again.document["error"]["code"]) == (1, "INVALID_STATE")


def test_rejected_with_a_reason(call: Call, payment_id: str) -> None:
    refund_id = call("refund", "create", payment_id, "--json").document["refund_id"]
    outcome = call("refund", "reject", refund_id, "--reason", "goods were delivered", "--json")
    assert (outcome.status, outcome.document["status"], outcome.document["failure_reason"]) == (
        0,
        "rejected",
        "goods were delivered",
    )


def test_listed_by_account_and_status(call: Call, payment_id: str, account_id: str) -> None:
    made = [call("refund", "create", payment_id, "--amount", "1", "--json").document["refund_id"] for _ in range(3)]
    call("refund", "reject", made[0], "--reason", "no")

    def ids(*options: str) -> list[str]:
        return [row["refund_id"] for row in call("refund", "list", *options, "--json").document["data"]]

    assert ids() == made[::-1]
    assert ids("--account", account_id, "--status", "pending") == [made[2], made[1]]
    assert ids("--status", "REJECTED") == [made[0]]
    assert ids("--status", "completed") == []
    other = call("refund", "list", "--account", "acc_other", "--json")
    assert (other.status, other.document["error"]["code"]) == (1, "ACCOUNT_NOT_FOUND")
    text = call("refund", "list").out
    assert text.splitlines()[0].split()[:3] == ["created_at", "amount_rub", "status"]
    assert made[1] in text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("approve", NOBODY), "REFUND_NOT_FOUND"),
        (("reject", NOBODY, "--reason", "x"), "REFUND_NOT_FOUND"),
        (("reject", NOBODY, "--reason", " "), "VALIDATION_ERROR"),
        (("create", "pay_x"), "PAYMENT_NOT_FOUND"),
        (("create", "pay_x", "--amount", "1e3"), "VALIDATION_ERROR"),
    ],
)
def test_refused_is_1_with_its_code(call: Call, account_id: str, arguments: tuple[str, ...], code: str) -> None:
    assert account_id
    outcome = call("refund", *arguments, "--json")
    assert (outcome.status, outcome.document["error"]["code"]) == (1, code)


@pytest.mark.parametrize("arguments", [("reject", NOBODY), ("list", "--status", "garbage"), ("create",)])
def test_wrong_usage_is_2(call: Call, arguments: tuple[str, ...]) -> None:
    assert call("refund", *arguments).status == 2


def test_money_in_suspense_is_returned(call: Call, folder: Path, account_id: str) -> None:
    mismatch = inside(folder, paid(account_id, 60_00))

    async def reject(ports: Ports) -> str:
        return (await resolve_mismatch(ports, mismatch, "failed")).id

    inside(folder, reject)
    [row] = call("payment", "suspense", "--json").document["data"]
    outcome = call("payment", "return", row["id"], "--json")
    assert (outcome.status, outcome.document) == (0, row)
    inside(folder, jobs_done)
    assert call("payment", "suspense", "--json").document == {"data": []}
    again = call("payment", "return", row["id"], "--json")
    assert (again.status, again.document["error"]["code"]) == (1, "INVALID_STATE")
    unknown = call("payment", "return", "sus_x", "--json")
    assert (unknown.status, unknown.document["error"]["code"]) == (1, "SUSPENSE_NOT_FOUND")


def test_unanswered_operations_are_listed_and_ended(call: Call, account_id: str) -> None:
    """`cambist operation` (docs/operations.md "What needs a person"); test_repeat_window.py tests its effects."""
    assert account_id
    assert call("operation", "list", "--json").document == {"data": []}
    unknown = call("operation", "end", NOBODY, "done", "--reason", "seen in the statement", "--json")
    assert (unknown.status, unknown.document["error"]["code"]) == (1, "NOT_FOUND")
    assert call("operation", "end", NOBODY, "perhaps").status == 2
