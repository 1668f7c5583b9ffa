"""Reports: the list, the order of a period, one report with its totals, its documents and files (docs/reports.md)."""

import msgspec
from litestar import Response
from litestar.response import Stream

from ....core.domain.errors import Refusal, read_choice
from ....core.domain.money import Rub, Usdt
from ....core.domain.people.roles import PersonRight
from ....core.domain.reports.reports import Report, ReportFormat, ReportKind, ReportOrder, Sums, moscow_today
from ....core.usecases.people.sessions import may, require
from ....core.usecases.reports.documents import DocumentKind, report_document
from ....core.usecases.reports.proofs import prove_report
from ....core.usecases.reports.reports import (
    ReportFilter,
    get_report,
    list_reports,
    open_report,
    order_report,
)
from ...http.reports import ENDINGS, MEDIA_TYPES
from ..blocks import Actions, Badge, Block, Code, Column, Facts, Field, Form, Link, Note, Table, Value
from ..lists import SIZE
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import HEADERS, Ask, audited

add(
    {
        "reports": ("Reports", "Отчёты"),
        "report": ("Report", "Отчёт"),
        "report.kind": ("Kind", "Вид"),
        "report.day": ("day", "день"),
        "report.month": ("month", "месяц"),
        "report.period": ("period", "период"),
        "report.days": ("Moscow days", "Московские дни"),
        "report.rows": ("Rows", "Строк"),
        "report.ready": ("ready", "готов"),
        "report.pending": ("being written", "пишется"),
        "report.empty": (
            "The first report comes with the night after your first payment.",
            "Первый отчёт появится в ночь после первого платежа.",
        ),
        "report.older": ("Older", "Раньше"),
        "report.newer": ("Newer", "Позже"),
        "report.order": ("Report for a period", "Отчёт за период"),
        "report.first": ("First day", "Первый день"),
        "report.last": ("Last day", "Последний день"),
        "report.submit": ("Order", "Заказать"),
        "report.digest": ("SHA-256 of the CSV file", "SHA-256 файла CSV"),
        "report.movements": ("Movements", "Движения"),
        "report.numbers": ("{low} to {high}", "с {low} по {high}"),
        "report.totals": ("Totals", "Итоги"),
        "report.opening": ("Balance at the beginning", "Баланс на начало"),
        "report.closing": ("Balance at the end", "Баланс на конец"),
        "report.amount": ("Amount", "Сумма"),
        "report.fee": ("Fee, RUB", "Вознаграждение, RUB"),
        "report.fee_usdt": ("Fee, USDT", "Вознаграждение, USDT"),
        "report.files": ("Files", "Файлы"),
        "report.csv": ("CSV for programs", "CSV для программ"),
        "report.accounting": ("CSV for the bookkeeper", "CSV для бухгалтера"),
        "report.xlsx": ("XLSX, for Excel", "XLSX, для Excel"),
        "report.act": ("Act of services", "Акт об услугах"),
        "report.agent_report": ("Agent's report", "Отчёт агента"),
        "report.documents": ("Documents", "Документы"),
        "report.check": ("For a check without trust in us", "Для проверки без доверия к нам"),
        "report.proof": ("Proof (JSON)", "Доказательство (JSON)"),
        "report.pdf": ("Download as PDF", "Скачать PDF"),
        "report.confirm": ("Confirm that it is you, to download", "Подтвердите, что это вы, чтобы скачать"),
        "error.REPORT_NOT_FOUND": (
            "There is no such report, or it has expired.",
            "Такого отчёта нет, или его срок истёк.",
        ),
        "error.REPORT_NOT_READY": (
            "The report is still being written. Try again soon.",
            "Отчёт ещё пишется. Зайдите чуть позже.",
        ),
    }
)  # fmt: skip


async def reports(ask: Ask) -> Page:
    ask.require_whole_account()
    number = _number(ask.query.get("page", ""))
    found = await list_reports(ask.ports, ask.caller, ReportFilter(), number, SIZE)
    pager = []
    if number > 1:
        pager.append(Link(ask.t("report.newer"), ask.to("/reports", page=str(number - 1))))
    if number * SIZE < found.total:
        pager.append(Link(ask.t("report.older"), ask.to("/reports", page=str(number + 1))))
    table = Table(
        caption=ask.t("reports"),
        columns=[
            Column(ask.t("report.days")),
            Column(ask.t("report.kind")),
            Column(ask.t("status")),
            Column(ask.t("report.rows"), is_number=True),
            Column(ask.t("report.fee"), is_number=True),
        ],
        rows=[_row(ask, each) for each in found.records],
        empty=ask.t("report.empty"),
        pager=pager,
    )
    return Page(ask.t("reports"), [_order_form(ask), table])


