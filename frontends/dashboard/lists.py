"""Parts that list pages share: cursor, counts, and filters by shop and date."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import msgspec

from ...core.usecases.accounts.shops import list_shops
from ...core.usecases.common.keyset import SCANNED, Count, Cursor, KeysetPage, read_cursor, write_cursor
from ...core.usecases.overview.overview import Period
from .blocks import Block, Field, Link, Note
from .texts import add
from .web import MOSCOW, Ask

add(
    {
        "newest": ("Newest", "Самые новые"),
        "top": ("To the top of the list", "К началу списка"),
        "period": ("Period", "Период"),
        "total.least": ("More than {total}", "Больше {total}"),
        "search.on": ("Search further", "Искать дальше"),
        "search.cut": (
            "{count} rows were searched, as far as {when}. There may be more.",
            "Просмотрено строк: {count}, до {when}. Дальше может найтись ещё.",
        ),
        "error.CURSOR_INVALID": (
            "The address of this page is damaged. Start at the top of the list.",
            "Адрес этой страницы повреждён. Начните с начала списка.",
        ),
    }
)

SIZE = 50
SETTLED = "settled"
CURSORS = ("cursor", SETTLED)
"""Query values of cursors. The second is for the second list of a page."""
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", re.ASCII)
_LAST_DAY = date.max - timedelta(days=1)


def is_filtered(ask: Ask) -> bool:
    """Return whether the address asks for a part of a list, and not only for its language or page."""
    return bool(ask.query.keys() - {"lang", "done", *CURSORS})


def empty_text(ask: Ask) -> str:
    """Return the text that stands in place of a list without records."""
    return ask.t("not_found" if is_filtered(ask) else "nothing")


def cursor_of(ask: Ask, name: str = "cursor") -> Cursor | None:
    """Return where the requested page of a list begins; None at its top. `name`: query value of the list's cursor, for
    a page with two lists. Raises: Refusal CURSOR_INVALID."""
    text = ask.query.get(name)
    return None if text is None else read_cursor(text)


def cursor_pager(ask: Ask, page: KeysetPage[Any], name: str = "cursor", **more: str | None) -> Sequence[Link]:
    """Return the links to the previous and the next page. `name`: as `cursor_of`; `more`: query values to add."""
    links = []
    if page.newer is not None:
        newer = write_cursor(Cursor(page.newer, newer=True))
        links += [
            Link(ask.t("newest"), ask.here(**{name: None}, **more)),
            Link(ask.t("newer"), ask.here(**{name: newer}, **more)),
        ]
    if page.older is not None:
        text = ask.t("older" if page.searched_to is None else "search.on")
        links.append(Link(text, ask.here(**{name: write_cursor(Cursor(page.older))}, **more)))
    return links


def cut_note(ask: Ask, page: KeysetPage[Any]) -> list[Block]:
    """Return the note that a search stopped at its limit, if it did."""
    at = ask.at(page.searched_to)
    return [] if at is None else [Note(ask.t("search.cut", count=ask.number(SCANNED), when=at.text), "warn")]


def count_text(ask: Ask, count: Count | None) -> str | None:
    if count is None:
        return None
    return ask.t("total" if count.is_exact else "total.least", total=ask.number(count.number))


async def shop_names(ask: Ask) -> Mapping[str, str]:
    """Return the names of the account's shops that the person may see, by id."""
    found = await list_shops(ask.ports, ask.actor.account.id)
    return {shop.id: shop.name for shop in found if ask.caller.sees_shop(shop.id)}


def shop_filter(ask: Ask, names: Mapping[str, str]) -> tuple[str | None, list[Field]]:
    """Return the shop of a list and its filter. A person limited to shops always sees one of them."""
    limited = ask.caller.shops is not None
    given = ask.query.get("shop_id") or None
    chosen = given if given in names else next(iter(names), None) if limited else None
    if len(names) < 2:
        return chosen, []
    options = [*(() if limited else [("", ask.t("all"))]), *names.items()]
    return chosen, [Field(name="shop_id", label=ask.t("shop"), type="select", value=chosen or "", options=options)]


def date_fields(ask: Ask) -> list[Field]:
    """Return the date fields of a filter, in Moscow days, with what is wrong with them."""
    given = {name: ask.query.get(name, "") for name in ("from", "to")}
    days = {name: _day(text) for name, text in given.items()}
    faults = {
        name: ask.t("filter.date", value=text[:40]) for name, text in given.items() if text and days[name] is None
    }
    first, last = days["from"], days["to"]
    if first is not None and last is not None and last < first:
        faults["to"] = ask.t("filter.order")
    return [
        Field(
            name=name,
            label=ask.t(name),
            type="date",
            # Browsers complain about the value of a date field that is none.
            value="" if days[name] is None else text,
            fault=faults.get(name, ""),
        )
        for name, text in given.items()
    ]


def choice(ask: Ask, name: str, values: Iterable[str]) -> str | None:
    """Return a filter's value if it is one of the values; None for all."""
    given = ask.query.get(name, "").lower()
    return given if given in [*values] else None


def choice_field(ask: Ask, name: str, label: str, options: Sequence[tuple[str, str]]) -> Field:
    """Return a filter's field. `options`: values and their texts; the field offers all of them, too."""
    given = ask.query.get(name, "")
    chosen = choice(ask, name, [value for value, _ in options])
    fault = ask.t("filter.unknown", value=given[:40]) if given and chosen is None else ""
    offered = [("", ask.t("all")), *options]
    return Field(name=name, label=label, type="select", value=chosen or "", options=offered, fault=fault)


def period_field(ask: Ask) -> Field:
    """Return the field for a relative period, such as the last seven days."""
    options = [(each.value, ask.t.of("period", each)) for each in Period]
    field = choice_field(ask, "period", ask.t("period"), options)
    return field if _period(ask) or field.fault else msgspec.structs.replace(field, value="")


def _period(ask: Ask) -> Period | None:
    """Return the period of the filter. Explicit dates take precedence over it."""
    given = ask.query.get("period", "")
    return Period(given) if given in [*Period] and dates(ask) == (None, None) else None


def dates(ask: Ask) -> tuple[str | None, str | None]:
    """Return the bounds of the filter: the first moment of a Moscow day, and the first moment after another. An invalid
    date counts as absent."""
    first, last = _day(ask.query.get("from", "")), _day(ask.query.get("to", ""))
    return _start(first), _end(last)


def period_dates(ask: Ask) -> tuple[str | None, str | None]:
    """Return the bounds of the filter by its dates or its period."""
    period = _period(ask)
    if period is None:
        return dates(ask)
    first, last = period.days(ask.ports.clock.now().astimezone(MOSCOW).date())
    return _start(first), _end(last)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.match(text) else None
    except ValueError:
        return None


def _start(day: date | None) -> str | None:
    # Within some hours of the first and the last possible day, the moment in UTC lies outside the years that storages
    # accept.
    return None if day is None or not date.min < day < date.max else f"{day.isoformat()}T00:00:00+03:00"


def _end(day: date | None) -> str | None:
    return None if day is None or day >= _LAST_DAY else _start(day + timedelta(days=1))
