"""Exports: the form on a list, the person's own exports with progress, and the download (docs/dashboard.md
"Exports")."""

from collections.abc import Mapping

import msgspec
from litestar import Response
from litestar.response import Stream

from ....core.domain.days import parse_moment
from ....core.domain.errors import Refusal
from ....core.domain.exports.exports import ROWS_MOST, Export, ExportFormat, ExportKind, ExportStatus
from ....core.domain.people.roles import PersonRight
from ....core.usecases.exports.exports import (
    Filter,
    create_export,
    delete_export,
    filter_names,
    kind_of,
    list_exports,
    open_file,
    read_filter,
    rights_of,
)
from ....core.usecases.people.sessions import may, require
from ...http.exports import MEDIA_TYPES
from ..blocks import Actions, Badge, Block, Column, Field, Form, Link, Table, Value
from ..lists import shop_names
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import HEADERS, Ask, audited

add(
    {
        "statement": ("Movements of the balance", "Движения баланса"),
        "export": ("Export", "Выгрузка"),
        "export.format": ("Format", "Формат"),
        "export.format.xlsx": ("XLSX, for Excel", "XLSX, для Excel"),
        "export.format.csv": ("CSV", "CSV"),
        "export.submit": ("Export", "Выгрузить"),
        "export.intro": (
            "One file with everything that this filter finds. It is written in the background.",
            "Один файл со всем, что находит этот фильтр. Он пишется в фоне.",
        ),
        "export.confirm": ("Confirm that it is you, to export", "Подтвердите, что это вы, чтобы выгрузить"),
        "export.confirm_download": ("Confirm that it is you, to download", "Подтвердите, что это вы, чтобы скачать"),
        "export.empty": (
            "No exports. Order one on the page of payments, refunds or the balance.",
            "Выгрузок нет. Закажите её на странице платежей, возвратов или баланса.",
        ),
        "export.kind": ("List", "Список"),
        "export.until": ("until {when}", "по {when}"),
        "export.since": ("since {when}", "с {when}"),
        "export.all": ("all", "все"),
        "export.rows": ("Rows", "Строк"),
        "export.progress": ("{rows} of {total}", "{rows} из {total}"),
        "export.file": ("File", "Файл"),
        "export.expires": ("Available until", "Доступна до"),
        "export.collecting": ("being written", "пишется"),
        "export.packing": ("being packed", "упаковывается"),
        "export.ready": ("ready", "готова"),
        "export.failed": ("failed", "не удалась"),
        "export.download": ("Download, {size}", "Скачать, {size}"),
        "export.size": ("{size} KB", "{size} КБ"),
        "export.refresh": ("Refresh", "Обновить"),
        "export.delete": ("Delete", "Удалить"),
        "export.which": ("Export to delete", "Какую удалить"),
        "export.note": (
            "A file can be downloaded for 24 hours, by you alone.",
            "Файл можно скачать в течение 24 часов; доступен он только вам.",
        ),
        "export.failure.rights": (
            "your rights or shops changed while it was written: order it again",
            "пока она писалась, изменились ваши права или магазины: закажите её снова",
        ),
        "export.failure.too_many": (
            "more rows came than a file may have: narrow the filter",
            "строк больше, чем помещается в файл: сузьте фильтр",
        ),
        "export.failure.filter": (
            "the filter is not valid any more: order it again",
            "фильтр больше не действует: закажите её снова",
        ),
        "export.failure.cancelled": ("you deleted it", "вы её удалили"),
        "export.failure.error": (
            "it could not be written: order it again, or ask support",
            "её не удалось записать: закажите снова или обратитесь в поддержку",
        ),
        "error.EXPORT_NOT_FOUND": (
            "There is no such file, or it has expired: order it again.",
            "Такого файла нет, или его срок истёк: закажите его снова.",
        ),
        "error.EXPORTS_BUSY": (
            "Too many exports at once: wait until one is ready, or delete old ones.",
            "Слишком много выгрузок сразу: дождитесь готовой или удалите старые.",
        ),
        "error.EXPORT_TOO_LARGE": (
            "That is more rows than a file may have: narrow the filter, or take CSV.",
            "Строк больше, чем помещается в файл: сузьте фильтр или возьмите CSV.",
        ),
    }
)  # fmt: skip

_TONES = {ExportStatus.READY: "good", ExportStatus.FAILED: "bad"}


def export_form(ask: Ask, wanted: Filter, total: int | None) -> list[Block]:
    """Return the form that requests a file of the filtered list; empty without the right, or when
    the list is empty. `total`: rows of the list, if they are known.

    A person who has not confirmed recently is led to the confirmation and back to this list.
    """
    kind = kind_of(wanted)
    if total == 0 or not all(ask.has(each) for each in rights_of(kind)):
        return []
    if not all(may(ask.actor, each) for each in rights_of(kind)):
        here = ask.here(page=None, cursor=None, lang=None, done=None).removeprefix(ask.site.root)
        return [Actions([Link(ask.t("export.confirm"), ask.to("/confirm", next=here))])]
    given = msgspec.structs.asdict(wanted)
    formats = [
        (each.value, ask.t.of("export.format", each))
        for each in (ExportFormat.XLSX, ExportFormat.CSV)
        if total is None or total <= ROWS_MOST[each]
    ]
    fields = [
        Field(name="list", type="hidden", value=kind.value),
        Field(name="key", type="hidden", value=ask.ports.ids.uuid()),
        *(Field(name=name, type="hidden", value=value) for name, value in given.items() if value is not None),
        Field(name="format", label=ask.t("export.format"), type="select", options=formats or [("csv", "CSV")]),
    ]
    return [
        Form(
            action=ask.to("/exports"),
            fields=fields,
            submit=ask.t("export.submit"),
            title=ask.t("export"),
            intro=ask.t("export.intro"),
            is_row=True,
        )
    ]


