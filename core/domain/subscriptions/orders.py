"""The body of POST /subscriptions, and the order of its refusals: RULES (docs/subscriptions.md "Making one";
docs/concepts.md "What is refused first")."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.accounts import Caller
from ..accounts.shops import Shop
from ..accounts.terminals import Terminal
from ..errors import Refusal, shape_error
from ..masked import Masked
from ..money import Rub
from ..payments.payments import BindingCharge
from ..shapes import check_text, check_uuid, has_control
from ..web_addresses import is_web_address, web_address_fault
from .periods import COUNT_HIGHEST, Interval
from .subscriptions import Subscription, SubscriptionStatus, masked_phone

TEXT_LONGEST = 256
"""Limit for `external_id` and `client_ref`."""
DESCRIPTION_LONGEST = 32
PHONE_LONGEST = 32


class SubscriptionOrder(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /subscriptions, field by field. Null counts as absent."""

    _shown = ("amount_rub", "interval")

    amount_rub: Annotated[shared.RubText, shared.AMOUNT_RUB]
    interval: Annotated[str, Meta(description="Unit of the period"), shared.among(Interval)]
    description: Annotated[
        str, Meta(description="Shown to the payer; 1 to 32 characters"), shared.limits(minLength=1, maxLength=32)
    ]
    interval_count: Annotated[
        int | None, Meta(description="Units per period: up to 365 days, 52 weeks or 12 months; default 1")
    ] = None
    external_id: Annotated[Annotated[str, shared.limits(maxLength=256)] | None, shared.EXTERNAL_ID] = None
    client_ref: Annotated[
        Annotated[str, shared.limits(maxLength=256)] | None, Meta(description="At most 256 characters; never returned")
    ] = None
    client_phone: Annotated[
        Annotated[str, shared.limits(maxLength=32)] | None,
        Meta(description="At most 32 characters; stored masked, never returned"),
    ] = None
    shop_id: Annotated[shared.UuidText | None, shared.SHOP_ID] = None
    method_id: Annotated[shared.UuidText | None, shared.METHOD_ID] = None
    success_url: Annotated[
        Annotated[str, shared.limits(format="uri", maxLength=2048)] | None,
        Meta(description="Address to which the payer returns; http or https"),
    ] = None
    binding_charge: Annotated[
        Annotated[str, shared.among(BindingCharge)] | None,
        Meta(description="`first`: binding makes the first charge; `none`: a symbolic 1 RUB that is not debited"),
    ] = None


class SubscriptionCase(msgspec.Struct, frozen=True, kw_only=True):
    """An order together with everything that its rules check, read beforehand."""

    order: SubscriptionOrder
    caller: Caller
    shop: Shop | None
    """The shop of `shop_id`, or the default one; None if it does not exist."""
    terminal: Terminal | None
    """The terminal of `method_id`; without `method_id`, the account's oldest enabled ordinary terminal. None if there
    is none, or while the account's terminals are off."""

    @property
    def amount(self) -> Rub:
        """The amount; valid only after the shape rule. Raises: ValueError."""
        return Rub.parse(self.order.amount_rub)


def check_amount(name: str, text: str | None) -> None:
    """Check that it is a decimal string of roubles. Raises: Refusal VALIDATION_ERROR."""
    try:
        _ = None if text is None else Rub.parse(text)
    except ValueError as error:
        raise shape_error(name, str(error)) from None


def _shape(case: SubscriptionCase) -> None:
    order = case.order
    check_amount("amount_rub", order.amount_rub)
    if order.interval not in tuple(Interval):
        raise shape_error("interval", f"must be one of: {', '.join(Interval)}")
    highest = COUNT_HIGHEST[Interval(order.interval)]
    if order.interval_count is not None and not 1 <= order.interval_count <= highest:
        raise shape_error("interval_count", f"is from 1 to {highest} with {order.interval}")
    if not 1 <= len(order.description.strip()) <= DESCRIPTION_LONGEST:
        raise shape_error("description", f"has 1 to {DESCRIPTION_LONGEST} characters after trimming")
    if has_control(order.description):
        raise shape_error("description", "has no control characters")
    check_text("external_id", order.external_id, TEXT_LONGEST)
    check_text("client_ref", order.client_ref, TEXT_LONGEST)
    check_text("client_phone", order.client_phone, PHONE_LONGEST)
    check_uuid("shop_id", order.shop_id)
    check_uuid("method_id", order.method_id)
    if order.success_url is not None and not is_web_address(order.success_url):
        raise shape_error("success_url", web_address_fault(order.success_url))
    if order.binding_charge is not None and order.binding_charge not in tuple(BindingCharge):
        raise shape_error("binding_charge", f"must be one of: {', '.join(BindingCharge)}")


