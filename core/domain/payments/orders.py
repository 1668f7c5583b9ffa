"""The body of POST /payments, and the order of its refusals: RULES (docs/payments.md "Taking one";
docs/concepts.md "What is refused first")."""

import re
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.accounts import Caller
from ..accounts.shops import Shop
from ..accounts.terminals import EXCHANGE_HIGHEST, EXCHANGE_LOWEST, PAYMENT_METHODS, Terminal
from ..days import parse_moment
from ..errors import Refusal, shape_error, value_error
from ..masked import Masked
from ..money import Rub
from ..receipts.carts import Cart
from ..receipts.orders import Contact, ReceiptOrder, cart_of
from ..shapes import check_metadata, check_text, check_uuid, has_control
from ..web_addresses import is_web_address, web_address_fault
from .payments import CONTACT_KEY, MINIMUM

CLIENT_INFO_BYTES = 4096
EXTERNAL_ID_LONGEST = 256

RESERVED_METADATA = frozenset(
    (
        "bindingNoCharge",
        "provider_data",
        "terminalCode",
        "methodId",
        "tariffCoreReview",
        "payerNameMasked",
        CONTACT_KEY,
        "payerCardMasked",
        "nameMatch",
        "charge_recovery",
    )
)
"""Service keys that a merchant's metadata may not contain; they are dropped silently
(docs/payments.md "Taking one")."""

PHONE = re.compile(r"\+[0-9]{10,15}\Z")
_DOCUMENT = re.compile(r"[^\W_]{5,32}\Z")


