"""HTML of values and table rows. A page of a list has hundreds of cells, and a template's macro costs ten times as much
for each."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from markupsafe import Markup

from .blocks import Badge, Code, Link, Moment, Money, Pre, Table, Value


def _copying(code: Code) -> str:
    if code.button is None:
        return ""
    before, after = map(escape, code.button)
    return f' data-copy="{before}" data-copied="{after}"'


_DRAWN: Mapping[type, Callable[[Any], str]] = {
    Link: lambda link: f'<a href="{escape(link.href)}">{escape(link.text)}</a>',
    Badge: lambda badge: f'<span class="badge badge--{badge.tone}">{escape(badge.text)}</span>',
    Money: lambda money: f'<data class="money" value="{escape(money.plain)}">{escape(money.text)}</data>',
    Moment: lambda moment: f'<time datetime="{moment.iso}">{moment.text}</time>',
    Code: lambda code: f'<code class="code"{_copying(code)}>{escape(code.text)}</code>',
    Pre: lambda pre: f'<pre class="pre" tabindex="0">{escape(pre.text)}</pre>',
}


def draw_value(value: Value, none: str) -> Markup:
    """Return a value as HTML. `none`: what a screen reader says for None."""
    return Markup(_drawn(value, none))  # noqa: S704 - every part was escaped


def draw_rows(table: Table, none: str) -> Markup:
    """Return the rows of a table as HTML. On a phone, each cell shows the title of its column."""
    number = ' class="number"'
    opened = [f'<td data-label="{escape(each.title)}"{number * each.is_number}>' for each in table.columns]
    lines = []
    for row in table.rows:
        cells = [f"{start}{_drawn(value, none)}</td>" for start, value in zip(opened, row, strict=True)]
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    return Markup("".join(lines))  # noqa: S704 - the same


def _drawn(value: Value, none: str) -> str:
    if value is None:
        return f'<span class="none" aria-hidden="true">–</span><span class="unseen">{escape(none)}</span>'
    return escape(value) if isinstance(value, str) else _DRAWN[type(value)](value)
