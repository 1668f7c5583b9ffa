"""Receipts by 54-FZ as T-Bank's `Receipt`, formats 1.2 and 1.05 (docs/providers/tbank.md "Receipts").

Not verified with the bank: marking codes are sent as the scanner reads them, not in base64."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ....ports.faults import Refused
from ....ports.receipts import (
    Agent,
    AgentType,
    MarkFormat,
    Measure,
    PaymentMode,
    PaymentSubject,
    Receipt,
    ReceiptItem,
    Supplier,
    TaxSystem,
    Vat,
)
from ...countries import COUNTRIES


class ReceiptFormat(StrEnum):
    """Version of the fiscal format. Register, terminal and request must have the same: T-Bank reports a difference only
    after the money has moved."""

    V1_05 = "1.05"
    V1_2 = "1.2"


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
    PaymentSubject.PROPERTY_RIGHT: "property_right",
}
_OBJECTS_1_2: Mapping[PaymentSubject, str] = {
    **{subject: word for subject, word in _OBJECTS.items() if subject is not PaymentSubject.COMPOSITE},
    PaymentSubject.PROPERTY_RIGHT: "property_rights",
    PaymentSubject.MARKED: "goods_with_marking_code",
    PaymentSubject.NON_MARKED: "goods_without_marking_code",
    PaymentSubject.MARKED_EXCISE: "excisable_goods_with_marking_code",
    PaymentSubject.NON_MARKED_EXCISE: "excisable_goods_without_marking_code",
}
_METHODS: Mapping[PaymentMode, str] = {
    PaymentMode.FULL_PREPAYMENT: "full_prepayment",
    PaymentMode.PREPAYMENT: "prepayment",
    PaymentMode.ADVANCE: "advance",
    PaymentMode.FULL_PAYMENT: "full_payment",
    PaymentMode.PARTIAL_PAYMENT: "partial_payment",
    PaymentMode.CREDIT: "credit",
    PaymentMode.CREDIT_PAYMENT: "credit_payment",
}
_MEASURES: Mapping[Measure, str] = {
    Measure.PIECE: "шт",
    Measure.GRAM: "г",
    Measure.KILOGRAM: "кг",
    Measure.TON: "т",
    Measure.CENTIMETER: "см",
    Measure.DECIMETER: "дм",
    Measure.METER: "м",
    Measure.SQUARE_CENTIMETER: "см2",
    Measure.SQUARE_DECIMETER: "дм2",
    Measure.SQUARE_METER: "м2",
    Measure.MILLILITER: "мл",
    Measure.LITER: "л",
    Measure.CUBIC_METER: "м3",
    Measure.KILOWATT_HOUR: "кВт*ч",
    Measure.GIGACALORIE: "Гкал",
    Measure.DAY: "дн",
    Measure.HOUR: "ч",
    Measure.MINUTE: "мин",
    Measure.SECOND: "с",
    Measure.KILOBYTE: "Кбайт",
    Measure.MEGABYTE: "Мбайт",
    Measure.GIGABYTE: "Гбайт",
    Measure.TERABYTE: "Тбайт",
    Measure.ANOTHER: "-",
}
_AGENTS: Mapping[AgentType, str] = {
    AgentType.BANK_AGENT: "bank_paying_agent",
    AgentType.BANK_SUBAGENT: "bank_paying_subagent",
    AgentType.PAYMENT_AGENT: "paying_agent",
    AgentType.PAYMENT_SUBAGENT: "paying_subagent",
    AgentType.ATTORNEY: "attorney",
    AgentType.COMMISSIONER: "commission_agent",
    AgentType.AGENT: "another",
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
_ITEMS = 100
_NAME = 128
_CONTACT = 64
_PHONE = 19


def receipt_fields(receipt: Receipt | None, kopecks: int, version: ReceiptFormat) -> dict[str, Any]:
    """Build the receipt field of Init and Cancel; empty without a receipt. Raises: Refused `receipt` if T-Bank would
    not accept it, or the format has no field for what it says."""
    if receipt is None:
        return {}
    email = receipt.email if receipt.email is not None and len(receipt.email) <= _CONTACT else None
    if (email is None and receipt.phone is None) or receipt.total_kopecks != kopecks:
        raise _refused("it has nobody to go to, or another amount")
    if not 0 < len(receipt.items) <= _ITEMS:
        raise _refused("it has not 1 to 100 items")
    is_1_2 = version is ReceiptFormat.V1_2
    told: dict[str, Any] = {
        "FfdVersion": version.value,
        "Items": [_item_1_2(item) if is_1_2 else _item_1_05(item) for item in receipt.items],
        "Taxation": _TAXATION[receipt.tax_system],
        "Email": email,
        "Phone": receipt.phone,
    }
    if is_1_2:
        told |= {"Customer": receipt.name, "CustomerInn": receipt.inn}
        if receipt.attribute is not None:
            told["AddUserProp"] = {"Name": receipt.attribute.name, "Value": receipt.attribute.value}
    elif receipt.name is not None or receipt.inn is not None or receipt.attribute is not None:
        raise _refused("format 1.05 has no field for the customer's name and number, or the attribute")
    return {"Receipt": _present(told)}


def _item_1_05(item: ReceiptItem) -> dict[str, Any]:
    new = (item.mark, item.excise_kopecks, item.country, item.customs_declaration, item.additional)
    if item.subject not in _OBJECTS or any(each is not None for each in new):
        raise _refused("format 1.05 has no field for what an item says")
    return _item(item) | {"PaymentObject": _OBJECTS[item.subject]}


def _item_1_2(item: ReceiptItem) -> dict[str, Any]:
    if item.subject not in _OBJECTS_1_2 or (item.country is not None and item.country not in COUNTRIES):
        raise _refused("format 1.2 has no code for a subject or a country")
    more: dict[str, Any] = {
        "PaymentObject": _OBJECTS_1_2[item.subject],
        "MeasurementUnit": _MEASURES[item.measure],
        "Excise": None if item.excise_kopecks is None else _roubles(item.excise_kopecks),
        "CountryCode": None if item.country is None else COUNTRIES[item.country],
        "DeclarationNumber": item.customs_declaration,
        "UserData": item.additional,
    }
    if item.mark is not None:
        more["MarkProcessingMode"] = "0"
        more["MarkCode"] = {"MarkCodeType": _MARKS[item.mark.format], "Value": item.mark.value}
    return _item(item) | _present(more)


def _item(item: ReceiptItem) -> dict[str, Any]:
    """Build the fields that both formats have."""
    told: dict[str, Any] = {
        "Name": item.name[:_NAME],
        "Price": item.price_kopecks,
        "Quantity": int(item.quantity) if item.thousandths % 1000 == 0 else float(item.quantity),
        "Amount": item.amount_kopecks,
        "Tax": _VAT[item.vat],
        "PaymentMethod": _METHODS[item.mode],
    }
    if item.agent is not None and item.supplier is not None:
        told |= {"AgentData": _agent(item.agent), "SupplierInfo": _supplier(item.supplier)}
    return told


def _agent(agent: Agent) -> dict[str, Any]:
    if any(len(phone) > _PHONE for phone in (*agent.phones, *agent.receiver_phones, *agent.transfer_phones)):
        raise _refused("a phone is too long")
    return _present(
        {
            "AgentSign": _AGENTS[agent.type],
            "OperationName": agent.operation,
            "Phones": agent.phones or None,
            "ReceiverPhones": agent.receiver_phones or None,
            "TransferPhones": agent.transfer_phones or None,
            "OperatorName": agent.operator_name,
            "OperatorAddress": agent.operator_address,
            "OperatorInn": agent.operator_inn,
        }
    )


def _supplier(supplier: Supplier) -> dict[str, Any]:
    return {"Phones": [supplier.phone], "Name": supplier.name, "Inn": supplier.inn}


def _roubles(kopecks: int) -> str:
    return f"{kopecks // 100}.{kopecks % 100:02d}"


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _refused(why: str) -> Refused:
    return Refused(f"tbank: the receipt: {why}", reason="receipt")
