"""What a merchant asks for with POST /payments, and the order in which it is refused (SPEC "Payment creation rules",
DECISIONS 1.8): shape (400), value rules (422), account, shop, method, amount."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from .accounts import Caller, Shop
from .errors import Refusal, shape_error, value_error
from .ids import canonical_uuid
from .money import Rub
from .payments import MINIMUM

PAYMENT_METHODS = ("sbp",)
CLIENT_INFO_BYTES = 4096

RESERVED_METADATA = frozenset(
    (
        "bindingNoCharge",
        "provider_data",
        "terminalCode",
        "methodId",
        "tariffCoreReview",
        "payerNameMasked",
        "payerContactMasked",
        "payerCardMasked",
        "nameMatch",
        "charge_recovery",
    )
)
"""Service keys that a merchant's metadata may not carry; dropped in silence (SPEC "Payment")."""

_E164 = re.compile(r"\+[0-9]{10,15}\Z")
_DOCUMENT = re.compile(r"[^\W_]{5,32}\Z")


class Payer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SPEC "Payer object". Its repr says nothing: it is personal data."""

    full_name: str
    document_number: str
    kyc_reference: str | None = None
    kyc_completed_at: str | None = None

    def __repr__(self) -> str:
        return "Payer(…)"


class PaymentOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /payments, word for word. A null counts as absent."""

    amount_rub: str
    payment_method: str | None = None
    method_id: str | None = None
    external_id: str | None = None
    client_phone: str | None = None
    client_email: str | None = None
    description: str | None = None
    payer: Payer | None = None
    metadata: dict[str, Any] | None = None
    shop_id: str | None = None
    ttl_minutes: int | None = None
    client_info: dict[str, Any] | None = None
    auto_return: bool | None = None
    webhook_url: str | None = None

    def __repr__(self) -> str:
        return f"PaymentOrder(amount_rub={self.amount_rub!r}, …)"


def is_web_address(text: str, *, limit: int = 2048) -> bool:
    """An absolute http or https URL with a host."""
    if len(text) > limit or any(char <= " " or char == "\x7f" for char in text):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _check_shape(order: PaymentOrder) -> None:
    def text(name: str, value: str | None, limit: int) -> None:
        if value is not None and len(value) > limit:
            raise shape_error(name, f"has at most {limit} characters")

    def uuid(name: str, value: str | None) -> None:
        if value is not None and canonical_uuid(value) is None:
            raise shape_error(name, "must be a UUID")

    try:
        Rub.parse(order.amount_rub)
    except ValueError as error:
        raise shape_error("amount_rub", str(error)) from None
    if order.payment_method is not None and order.payment_method not in PAYMENT_METHODS:
        raise shape_error("payment_method", f"must be one of: {', '.join(PAYMENT_METHODS)}")
    uuid("method_id", order.method_id)
    uuid("shop_id", order.shop_id)
    text("external_id", order.external_id, 256)
    text("client_phone", order.client_phone, 256)
    text("client_email", order.client_email, 254)
    text("description", order.description, 255)
    if order.ttl_minutes is not None and order.ttl_minutes < 1:
        raise shape_error("ttl_minutes", "must be at least 1")
    if order.client_info is not None and len(msgspec.json.encode(order.client_info)) > CLIENT_INFO_BYTES:
        raise shape_error("client_info", f"has at most {CLIENT_INFO_BYTES} bytes as JSON")
    if order.webhook_url is not None and not is_web_address(order.webhook_url):
        raise shape_error("webhook_url", "must be an http or https URL")


def _check_payer(payer: Payer, now: datetime) -> None:
    name = payer.full_name
    if not name.strip() or len(name) > 255 or any(char == "," or char.isdigit() for char in name):
        raise value_error("payer.full_name", "1 to 255 characters, no digits and no commas")
    if not _DOCUMENT.match(payer.document_number):
        raise value_error("payer.document_number", "letters and digits, 5 to 32 characters")
    if payer.kyc_reference is not None and len(payer.kyc_reference) > 256:
        raise value_error("payer.kyc_reference", "has at most 256 characters")
    if payer.kyc_completed_at is not None:
        try:
            completed = datetime.fromisoformat(payer.kyc_completed_at)
        except ValueError:
            completed = None
        if completed is None or completed.tzinfo is None:
            raise value_error("payer.kyc_completed_at", "must be ISO 8601 with a time zone")
        if completed > now:
            raise value_error("payer.kyc_completed_at", "must not be later than now")


def _check_values(order: PaymentOrder, caller: Caller, now: datetime) -> None:
    if order.payer is not None:
        _check_payer(order.payer, now)
    if order.client_phone is not None and not _E164.match(order.client_phone):
        raise value_error("client_phone", "must be E.164: + and 10 to 15 digits")
    longest = caller.account.settings.ttl_minutes_max
    if order.ttl_minutes is not None and order.ttl_minutes > longest:
        raise value_error("ttl_minutes", f"is at most {longest}")


def check_before_shop(order: PaymentOrder, caller: Caller, now: datetime) -> None:
    """Everything that needs no reading. Raises: Refusal."""
    _check_shape(order)
    _check_values(order, caller, now)
    if not caller.account.settings.acceptance:
        raise Refusal("PAYMENT_UNAVAILABLE", "Acceptance is not available for this account")


def check_shop(shop: Shop | None, caller: Caller) -> Shop:
    """The shop that takes the payment. Raises: Refusal SHOP_NOT_FOUND, SHOP_DISABLED, SHOP_MARKUP_NOT_SET."""
    if shop is None or shop.account_id != caller.account_id:
        raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this shop_id")
    if not shop.enabled:
        raise Refusal("SHOP_DISABLED", "The shop is disabled")
    if shop.markup is None:
        raise Refusal("SHOP_MARKUP_NOT_SET", "The shop's markup is not set")
    return shop


def check_after_shop(order: PaymentOrder, caller: Caller) -> Rub:
    """Method, then amount. Returns the amount. Raises: Refusal."""
    if order.method_id is not None:
        raise Refusal("METHOD_SELECTION_DISABLED", "Choosing a terminal is off for this account", status=400)
    amount = Rub.parse(order.amount_rub)
    largest = caller.account.settings.amount_rub_max
    if amount <= Rub(0):
        raise Refusal("INVALID_AMOUNT", "amount_rub must be above zero")
    if amount < MINIMUM:
        raise Refusal("AMOUNT_BELOW_MINIMUM", f"The minimum amount is {MINIMUM} RUB")
    if amount > largest:
        raise Refusal("INVALID_AMOUNT", f"amount_rub is at most {largest}")
    return amount


def kept_metadata(order: PaymentOrder) -> dict[str, Any] | None:
    """The merchant's keys without the reserved ones."""
    if order.metadata is None:
        return None
    return {key: value for key, value in order.metadata.items() if key not in RESERVED_METADATA}


def private_data(order: PaymentOrder) -> bytes | None:
    """What is stored sealed and never returned, as JSON; None when there is nothing of it."""
    data = {
        "payer": order.payer,
        "client_phone": order.client_phone,
        "client_email": order.client_email,
        "client_info": order.client_info,
    }
    given = {name: value for name, value in data.items() if value is not None}
    return msgspec.json.encode(given) if given else None


ReadOrder = Callable[[], PaymentOrder]
"""Reads the body when it is needed: a repeat of a known key never looks at it."""
