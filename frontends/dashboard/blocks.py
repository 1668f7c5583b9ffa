"""Parts of a page: values, facts, tables, forms. Pages are made of them; templates/blocks.html draws them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeGuard

import msgspec

from ...core.domain.money import Rub, Usdt, grouped


class Link(msgspec.Struct, frozen=True):
    """Link to another page."""

    text: str
    href: str
    current: bool = False
    """Whether it leads to the page being shown."""
    kind: str = "link"


class Badge(msgspec.Struct, frozen=True):
    """Status label. `tone` is good, bad, warn, or plain."""

    text: str
    tone: str = "plain"
    kind: str = "badge"


class Money(msgspec.Struct, frozen=True):
    """Amount, formatted for people."""

    text: str
    plain: str
    kind: str = "money"


class Moment(msgspec.Struct, frozen=True):
    """Moment: text in the account's zone, and the exact value."""

    text: str
    iso: str
    kind: str = "moment"


class Code(msgspec.Struct, frozen=True):
    """Id, address or body to be copied. `button`: name of the button that copies it, and its name afterwards."""

    text: str
    button: tuple[str, str] | None = None
    kind: str = "code"


class Pre(msgspec.Struct, frozen=True):
    """Text of several lines."""

    text: str
    kind: str = "pre"


Value = str | Link | Badge | Money | Moment | Code | Pre | None


class Facts(msgspec.Struct, frozen=True):
    """Labels with values; values of None are left out."""

    title: str | None
    rows: Sequence[tuple[str, Value]]
    kind: str = "facts"


class Column(msgspec.Struct, frozen=True):
    title: str
    is_number: bool = False


_MOST_COLUMNS = 7
"""Columns that fit side by side."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table that becomes a list of cards on a phone."""

    title: str | None = None
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    empty: str
    pager: Sequence[Link] = ()
    note: str | None = None
    kind: str = "table"

    @property
    def is_wide(self) -> bool:
        """Whether it is so wide that people scroll to its last columns, instead of reading narrow ones."""
        return len(self.columns) > _MOST_COLUMNS


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a form. `type`: as in HTML, or select, textarea, checkbox, hidden, checks. For a file,
    `pattern` lists the accepted types."""

    name: str
    label: str = ""
    type: str = "text"
    value: str = ""
    hint: str = ""
    options: Sequence[tuple[str, str]] = ()
    required: bool = False
    autocomplete: str = "off"
    chosen: Sequence[str] = ()
    fault: str = ""
    """Fault of the value, shown beside the field."""
    pattern: str = ""
    inputmode: str = ""
    maxlength: int = 0
    is_wide: bool = False
    """Whether the field has its own line in a form whose fields stand side by side."""
    is_folded: bool = False
    """Whether boxes to check are shown only when a person opens them."""


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A form. With `method` get it is a filter, whose values are in the address."""

    action: str
    fields: Sequence[Field]
    submit: str
    title: str | None = None
    intro: str | None = None
    method: str = "post"
    tone: str = "plain"
    """`danger` for actions that cannot be undone."""
    is_row: bool = False
    """Whether the fields stand side by side."""
    passkey: str = ""
    """`create` or `get`: the browser's answer to `options` goes into the field `reply`; hidden without script."""
    options: str = ""
    label: str = ""
    """Full name of the button for screen readers, where `submit` alone would be ambiguous."""
    kind: str = "form"

    @property
    def has_file(self) -> bool:
        return any(each.type == "file" for each in self.fields)

    @property
    def is_button(self) -> bool:
        """Whether the form consists of its button only."""
        return not (self.title or self.intro) and all(each.type == "hidden" for each in self.fields)


class Note(msgspec.Struct, frozen=True):
    """Highlighted sentence. `tone` is good, bad, warn or plain."""

    text: str
    tone: str = "plain"
    link: Link | None = None
    kind: str = "note"


class Stat(msgspec.Struct, frozen=True, kw_only=True):
    """A figure with its comparison."""

    label: str
    value: str
    before: str = ""
    tone: str = "plain"