def _acceptance(case: SubscriptionCase) -> None:
    if not case.caller.account.settings.acceptance:
        raise Refusal("PAYMENT_UNAVAILABLE", "Acceptance is not available for this account")


def _shop_is_known(case: SubscriptionCase) -> None:
    if case.shop is None or case.shop.account_id != case.caller.account_id:
        raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this shop_id")


def _shop_is_enabled(case: SubscriptionCase) -> None:
    if case.shop is not None and not case.shop.enabled:
        raise Refusal("SHOP_DISABLED", "The shop is disabled")


def _shop_has_markup(case: SubscriptionCase) -> None:
    if case.shop is not None and case.shop.markup is None:
        raise Refusal("SHOP_MARKUP_NOT_SET", "The shop's markup is not set")


def _selection_is_on(case: SubscriptionCase) -> None:
    if case.order.method_id is not None and not case.caller.account.settings.terminals:
        raise Refusal("METHOD_SELECTION_DISABLED", "Choosing a terminal is off for this account", status=400)


def _method_is_available(case: SubscriptionCase) -> None:
    terminal = case.terminal
    if case.order.method_id is None:
        return
    if terminal is None or terminal.account_id != case.caller.account_id or not terminal.enabled:
        raise Refusal("METHOD_NOT_AVAILABLE", "The account offers no terminal of this method_id")
    if terminal.is_exchange:
        raise Refusal("METHOD_NOT_AVAILABLE", "This terminal takes no subscriptions")


def _above_zero(case: SubscriptionCase) -> None:
    if case.amount <= Rub(0):
        raise Refusal("INVALID_AMOUNT", "amount_rub must be above zero")


def _required_fields(case: SubscriptionCase) -> None:
    required = () if case.terminal is None else case.terminal.required_fields
    # The body has no `payer` and no `client_email`, so a terminal that requires them allows no subscriptions.
    missing = [name for name in required if not (getattr(case.order, name, None) or "").strip()]
    if missing:
        raise Refusal(
            "PAYER_DATA_REQUIRED", f"This method requires: {', '.join(missing)}", details={"missing_fields": missing}
        )


class SubscriptionRule(msgspec.Struct, frozen=True):
    """One reason to refuse. `check` raises its Refusal; it may rely on the rules before it."""

    name: str
    check: Callable[[SubscriptionCase], None]


RULES = (
    SubscriptionRule("shape", _shape),
    SubscriptionRule("acceptance", _acceptance),
    SubscriptionRule("shop is known", _shop_is_known),
    SubscriptionRule("shop is enabled", _shop_is_enabled),
    SubscriptionRule("shop has markup", _shop_has_markup),
    SubscriptionRule("selection is on", _selection_is_on),
    SubscriptionRule("method is available", _method_is_available),
    SubscriptionRule("above zero", _above_zero),
    SubscriptionRule("required fields", _required_fields),
)
"""Order of the refusals of POST /subscriptions: that of POST /payments, without the rules for one-off payments only
(their minimum and maximum amount)."""


def judge_subscription(case: SubscriptionCase) -> None:
    """Check all rules in order. Raises: the Refusal of the first rule that the order breaks."""
    for rule in RULES:
        rule.check(case)


def new_subscription(
    case: SubscriptionCase, *, subscription_id: str, binding_url: str | None, key_id: str, now: datetime
) -> Subscription:
    """Return the subscription of an order that passed `judge_subscription`. `binding_url` is ready in the window
    scheme; None: the link is still to come (docs/subscriptions.md "How the payer binds"). Raises: ValueError for an
    order that was not judged."""
    order, caller = case.order, case.caller
    if case.shop is None:
        raise ValueError("the shop was not found")
    return Subscription(
        id=subscription_id,
        account_id=caller.account_id,
        mode=caller.mode,
        shop_id=case.shop.id,
        scheme=caller.account.settings.subscription_scheme,
        status=SubscriptionStatus.PENDING_BINDING,
        amount=case.amount,
        cap_amount=case.amount,
        interval=Interval(order.interval),
        interval_count=1 if order.interval_count is None else order.interval_count,
        description=order.description.strip(),
        binding_charge=BindingCharge.FIRST if order.binding_charge is None else BindingCharge(order.binding_charge),
        created_at=now,
        updated_at=now,
        external_id=order.external_id,
        client_ref=order.client_ref,
        phone_mask=None if order.client_phone is None else masked_phone(order.client_phone),
        method_id=None if case.terminal is None else case.terminal.id,
        success_url=order.success_url,
        binding_url=binding_url,
        binding_url_pending=binding_url is None,
        key_id=key_id,
    )
