"""Refunds: the application, its states, and the order in which a new one is refused (docs/refunds.md "Rules")."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from ..accounts.accounts import Mode
from ..accounts.terminals import Terminal
from ..errors import Refusal, shape_error
from ..machine import Move, Moves
from ..masked import Masked
from ..money import Rub, Usdt
from ..payloads import RefundEvent
from ..payments.payments import Payment, PaymentStatus, PaymentTrigger
from ..shapes import check_text

APPLICATIONS_MAX = 10
"""How many refund applications a payment may ever have, of any status (docs/limits.md "Sizes")."""
EXTERNAL_ID_LONGEST = 256
REASON_LONGEST = 255
WAITS_FOR_MONEY = timedelta(days=14)
"""How long after its approval a refund waits for money before it is rejected (docs/refunds.md "The money")."""


class RefundStatus(StrEnum):
    """See docs/refunds.md "How it ends"."""

    PENDING = "pending"
    """Accepted; no money was touched."""
    PROCESSING = "processing"
    """At the bank."""
    COMPLETED = "completed"
    REVERSED = "reversed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    FAILED = "failed"


class PendingReason(StrEnum):
    """What a pending refund waits for."""

    AWAITING_APPROVAL = "awaiting_approval"
    INSUFFICIENT_BALANCE = "insufficient_balance"


class RefundTrigger(StrEnum):
    """What moves a refund."""

    SENT = "sent to the bank"
    REJECTED = "an operator or a rule refused"
    CANCELLED = "the merchant cancelled"
    PAID = "the payer has the money"
    REFUSED = "the bank refused"
    CAME_BACK = "the money came back"


_S = RefundStatus
_T = RefundTrigger

REFUND_MOVES: Moves[RefundStatus, RefundTrigger] = Moves(
    (
        Move(_S.PENDING, _S.PROCESSING, _T.SENT),
        Move(_S.PENDING, _S.REJECTED, _T.REJECTED),
        Move(_S.PENDING, _S.CANCELLED, _T.CANCELLED),
        Move(_S.PROCESSING, _S.COMPLETED, _T.PAID),
        Move(_S.PROCESSING, _S.FAILED, _T.REFUSED),
        Move(_S.COMPLETED, _S.REVERSED, _T.CAME_BACK),
    )
)
"""The moves (docs/states.md "Refund"). The ends but for `cancelled` send an event; `completed` and `reversed` may move
the payment."""

TOLD: Mapping[RefundStatus, RefundEvent] = {
    _S.COMPLETED: "refund.completed",
    _S.REJECTED: "refund.rejected",
    _S.FAILED: "refund.failed",
    _S.REVERSED: "refund.reversed",
}
"""The events of a refund's moves. A merchant who cancels knows it: `cancelled` has none."""

_OPEN = frozenset((_S.PENDING, _S.PROCESSING))
_COUNTED = _OPEN | {_S.COMPLETED}
"""What takes from the remainder: money that is gone, on its way, or promised."""
_TAKEN = frozenset((_S.PROCESSING, _S.COMPLETED))
_REFUNDABLE = frozenset((PaymentStatus.PAID, PaymentStatus.SETTLED))


