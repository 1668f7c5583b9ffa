"""Columns of lists. The columns for an 80-character terminal take 79 with two per gap, and all columns together take
159 of 160."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from .texts import TO_THE_MINUTE, TO_THE_SECOND

_WIDE = 110
_GAP = 2
_SCROLLBAR = 1


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column of a list."""

    title: str
    cell: Callable[[Any], Any]
    """Returns the record's value for this column; texts.py makes it printable."""
    width: int
    broad: int | None = None
    """Width on wide terminals, if it differs."""
    wide: bool = False
    """Shown only on wide terminals."""
    right: bool = False
    """Aligned to the right, as amounts are."""
    names: bool = False
    """The cell contains an account id, shown as the account's name."""
    ends: bool = False
    """The cell contains an id. If it is too long, its beginning and end are shown."""


def when(title: str, cell: Callable[[Any], Any], *, wide: bool = False) -> Column:
    """Return a column for a time, to the minute, or to the second if there is room."""
    return Column(title=title, cell=cell, width=TO_THE_MINUTE, broad=TO_THE_SECOND, wide=wide)


def merchant(width: int, broad: int) -> Column:
    """Return a column with the merchant's name."""
    return Column(title="merchant", cell=lambda each: each.account_id, width=width, broad=broad, names=True)


def chosen(columns: Sequence[Column], room: int) -> list[tuple[Column, int]]:
    """Return the columns that fit into `room` characters, with their widths. Columns that are not `wide` are always
    included and grow if there is room; wide terminals add as many others as fit."""
    left = room - _SCROLLBAR - sum(each.width + _GAP for each in columns if not each.wide)
    widths: dict[int, int] = {}
    for place, each in sorted(enumerate(columns), key=lambda pair: pair[1].wide):
        width = each.broad or each.width
        more = width + _GAP if each.wide else width - each.width
        if more <= left and (room >= _WIDE or not each.wide):
            left -= more
            widths[place] = width
        elif not each.wide:
            grown = max(0, left) if room < _WIDE else 0
            left -= grown
            widths[place] = each.width + grown
    return [(columns[place], widths[place]) for place in sorted(widths)]
