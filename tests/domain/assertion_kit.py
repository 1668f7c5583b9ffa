"""Builders of a unit's writes, for the tests of the rules that forbid some of them (docs/reliability.md
"Assertions")."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.assertions import Change, Written, breach_of
from cambist.core.domain.ledger import BalanceType, EntryKind, JournalEntry, balances_moved, journal_entry
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.tallies import Tally, tallies_of
from cambist.core.domain.refunds.refunds import RefundStatus
from cambist.core.domain.settlement.settlement import ItemKind, SettlementItem
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.domain.webhooks.events import Event
from tests.domain import refund_kit

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
P, R, W, K = PaymentStatus, RefundStatus, WithdrawalStatus, EntryKind
replaced: Any = msgspec.structs.replace
PAID = refund_kit.payment(sequence=1)
NEW = refund_kit.payment(P.PENDING, actual_amount=None)
WAITS = refund_kit.refund(R.PENDING, Rub(40_00))
PAYOUT = Withdrawal(
    id="wd_1",
    account_id="acc_1",
    mode=Mode.LIVE,
    status=W.PENDING,
    amount=Usdt(500),
    wallet="T",
    sender="s",
    network="tron",
    created_at=NOW,
    sequence=1,
)
LINE = SettlementItem(
    id="set_1:pay_1",
    settlement_id="set_1",
    payment_id="pay_1",
    shop_id="shop",
    kind=ItemKind.PAYMENT,
    amount=Rub(100_00),
    markup="0",
    fee=Usdt(0),
    credit=Usdt(7),
)


def entry(kind: EntryKind, object_id: str, revision: int = 1, **postings: int) -> JournalEntry:
    moved = {BalanceType(name): amount for name, amount in postings.items()}
    return journal_entry(kind, object_id, account_id="acc_1", mode=Mode.LIVE, at=NOW, postings=moved, revision=revision)


def event(object_id: str, sequence: int, previous: str = "paid") -> Event:
    return Event(
        id=f"evt_{object_id}_{sequence}",
        account_id="acc_1",
        mode=Mode.LIVE,
        type="payment.status_changed",
        object_id=object_id,
        sequence=sequence,
        body=f'{{"previous_status":"{previous}"}}'.encode(),
        created_at=NOW,
    )


def change(before: Any, **fields: Any) -> Change:
    """Return the change of an object that the unit has read."""
    return Change(before=before, after=replaced(before, **fields))


def new(after: Any) -> Change:
    return Change(before=None, after=after, is_new=True)


def unread(after: Any) -> Change:
    return Change(before=None, after=after)


def gone(before: Any) -> Change:
    return Change(before=before, after=None)


def written(*changes: Change, **fields: Any) -> Written:
    return Written(
        body_of=lambda event: event.body, changes={(each.after or each.before).id: each for each in changes}, **fields
    )


def booked(*entries: JournalEntry, by: int = 0) -> dict[str, Any]:
    """Entries, and the running balances that follow from them, or are off `by` units."""
    balances: dict[str, int] = {}
    for each in entries:
        for row in balances_moved(each):
            balances[row.id] = balances.get(row.id, 0) + row.balance
    first = next(iter(balances))
    return {"entries": [*entries], "balances": {**balances, first: balances[first] + by}}


def counted(payment: Payment, count: int = 1) -> list[Tally]:
    return [*tallies_of(payment, count)]


def broken(given: Written) -> str | None:
    breach = breach_of(given)
    return None if breach is None else breach.rule