class Refund(msgspec.Struct, frozen=True, kw_only=True):
    """One refund application of a payment, in the payment's account, mode and shop."""

    id: str
    account_id: str
    mode: Mode
    payment_id: str
    shop_id: str
    status: RefundStatus
    amount: Rub
    created_at: datetime
    pending_reason: PendingReason | None = None
    """While pending; null when nothing is in its way."""
    external_id: str | None = None
    reason: str | None = None
    """The merchant's words."""
    failure_reason: str | None = None
    """Why it was rejected or failed."""
    metadata: dict[str, Any] | None = None
    key_id: str | None = None
    """The record of the Idempotency-Key that made it; null where none did (an operator's)."""
    approved_at: datetime | None = None
    executing_since: datetime | None = None
    """When it became `processing`: its money is taken, the bank may have been asked."""
    completed_at: datetime | None = None
    taken_rub: Rub | None = None
    """What it took, or had taken, from the merchant's pending RUB: of a payment not settled yet."""
    taken_usdt: Usdt | None = None
    """What it took, or had taken, from the merchant's available USDT: of a settled one."""
    rate_market: str | None = None
    """The rate that it took them at: that of the payment's settlement."""
    contradicted_at: datetime | None = None
    """When the bank said that it had sent the money after all, of a refund that it had failed: `failed` is final, the
    merchant has the money again, and the payer has it, too. Or that it had failed, of one that is completed: nobody but
    the bank has the money. An operator settles that with bank and merchant."""
    contradiction_seen: bool = False
    """An operator has settled it."""
    sequence: int = 0
    """Rises by one with every event about it; the webhook header X-Webhook-Sequence."""
    version: int = 0


