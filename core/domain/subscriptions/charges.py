"""The body of POST /subscriptions/{id}/charges, and the order of its refusals: CHARGE_RULES
(docs/subscriptions.md "When a charge is refused"); and when a charge may be made (docs/subscriptions.md "Charging")."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.accounts import Scheme, Settings
from ..accounts.receipts import receipts_lack
from ..days import iso_moscow
from ..errors import Refusal
from ..money import Rub
from ..receipts.carts import Cart
from ..receipts.orders import Contact, ReceiptOrder, cart_of
from ..shapes import check_text
from .charge_decisions import (
    Blocked,
    ChargeDecision,
    ChargeWindow,
    Exhausted,
    MayCharge,
    Occupied,
    TooEarly,
    charge_window,
    decide_charge,
)
from .orders import TEXT_LONGEST, check_amount
from .subscriptions import Subscription


class ChargeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The body of POST /subscriptions/{id}/charges. Other keys are ignored silently
    (docs/subscriptions.md "Charging")."""

    amount_rub: Annotated[shared.RubText, shared.AMOUNT_RUB]
    external_id: Annotated[Annotated[str, shared.limits(maxLength=256)] | None, shared.EXTERNAL_ID] = None
    receipt: Annotated[
        ReceiptOrder | None,
        Meta(description="Items of the receipt by 54-FZ; without them the receipt has one item, by your settings"),
    ] = None


class ChargeCase(msgspec.Struct, frozen=True, kw_only=True):
    """An order together with everything that its rules check, read beforehand."""

    order: ChargeOrder
    recurring: bool
    """The account's setting."""
    subscription: Subscription | None
    """None if the caller has no such subscription in this mode."""
    provider: bool
    """Whether the bank with the mandate is wired and can charge it."""
    receipt_lacks: tuple[str, ...] = ()
    """Missing settings of the account for the receipt that the bank requires."""
    settings: Settings = Settings()
    """The account's settings, for a receipt with items."""
    now: datetime

    @property
    def found(self) -> Subscription:
        """The subscription; valid only after the rule that finds it."""
        if self.subscription is None:
            raise ValueError("the subscription was not found")
        return self.subscription

    @property
    def amount(self) -> Rub:
        """The amount; valid only after the shape rule. Raises: ValueError."""
        return Rub.parse(self.order.amount_rub)

    @property
    def cart(self) -> Cart | None:
        """The order's receipt, if it has one; valid only after the shape rule. Raises: Refusal."""
        receipt = self.order.receipt
        return None if receipt is None else cart_of(receipt, self.amount, self.settings, Contact())

    @property
    def decision(self) -> ChargeDecision:
        """The decision; valid only after the rule about the mandate. Raises: ValueError."""
        return decide_charge(self.found.terms, self.found.charge_state, self.now)


def _shape(case: ChargeCase) -> None:
    check_amount("amount_rub", case.order.amount_rub)
    check_text("external_id", case.order.external_id, TEXT_LONGEST)
    case.cart  # noqa: B018 - read here, because it may break a rule


def _recurring_is_on(case: ChargeCase) -> None:
    if not case.recurring:
        raise Refusal("RECURRING_NOT_SUPPORTED", "Charges by mandate are not available for this account")


def _subscription_is_found(case: ChargeCase) -> None:
    if case.subscription is None:
        raise Refusal("SUBSCRIPTION_NOT_FOUND", "No subscription of this id")


def _mandate_is_active(case: ChargeCase) -> None:
    if not case.found.can_be_charged:
        raise Refusal("CHARGE_MANDATE_INACTIVE", f"The subscription is {case.found.status} or has no valid mandate")


def _above_zero(case: ChargeCase) -> None:
    if case.amount <= Rub(0):
        raise Refusal("INVALID_AMOUNT", "amount_rub must be above zero")


def _within_cap(case: ChargeCase) -> None:
    if case.amount > case.found.cap_amount:
        raise Refusal("CAP_EXCEEDED", f"A charge is at most {case.found.cap_amount} RUB")


