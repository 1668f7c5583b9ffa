"""Acts and agent's reports of a register's period, from its totals alone (docs/reports.md "Documents")."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from ....ports.bundle import Ports
from ....ports.documents import Document, DocumentTable
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal
from ...domain.money import Rub, Usdt, grouped
from ...domain.reports.reports import ZERO, Report, Sums


class DocumentKind(StrEnum):
    ACT = "act"
    """The service's fee."""
    AGENT_REPORT = "agent_report"
    """Money received for the merchant, and what became of it."""


Texts = Mapping[str, str]

_RU: Texts = {
    "act": "Акт об оказанных услугах № {number} от {date}",
    "agent_report": "Отчёт агента № {number} от {date}",
    "period": "Период",
    "days": "{first} – {last}, московские дни",
    "issuer": "Исполнитель",
    "customer": "Заказчик",
    "agent": "Агент",
    "principal": "Принципал",
    "test": "Тестовый режим: денег в этом документе нет",
    "service": "Услуга",
    "count": "Количество",
    "rub": "Сумма, руб.",
    "usdt": "Сумма, USDT",
    "accepting": "Приём платежей: вознаграждение при расчёте",
    "base": "Рассчитано платежей и корректировок",
    "base_line": "Сумма платежей, с которой удержано вознаграждение",
    "moves": "Движение средств принципала",
    "line": "Показатель",
    "opening": "Остаток на начало",
    "received": "Принято от плательщиков",
    "refunded": "Возвращено плательщикам",
    "returned": "Возвраты, которые не состоялись",
    "settled": "Рассчитано",
    "fee": "Вознаграждение агента",
    "paid": "Перечислено принципалу",
    "closing": "Остаток на конец",
    "register": "Приложение: реестр {report}, строк: {rows}, SHA-256 файла CSV: {digest}",
    "fee_note": "Вознаграждение в рублях: сумма каждой операции за вычетом зачисления по курсу рынка этого расчёта.",
    "tax_note": "Документ не определяет налоговый режим и ставку НДС: их определяет договор.",
}
_EN: Texts = {
    "act": "Act of services No. {number} of {date}",
    "agent_report": "Agent's report No. {number} of {date}",
    "period": "Period",
    "days": "{first} – {last}, Moscow days",
    "issuer": "Contractor",
    "customer": "Customer",
    "agent": "Agent",
    "principal": "Principal",
    "test": "Test mode: there is no money in this document",
    "service": "Service",
    "count": "Number",
    "rub": "Amount, RUB",
    "usdt": "Amount, USDT",
    "accepting": "Taking payments: fee at settlement",
    "base": "Settled payments and corrections",
    "base_line": "Amount of the payments from which the fee was kept",
    "moves": "Money of the principal",
    "line": "Figure",
    "opening": "Balance at the beginning",
    "received": "Received from payers",
    "refunded": "Returned to payers",
    "returned": "Refunds that did not happen",
    "settled": "Settled",
    "fee": "Fee of the agent",
    "paid": "Paid to the principal",
    "closing": "Balance at the end",
    "register": "Annex: register {report}, rows: {rows}, SHA-256 of the CSV file: {digest}",
    "fee_note": "Fee in RUB: the amount of each operation less its credit at the market rate of that settlement.",
    "tax_note": "This document states no tax regime and no VAT rate: the contract does.",
}
TEXTS: Mapping[str, Texts] = {"ru": _RU, "en": _EN}


def report_document(ports: Ports, caller: Caller, report: Report, kind: DocumentKind, language: str) -> Document:
    """Return a document of the report.

    Raises: Refusal REPORT_NOT_READY; REPORT_NOT_FOUND for people with few shops, as it covers the whole account.
    """
    if caller.shops is not None:
        raise Refusal("REPORT_NOT_FOUND", "Documents are about the whole account, and you are limited to shops")
    if report.ready_at is None:
        raise Refusal("REPORT_NOT_READY", "The report is being written; try again soon")
    t = TEXTS.get(language, _EN)
    number, issuer, customer = report.id[-12:], ports.documents.issuer or "______________________", caller.account.name
    bills_fee = kind is DocumentKind.ACT
    names = (t["issuer"], t["customer"]) if bills_fee else (t["agent"], t["principal"])
    days = t["days"].format(first=_day(report.first_day), last=_day(report.last_day))
    facts = [(t["period"], days), (names[0], issuer), (names[1], customer)]
    notes = [
        t["register"].format(report=report.id, rows=report.rows, digest=report.digest),
        t["fee_note"],
        t["tax_note"],
    ]
    if report.mode.value == "test":
        notes.insert(0, t["test"])
    return Document(
        title=t[kind.value].format(number=number, date=_day(report.last_day)),
        language=language,
        facts=facts,
        tables=[_local(_services(t, report) if bills_fee else _agent_report(t, report), language)],
        notes=notes,
        signatures=(f"{names[0]}: {issuer}", f"{names[1]}: {customer}"),
    )


def _services(t: Texts, report: Report) -> DocumentTable:
    settled = _sum(report, ("settlement",))
    rows = [
        (t["base_line"], str(settled.count), str(Rub(settled.rub)), ""),
        (t["accepting"], "1", str(Rub(settled.fee_rub)), str(Usdt(settled.fee_usdt))),
    ]
    return DocumentTable(title=t["base"], heads=(t["service"], t["count"], t["rub"], t["usdt"]), rows=rows)


def _agent_report(t: Texts, report: Report) -> DocumentTable:
    settled, paid = _sum(report, ("settlement",)), _sum(report, ("payout_sent",))
    received, refunded = _sum(report, ("receipt", "review_accepted")), _sum(report, ("refund_taken",))
    returned = _sum(report, ("refund_returned", "refund_reversed"))
    rows = [
        _balance(t["opening"], report.opening),
        (t["received"], str(received.count), str(Rub(received.rub)), ""),
        (t["refunded"], str(refunded.count), str(Rub(refunded.rub)), ""),
        (t["returned"], str(returned.count), str(Rub(returned.rub)), ""),
        (t["settled"], str(settled.count), str(Rub(settled.rub)), str(Usdt(settled.available))),
        (t["fee"], str(settled.count), str(Rub(settled.fee_rub)), str(Usdt(settled.fee_usdt))),
        (t["paid"], str(paid.count), "", str(Usdt(-paid.reserved))),
        _balance(t["closing"], report.closing),
    ]
    return DocumentTable(title=t["moves"], heads=(t["line"], t["count"], t["rub"], t["usdt"]), rows=rows)


def _local(table: DocumentTable, language: str) -> DocumentTable:
    """Return the table with its amounts in the number format of the language."""
    rows = [(*row[:2], *(grouped(text, language) for text in row[2:])) for row in table.rows]
    return msgspec.structs.replace(table, rows=rows)


def _balance(title: str, sums: Sums) -> tuple[str, str, str, str]:
    return title, "", str(Rub(sums.pending)), str(Usdt(sums.available + sums.reserved))


def _sum(report: Report, kinds: Iterable[str]) -> Sums:
    return sum((report.totals.get(kind, ZERO) for kind in kinds), ZERO)


def _day(text: str) -> str:
    year, month, day = text.split("-")
    return f"{day}.{month}.{year}"