def _number(text: str) -> int:
    return min(max(int(text), 1), 10_000) if text.isascii() and text.isdecimal() and len(text) < 6 else 1


def _order_form(ask: Ask) -> Form:
    today = moscow_today(ask.ports.clock.now())
    first = today.replace(day=1)
    fields = [
        Field(name="key", type="hidden", value=ask.ports.ids.uuid()),
        Field(name="first_day", label=ask.t("report.first"), type="date", value=first.isoformat(), required=True),
        Field(name="last_day", label=ask.t("report.last"), type="date", value=today.isoformat(), required=True),
    ]
    return Form(
        action=ask.to("/reports"),
        fields=fields,
        submit=ask.t("report.submit"),
        title=ask.t("report.order"),
        is_row=True,
    )


def _days(report: Report) -> str:
    first, last = (".".join(reversed(day.split("-"))) for day in (report.first_day, report.last_day))
    return first if first == last else f"{first} – {last}"


def _row(ask: Ask, report: Report) -> list[Value]:
    is_ready = report.ready_at is not None
    return [
        Link(_days(report), ask.to(f"/reports/{report.id}")),
        ask.t.of("report", report.kind),
        Badge(ask.t("report.ready" if is_ready else "report.pending"), "good" if is_ready else "plain"),
        ask.number(report.rows),
        ask.rub(Rub(report.sums.fee_rub)),
    ]


async def ordered(ask: Ask) -> Redirect:
    ask.require_whole_account()
    order = ReportOrder(first_day=ask.value("first_day"), last_day=ask.value("last_day"))
    made = await order_report(ask.acting("report.order"), ask.caller, ask.value("key"), lambda: order)
    return Redirect(f"/reports/{made.resource.id}")


async def report(ask: Ask) -> Page:
    ask.require_whole_account()
    found = await get_report(ask.ports, ask.caller, ask.path("report_id"))
    numbers = ask.t("report.numbers", low=ask.number(found.low), high=ask.number(found.high - 1))
    days = {"from": found.first_day, "to": found.last_day}
    facts = Facts(
        None,
        [
            (ask.t("report.kind"), ask.t.of("report", found.kind)),
            (ask.t("report.rows"), ask.number(found.rows)),
            (ask.t("report.movements"), Link(numbers, ask.to("/balance", **days)) if found.rows else None),
            (ask.t("id"), Code(found.id)),
            (ask.t("report.digest"), None if found.digest is None else Code(found.digest)),
            (ask.t("created"), ask.at(found.created_at)),
        ],
    )
    rows: list[list[Value]] = [_balance(ask, ask.t("report.opening"), found.opening)]
    rows += [_total(ask, kind, sums) for kind, sums in found.totals.items()]
    rows.append(_balance(ask, ask.t("report.closing"), found.closing))
    columns = (
        *("balance.kind", "day.count", "report.amount", "report.fee", "report.fee_usdt"),
        *("day.waiting", "day.available", "day.reserved"),
    )
    table = Table(
        title=ask.t("report.totals"),
        caption=ask.t("report.totals"),
        columns=[Column(ask.t(each), is_number=place > 0) for place, each in enumerate(columns)],
        rows=rows,
        empty="",
    )
    blocks: list[Block] = [facts]
    if found.ready_at is None:
        blocks.append(Note(ask.t("error.REPORT_NOT_READY"), "plain", Link(ask.t("export.refresh"), ask.here())))
    else:
        blocks += _files(ask, found)
    return Page(_days(found), [*blocks, table], [Link(ask.t("reports"), ask.to("/reports"))])


def _files(ask: Ask, found: Report) -> list[Block]:
    documents = [Link(ask.t.of("report", each), ask.to(f"/reports/{found.id}/{each}")) for each in DocumentKind]
    blocks: list[Block] = [Actions(documents, ask.t("report.documents"))]
    if found.kind is ReportKind.DAY:
        proof = Link(ask.t("report.proof"), ask.to(f"/reports/{found.id}/proof"))
        blocks.append(Actions([proof], ask.t("report.check")))
    if not ask.has(PersonRight.EXPORT):
        return blocks
    if not may(ask.actor, PersonRight.EXPORT):
        confirm = ask.to("/confirm", next=f"/reports/{found.id}")
        return [*blocks, Actions([Link(ask.t("report.confirm"), confirm)], ask.t("report.files"))]
    files = [
        Link(ask.t.of("report", each), ask.to(f"/reports/{found.id}/file", format=each.value)) for each in ReportFormat
    ]
    return [*blocks, Actions(files, ask.t("report.files"))]


