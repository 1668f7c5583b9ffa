"""Receipts by 54-FZ in the format of Raiffeisenbank's cash registers (docs/providers/raiffeisen.md "Receipts").
Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ....ports.faults import Refused
from ....ports.receipts import PaymentMode, PaymentSubject, Receipt, ReceiptItem, ReceiptNeed, Vat
from .merchants import NAME
from .wire import roubles

_VATS: Mapping[Vat, str] = {
    Vat.NONE: "NONE",
    Vat.VAT_0: "VAT0",
    Vat.VAT_5: "VAT5",
    Vat.VAT_7: "VAT7",
    Vat.VAT_10: "VAT10",
    Vat.VAT_20: "VAT20",
    Vat.VAT_22: "VAT22",
    Vat.VAT_5_105: "VAT105",
    Vat.VAT_7_107: "VAT107",
    Vat.VAT_10_110: "VAT110",
    Vat.VAT_20_120: "VAT120",
    Vat.VAT_22_122: "VAT122",
}
_OBJECTS: Mapping[PaymentSubject, str] = {
    PaymentSubject.COMMODITY: "COMMODITY",
    PaymentSubject.EXCISE: "EXCISE",
    PaymentSubject.JOB: "JOB",
    PaymentSubject.SERVICE: "SERVICE",
    PaymentSubject.PAYMENT: "PAYMENT",
    PaymentSubject.ANOTHER: "ANOTHER",
}
_MODES: Mapping[PaymentMode, str] = {
    PaymentMode.FULL_PREPAYMENT: "FULL_PREPAYMENT",
    PaymentMode.PREPAYMENT: "PREPAYMENT",
    PaymentMode.ADVANCE: "ADVANCE",
    PaymentMode.FULL_PAYMENT: "FULL_PAYMENT",
}
_FORMER_VATS = (Vat.NONE, Vat.VAT_0, Vat.VAT_10, Vat.VAT_20, Vat.VAT_10_110, Vat.VAT_20_120)
"""VAT rates in the documents of 2021."""
_ITEMS = 100
_NAME = 128
_EMAIL = 64


class Register(msgspec.Struct, frozen=True):
    """Settings of the cash register behind the bank. The repr hides the address."""

    need: ReceiptNeed = ReceiptNeed.NONE
    email: str = ""
    """Address of receipts whose payer gave none."""
    is_former: bool = False
    """Use the format of the bank's documents of 2021: lower-case codes and no payment mode."""

    def __repr__(self) -> str:
        return f"<register: receipts {self.need}>"

    def told(self, receipt: Receipt, number: str) -> dict[str, Any]:
        """Convert the receipt to the bank's format. Raises: Refused `receipt` if the format cannot express it."""
        email = receipt.email if receipt.email is not None and len(receipt.email) <= _EMAIL else self.email
        if not email or not 0 < len(receipt.items) <= _ITEMS:
            raise refused("it has nobody to go to, or not 1 to 100 items")
        return {
            "receiptNumber": number,
            "client": {"email": email},
            "items": [self._item(item) for item in receipt.items],
            "total": roubles(receipt.total_kopecks),
        }

    def _item(self, item: ReceiptItem) -> dict[str, Any]:
        if item.price_kopecks <= 0 or item.quantity <= 0:
            raise refused("an item is of more than nothing")
        told: dict[str, Any] = {
            "name": item.name[:_NAME],
            "price": roubles(item.price_kopecks),
            "quantity": item.quantity,
            "amount": roubles(item.price_kopecks * item.quantity),
        }
        try:
            words = {"paymentObject": _OBJECTS[item.subject], "vatType": _VATS[item.vat]}
            if not self.is_former:
                return told | words | {"paymentMode": _MODES[item.mode]}
        except KeyError:
            raise refused("the bank has no word for what it says") from None
        if item.vat not in _FORMER_VATS or item.mode is not PaymentMode.FULL_PAYMENT:
            raise refused("the bank has no word for what it says")
        return told | {name: word.lower() for name, word in words.items()}


def refused(why: str) -> Refused:
    """Build the fault of a receipt that cannot be written."""
    return Refused(f"{NAME}: the receipt: {why}", reason="receipt")
