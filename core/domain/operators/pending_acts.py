"""Two pairs of eyes: operators' acts that wait until another operator confirms them, and what makes one wait.

What an act decides is read off the records that it writes, whichever use case writes them: so is what the second
operator is shown, and what confirming holds against the state that is there then.
"""

import unicodedata
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from ..accounts.accounts import Account, Mode
from ..exchanges.funds import ExchangeTransfer
from ..ledger import Currency
from ..money import Rub, Usdt
from ..payments.payments import Payment, PaymentStatus
from ..payments.suspense import RETURN_ENDED, Suspense
from ..refunds.refunds import Refund, RefundStatus

ACT = "act_"

_OVER = frozenset((RefundStatus.REJECTED, RefundStatus.CANCELLED, RefundStatus.FAILED, RefundStatus.REVERSED))


class Guarded(StrEnum):
    """What an installation may have confirmed by a second operator."""

    PAYOUT_WALLET = "payout_wallet"
    """Where a merchant's money goes to."""
    REFUNDS = "refunds"
    """An operator's word that a refund is sent, where it is above a sum. Live mode only."""
    SUSPENSE = "suspense"
    """What becomes of money that came and could move nothing: sent back or credited. Live mode only."""


class ActStatus(StrEnum):
    """Where an act stands. One whose time is over still says `waiting` until somebody asks for the same."""

    WAITING = "waiting"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    """By who asked for it."""
    EXPIRED = "expired"


class Line(msgspec.Struct, frozen=True):
    """One field as it stood, and as the act makes it; the same twice where the act leaves it."""

    field: str
    before: str
    after: str


class PendingAct(msgspec.Struct, frozen=True, kw_only=True):
    """One act that an operator asked for. It takes effect with its confirmation, in one commit."""

    id: str
    """`act_<uuid>`; rises with time."""
    use_case: str
    """What carries it out (core/usecases/operators/pending_acts.py)."""
    act: str
    """The audit log's word for it: `refund.approve`."""
    object_id: str
    account_id: str | None
    mode: Mode | None
    """Null: of both modes."""
    arguments: dict[str, str]
    """What the use case is told besides the object."""
    shown: tuple[Line, ...]
    """What it decides, as it was when it was asked for."""
    operator: str
    """Who asked."""
    reason: str
    created_at: datetime
    expires_at: datetime
    status: ActStatus = ActStatus.WAITING
    decided_by: str | None = None
    decided_at: datetime | None = None
    slot: str | None = None
    """Use case and object, while it waits: no second one waits beside it."""
    tag: bytes | None = None
    """The vault's, over who asked for what, when and why."""
    version: int = 0


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What one written record decides."""

    guarded: Guarded
    record_id: str
    account_id: str
    mode: Mode | None
    lines: tuple[Line, ...]
    refund: Refund | None = None
    """The refund that is to be sent."""


def slot_of(use_case: str, object_id: str) -> str:
    """The one place in which an act of this kind on this object waits."""
    return f"{use_case}:{object_id}"


def is_waiting(act: PendingAct, now: datetime) -> bool:
    """It can be confirmed."""
    return act.status is ActStatus.WAITING and now < act.expires_at


def status_at(act: PendingAct, now: datetime) -> ActStatus:
    """Its status, which time may have ended."""
    return ActStatus.EXPIRED if act.status is ActStatus.WAITING and now >= act.expires_at else act.status


def decided(act: PendingAct, status: ActStatus, operator: str | None, now: datetime) -> PendingAct:
    """The act at its end."""
    return msgspec.structs.replace(act, status=status, decided_by=operator, decided_at=now, slot=None)


def expiry(now: datetime, days: int) -> datetime:
    """Until when an act of now waits."""
    return now + timedelta(days=days)


def is_same_operator(one: str, other: str) -> bool:
    """Whether two names are one person's: capitals, blanks and ways of writing a letter make no second one."""
    return _folded(one) == _folded(other)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()


def may_decide(after: Any) -> bool:
    """Whether it can be a decision at all, by itself: of most records nobody need read what stands there."""
    match after:
        case Account():
            return True
        case Refund():
            return after.mode is Mode.LIVE and after.status is RefundStatus.PENDING and after.approved_at is not None
        case Suspense():
            return after.mode is Mode.LIVE and after.resolved_at is None
        case Payment():
            return after.mode is Mode.LIVE and after.status in (PaymentStatus.PAID, PaymentStatus.FAILED)
        case ExchangeTransfer():
            return after.mode is Mode.LIVE and after.sent_back is not None
    return False