def _balance(ask: Ask, title: str, sums: Sums) -> list[Value]:
    parts = ask.rub(Rub(sums.pending)), ask.usdt(Usdt(sums.available)), ask.usdt(Usdt(sums.reserved))
    return [title, None, None, None, None, *parts]


def _total(ask: Ask, kind: str, sums: Sums) -> list[Value]:
    # A sum of zero says nothing, and on a phone each cell is a line.
    return [
        ask.t.of("movement", kind),
        ask.number(sums.count),
        ask.rub(Rub(sums.rub)) if sums.rub else None,
        ask.rub(Rub(sums.fee_rub)) if sums.fee_rub else None,
        ask.usdt(Usdt(sums.fee_usdt)) if sums.fee_usdt else None,
        ask.rub(Rub(sums.pending)) if sums.pending else None,
        ask.usdt(Usdt(sums.available)) if sums.available else None,
        ask.usdt(Usdt(sums.reserved)) if sums.reserved else None,
    ]


async def document(ask: Ask) -> Page:
    """Show a document as a page, which screen readers can read."""
    ask.require_whole_account()
    found = await get_report(ask.ports, ask.caller, ask.path("report_id"))
    kind = _kind(ask)
    made = report_document(ask.ports, ask.caller, found, kind, ask.t.language)
    blocks: list[Block] = [
        Actions([Link(ask.t("report.pdf"), ask.to(f"/reports/{found.id}/{kind}/pdf"))]),
        Facts(None, [(label, value) for label, value in made.facts]),
    ]
    blocks += [
        Table(
            title=each.title,
            caption=each.title,
            columns=[Column(head, is_number=place > 0) for place, head in enumerate(each.heads)],
            rows=each.rows,
            empty="",
        )
        for each in made.tables
    ]
    blocks += [Note(each) for each in made.notes]
    crumbs = [Link(ask.t("reports"), ask.to("/reports")), Link(_days(found), ask.to(f"/reports/{found.id}"))]
    return Page(made.title, blocks, crumbs)


def _kind(ask: Ask) -> DocumentKind:
    text = ask.path("kind")
    if text not in [*DocumentKind]:
        raise Refusal("NOT_FOUND", "No document of this kind")
    return DocumentKind(text)


async def pdf(ask: Ask) -> Response[bytes]:
    """Send a document as PDF."""
    ask.require_whole_account()
    found = await get_report(ask.ports, ask.caller, ask.path("report_id"))
    kind = _kind(ask)
    made = report_document(ask.ports, ask.caller, found, kind, ask.t.language)
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{kind}_{found.file_name}.pdf"'}
    return Response(await ask.ports.documents.pdf(made), media_type="application/pdf", headers=headers)


async def proof(ask: Ask) -> Response[bytes]:
    """Send the proof of a day's register."""
    ask.require_whole_account()
    found = await prove_report(ask.ports, ask.caller, ask.path("report_id"))
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="proof_{found.account}_{found.day}.json"'}
    return Response(msgspec.json.encode(found), media_type="application/json", headers=headers)


async def file(ask: Ask) -> Response[bytes] | Stream:
    """Send the register, and record the download in the audit log."""
    ask.require_whole_account()
    require(ask.actor, PersonRight.EXPORT)
    found = await get_report(ask.ports, ask.caller, ask.path("report_id"))
    form = read_choice("format", ask.query.get("format", "csv"), ReportFormat)
    parts = await open_report(ask.ports, ask.caller, found, form, None, None)
    name = f"{found.file_name}{ENDINGS[form]}"
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    media_type = MEDIA_TYPES[form]
    if ask.request.method == "HEAD":
        return Response(b"", media_type=media_type, headers=headers)
    await audited(ask, "report.download", found.id)
    return Stream(parts, media_type=media_type, headers=headers)


REPORTS = (
    get("/reports", reports, PersonRight.MONEY),
    post("/reports", ordered, PersonRight.MONEY, retry="/reports"),
    get("/reports/{report_id:str}", report, PersonRight.MONEY),
    get("/reports/{report_id:str}/file", file, PersonRight.MONEY),
    get("/reports/{report_id:str}/proof", proof, PersonRight.MONEY),
    get("/reports/{report_id:str}/{kind:str}", document, PersonRight.MONEY),
    get("/reports/{report_id:str}/{kind:str}/pdf", pdf, PersonRight.MONEY),
)
