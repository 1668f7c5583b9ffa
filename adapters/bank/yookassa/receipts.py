"""Receipts by 54-FZ in YooKassa's codes. Its names of payment subjects are the same as ours."""

from collections.abc import Mapping
from typing import Any

from ....ports.receipts import PaymentMode, Receipt, TaxSystem, Vat
from .wire import roubles

TAX_SYSTEMS: Mapping[TaxSystem, int] = {
    TaxSystem.OSN: 1,
    TaxSystem.USN_INCOME: 2,
    TaxSystem.USN_INCOME_OUTCOME: 3,
    TaxSystem.ESN: 5,
    TaxSystem.PATENT: 6,
}
VATS: Mapping[Vat, int] = {
    Vat.NONE: 1,
    Vat.VAT_0: 2,
    Vat.VAT_10: 3,
    Vat.VAT_20: 4,
    Vat.VAT_10_110: 5,
    Vat.VAT_20_120: 6,
    Vat.VAT_5: 7,
    Vat.VAT_7: 8,
    Vat.VAT_5_105: 9,
    Vat.VAT_7_107: 10,
    Vat.VAT_22: 11,
    Vat.VAT_22_122: 12,
}
MODES: Mapping[PaymentMode, str] = {
    PaymentMode.FULL_PREPAYMENT: "full_prepayment",
    PaymentMode.PREPAYMENT: "partial_prepayment",
    PaymentMode.ADVANCE: "advance",
    PaymentMode.FULL_PAYMENT: "full_payment",
    PaymentMode.PARTIAL_PAYMENT: "partial_payment",
    PaymentMode.CREDIT_PAYMENT: "credit_payment",
}


def receipt_of(receipt: Receipt | None) -> dict[str, Any]:
    """Build the receipt field of a payment or refund; empty without a receipt."""
    if receipt is None:
        return {}
    customer = {"email": receipt.email, "phone": receipt.phone and receipt.phone.removeprefix("+")}
    return {
        "receipt": {
            "customer": {name: value for name, value in customer.items() if value},
            "tax_system_code": TAX_SYSTEMS[receipt.tax_system],
            "items": [
                {
                    "description": item.name,
                    "quantity": item.quantity,
                    "amount": roubles(item.price_kopecks),
                    "vat_code": VATS[item.vat],
                    "payment_subject": item.subject.value,
                    "payment_mode": MODES[item.mode],
                }
                for item in receipt.items
            ],
        }
    }