def decision(before: Any, after: Any) -> Decision | None:
    """What an operator decides by writing `after` where `before` stands (None: nothing). None: nothing of `Guarded`."""
    match after:
        case Account():
            return _of_wallet(before, after)
        case Refund():
            return _of_refund(before, after)
        case Suspense():
            return _of_suspense(before, after)
        case Payment():
            return _of_review(before, after)
        case ExchangeTransfer():
            return _of_return(before, after)
    return None


def _of_wallet(before: Account | None, after: Account) -> Decision | None:
    was = None if before is None else before.settings.payout_wallet
    becomes = after.settings.payout_wallet
    if was == becomes:
        return None
    lines = (Line("account", after.name, after.name), Line("payout_wallet", was or "-", becomes or "-"))
    return Decision(guarded=Guarded.PAYOUT_WALLET, record_id=after.id, account_id=after.id, mode=None, lines=lines)


def _of_refund(before: Refund | None, after: Refund) -> Decision | None:
    """One that is tried again, approved as it is, decides nothing anew."""
    if after.approved_at is None or (before is not None and before.approved_at is not None):
        return None
    if after.mode is not Mode.LIVE:
        return None
    amount = f"{after.amount} RUB"
    lines = (
        Line("payment", after.payment_id, after.payment_id),
        Line("refund", "-" if before is None else f"{before.amount} RUB", amount),
        Line("approved", "-" if before is None else f"no, {before.status}", "yes"),
    )
    return Decision(
        guarded=Guarded.REFUNDS,
        record_id=after.id,
        account_id=after.account_id,
        mode=after.mode,
        lines=lines,
        refund=after,
    )


def _of_suspense(before: Suspense | None, after: Suspense) -> Decision | None:
    """Written without being new, settled or failed: it is to be sent back."""
    if before is None or before.resolved_at is not None or after.resolved_at is not None or after.mode is not Mode.LIVE:
        return None
    if after.reason in RETURN_ENDED:
        # It was said that an attempt failed.
        return None
    lines = (
        Line("payment", after.payment_id, after.payment_id),
        Line("suspended", f"{before.amount} RUB, {before.reason}", "back to who paid it"),
        Line("attempt", str(before.attempt), str(after.attempt)),
    )
    return _money(after, lines)


def _of_review(before: Payment | None, after: Payment) -> Decision | None:
    if before is None or after.mode is not Mode.LIVE:
        return None
    if before.status is not PaymentStatus.AMOUNT_MISMATCH or after.status is before.status:
        return None
    came = "unknown" if before.actual_amount is None else f"{before.actual_amount} RUB"
    goes = "-" if after.actual_amount is None else f"{after.actual_amount} RUB"
    ends = "credited" if after.status is PaymentStatus.PAID else "back to who paid it"
    lines = (
        Line("amount asked", f"{before.amount} RUB", f"{after.amount} RUB"),
        Line("came", came, f"{goes} {ends}"),
        Line("status", before.status, after.status),
    )
    return _money(after, lines)


def _of_return(before: ExchangeTransfer | None, after: ExchangeTransfer) -> Decision | None:
    back = after.sent_back
    if before is None or back is None or after.mode is not Mode.LIVE:
        return None
    if before.sent_back is not None and before.sent_back.number == back.number:
        return None
    amount = f"{Usdt(back.amount)} USDT" if after.currency is Currency.USDT else f"{Rub(back.amount)} RUB"
    lines = (
        Line("transfer", after.id, after.id),
        Line("suspended", f"{amount}, {before.reason}", "sent back"),
        Line("goes to", "-", back.address or "who paid it"),
        Line("attempt", str(back.number - 1), str(back.number)),
    )
    return _money(after, lines)


def _money(record: Suspense | Payment | ExchangeTransfer, lines: tuple[Line, ...]) -> Decision:
    return Decision(
        guarded=Guarded.SUSPENSE, record_id=record.id, account_id=record.account_id, mode=record.mode, lines=lines
    )


def all_refunded(refund: Refund, others: list[Refund]) -> Rub:
    """What a payment's payer gets with this refund: it, and all that were approved before and did not come to nothing.
    So that a large refund is no row of small ones."""
    approved = (each for each in others if each.approved_at is not None and each.status not in _OVER)
    return sum((each.amount for each in approved if each.id != refund.id), refund.amount)


def moved(shown: tuple[Line, ...], present: tuple[Line, ...]) -> str:
    """What is otherwise than it was shown, for operators."""
    there = {line.field: line for line in present}
    for line in shown:
        found = there.get(line.field)
        if found is None:
            return f"{line.field} is not to be decided any more"
        if found != line:
            return f"{line.field} was {line.before} → {line.after}, and is {found.before} → {found.after}"
    return "more would be decided than was shown"
