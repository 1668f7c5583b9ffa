"""The check of rows beside the journal against it and their tags (ARCHITECTURE.md "Money"): the rows that it names, by
rule. Altered installations as a whole are in tests/attacks/test_money_rows.py."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Mode, Settings
from cambist.core.domain.ledger import EntryKind
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.usecases.common.encrypted import tag_withdrawal
from cambist.core.usecases.ledger import value_check
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from tests.apps import TestApp
from tests.domain.refund_kit import payment
from tests.payout_kit import OTHER_WALLET, WALLET
from tests.planting import beneath
from tests.tables import table

P, W = PaymentStatus, WithdrawalStatus
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HUNDRED = {"amount": Rub(100_00), "actual_amount": Rub(100_00)}
LESS = {"amount": Rub(100_00), "actual_amount": Rub(60_00)}
NOTHING = {"amount": Rub(1_00), "actual_amount": Rub(0)}
KOPECK = {"amount": Rub(100_00), "actual_amount": Rub(1)}
NO_WORD = {"amount": Rub(100_00), "actual_amount": None}


@table(
    ("status", "amounts", "booked", "named"),
    [
        (P.PENDING, NO_WORD, {}, None),
        (P.PENDING, NO_WORD, {"receipt": 100_00}, "payments.status"),
        (P.FAILED, LESS, {"review_accepted": 60_00}, "payments.status"),
        (P.AMOUNT_MISMATCH, LESS, {"review": 60_00}, None),
        (P.AMOUNT_MISMATCH, LESS, {"review": 60_01}, "payments.actual_amount"),
        (P.AMOUNT_MISMATCH, LESS, {}, None),
        (P.FAILED, LESS, {"review": 60_01}, None),
        (P.PAID, HUNDRED, {"receipt": 100_00}, None),
        (P.PAID, HUNDRED, {"receipt": 100_01}, "payments.actual_amount"),
        (P.PAID, LESS, {"receipt": 60_00}, "payments.amount"),
        (P.PAID, LESS, {"review": 60_00, "review_accepted": 60_00}, None),
        (P.PAID, LESS, {"review": 60_00, "review_accepted": 60_01}, "payments.actual_amount"),
        (P.PAID, HUNDRED, {}, "payments.actual_amount"),
        (P.PAID, KOPECK, {}, "payments.actual_amount"),
        (P.PAID, NO_WORD, {"receipt": 1}, "payments.actual_amount"),
        (P.PAID, NOTHING, {}, None),
    ],
)
def test_a_payment_is_what_its_entries_say(
    status: PaymentStatus, amounts: dict[str, Any], booked: dict[str, int], named: str | None
) -> None:
    came = {kind: booked.get(kind.value) for kind in (EntryKind.RECEIPT, EntryKind.REVIEW, EntryKind.REVIEW_ACCEPTED)}
    found = value_check._faults_of_payment(payment(status, **amounts), came)
    assert [field for field, _ in found] == ([] if named is None else [named])


UNITS = 5_000000
AMOUNT, WHERE = "withdrawals.amount", "withdrawals.wallet"


@pytest.mark.parametrize(
    ("status", "is_tagged", "altered", "reserved", "named"),
    [
        (W.PENDING, True, {}, UNITS, []),
        (W.PENDING, True, {}, None, [AMOUNT]),
        (W.PENDING, True, {}, UNITS + 1, [AMOUNT]),
        (W.PENDING, True, {"wallet": OTHER_WALLET}, UNITS, [WHERE]),
        (W.PENDING, False, {}, UNITS, [WHERE]),
        (W.COMPLETED, False, {}, UNITS, [WHERE]),
        (W.CANCELLED, False, {}, UNITS, []),
        (W.COMPLETED, True, {}, UNITS, []),
        (W.COMPLETED, True, {"wallet": OTHER_WALLET}, UNITS, [WHERE]),
        (W.COMPLETED, True, {"amount": Usdt(UNITS + 1)}, UNITS, [AMOUNT, WHERE]),
    ],
)
async def test_a_payout_is_what_was_reserved_and_tagged(
    app: TestApp,
    status: WithdrawalStatus,
    is_tagged: bool,
    altered: dict[str, Any],
    reserved: int | None,
    named: list[str],
) -> None:
    """A payout made under altered settings has no tag, and an operator cancels it."""
    made = Withdrawal(
        id="wd_1",
        account_id="acc_1",
        mode=Mode.LIVE,
        status=status,
        amount=Usdt(UNITS),
        wallet=WALLET,
        sender="simulator-live",
        network="tron",
        created_at=NOW,
        sequence=1,
    )
    made = tag_withdrawal(app.ports.vault, made) if is_tagged else made
    found = value_check._faults_of_payout(app.ports.vault, msgspec.structs.replace(made, **altered), reserved)
    assert [field for field, _ in found] == named


@pytest.mark.parametrize(("mode", "named"), [("live", ["payments.id"]), ("test", [])])
async def test_a_payment_that_is_gone_is_named_where_none_is_forgotten(
    app: TestApp, mode: str, named: list[str]
) -> None:
    """Rows of test mode may be removed (docs/sandbox.md "Forgetting")."""
    app.made_up = True
    ids = []
    for _ in range(3):
        ids.append((await app.create(mode=mode)).json()["id"])
        await app.told(ids[-1], Simulation(status=InvoiceStatus.PAID))
    for gone in (ids[1], ids[2]):  # between others, and behind them
        before = (await verify_ledger(app.ports)).bad_values
        async with beneath(app.ports).unit() as unit:
            found = await unit[Payment].get(gone)
            assert found is not None
            unit[Payment].remove(found)
            await unit.commit()
        fresh = [each for each in (await verify_ledger(app.ports)).bad_values if each not in before]
        assert [(each.id, each.field) for each in fresh] == [(gone, field) for field in named]


async def test_bad_values_are_named_up_to_a_bound(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_check, "MOST", 2)
    app.made_up = True
    forged = Settings(payout_wallet=OTHER_WALLET)
    async with beneath(app.ports).unit() as unit:
        for number in range(3):
            account_id = f"acc_{number}"
            unit[Account].add(Account(id=account_id, name="x", default_shop_id="shop", created_at=NOW, settings=forged))
        await unit.commit()
    report = await verify_ledger(app.ports)
    assert [(each.id, each.field) for each in report.bad_values] == [
        (f"acc_{number}", "accounts.settings") for number in range(2)
    ]
