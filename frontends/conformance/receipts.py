"""Receipts for the requests of the bank suites, as the service sends them (docs/adapters.md "Receipts")."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from ...ports.bank import Bank
from ...ports.mandates import BindingRequest
from ...ports.receipts import (
    Agent,
    AgentType,
    PaymentMode,
    PaymentSubject,
    Receipt,
    ReceiptItem,
    ReceiptNeed,
    ReceiptRequest,
    Supplier,
    TaxSystem,
    Vat,
)
from ..layers.wrapping import Call, wrapped

EMAIL, PHONE = "payer-4711@example.com", "+79990004711"
"""Contacts of a fictional payer, which no fault may contain."""


SUPPLIER = Supplier(name="OOO Sample", inn="5544332219", phone="+79000000000")
_PHONES = ("+79000000001",)
_OF_BANK = {
    "operation": "Transfer",
    "phones": _PHONES,
    "transfer_phones": _PHONES,
    "operator_name": "OOO Operator",
    "operator_address": "Moscow",
    "operator_inn": "5544332219",
}
_MORE: dict[AgentType, dict[str, Any]] = {
    AgentType.BANK_AGENT: _OF_BANK,
    AgentType.BANK_SUBAGENT: _OF_BANK,
    AgentType.PAYMENT_AGENT: {"phones": _PHONES, "receiver_phones": _PHONES},
    AgentType.PAYMENT_SUBAGENT: {"phones": _PHONES, "receiver_phones": _PHONES},
}
AGENTS = tuple(Agent(type=each, **_MORE.get(each, {})) for each in AgentType)
"""An agent of each type, with the data that the type needs."""


def receipt(kopecks: int, **item: Any) -> Receipt:
    """Return a receipt with one item."""
    words: dict[str, Any] = {
        "vat": Vat.NONE,
        "subject": PaymentSubject.SERVICE,
        "mode": PaymentMode.FULL_PAYMENT,
        **item,
    }
    only = ReceiptItem(name="Order 1", price_kopecks=kopecks, **words)
    return Receipt(items=(only,), tax_system=TaxSystem.USN_INCOME, email=EMAIL, phone=PHONE)


def receipt_request(operation: str, kopecks: int, reference: str, **more: Any) -> ReceiptRequest:
    """Return a request for the receipt of a payment."""
    receipt_of = more.pop("receipt", None) or receipt(kopecks)
    return ReceiptRequest(
        operation=operation,
        of=operation,
        amount_kopecks=kopecks,
        reference=reference,
        receipt=receipt_of,
        requested_at=datetime(2026, 11, 27, tzinfo=UTC),
        **more,
    )


def receipted(bank: Bank) -> Bank:
    """Return the bank, wrapped to add a receipt to requests without one. A bank that writes no receipts is returned
    unchanged."""
    if bank.capabilities.receipts is ReceiptNeed.NONE:
        return bank

    def around(_name: str, call: Call) -> Call:
        async def ask(request: Any) -> Any:
            is_binding = isinstance(request, BindingRequest)
            kopecks = request.first_charge_kopecks if is_binding else request.amount_kopecks
            if request.receipt is None and kopecks is not None:
                request = msgspec.structs.replace(request, receipt=receipt(kopecks))
            return await call(request)

        return ask

    asked = ("create_invoice", "refund", "bind", "charge")
    return wrapped(bank, [name for name in asked if hasattr(bank, name)], around)
