"""The columns of lists. Those for 80 characters come to 79 with two for each gap, and all together to 159 of 160."""

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
    """What a record shows there; texts.py makes it printable."""
    width: int
    broad: int | None = None
    """The width on wide terminals, where it is another."""
    wide: bool = False
    """Only on wide terminals."""
    right: bool = False
    """Set to the right, as amounts are."""
    names: bool = False
    """The cell is an account's id: its name is shown."""
    ends: bool = False
    """The cell is an id, of which, where it is too long, its beginning and end are shown."""


def when(title: str, cell: Callable[[Any], Any], *, wide: bool = False) -> Column:
    """A moment: to the minute, and where there is room to the second."""
    return Column(title=title, cell=cell, width=TO_THE_MINUTE, broad=TO_THE_SECOND, wide=wide)


def merchant(width: int, broad: int) -> Column:
    """Whose it is, by name."""
    return Column(title="merchant", cell=lambda each: each.account_id, width=width, broad=broad, names=True)


def chosen(columns: Sequence[Column], room: int) -> list[tuple[Column, int]]:
    """The columns that `room` characters hold, with their widths: those that are always there, as broad as they may be
    and there is room for, and on wide terminals as many of the others as fit."""
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