def _within_window_cap(case: ChargeCase) -> None:
    # In both schemes a period has at most one charge that did not fail, so this charge is the period's whole sum.
    if case.found.cap_window is not None and case.amount > case.found.cap_window:
        raise Refusal("CAP_EXCEEDED", f"A period takes at most {case.found.cap_window} RUB")


def _provider_is_ready(case: ChargeCase) -> None:
    if not case.provider:
        raise Refusal("PROVIDER_NOT_CONFIGURED", "Charges by subscription are not available at present")


def _receipt_is_known(case: ChargeCase) -> None:
    if case.receipt_lacks:
        raise receipts_lack(case.receipt_lacks)


def _period_is_free(case: ChargeCase) -> None:
    decision, asked = case.decision, case.order.external_id
    if isinstance(decision, Occupied) and asked is not None and asked != decision.external_id:
        raise Refusal("CHARGE_PERIOD_OCCUPIED", "The period already holds a charge with another external_id")


def _window_is_open(case: ChargeCase) -> None:
    decision = case.decision
    if isinstance(decision, TooEarly):
        raise Refusal(
            "CHARGE_BEFORE_WINDOW",
            "The present period is paid; the next one has not begun",
            details={"next_allowed_at": iso_moscow(decision.next_allowed_at)},
        )


def _budget_is_left(case: ChargeCase) -> None:
    decision = case.decision
    if isinstance(decision, Exhausted):
        raise Refusal(
            "RECURRING_CHARGE_EXHAUSTED",
            "The attempts of this period are used up",
            details={"next_allowed_at": iso_moscow(decision.next_allowed_at)},
        )


class ChargeRule(msgspec.Struct, frozen=True):
    """One reason to refuse. `check` raises its Refusal; it may rely on the rules before it."""

    name: str
    check: Callable[[ChargeCase], None]


CHARGE_RULES = (
    ChargeRule("shape", _shape),
    ChargeRule("recurring is on", _recurring_is_on),
    ChargeRule("subscription is found", _subscription_is_found),
    ChargeRule("mandate is active", _mandate_is_active),
    ChargeRule("above zero", _above_zero),
    ChargeRule("within cap", _within_cap),
    ChargeRule("within window cap", _within_window_cap),
    ChargeRule("provider is ready", _provider_is_ready),
    ChargeRule("receipt is known", _receipt_is_known),
    ChargeRule("period is free", _period_is_free),
    ChargeRule("window is open", _window_is_open),
    ChargeRule("budget is left", _budget_is_left),
)
"""Order of the refusals of a charge (docs/concepts.md "What is refused first"): the account before the object, its
state, then the amount. The provider comes before the period, because without one every charge on an active subscription
gets that refusal (docs/subscriptions.md "When a charge is refused"); faults of the request itself come before both. The
period is last: only this refusal goes away by waiting, and the answer may be an earlier charge."""


def judge_charge(case: ChargeCase) -> MayCharge | Blocked | Occupied:
    """Decide about the order: a new attempt, or an earlier charge that is the answer (200, without a call to the bank).

    In every case, even after a refusal because of the period, the same unit must send `decide_charge(…).announce`.
    Raises: the Refusal of the first rule that the order breaks.
    """
    for rule in CHARGE_RULES:
        rule.check(case)
    decision = case.decision
    if isinstance(decision, (MayCharge, Blocked, Occupied)):
        return decision
    raise ValueError(f"no rule knows {type(decision).__name__}")


def subscription_window(subscription: Subscription, now: datetime) -> ChargeWindow:
    """Return the content of `GET /subscriptions/{id}/charge-window`, from the function that guards charges. Without a
    valid mandate it still shows the period, if there is one."""
    if subscription.scheme is Scheme.WINDOW and subscription.anchor is None:
        return ChargeWindow(reason="CHARGE_MANDATE_INACTIVE")
    window = charge_window(subscription.terms, subscription.charge_state, now)
    if subscription.can_be_charged:
        return window
    return msgspec.structs.replace(window, can_charge=False, reason="CHARGE_MANDATE_INACTIVE", next_allowed_at=None)
