"""Refund applications, and the order of their refusals (docs/refunds.md "Rules")."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.terminals import Terminal
from ..errors import Refusal, shape_error
from ..masked import Masked
from ..money import Rub
from ..payments.payments import Payment, PaymentStatus
from ..receipts.orders import ReceiptOrder
from ..shapes import check_metadata, check_text
from .refunds import Refund, came_of, remainder

APPLICATIONS_MAX = 10
"""Number of refund applications that a payment may ever have, of any status (docs/limits.md "Sizes")."""
EXTERNAL_ID_LONGEST = 256
REASON_LONGEST = 255
_REFUNDABLE = frozenset((PaymentStatus.PAID, PaymentStatus.SETTLED))


class RefundOrder(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /refunds, field by field. Null counts as absent; without an amount the refund covers the
    remainder."""

    _shown = ("payment_id", "amount_rub")

    payment_id: Annotated[str, shared.PAYMENT_ID]
    amount_rub: Annotated[shared.RubText | None, Meta(description="Part to refund; the whole remainder if absent")] = (
        None
    )
    external_id: Annotated[Annotated[str, shared.limits(maxLength=256)] | None, shared.EXTERNAL_ID] = None
    reason: Annotated[
        Annotated[str, shared.limits(maxLength=255)] | None,
        Meta(description="Reason for people, at most 255 characters"),
    ] = None
    receipt: Annotated[
        ReceiptOrder | None,
        Meta(description="Items that are returned; without them each line of the payment's receipt in proportion"),
    ] = None
    metadata: Annotated[dict[str, Any] | None, shared.METADATA] = None
    """Stored unchanged: the service writes nothing into a refund's metadata, so no key is reserved."""


class RefundCase(msgspec.Struct, frozen=True, kw_only=True):
    """An order together with everything that its rules check, read beforehand."""

    order: RefundOrder
    payment: Payment | None
    """The payment of `payment_id`; None if the caller has no such payment in this mode."""
    refunds: Sequence[Refund] = ()
    """All refunds of the payment, of any status."""
    terminal: Terminal | None = None
    """The payment's terminal; None if it has none."""
    metadata_kb_max: int = 16
    """The account's setting."""

    @property
    def found(self) -> Payment:
        """The payment; valid only after the rule that finds it."""
        if self.payment is None:
            raise ValueError("the payment was not found")
        return self.payment

    @property
    def amount(self) -> Rub:
        """Amount of the refund: the requested amount, otherwise the remainder. Valid only after the rules that check
        the shape and find the payment. Raises: ValueError."""
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
    check_metadata(order.metadata, case.metadata_kb_max)


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
    # A request for a remainder of zero is not a partial refund: the next rule refuses it.
    is_partial = Rub(0) < case.amount < came_of(case.found)
    if is_bound and is_partial and case.found.status is PaymentStatus.PAID:
        raise Refusal("PARTIAL_BEFORE_SETTLEMENT", "This terminal allows partial refunds only after settlement")


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
"""Order of the refusals of POST /refunds: the object before the amount, as everywhere
(docs/concepts.md "What is refused first"); and an amount must be above zero before it is compared with anything."""


def judge_refund(case: RefundCase) -> None:
    """Check all rules in order. Raises: the Refusal of the first rule that the order breaks."""
    for rule in RULES:
        rule.check(case)
