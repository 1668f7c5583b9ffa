"""Cleans texts in a provider's answer that are only displayed: a payer's name, a bank's name, a reason.

No decision depends on them, so an odd text must not invalidate the answer (docs/adapters.md "A bank: three outcomes").
Unprintable characters are removed, long texts are cut, and a value of another type becomes null if the field allows
null.
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
"""Fields of the ports' records that are only displayed."""
MOST = 512
"""Maximum characters of such a text."""

_REMOVED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Character categories that affect lines, terminals or text direction and draw nothing."""
_JOINERS = "\u200c\u200d"
"""Zero-width joiners, which some scripts and emoji need."""

Clean = Callable[[Any, list[str]], Any]
"""Returns a value with its display texts cleaned, or the same object if all were clean. Appends the names of cleaned
fields to the list."""


def cleaned(text: str) -> str:
    """Return the text without unprintable characters and at most `MOST` characters long."""
    if len(text) <= MOST and text.isprintable() and text == text.strip():
        return text
    kept = (each for each in text[: 8 * MOST] if each in _JOINERS or category(each) not in _REMOVED)
    return "".join(kept).strip()[:MOST].strip()


@cache
def cleaner(hint: Any) -> Clean | None:
    """Compile the cleaner for this annotation, or return None if it has no display texts."""
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