class Stats(msgspec.Struct, frozen=True):
    title: str | None
    stats: Sequence[Stat]
    kind: str = "stats"


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a chart: its height and position in the drawing, and its label."""

    x: float
    y: float
    width: float
    height: float
    label: str
    value: str
    shown: bool


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Columns over days, with the same figures as a table."""

    title: str
    summary: str
    bars: Sequence[Bar]
    columns: tuple[str, str]
    details: str
    kind: str = "chart"


class Actions(msgspec.Struct, frozen=True):
    """Links to the next steps. `label`: the title of a group of alternatives."""

    links: Sequence[Link]
    label: str = ""
    kind: str = "actions"


class Picture(msgspec.Struct, frozen=True):
    """SVG drawing that the service generated, such as a QR code."""

    svg: str
    label: str
    kind: str = "picture"


class Frames(msgspec.Struct, frozen=True):
    """Pages of our own, shown small: titles with addresses."""

    title: str
    frames: Sequence[tuple[str, str]]
    kind: str = "frames"


class Step(msgspec.Struct, frozen=True):
    """A line of a timeline."""

    at: Moment | None
    text: str
    details: Sequence[Value] = ()
    tone: str = "plain"


class Timeline(msgspec.Struct, frozen=True):
    """Steps, oldest first."""

    title: str
    steps: Sequence[Step]
    kind: str = "timeline"


class Remark(msgspec.Struct, frozen=True):
    """Note of a person. `removal`: the form that deletes it, if the reader may do so."""

    at: Moment | None
    author: str
    text: str
    removal: Form | None = None


class Remarks(msgspec.Struct, frozen=True):
    """Notes of people, oldest first."""

    title: str
    remarks: Sequence[Remark]
    empty: str
    kind: str = "remarks"


Block = Facts | Table | Form | Note | Stats | Chart | Actions | Picture | Frames | Timeline | Remarks


def is_form(block: Block, action: str) -> TypeGuard[Form]:
    return isinstance(block, Form) and block.method == "post" and block.action == action


def filled_in(form: Form, given: Mapping[str, Sequence[str]], faults: Mapping[str, str]) -> Form:
    """Return a form filled with the submitted values, and their faults. Secrets must be typed again, and hidden fields
    do not change."""
    fields = []
    for field in form.fields:
        values = given.get(field.name, ())
        if field.type == "checks":
            field = msgspec.structs.replace(field, chosen=tuple(values))
        elif field.type not in ("hidden", "password", "file"):
            field = msgspec.structs.replace(field, value=values[0] if values else "")
        fields.append(msgspec.structs.replace(field, fault=faults.get(field.name, "")))
    return msgspec.structs.replace(form, fields=fields)


def rub(amount: Rub | None, language: str) -> Money | None:
    """Return roubles in the number format of this language."""
    return None if amount is None else Money(f"{grouped(str(amount), language)}\u202f₽", str(amount))


def usdt(amount: Usdt | None, language: str) -> Money | None:
    """Return USDT in the number format of this language, cut to two decimals; `plain` has all of them."""
    if amount is None:
        return None
    whole, _, decimals = str(amount).partition(".")
    short = f"{whole}.{decimals[:2]}"
    return Money(f"{grouped(short, language)}\u202fUSDT", str(amount))


def bars(values: Sequence[tuple[str, int, str]], *, width: float = 600, height: float = 160) -> list[Bar]:
    """Return the columns of a chart for (label, number, number as text), as high as the largest."""
    most = max((number for _, number, _ in values), default=0) or 1
    step = width / max(1, len(values))
    found = []
    for index, (label, number, text) in enumerate(values):
        tall = round(height * max(0, number) / most, 1)
        found.append(
            Bar(
                x=round(index * step + step * 0.12, 1),
                y=round(height - tall, 1),
                width=round(step * 0.76, 1),
                height=tall,
                label=label,
                value=text,
                shown=number > 0,
            )
        )
    return found


def moment(at: datetime | None, zone: object, iso: str | None) -> Moment | None:
    """Return a moment in the account's zone."""
    if at is None or iso is None:
        return None
    return Moment(at.astimezone(zone).strftime("%d.%m.%Y %H:%M:%S"), iso)  # type: ignore[arg-type]  # a tzinfo
