"""Cleans the texts of a provider's answer that are only shown: a payer's name, a bank's name, a reason.

Nothing is decided by them, so an odd one must not spoil the answer (docs/adapters.md "A bank: three ends").
Unprintable characters are removed, long texts are cut, and a value of another type becomes null where null is allowed.
"""

from collections.abc import Callable, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from unicodedata import category

import msgspec

SHOWN = frozenset(
    {"payer_name", "payer_bank", "sbp_operation_id", "failure", "account_number", "source", "name", "sender"}
)
"""Fields of the ports' records that are only shown."""
MOST = 512
"""Characters of such a text."""

_REMOVED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that change a line, a terminal or the direction of text, and draw nothing."""
_JOINERS = "\u200c\u200d"
"""Zero-width joiners, which some scripts and emoji need."""

Clean = Callable[[Any, list[str]], Any]
"""Returns a value with its shown texts cleaned: the same object where nothing was odd. Appends the names of fields that
were."""


def cleaned(text: str) -> str:
    """Return the text without unprintable characters, not longer than `MOST`."""
    if len(text) <= MOST and text.isprintable() and text == text.strip():
        return text
    kept = (each for each in text[: 8 * MOST] if each in _JOINERS or category(each) not in _REMOVED)
    return "".join(kept).strip()[:MOST].strip()


@cache
def cleaner(hint: Any) -> Clean | None:
    """Compile what cleans a value of this annotation; None: it has no shown texts."""
    origin, within = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _each_of([clean for each in within if (clean := cleaner(each)) is not None])
    if origin in (tuple, Sequence):
        inner = cleaner(within[0])
        return None if inner is None else _elements(inner)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _record(hint)
    return None


def _each_of(cleans: list[Clean]) -> Clean | None:
    if len(cleans) < 2:
        return cleans[0] if cleans else None

    def clean(value: Any, odd: list[str]) -> Any:
        for each in cleans:
            value = each(value, odd)
        return value

    return clean


def _elements(inner: Clean) -> Clean:
    def clean(value: Any, odd: list[str]) -> Any:
        if not isinstance(value, (tuple, list)):
            return value
        after = [inner(each, odd) for each in value]
        if all(new is each for new, each in zip(after, value, strict=True)):
            return value
        return type(value)(after)

    return clean


def _record(kind: type[msgspec.Struct]) -> Clean | None:
    fields: list[tuple[str, Clean]] = []
    for name, hint in get_type_hints(kind).items():
        if name in SHOWN and str in (hint, *get_args(hint)):
            fields.append((name, _text(name, nullable=NoneType in get_args(hint))))
        elif (inner := cleaner(hint)) is not None:
            fields.append((name, inner))
    if not fields:
        return None

    def clean(value: Any, odd: list[str]) -> Any:
        if not isinstance(value, kind):
            return value
        changes: dict[str, Any] = {}
        for name, clean_field in fields:
            found = getattr(value, name)
            after = found if found is None else clean_field(found, odd)
            if after is not found:
                changes[name] = after
        return msgspec.structs.replace(value, **changes) if changes else value

    return clean


def _text(name: str, *, nullable: bool) -> Clean:
    def clean(value: Any, odd: list[str]) -> Any:
        after = cleaned(value) if isinstance(value, str) else value
        if nullable and (after == "" or not isinstance(after, str)):
            after = None
        if after == value:
            return value
        odd.append(name)
        return after

    return clean