class Payer(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The payer (docs/payments.md "Taking one"). Its repr is empty: this is personal data."""

    full_name: Annotated[
        str,
        Meta(description="No digits and no commas"),
        shared.limits(minLength=1, maxLength=255, pattern=r"^[^0-9,]+$"),
    ]
    document_number: Annotated[
        str, Meta(description="Letters and digits, 5 to 32"), shared.limits(pattern=r"^[0-9A-Za-z]{5,32}$")
    ]
    kyc_reference: Annotated[str | None, Meta(description="Id of the check in your own system")] = None
    kyc_completed_at: Annotated[
        shared.MomentText | None, Meta(description="Time of the check, with a time zone, not in the future")
    ] = None


class PaymentOrder(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /payments, field by field. Null counts as absent."""

    _shown = ("amount_rub",)

    amount_rub: Annotated[shared.RubText, shared.AMOUNT_RUB]
    payment_method: Annotated[Annotated[str, shared.among(("sbp",))] | None, shared.PAYMENT_METHOD] = None
    method_id: Annotated[shared.UuidText | None, shared.METHOD_ID] = None
    external_id: Annotated[Annotated[str, shared.limits(maxLength=256)] | None, shared.EXTERNAL_ID] = None
    client_phone: Annotated[shared.Phone | None, shared.CLIENT_PHONE] = None
    client_email: Annotated[
        Annotated[str, shared.limits(maxLength=254)] | None, Meta(description="At most 254 characters")
    ] = None
    description: Annotated[
        Annotated[str, shared.limits(maxLength=255)] | None, Meta(description="Shown to the payer")
    ] = None
    payer: Annotated[Payer | None, Meta(description="The payer's data, if the terminal requires it")] = None
    metadata: Annotated[dict[str, Any] | None, shared.METADATA] = None
    shop_id: Annotated[shared.UuidText | None, shared.SHOP_ID] = None
    ttl_minutes: Annotated[
        Annotated[int, shared.limits(minimum=1)] | None,
        Meta(description="Lifetime in minutes, where the method supports it; 422 above your maximum"),
    ] = None
    client_info: Annotated[
        dict[str, Any] | None,
        Meta(description="For anti-fraud, at most 4096 bytes: `ip`, `user_agent`, `page_url`; never returned"),
    ] = None
    auto_return: Annotated[
        bool | None,
        Meta(description="Whether the payer is returned automatically 5 seconds after success; your setting if absent"),
    ] = None
    receipt: Annotated[
        ReceiptOrder | None,
        Meta(description="Items of the receipt by 54-FZ; without them the receipt has one item, by your settings"),
    ] = None
    webhook_url: Annotated[
        Annotated[str, shared.limits(format="uri", maxLength=2048)] | None,
        Meta(description="Accepted without effect: webhooks go to the account's address"),
    ] = None


class RepeatedOrder(PaymentOrder, frozen=True, kw_only=True):
    """The order of a payment that its payer makes again. Its receipt is known as it was stored."""

    cart: Cart | None = None


class Case(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """An order together with everything that its rules check, read beforehand."""

    order: PaymentOrder
    caller: Caller
    now: datetime
    shop: Shop | None
    """The shop of `shop_id`, or the default one; None if it does not exist."""
    terminal: Terminal | None
    """The terminal of `method_id`; without `method_id`, the account's oldest enabled ordinary terminal of the payment
    method. None if there is none, or while the account's terminals are off."""

    @cached_property
    def amount(self) -> Rub:
        """The amount; valid only after the shape rule. Raises: ValueError."""
        return Rub.parse(self.order.amount_rub)

    @cached_property
    def cart(self) -> Cart | None:
        """The order's receipt, if it has one; valid only after the shape rule. Raises: Refusal."""
        order = self.order
        if isinstance(order, RepeatedOrder):
            return order.cart
        if order.receipt is None:
            return None
        contact = Contact(email=order.client_email, phone=order.client_phone)
        return cart_of(order.receipt, self.amount, self.caller.account.settings, contact)


def _shape(case: Case) -> None:
    order = case.order
    try:
        case.amount  # noqa: B018 - read here, because it may not be readable
    except ValueError as error:
        raise shape_error("amount_rub", str(error)) from None
    if order.payment_method is not None and order.payment_method not in PAYMENT_METHODS:
        raise shape_error("payment_method", f"must be one of: {', '.join(PAYMENT_METHODS)}")
    check_uuid("method_id", order.method_id)
    check_uuid("shop_id", order.shop_id)
    check_text("external_id", order.external_id, EXTERNAL_ID_LONGEST)
    check_text("client_email", order.client_email, 254)
    check_text("description", order.description, 255)
    # everything else about it is checked as a value
    if order.client_phone is not None and len(order.client_phone) > 256:
        raise shape_error("client_phone", "has at most 256 characters")
    if order.ttl_minutes is not None and order.ttl_minutes < 1:
        raise shape_error("ttl_minutes", "must be at least 1")
    if order.client_info is not None and len(msgspec.json.encode(order.client_info)) > CLIENT_INFO_BYTES:
        raise shape_error("client_info", f"has at most {CLIENT_INFO_BYTES} bytes as JSON")
    check_metadata(order.metadata, case.caller.account.settings.metadata_kb_max)
    if order.webhook_url is not None and not is_web_address(order.webhook_url):
        raise shape_error("webhook_url", web_address_fault(order.webhook_url))


def _check_payer(payer: Payer, now: datetime) -> None:
    name = payer.full_name
    if not name.strip() or len(name) > 255 or has_control(name) or any(char == "," or char.isdigit() for char in name):
        raise value_error("payer.full_name", "1 to 255 characters, no digits, no commas and no control characters")
    if not _DOCUMENT.match(payer.document_number):
        raise value_error("payer.document_number", "letters and digits, 5 to 32 characters")
    if payer.kyc_reference is not None and (len(payer.kyc_reference) > 256 or has_control(payer.kyc_reference)):
        raise value_error("payer.kyc_reference", "has at most 256 characters and no control characters")
    if payer.kyc_completed_at is not None:
        completed = parse_moment(payer.kyc_completed_at)
        if completed is None:
            raise value_error("payer.kyc_completed_at", "must be ISO 8601 with a time zone")
        if completed > now:
            raise value_error("payer.kyc_completed_at", "must not be later than now")


def _values(case: Case) -> None:
    order = case.order
    if order.payer is not None:
        _check_payer(order.payer, case.now)
    if order.client_phone is not None and not PHONE.match(order.client_phone):
        raise value_error("client_phone", "must be E.164: + and 10 to 15 digits")
    longest = case.caller.account.settings.ttl_minutes_max
    if order.ttl_minutes is not None and order.ttl_minutes > longest:
        raise value_error("ttl_minutes", f"is at most {longest}")
    if order.receipt is not None:
        case.cart  # noqa: B018 - read here, because it may break a rule


def _acceptance(case: Case) -> None:
    if not case.caller.account.settings.acceptance:
        raise Refusal("PAYMENT_UNAVAILABLE", "Acceptance is not available for this account")


def _shop_is_known(case: Case) -> None:
    if case.shop is None or case.shop.account_id != case.caller.account_id:
        raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this shop_id")


def _shop_is_enabled(case: Case) -> None:
    if case.shop is not None and not case.shop.enabled:
        raise Refusal("SHOP_DISABLED", "The shop is disabled")


def _shop_has_markup(case: Case) -> None:
    if case.shop is not None and case.shop.markup is None:
        raise Refusal("SHOP_MARKUP_NOT_SET", "The shop's markup is not set")


def _selection_is_on(case: Case) -> None:
    if case.order.method_id is not None and not case.caller.account.settings.terminals:
        raise Refusal("METHOD_SELECTION_DISABLED", "Choosing a terminal is off for this account", status=400)


def _method_is_available(case: Case) -> None:
    terminal = case.terminal
    if case.order.method_id is None:
        return
    if terminal is None or terminal.account_id != case.caller.account_id or not terminal.enabled:
        raise Refusal("METHOD_NOT_AVAILABLE", "The account offers no terminal of this method_id")


def _methods_agree(case: Case) -> None:
    terminal, named = case.terminal, case.order.payment_method
    if terminal is not None and named is not None and terminal.payment_method != named:
        raise shape_error("payment_method", f"is {terminal.payment_method} by this terminal")


def _exchange_bounds(case: Case) -> None:
    is_exchange = case.terminal is not None and case.terminal.is_exchange
    if is_exchange and not EXCHANGE_LOWEST <= case.amount <= EXCHANGE_HIGHEST:
        raise shape_error("amount_rub", f"must be from {EXCHANGE_LOWEST} to {EXCHANGE_HIGHEST} RUB by this terminal")


def _above_zero(case: Case) -> None:
    if case.amount <= Rub(0):
        raise Refusal("INVALID_AMOUNT", "amount_rub must be above zero")


def _minimum(case: Case) -> None:
    if case.amount < MINIMUM:
        raise Refusal("AMOUNT_BELOW_MINIMUM", f"The minimum amount is {MINIMUM} RUB")


def _maximum(case: Case) -> None:
    largest = case.caller.account.settings.amount_rub_max
    if case.terminal is None and case.amount > largest:
        raise Refusal("INVALID_AMOUNT", f"amount_rub is at most {largest}")


def _required_fields(case: Case) -> None:
    if case.terminal is None:
        return
    missing = [name for name in case.terminal.required_fields if _is_missing(getattr(case.order, name))]
    if missing:
        raise Refusal(
            "PAYER_DATA_REQUIRED", f"This method requires: {', '.join(missing)}", details={"missing_fields": missing}
        )


def _is_missing(value: object) -> bool:
    """Return whether the value is absent, null, or blank text."""
    return value is None or (isinstance(value, str) and not value.strip())


class Rule(msgspec.Struct, frozen=True):
    """One reason to refuse. `check` raises its Refusal; it may rely on the rules before it."""

    name: str
    check: Callable[[Case], None]


RULES = (
    Rule("shape", _shape),
    Rule("values", _values),
    Rule("acceptance", _acceptance),
    Rule("shop is known", _shop_is_known),
    Rule("shop is enabled", _shop_is_enabled),
    Rule("shop has markup", _shop_has_markup),
    Rule("selection is on", _selection_is_on),
    Rule("method is available", _method_is_available),
    Rule("methods agree", _methods_agree),
    Rule("exchange bounds", _exchange_bounds),
    Rule("above zero", _above_zero),
    Rule("minimum", _minimum),
    Rule("maximum", _maximum),
    Rule("required fields", _required_fields),
)
"""Order of the refusals of POST /payments that need no request to a provider. The others follow: the client's
verification, then the routes (usecases/payments/payments.py)."""


def judge(case: Case) -> None:
    """Check all rules in order. Raises: the Refusal of the first rule that the order breaks."""
    for rule in RULES:
        rule.check(case)


def kept_metadata(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the merchant's metadata without the reserved keys."""
    if metadata is None:
        return None
    return {key: value for key, value in metadata.items() if key not in RESERVED_METADATA}


ReadOrder = Callable[[], PaymentOrder]
"""Reads the body on demand: a repeat of a known key never parses it."""
