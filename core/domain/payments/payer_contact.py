"""How the payer of a payment is reached, as its merchant said it, and what is shown of that."""

from ipaddress import ip_address
from typing import Any

import msgspec

from ..accounts.receipts import is_email
from ..masked import Masked
from .orders import PaymentOrder


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


class PayerContact(Masked, frozen=True, kw_only=True):
    """What `private_data` keeps of how the payer is reached, and from where; the rest of it is for nobody."""

    client_phone: str | None = None
    client_email: str | None = None
    client_info: dict[str, Any] | None = None

    @property
    def receipt_email(self) -> str | None:
        """Where a receipt may be sent; merchants may write there what they like, too."""
        return self.client_email if is_email(self.client_email) else None

    @property
    def ip(self) -> str | None:
        """The address that `client_info` names, where it is one: merchants may write there what they like."""
        told = (self.client_info or {}).get("ip")
        try:
            return str(ip_address(told)) if isinstance(told, str) else None
        except ValueError:
            return None


def payer_contact(private: bytes) -> PayerContact:
    """How the payer is reached, of what `private_data` made."""
    return msgspec.json.decode(private, type=PayerContact)


def masked_contact(phone: str) -> str:
    """Return `***` and the last 4 digits of a phone, for `payerContactMasked`."""
    return f"***{phone[-4:]}"


def contact_mask(order: PaymentOrder) -> str | None:
    """Mask the payer's phone; None without a phone."""
    return None if order.client_phone is None else masked_contact(order.client_phone)


def has_receipt_contact(order: PaymentOrder) -> bool:
    """Whether the payer can be sent a receipt."""
    return order.client_phone is not None or is_email(order.client_email)
