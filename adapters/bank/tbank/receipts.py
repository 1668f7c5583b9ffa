"""Receipts by 54-FZ as T-Bank's `Receipt`, format 1.05 (docs/providers/tbank.md "How it works")."""

from collections.abc import Mapping
from typing import Any

from ....ports.faults import Refused
from ....ports.receipts import PaymentMode, PaymentSubject, Receipt, TaxSystem, Vat

_VAT: Mapping[Vat, str] = {
    Vat.NONE: "none",
    Vat.VAT_0: "vat0",
    Vat.VAT_5: "vat5",
    Vat.VAT_7: "vat7",
    Vat.VAT_10: "vat10",
    Vat.VAT_20: "vat20",
    Vat.VAT_22: "vat22",
    Vat.VAT_5_105: "vat105",
    Vat.VAT_7_107: "vat107",
    Vat.VAT_10_110: "vat110",
    Vat.VAT_20_120: "vat120",
    Vat.VAT_22_122: "vat122",
}
_TAXATION: Mapping[TaxSystem, str] = {
    TaxSystem.OSN: "osn",
    TaxSystem.USN_INCOME: "usn_income",
    TaxSystem.USN_INCOME_OUTCOME: "usn_income_outcome",
    TaxSystem.ESN: "esn",
    TaxSystem.PATENT: "patent",
}
_OBJECTS: Mapping[PaymentSubject, str] = {
    PaymentSubject.COMMODITY: "commodity",
    PaymentSubject.EXCISE: "excise",
    PaymentSubject.JOB: "job",
    PaymentSubject.SERVICE: "service",
    PaymentSubject.INTELLECTUAL_ACTIVITY: "intellectual_activity",
    PaymentSubject.PAYMENT: "payment",
    PaymentSubject.AGENT_COMMISSION: "agent_commission",
    PaymentSubject.COMPOSITE: "composite",
    PaymentSubject.ANOTHER: "another",
}
_METHODS: Mapping[PaymentMode, str] = {
    PaymentMode.FULL_PREPAYMENT: "full_prepayment",
    PaymentMode.PREPAYMENT: "prepayment",
    PaymentMode.ADVANCE: "advance",
    PaymentMode.FULL_PAYMENT: "full_payment",
    PaymentMode.PARTIAL_PAYMENT: "partial_payment",
    PaymentMode.CREDIT_PAYMENT: "credit_payment",
}
_ITEMS = 100
_NAME = 128
_CONTACT = 64


def receipt_fields(receipt: Receipt | None, kopecks: int) -> dict[str, Any]:
    """Build the receipt field of Init and Cancel; empty without a receipt. Raises: Refused `receipt` if T-Bank would
    not accept it."""
    if receipt is None:
        return {}
    email = receipt.email if receipt.email is not None and len(receipt.email) <= _CONTACT else None
    if (email is None and receipt.phone is None) or receipt.total_kopecks != kopecks:
        raise Refused("tbank: the receipt has nobody to go to, or another amount", reason="receipt")
    if not 0 < len(receipt.items) <= _ITEMS:
        raise Refused("tbank: a receipt has 1 to 100 items", reason="receipt")
    items = [
        {
            "Name": item.name[:_NAME],
            "Price": item.price_kopecks,
            "Quantity": item.quantity,
            "Amount": item.price_kopecks * item.quantity,
            "Tax": _VAT[item.vat],
            "PaymentMethod": _METHODS[item.mode],
            "PaymentObject": _OBJECTS[item.subject],
        }
        for item in receipt.items
    ]
    told: dict[str, Any] = {"Items": items, "Taxation": _TAXATION[receipt.tax_system]}
    if email is not None:
        told["Email"] = email
    if receipt.phone is not None:
        told["Phone"] = receipt.phone
    return {"Receipt": told}
