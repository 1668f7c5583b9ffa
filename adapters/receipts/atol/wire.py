"""Receipts as ATOL's documents of protocols v5 (format 1.2) and v4 (format 1.05), and its numbers as the port's. Pure.

docs/providers/atol.md "Where the wire facts are from" names the source of each fact. Not verified with ATOL: marking
codes in base64 and the planned status in v5, rates of 5, 7 and 22 % in v4, and the number of a correction of one's own
in v4.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from ....ports.faults import NotSupported, Refused
from ....ports.receipts import (
    Agent,
    AgentType,
    FiscalData,
    MarkFormat,
    Measure,
    PaymentMode,
    PaymentSubject,
    Receipt,
    ReceiptItem,
    ReceiptKind,
    ReceiptRequest,
    Vat,
)
from ...countries import COUNTRIES
from .api import NAME, Payload
from .tills import Till

MOSCOW = timezone(timedelta(hours=3))
_MOMENT = "%d.%m.%Y %H:%M:%S"
_CASHLESS, _PREPAID = 1, 2
"""Kinds of payment, tags 1081 and 1215."""
_PIECE_SOLD, _PIECE_RETURNED = 1, 3
"""Planned status of a marked piece, tag 2003."""
_ITEMS, _VATS_MAX = 100, 6
_EMAIL_MAX, _OPERATION_MAX = 64, 24
_KOPECKS_MAX = 42_949_672_95
"""Largest price and sum."""
_THOUSANDTHS_MAX = 99_999_999
_NO_NUMBER = "б/н"
"""Number of a correction without an order, which v4 requires."""

OPERATIONS: Mapping[ReceiptKind, str] = {
    ReceiptKind.SALE: "sell",
    ReceiptKind.REFUND: "sell_refund",
    ReceiptKind.SALE_CORRECTION: "sell_correction",
    ReceiptKind.REFUND_CORRECTION: "sell_refund_correction",
}
_VATS: Mapping[Vat, tuple[str, int, int]] = {
    Vat.NONE: ("none", 0, 1),
    Vat.VAT_0: ("vat0", 0, 1),
    Vat.VAT_5: ("vat5", 5, 105),
    Vat.VAT_7: ("vat7", 7, 107),
    Vat.VAT_10: ("vat10", 10, 110),
    Vat.VAT_20: ("vat20", 20, 120),
    Vat.VAT_22: ("vat22", 22, 122),
    Vat.VAT_5_105: ("vat105", 5, 105),
    Vat.VAT_7_107: ("vat107", 7, 107),
    Vat.VAT_10_110: ("vat110", 10, 110),
    Vat.VAT_20_120: ("vat120", 20, 120),
    Vat.VAT_22_122: ("vat122", 22, 122),
}
"""Word, and share of the tax in a sum that includes it."""
_METHODS: Mapping[PaymentMode, str] = {mode: mode.value for mode in PaymentMode}
_SUBJECTS: Mapping[PaymentSubject, int] = {
    PaymentSubject.COMMODITY: 1,
    PaymentSubject.EXCISE: 2,
    PaymentSubject.JOB: 3,
    PaymentSubject.SERVICE: 4,
    PaymentSubject.INTELLECTUAL_ACTIVITY: 9,
    PaymentSubject.PAYMENT: 10,
    PaymentSubject.AGENT_COMMISSION: 11,
    PaymentSubject.ANOTHER: 13,
    PaymentSubject.PROPERTY_RIGHT: 14,
    PaymentSubject.NON_MARKED_EXCISE: 30,
    PaymentSubject.MARKED_EXCISE: 31,
    PaymentSubject.NON_MARKED: 32,
    PaymentSubject.MARKED: 33,
}
"""Tag 1212 of format 1.2, which has no composite subject."""
_SUBJECTS_1_05: Mapping[PaymentSubject, str] = {
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
    PaymentSubject.MARKED: "commodity",
    PaymentSubject.MARKED_EXCISE: "excise",
}
"""Format 1.05 knows marked goods by their code alone."""
_MEASURES: Mapping[Measure, tuple[int, str]] = {
    Measure.PIECE: (0, "шт"),
    Measure.GRAM: (10, "г"),
    Measure.KILOGRAM: (11, "кг"),
    Measure.TON: (12, "т"),
    Measure.CENTIMETER: (20, "см"),
    Measure.DECIMETER: (21, "дм"),
    Measure.METER: (22, "м"),
    Measure.SQUARE_CENTIMETER: (30, "кв. см"),
    Measure.SQUARE_DECIMETER: (31, "кв. дм"),
    Measure.SQUARE_METER: (32, "кв. м"),
    Measure.MILLILITER: (40, "мл"),
    Measure.LITER: (41, "л"),
    Measure.CUBIC_METER: (42, "куб. м"),
    Measure.KILOWATT_HOUR: (50, "кВт*ч"),
    Measure.GIGACALORIE: (51, "Гкал"),
    Measure.DAY: (70, "сутки"),
    Measure.HOUR: (71, "час"),
    Measure.MINUTE: (72, "мин"),
    Measure.SECOND: (73, "с"),
    Measure.KILOBYTE: (80, "Кбайт"),
    Measure.MEGABYTE: (81, "Мбайт"),
    Measure.GIGABYTE: (82, "Гбайт"),
    Measure.TERABYTE: (83, "Тбайт"),
    Measure.ANOTHER: (255, "ед."),
}
"""Tag 2108 of format 1.2, and the text of tag 1197 of format 1.05."""
_AGENTS: Mapping[AgentType, str] = {
    AgentType.BANK_AGENT: "bank_paying_agent",
    AgentType.BANK_SUBAGENT: "bank_paying_subagent",
    AgentType.PAYMENT_AGENT: "paying_agent",
    AgentType.PAYMENT_SUBAGENT: "paying_subagent",
    AgentType.ATTORNEY: "attorney",
    AgentType.COMMISSIONER: "commission_agent",
    AgentType.AGENT: "another",
}
_MARKS: Mapping[MarkFormat, str] = {each: each.value.replace("_", "") for each in MarkFormat}


def document_of(request: ReceiptRequest, till: Till, *, is_1_2: bool, callback_url: str | None) -> dict[str, Any]:
    """Build the document of a request.

    Raises: Refused `receipt` if the format cannot express the receipt; NotSupported for corrections that it does not
    have.
    """
    receipt, correction = request.receipt, request.correction
    _check_sums(request)
    company = {
        "sno": receipt.tax_system.value,
        "inn": till.inn,
        "payment_address": till.site,
    }
    body: dict[str, Any] = {"company": {"email": till.email, **company}, "payments": _payments(request)}
    if is_1_2:
        body["internet"] = True
    if correction is not None:
        order = correction.order or (None if is_1_2 else _NO_NUMBER)
        body["correction_info"] = _present(
            type="self" if correction.order is None else "instruction",
            base_date=correction.day.strftime("%d.%m.%Y"),
            base_number=order,
        )
    if correction is not None and not is_1_2:
        if request.kind is ReceiptKind.REFUND_CORRECTION:
            raise NotSupported(f"{NAME}: format 1.05 corrects no refunds")
        body |= {"company": company, "vats": _vats(receipt.items)}
    else:
        body |= _whole(request, is_1_2=is_1_2)
    return _present(
        external_id=request.operation,
        timestamp=request.requested_at.astimezone(MOSCOW).strftime(_MOMENT),
        service=None if callback_url is None else {"callback_url": callback_url},
        **{"receipt" if correction is None else "correction": body},
    )


def fiscal_of(payload: Payload) -> FiscalData:
    """Return the numbers of a written document."""
    try:
        at = datetime.strptime(payload.receipt_datetime, _MOMENT).replace(tzinfo=MOSCOW)
    except ValueError:
        at = None
    return FiscalData(
        storage=payload.fn_number,
        document=str(payload.fiscal_document_number),
        sign=str(payload.fiscal_document_attribute),
        register=payload.ecr_registration_number,
        url=payload.ofd_receipt_url or None,
        registered_at=at,
    )


def _check_sums(request: ReceiptRequest) -> None:
    receipt = request.receipt
    if not 0 < len(receipt.items) <= _ITEMS:
        raise refused("it has not 1 to 100 items")
    if not 0 <= request.prepaid_kopecks <= receipt.total_kopecks <= _KOPECKS_MAX:
        raise refused("its sums do not agree, or are too large")
    for item in receipt.items:
        if not 0 <= item.price_kopecks <= _KOPECKS_MAX or not 0 < item.thousandths <= _THOUSANDTHS_MAX:
            raise refused("the price or the quantity of an item is out of bounds")


def _payments(request: ReceiptRequest) -> list[dict[str, Any]]:
    prepaid = request.prepaid_kopecks
    paid = request.receipt.total_kopecks - prepaid
    kinds = [(_CASHLESS, paid), (_PREPAID, prepaid)]
    return [
        {"type": kind, "sum": _roubles(part)} for kind, part in kinds if part or (kind == _CASHLESS and not prepaid)
    ]


def _vats(items: Iterable[ReceiptItem]) -> list[dict[str, Any]]:
    """Return the taxes of a correction in format 1.05, which has no items."""
    sums: dict[Vat, int] = {}
    for item in items:
        sums[item.vat] = sums.get(item.vat, 0) + item.amount_kopecks
    if len(sums) > _VATS_MAX:
        raise refused("a correction has more than six rates")
    return [_vat(vat, kopecks) for vat, kopecks in sums.items()]


def _vat(vat: Vat, kopecks: int) -> dict[str, Any]:
    word, rate, base = _VATS[vat]
    return {"type": word, "sum": _roubles((2 * kopecks * rate + base) // (2 * base))}


def _whole(request: ReceiptRequest, *, is_1_2: bool) -> dict[str, Any]:
    receipt = request.receipt
    attribute = receipt.attribute
    items = [_item(item, request, is_1_2=is_1_2) for item in receipt.items]
    return _present(
        client=_client(receipt),
        items=items,
        total=_roubles(receipt.total_kopecks),
        additional_user_props=None if attribute is None else {"name": attribute.name, "value": attribute.value},
    )


def _client(receipt: Receipt) -> dict[str, Any]:
    email = receipt.email if receipt.email is not None and len(receipt.email) <= _EMAIL_MAX else None
    if email is None and receipt.phone is None:
        raise refused("it has nobody to go to")
    return _present(email=email, phone=receipt.phone, name=receipt.name, inn=receipt.inn)


def _item(item: ReceiptItem, request: ReceiptRequest, *, is_1_2: bool) -> dict[str, Any]:
    measure, unit = _MEASURES[item.measure]
    subjects: Mapping[PaymentSubject, int | str] = _SUBJECTS if is_1_2 else _SUBJECTS_1_05
    if item.subject not in subjects:
        raise refused("the format has no word for the subject of an item")
    country = None if item.country is None else COUNTRIES.get(item.country)
    if item.country is not None and country is None:
        raise refused("the country of an item has no number")
    common = _present(
        name=item.name,
        price=_roubles(item.price_kopecks),
        quantity=item.quantity,
        sum=_roubles(item.amount_kopecks),
        payment_method=_METHODS[item.mode],
        payment_object=subjects[item.subject],
        vat=_vat(item.vat, item.amount_kopecks),
        excise=None if item.excise_kopecks is None else _roubles(item.excise_kopecks),
        country_code=country,
        declaration_number=item.customs_declaration,
        user_data=item.additional,
        agent_info=None if item.agent is None else _agent(item.agent),
        supplier_info=None
        if item.supplier is None
        else {"name": item.supplier.name, "inn": item.supplier.inn, "phones": [item.supplier.phone]},
    )
    if is_1_2:
        return common | {"measure": measure} | _mark_1_2(item, request)
    return common | {"measurement_unit": unit} | _mark_1_05(item)


def _mark_1_2(item: ReceiptItem, request: ReceiptRequest) -> dict[str, Any]:
    if (item.mark is not None) is not (item.subject in (PaymentSubject.MARKED, PaymentSubject.MARKED_EXCISE)):
        raise refused("a marked item has a code, and no other item has")
    if item.mark is None:
        return {}
    return {
        "mark_code": {_MARKS[item.mark.format]: b64encode(item.mark.value.encode()).decode()},
        "mark_processing_mode": "0",
        "planned_status": _PIECE_RETURNED if request.goes_back else _PIECE_SOLD,
    }


def _mark_1_05(item: ReceiptItem) -> dict[str, Any]:
    if item.mark is None:
        return {}
    if item.mark.format is not MarkFormat.GS_1M:
        raise refused("format 1.05 has marking codes of GS1 alone")
    return {"nomenclature_code": item.mark.value}


def _agent(agent: Agent) -> dict[str, Any]:
    if agent.operation is not None and len(agent.operation) > _OPERATION_MAX:
        raise refused("the agent's operation is of 24 characters at most")
    operator = _present(
        name=agent.operator_name,
        address=agent.operator_address,
        inn=agent.operator_inn,
        phones=list(agent.transfer_phones) or None,
    )
    return _present(
        type=_AGENTS[agent.type],
        paying_agent=_present(operation=agent.operation, phones=list(agent.phones) or None) or None,
        receive_payments_operator={"phones": list(agent.receiver_phones)} if agent.receiver_phones else None,
        money_transfer_operator=operator or None,
    )


def refused(why: str) -> Refused:
    """Build the fault of a receipt that cannot be written."""
    return Refused(f"{NAME}: the receipt: {why}", reason="receipt")


def _roubles(kopecks: int) -> Decimal:
    return Decimal(kopecks).scaleb(-2)


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
