"""Contact data of a payer as the merchant gave it, and its masked form."""

import unicodedata
from ipaddress import ip_address
from typing import Any

import msgspec

from ..accounts.receipts import is_email
from ..masked import Masked
from ..receipts.carts import Cart
from .orders import Payer, PaymentOrder, RepeatedOrder
from .payments import Payment


def private_data(order: PaymentOrder, cart: Cart | None = None) -> bytes | None:
    """Return the data to store encrypted and never to return, as JSON; None when there is none."""
    data = {
        "receipt": cart,
        "payer": order.payer,
        "client_phone": order.client_phone,
        "client_email": order.client_email,
        "client_info": order.client_info,
    }
    given = {name: value for name, value in data.items() if value is not None}
    return msgspec.json.encode(given) if given else None


class _Given(Masked, frozen=True, kw_only=True):
    """All that `private_data` stores."""

    receipt: Cart | None = None
    payer: Payer | None = None
    client_phone: str | None = None
    client_email: str | None = None
    client_info: dict[str, Any] | None = None


def repeated_order(payment: Payment, private: bytes | None) -> RepeatedOrder:
    """Return the order of a payment for another attempt. `private`: the result of `private_data`, decrypted."""
    given = _Given() if private is None else msgspec.json.decode(private, type=_Given)
    return RepeatedOrder(
        amount_rub=str(payment.amount),
        method_id=payment.method_id,
        external_id=payment.external_id,
        client_phone=given.client_phone,
        client_email=given.client_email,
        description=payment.description,
        payer=given.payer,
        metadata=payment.metadata,
        shop_id=payment.shop_id,
        ttl_minutes=payment.ttl_minutes,
        client_info=given.client_info,
        auto_return=payment.auto_return,
        cart=given.receipt,
    )


def receipt_data(cart: Cart) -> bytes:
    """Return the data to store encrypted of a payment whose receipt alone is known, as JSON."""
    return msgspec.json.encode({"receipt": cart})


class PayerContact(Masked, frozen=True, kw_only=True):
    """The part of `private_data` with the payer's contact, IP address and receipt; nothing reads the rest."""

    client_phone: str | None = None
    client_email: str | None = None
    client_info: dict[str, Any] | None = None
    receipt: Cart | None = None

    @property
    def receipt_email(self) -> str | None:
        """The e-mail address for receipts, if it is valid; merchants can write any text there."""
        return self.client_email if is_email(self.client_email) else None

    @property
    def ip(self) -> str | None:
        """The IP address in `client_info`, if it is valid; merchants can write any text there."""
        told = (self.client_info or {}).get("ip")
        try:
            return str(ip_address(told)) if isinstance(told, str) else None
        except ValueError:
            return None


def payer_contact(private: bytes) -> PayerContact:
    """Read the payer's contact from the result of `private_data`."""
    return msgspec.json.decode(private, type=PayerContact)


def masked_contact(phone: str) -> str:
    """Return `***` and the last 4 digits of a phone, for `payerContactMasked`."""
    return f"***{phone[-4:]}"


def contact_mask(order: PaymentOrder) -> str | None:
    """Mask the payer's phone; None without a phone."""
    return None if order.client_phone is None else masked_contact(order.client_phone)


def email_key(text: str | None) -> str | None:
    """Return the form of a payer's e-mail address by which payments are found: trimmed, in lower case. None for a text
    without an at sign; merchants can write any text there."""
    trimmed = unicodedata.normalize("NFC", (text or "").strip()).lower()
    return trimmed if "@" in trimmed else None


def has_receipt_contact(order: PaymentOrder) -> bool:
    """Return whether a receipt can be sent to the payer."""
    return order.client_phone is not None or is_email(order.client_email)