async def ordered(ask: Ask) -> Redirect:
    kind, file_format = ask.value("list"), ask.value("format")
    if kind not in [*ExportKind] or file_format not in [*ExportFormat]:
        raise Refusal("VALIDATION_ERROR", "Press Export on the page of a list")
    given = {name: ask.value(name) or None for name in filter_names(ExportKind(kind))}
    asked = read_filter(ExportKind(kind), given)
    await create_export(ask.acting("export.order"), ask.actor, ask.value("key"), asked, ExportFormat(file_format))
    return Redirect("/exports", {"done": "created"})


async def exports(ask: Ask) -> Page:
    if not ask.has(PersonRight.EXPORT):
        require(ask.actor, PersonRight.EXPORT)
    found = await list_exports(ask.ports, ask.actor)
    names = await shop_names(ask)
    blocks: list[Block] = []
    is_confirmed = may(ask.actor, PersonRight.EXPORT)
    if not is_confirmed and any(each.status is ExportStatus.READY for each in found):
        blocks.append(Actions([Link(ask.t("export.confirm_download"), ask.to("/confirm", next="/exports"))]))
    if any(each.is_open for each in found):
        blocks.append(Actions([Link(ask.t("export.refresh"), ask.to("/exports"))]))
    blocks.append(
        Table(
            caption=ask.t("exports"),
            columns=[
                Column(ask.t("created")),
                Column(ask.t("export.kind")),
                Column(ask.t("status")),
                Column(ask.t("export.rows"), is_number=True),
                Column(ask.t("export.file")),
                Column(ask.t("export.expires")),
            ],
            rows=[_row(ask, each, names, is_confirmed=is_confirmed) for each in found],
            empty=ask.t("export.empty"),
            note=ask.t("export.note"),
        )
    )
    if found:
        options = [(each.id, _name(ask, each)) for each in found]
        field = Field(name="export_id", label=ask.t("export.which"), type="select", options=options)
        blocks.append(
            Form(
                action=ask.to("/exports/delete"),
                fields=[field],
                submit=ask.t("export.delete"),
                title=ask.t("export.delete"),
                tone="danger",
                is_row=True,
            )
        )
    return Page(ask.t("exports"), blocks)


def _name(ask: Ask, export: Export) -> str:
    at = ask.at(export.created_at)
    return f"{'' if at is None else at.text}, {ask.t(export.kind.value)}, {export.format.upper()}"


def _row(ask: Ask, export: Export, names: Mapping[str, str], *, is_confirmed: bool) -> list[Value]:
    rows = ask.number(export.rows)
    if export.is_open and export.total is not None:
        rows = ask.t("export.progress", rows=rows, total=ask.number(max(export.total, export.rows)))
    file: Value = None
    if export.status is ExportStatus.READY:
        size = ask.t("export.size", size=ask.number(-(-export.size // 1024)))
        label = ask.t("export.download", size=size)
        file = Link(label, ask.to(f"/exports/{export.id}/file")) if is_confirmed else label
    elif export.failure is not None:
        file = ask.t.of("export.failure", export.failure)
    return [
        ask.at(export.created_at),
        f"{ask.t(export.kind.value)}, {export.format.upper()}: {_filter_text(ask, export, names)}",
        Badge(ask.t.of("export", export.status), _TONES.get(export.status, "plain")),
        rows,
        file,
        ask.at(export.expires_at) if export.status is ExportStatus.READY else None,
    ]


def _filter_text(ask: Ask, export: Export, names: Mapping[str, str]) -> str:
    """Return the filter in words."""
    given = export.filter
    prefix = "status" if export.kind is ExportKind.PAYMENTS else "refund"
    parts = [
        names.get(given.get("shop_id", ""), ""),
        ask.t.of(prefix, given["status"]) if "status" in given else "",
        given.get("external_id", ""),
        ask.t.of("method", given["payment_method"]) if "payment_method" in given else "",
        f"{given['amount_rub']} ₽" if "amount_rub" in given else "",
        f"***{given['phone_tail']}" if "phone_tail" in given else "",
        ask.t("reading.email") if "email_digest" in given else "",
    ]
    for name, key in (("created_from", "export.since"), ("created_to", "export.until")):
        moment = parse_moment(given.get(name, ""))
        at = ask.at(moment)
        # Every export ends with the moment of its order, which the page shows beside the filter.
        if at is not None and moment is not None and moment < export.created_at:
            parts.append(ask.t(key, when=at.text))
    return ", ".join(part for part in parts if part) or ask.t("export.all")


async def deleted(ask: Ask) -> Redirect:
    export_id = ask.value("export_id")
    await delete_export(ask.acting("export.delete", export_id), ask.actor, export_id)
    return Redirect("/exports", {"done": "removed"})


async def file(ask: Ask) -> Response[bytes] | Stream:
    """Send the file, and record the download in the audit log."""
    export, parts = await open_file(ask.ports, ask.actor, ask.path("export_id"))
    headers = {
        **HEADERS,
        "Content-Disposition": f'attachment; filename="{export.file_name}"',
        "Content-Length": str(export.size),
    }
    if ask.request.method == "HEAD":
        return Response(b"", media_type=MEDIA_TYPES[export.format], headers=headers)
    await audited(ask, "export.download", export.id)
    return Stream(parts, media_type=MEDIA_TYPES[export.format], headers=headers)


EXPORTS = (
    get("/exports", exports),
    post("/exports", ordered, PersonRight.EXPORT, retry="/exports"),
    get("/exports/{export_id:str}/file", file, PersonRight.EXPORT),
    post("/exports/delete", deleted, retry="/exports"),
)
