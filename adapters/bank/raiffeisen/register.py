"""Receipts by 54-FZ in the format of Raiffeisenbank's cash registers (docs/providers/raiffeisen.md "Receipts").
Pure.

Not verified with the bank: prepaid sums, and items with agents, measures and marking codes in this call. Their fields
are those of the bank's SDK for receipts inside orders."""

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from ....ports.faults import Refused
from ....ports.receipts import (
    AgentType,
    MarkFormat,
    Measure,
    PaymentMode,
    PaymentSubject,
    Receipt,
    ReceiptItem,
    ReceiptNeed,
    Supplier,
    Vat,
)
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
_NEW_OBJECTS: Mapping[PaymentSubject, str] = {
    **_OBJECTS,
    PaymentSubject.NON_MARKED: "COMMODITY_MARKING_NO_CODE",
    PaymentSubject.MARKED: "COMMODITY_MARKING_WITH_CODE",
    PaymentSubject.NON_MARKED_EXCISE: "EXCISE_MARKING_NO_CODE",
    PaymentSubject.MARKED_EXCISE: "EXCISE_MARKING_WITH_CODE",
}
"""Subjects of format 1.2."""
_MODES: Mapping[PaymentMode, str] = {
    PaymentMode.FULL_PREPAYMENT: "FULL_PREPAYMENT",
    PaymentMode.PREPAYMENT: "PREPAYMENT",
    PaymentMode.ADVANCE: "ADVANCE",
    PaymentMode.FULL_PAYMENT: "FULL_PAYMENT",
}
_AGENTS: Mapping[AgentType, str] = {
    AgentType.BANK_AGENT: "BANK_PAYING_AGENT",
    AgentType.BANK_SUBAGENT: "BANK_PAYING_SUBAGENT",
    AgentType.PAYMENT_AGENT: "PAYING_AGENT",
    AgentType.PAYMENT_SUBAGENT: "PAYING_SUBAGENT",
    AgentType.ATTORNEY: "ATTORNEY",
    AgentType.COMMISSIONER: "COMMISSION_AGENT",
    AgentType.AGENT: "ANOTHER",
}
_MARKS: Mapping[MarkFormat, str] = {
    MarkFormat.UNKNOWN: "UNKNOWN",
    MarkFormat.EAN_8: "EAN8",
    MarkFormat.EAN_13: "EAN13",
    MarkFormat.ITF_14: "ITF14",
    MarkFormat.GS_1M: "GS1M",
    MarkFormat.SHORT: "SHORT",
    MarkFormat.FUR: "FUR",
    MarkFormat.EGAIS_20: "EGAIS20",
    MarkFormat.EGAIS_30: "EGAIS30",
}
_FORMER_VATS = (Vat.NONE, Vat.VAT_0, Vat.VAT_10, Vat.VAT_20, Vat.VAT_10_110, Vat.VAT_20_120)
"""VAT rates in the documents of 2021."""
_ITEMS = 100
_NAME = 128
_EMAIL = 64
_RUSSIAN_PHONE = re.compile(r"\+7[0-9]{10}\Z")


class Register(msgspec.Struct, frozen=True):
    """Settings of the cash register behind the bank. The repr hides the address."""

    need: ReceiptNeed = ReceiptNeed.NONE
    email: str = ""
    """Address of receipts whose payer gave none."""
    is_former: bool = False
    """Use the format of the bank's documents of 2021: lower-case codes and no payment mode."""

    def __repr__(self) -> str:
        return f"<register: receipts {self.need}>"

    def told(self, receipt: Receipt, number: str, prepaid_kopecks: int = 0) -> dict[str, Any]:
        """Convert the receipt to the bank's format. Raises: Refused `receipt` if the format cannot express it."""
        email = receipt.email if receipt.email is not None and len(receipt.email) <= _EMAIL else self.email
        if not email or not 0 < len(receipt.items) <= _ITEMS:
            raise refused("it has nobody to go to, or not 1 to 100 items")
        if receipt.attribute is not None or receipt.inn is not None:
            raise refused("the bank has no field for the attribute or the customer's number")
        prepaid = [{"type": "PREPAID", "amount": roubles(prepaid_kopecks)}] if prepaid_kopecks else None
        return {
            **({} if prepaid is None else {"payments": prepaid}),
            "receiptNumber": number,
            "client": {"email": email},
            "items": [self._item(item) for item in receipt.items],
            "total": roubles(receipt.total_kopecks),
        }

    def _item(self, item: ReceiptItem) -> dict[str, Any]:
        if item.price_kopecks <= 0 or item.thousandths <= 0:
            raise refused("an item is of more than nothing")
        if any(each is not None for each in (item.excise_kopecks, item.country, item.customs_declaration)):
            raise refused("the bank has no field for excise and origin")
        if item.additional is not None:
            raise refused("the bank has no field for an attribute of an item")
        told: dict[str, Any] = {
            "name": item.name[:_NAME],
            "price": roubles(item.price_kopecks),
            "quantity": item.quantity,
            "amount": roubles(item.amount_kopecks),
        }
        try:
            objects = _OBJECTS if self.is_former else _NEW_OBJECTS
            words = {"paymentObject": objects[item.subject], "vatType": _VATS[item.vat]}
            if not self.is_former:
                return told | words | {"paymentMode": _MODES[item.mode]} | _of_format_1_2(item)
        except KeyError:
            raise refused("the bank has no word for what it says") from None
        if item.vat not in _FORMER_VATS or item.mode is not PaymentMode.FULL_PAYMENT or item.agent is not None:
            raise refused("the bank has no word for what it says")
        return told | {name: word.lower() for name, word in words.items()}


def _of_format_1_2(item: ReceiptItem) -> dict[str, Any]:
    measure = "OTHER" if item.measure is Measure.ANOTHER else item.measure.value.upper()
    told: dict[str, Any] = {"measurementUnit": measure}
    if item.agent is not None and item.supplier is not None:
        told |= {"agentType": _AGENTS[item.agent.type], "supplierInfo": _supplier(item.supplier)}
    if item.mark is not None:
        code = b64encode(item.mark.value.encode()).decode()
        told["marking"] = {"code": {"format": _MARKS[item.mark.format], "value": code}}
    return told


def _supplier(supplier: Supplier) -> dict[str, str]:
    if not _RUSSIAN_PHONE.match(supplier.phone):
        raise refused("the bank takes a supplier's phone of Russia alone")
    return {"inn": supplier.inn, "name": supplier.name, "phone": supplier.phone}


def refused(why: str) -> Refused:
    """Build the fault of a receipt that cannot be written."""
    return Refused(f"{NAME}: the receipt: {why}", reason="receipt")
