"""Saved views of the list of payments: links above the list, the form that saves one, the page of each
(docs/dashboard.md "Saved views")."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from ....core.domain.people.roles import PersonRight
from ....core.domain.people.views import VIEW_NAME_LONGEST, View
from ....core.usecases.people.views import delete_view, get_view, list_views, rename_view, save_view
from ..blocks import Actions, Block, Column, Facts, Field, Form, Link, Table, Value
from ..lists import shop_names
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import Ask
from .payment_columns import COLUMNS

add(
    {
        "views": ("Saved views", "Сохранённые виды"),
        "view": ("View", "Вид"),
        "views.manage": ("Manage views", "Управлять видами"),
        "views.empty": (
            "No views yet. Filter the payments, and save the filter under the list.",
            "Видов пока нет. Отфильтруйте платежи и сохраните фильтр под списком.",
        ),
        "view.filter": ("Filter", "Фильтр"),
        "view.change": ("Rename or delete", "Переименовать или удалить"),
        "view.changes": ("Changes", "Изменения"),
        "view.save": ("Save this view", "Сохранить вид"),
        "view.save.intro": (
            "Keep this filter with its columns. Only you see it; a name that you have gets the new filter.",
            "Сохраните этот фильтр со столбцами. Видите его только вы; имя, которое у вас есть, получит новый фильтр.",
        ),
        "view.rename": ("Rename", "Переименовать"),
        "view.delete": ("Delete this view", "Удалить вид"),
        "view.open": ("Open", "Открыть"),
        "view.payer": ("that was searched for", "которую искали"),
        "view.gone": ("no longer there", "больше недоступно"),
        "view.all": ("all payments", "все платежи"),
        "error.VIEW_NOT_FOUND": ("You have no such view.", "У вас нет такого вида."),
    }
)

_PAGE = "payments"
_KEYS = ("q", "by", "payer", "status", "payment_method", "shop_id", "period", "from", "to", "cols")
"""Query values of the list that a view keeps, in this order."""
_VALUE_LONGEST = 256


def filter_of(query: Mapping[str, str]) -> dict[str, str]:
    """Return the query values that filter the list."""
    return {name: query[name].strip()[:_VALUE_LONGEST] for name in _KEYS if query.get(name, "").strip()}


def _written(query: Mapping[str, str]) -> str:
    return urlencode(filter_of(query))


def _read(view: View) -> dict[str, str]:
    return dict(parse_qsl(view.query))


async def view_links(ask: Ask) -> list[Block]:
    """Return the links to the person's views."""
    present = _written(ask.query)
    views = await list_views(ask.ports, ask.actor, _PAGE)
    links = [Link(each.name, ask.to("/payments", **_read(each)), current=each.query == present) for each in views]
    manage = Link(ask.t("views.manage"), ask.to("/payments/views"))
    return [Actions([*links, manage], ask.t("views"))] if links else []


async def save_form(ask: Ask) -> list[Block]:
    """Return the form that saves the present filter. Empty without a filter, or if the filter is already saved."""
    present = _written(ask.query)
    views = await list_views(ask.ports, ask.actor, _PAGE)
    if not present or any(each.query == present for each in views):
        return []
    fields = [
        Field(name="query", type="hidden", value=present),
        Field(name="name", label=ask.t("name"), required=True, maxlength=VIEW_NAME_LONGEST),
    ]
    title, intro = ask.t("view.save"), ask.t("view.save.intro")
    action = ask.to("/payments/views")
    return [Form(action=action, fields=fields, submit=ask.t("save"), title=title, intro=intro, is_row=True)]


async def saved(ask: Ask) -> Redirect:
    query = dict(parse_qsl(ask.value("query")))
    view = await save_view(ask.ports, ask.actor, _PAGE, ask.value("name"), _written(query))
    return Redirect("/payments", {**_read(view), "done": "saved"})


async def views(ask: Ask) -> Page:
    found = await list_views(ask.ports, ask.actor, _PAGE)
    names = await shop_names(ask)
    rows: list[list[Value]] = [
        [
            Link(each.name, ask.to("/payments", **_read(each))),
            _described(ask, each, names),
            Link(ask.t("view.change"), ask.to(f"/payments/views/{each.id}")),
        ]
        for each in found
    ]
    table = Table(
        caption=ask.t("views"),
        columns=[Column(ask.t("name")), Column(ask.t("view.filter")), Column(ask.t("view.changes"))],
        rows=rows,
        empty=ask.t("views.empty"),
    )
    return Page(ask.t("views"), [table], [Link(ask.t("payments"), ask.to("/payments"))])


def _described(ask: Ask, view: View, names: Mapping[str, str]) -> str:
    """Return a filter in words."""
    given = _read(view)
    texts = {
        "q": given.get("q", ""),
        "payer": ask.t("view.payer"),
        "status": ask.t.of("status", given.get("status", "")),
        "payment_method": ask.t.of("method", given.get("payment_method", "")),
        "shop_id": names.get(given.get("shop_id", ""), ask.t("view.gone")),
        "period": ask.t.of("period", given.get("period", "")),
        "from": given.get("from", ""),
        "to": given.get("to", ""),
        "cols": ", ".join(ask.t(COLUMNS[each].text) for each in given.get("cols", "").split(".") if each in COLUMNS),
    }
    labels = {
        "q": "payments.search",
        "payer": "reading.email",
        "status": "status",
        "payment_method": "method",
        "shop_id": "shop",
        "period": "period",
        "from": "from",
        "to": "to",
        "cols": "columns",
    }
    parts = [f"{ask.t(label)}: {texts[name]}" for name, label in labels.items() if name in given and texts[name]]
    return "; ".join(parts) or ask.t("view.all")


async def view(ask: Ask) -> Page:
    found = await get_view(ask.ports, ask.actor, _PAGE, ask.path("view_id"))
    names = await shop_names(ask)
    path = f"/payments/views/{found.id}"
    name = Field(name="name", label=ask.t("name"), value=found.name, required=True, maxlength=VIEW_NAME_LONGEST)
    blocks: list[Block] = [
        Facts(None, [(ask.t("view.filter"), _described(ask, found, names))]),
        Actions([Link(ask.t("view.open"), ask.to("/payments", **_read(found)))]),
        Form(action=ask.to(path), fields=[name], submit=ask.t("save"), title=ask.t("view.rename")),
        Form(action=ask.to(f"{path}/delete"), fields=[], submit=ask.t("view.delete"), tone="danger"),
    ]
    crumbs = [Link(ask.t("payments"), ask.to("/payments")), Link(ask.t("views"), ask.to("/payments/views"))]
    return Page(found.name, blocks, crumbs)


async def renamed(ask: Ask) -> Redirect:
    await rename_view(ask.ports, ask.actor, ask.path("view_id"), ask.value("name"))
    return Redirect("/payments/views", {"done": "saved"})


async def deleted(ask: Ask) -> Redirect:
    await delete_view(ask.ports, ask.actor, ask.path("view_id"))
    return Redirect("/payments/views", {"done": "removed"})


_ONE = "/payments/views/{view_id:str}"

VIEWS = (
    get("/payments/views", views, PersonRight.READ),
    post("/payments/views", saved, PersonRight.READ, retry="/payments"),
    get(_ONE, view, PersonRight.READ),
    post(_ONE, renamed, PersonRight.READ, retry=_ONE),
    post(f"{_ONE}/delete", deleted, PersonRight.READ, retry="/payments/views"),
)
