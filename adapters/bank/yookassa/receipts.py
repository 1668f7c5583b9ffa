"""Receipts by 54-FZ in YooKassa's codes. Its names of payment subjects and measures are the same as ours.

Not verified with the service: how it rounds price times quantity, and whether it wants marking codes in base64
(docs/receipts.md "Banks")."""

from collections.abc import Mapping
from typing import Any

from ....ports.faults import Refused
from ....ports.receipts import AgentType, PaymentMode, PaymentSubject, Receipt, ReceiptItem, Supplier, TaxSystem, Vat
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
    PaymentMode.CREDIT: "credit",
    PaymentMode.CREDIT_PAYMENT: "credit_payment",
}


_MARKED = (PaymentSubject.MARKED, PaymentSubject.MARKED_EXCISE)
_ITEMS = 100


def receipt_of(receipt: Receipt | None) -> dict[str, Any]:
    """Build the receipt field of a payment or refund; empty without a receipt. Raises: Refused `receipt` if YooKassa
    has no field for a value of it."""
    if receipt is None:
        return {}
    if receipt.attribute is not None:
        raise Refused("yookassa: the receipt of a payment has no additional attribute", reason="receipt")
    if any(item.agent is not None or item.additional is not None for item in receipt.items):
        # YooKassa takes them only in receipts that are sent apart from payments.
        raise Refused("yookassa: items of a payment have no agent and no additional attribute", reason="receipt")
    return {"receipt": apart_of(receipt)}


_AGENTS: Mapping[AgentType, str] = {
    AgentType.BANK_AGENT: "banking_payment_agent",
    AgentType.BANK_SUBAGENT: "banking_payment_subagent",
    AgentType.PAYMENT_AGENT: "payment_agent",
    AgentType.PAYMENT_SUBAGENT: "payment_subagent",
    AgentType.ATTORNEY: "attorney",
    AgentType.COMMISSIONER: "commissioner",
    AgentType.AGENT: "agent",
}


def apart_of(receipt: Receipt) -> dict[str, Any]:
    """Build the fields of a receipt that is sent apart from money. Raises: Refused `receipt`."""
    if not 0 < len(receipt.items) <= _ITEMS:
        raise Refused("yookassa: a receipt has 1 to 100 items", reason="receipt")
    customer = {
        "full_name": receipt.name,
        "inn": receipt.inn,
        "email": receipt.email,
        "phone": receipt.phone and receipt.phone.removeprefix("+"),
    }
    told: dict[str, Any] = {
        "customer": {name: value for name, value in customer.items() if value},
        "tax_system_code": TAX_SYSTEMS[receipt.tax_system],
        "items": [_item(item) for item in receipt.items],
    }
    if receipt.attribute is not None:
        told["additional_user_props"] = {"name": receipt.attribute.name, "value": receipt.attribute.value}
    return told


def _item(item: ReceiptItem) -> dict[str, Any]:
    if (item.mark is not None) is not (item.subject in _MARKED):
        raise Refused("yookassa: a marked item has a code, and no other item has", reason="receipt")
    more = {
        "country_of_origin_code": item.country,
        "customs_declaration_number": item.customs_declaration,
        "excise": None if item.excise_kopecks is None else roubles(item.excise_kopecks)["value"],
        "additional_payment_subject_props": item.additional,
        "agent_type": None if item.agent is None else _AGENTS[item.agent.type],
        "supplier": None if item.supplier is None else _supplier(item.supplier),
        "mark_mode": None if item.mark is None else "0",
        "mark_code_info": None if item.mark is None else {item.mark.format.value: item.mark.value},
    }
    return {
        "description": item.name,
        "quantity": f"{item.quantity:f}",
        "measure": item.measure.value,
        "amount": roubles(item.price_kopecks),
        "vat_code": VATS[item.vat],
        "payment_subject": item.subject.value,
        "payment_mode": MODES[item.mode],
        **{name: value for name, value in more.items() if value is not None},
    }


def _supplier(supplier: Supplier) -> dict[str, str]:
    return {"name": supplier.name, "phone": supplier.phone.removeprefix("+"), "inn": supplier.inn}