class RefundOrder(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /refunds, word for word. A null counts as absent; without an amount it asks for all that is
    left."""

    _shown = ("payment_id", "amount_rub")

    payment_id: str
    amount_rub: str | None = None
    external_id: str | None = None
    reason: str | None = None
    metadata: dict[str, Any] | None = None
    """Kept as it is: the service writes nothing into a refund's metadata, so no key of it is reserved."""


def moved_to(refund: Refund, trigger: RefundTrigger, **changes: Any) -> Refund:
    """The refund after its trigger, with what else the move changes. Nobody else writes a refund's status; its sequence
    rises where the move has an event.

    Raises: IllegalMove for a trigger that does not move a refund of this status.
    """
    status = REFUND_MOVES.move(refund.status, trigger)
    sequence = refund.sequence + (status in TOLD)
    return msgspec.structs.replace(refund, status=status, sequence=sequence, pending_reason=None, **changes)


def is_open(refund: Refund) -> bool:
    """It has no outcome yet. A payment with such a refund is `refund_pending` (docs/payments.md "What you get")."""
    return refund.status in _OPEN


def waits_for_money(refund: Refund) -> bool:
    """It is approved, and the merchant's money did not cover it."""
    return refund.status is _S.PENDING and refund.pending_reason is PendingReason.INSUFFICIENT_BALANCE


def gives_up_at(refund: Refund) -> datetime:
    """From when on a refund that still waits for money is rejected. It is tried again before whenever there may be
    some, and a new approval gives it no more time."""
    return (refund.approved_at or refund.created_at) + WAITS_FOR_MONEY


def is_given_up(refund: Refund, now: datetime) -> bool:
    """Whether one that waits for money has waited long enough."""
    return waits_for_money(refund) and now >= gives_up_at(refund)


def holds_money(refund: Refund) -> bool:
    """What it took is not given back."""
    return refund.status in _TAKEN


def remainder(payment: Payment, refunds: Iterable[Refund]) -> Rub:
    """What may still be refunded: what came, less `refunds` (all of this payment) that are pending, processing or
    completed (docs/refunds.md "Rules"). The fee is no part of it: a refund does not return it."""
    return _came(payment) - _sum(refund for refund in refunds if refund.status in _COUNTED)


def refunded_by(payment: Payment, refunds: Iterable[Refund]) -> PaymentTrigger | None:
    """What moves a payment of which these are all refunds: it is `refunded` while the completed ones reach what came.
    None: it stays."""
    came = _came(payment)
    is_full = came > Rub(0) and _sum(refund for refund in refunds if refund.status is _S.COMPLETED) >= came
    if is_full is (payment.status is PaymentStatus.REFUNDED):
        return None
    if is_full:
        return PaymentTrigger.REFUNDED
    return PaymentTrigger.RESTORED if payment.settled_at is None else PaymentTrigger.RESTORED_SETTLED


def _came(payment: Payment) -> Rub:
    return payment.actual_amount or Rub(0)


def _sum(refunds: Iterable[Refund]) -> Rub:
    return sum((refund.amount for refund in refunds), Rub(0))


class RefundCase(msgspec.Struct, frozen=True, kw_only=True):
    """An order with all that its rules look at, read beforehand."""

    order: RefundOrder
    payment: Payment | None
    """Of `payment_id`; None when the caller has none of it in this mode."""
    refunds: Sequence[Refund] = ()
    """All of the payment, whatever became of them."""
    terminal: Terminal | None = None
    """The payment's; None when it went by none."""

    @property
    def found(self) -> Payment:
        """The payment, after the rule that it is found."""
        if self.payment is None:
            raise ValueError("the payment was not found")
        return self.payment

    @property
    def amount(self) -> Rub:
        """What the refund is of: what is asked for, else the remainder. Only after the rules of shape and of the
        payment being found. Raises: ValueError."""
        if self.order.amount_rub is None:
            return remainder(self.found, self.refunds)
        return Rub.parse(self.order.amount_rub)


def _shape(case: RefundCase) -> None:
    order = case.order
    if order.amount_rub is not None:
        try:
            Rub.parse(order.amount_rub)
        except ValueError as error:
            raise shape_error("amount_rub", str(error)) from None
    check_text("external_id", order.external_id, EXTERNAL_ID_LONGEST)
    check_text("reason", order.reason, REASON_LONGEST)


def _payment_is_found(case: RefundCase) -> None:
    if case.payment is None:
        raise Refusal("PAYMENT_NOT_FOUND", "No payment of this id")


def _payment_is_refundable(case: RefundCase) -> None:
    if case.found.status not in _REFUNDABLE:
        raise Refusal("INVALID_STATUS", f"The payment is {case.found.status}; only paid and settled ones are refunded")


def _applications(case: RefundCase) -> None:
    if len(case.refunds) >= APPLICATIONS_MAX:
        raise Refusal("LIMIT_PER_PAYMENT", f"A payment has at most {APPLICATIONS_MAX} refund applications")


def _above_zero(case: RefundCase) -> None:
    if case.order.amount_rub is not None and case.amount <= Rub(0):
        raise Refusal("INVALID_AMOUNT", "amount_rub must be above zero")


def _whole_before_settlement(case: RefundCase) -> None:
    is_bound = case.terminal is not None and case.terminal.credit_follows_receipt
    # An order for all that is left, of which nothing is left, is no partial one: the next rule refuses it.
    is_partial = Rub(0) < case.amount < _came(case.found)
    if is_bound and is_partial and case.found.status is PaymentStatus.PAID:
        raise Refusal("PARTIAL_BEFORE_SETTLEMENT", "By this terminal a payment is refunded in part only when settled")


def _within_remainder(case: RefundCase) -> None:
    left = remainder(case.found, case.refunds)
    if left <= Rub(0):
        raise Refusal("OVER_REMAINING", "Nothing is left of the payment to refund")
    if case.amount > left:
        raise Refusal("OVER_REMAINING", f"{left} RUB are left of the payment to refund")


class RefundRule(msgspec.Struct, frozen=True):
    """One reason to refuse. `check` raises its Refusal; it may rely on the rules before it."""

    name: str
    check: Callable[[RefundCase], None]


RULES = (
    RefundRule("shape", _shape),
    RefundRule("payment is found", _payment_is_found),
    RefundRule("payment is refundable", _payment_is_refundable),
    RefundRule("applications", _applications),
    RefundRule("above zero", _above_zero),
    RefundRule("whole before settlement", _whole_before_settlement),
    RefundRule("within remainder", _within_remainder),
)
"""The order in which POST /refunds is refused: the object before the amount, as everywhere
(docs/concepts.md "What is refused first"), and that an amount is above zero before anything compares it."""


def judge_refund(case: RefundCase) -> None:
    """Raises: the Refusal of the first rule that the order breaks."""
    for rule in RULES:
        rule.check(case)
