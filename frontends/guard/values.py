"""Which values can be true: of a plain type, and of a field by its name.

What is wrong is told by its place and never by its value, which may name a payer."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from types import NoneType
from typing import Any

_MOST_KOPECKS = 10**13
"""A hundred billion roubles: ten times what a request may ask for."""
_MOST_UNITS = 10**18
"""Ten billion USDT."""
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
_LAST = datetime(2200, 1, 1, tzinfo=UTC)
_LONGEST_PAUSE = 10**9
_TEXT = 4096
_ID = 512
_ADDRESS = 128
_WHOLE = 2**63
_HEX = frozenset("0123456789abcdef")
_RUNS_CODE = ("javascript:", "data:", "vbscript:", "file:")


Checks = Callable[[Any, str], None]
"""Checks a value that stands at a place. Raises: Nonsense."""


class Nonsense(ValueError):
    """What a provider said cannot be true: the cause of the fault that the caller sees."""


def instance(kind: type) -> Checks:
    def check(value: Any, place: str) -> None:
        if not isinstance(value, kind):
            raise wrong_type(value, place)

    return check


def wrong_type(value: Any, place: str) -> Nonsense:
    return Nonsense(f"{place}: is of type {type(value).__name__}")


def _whole(value: Any, place: str) -> None:
    if type(value) is not int:
        raise wrong_type(value, place)
    if not -_WHOLE <= value < _WHOLE:
        raise Nonsense(f"{place}: is out of range")


def _text(value: Any, place: str) -> None:
    if not isinstance(value, str):
        raise wrong_type(value, place)
    if len(value) > _TEXT:
        raise Nonsense(f"{place}: is longer than {_TEXT} characters")
    # No database takes the one, and no encoding the other; a line break would be a line of a log.
    if not value.isprintable() and any(ord(each) < 32 or 0xD800 <= ord(each) < 0xE000 for each in value):
        raise Nonsense(f"{place}: has characters that no text has")


def _pause(value: Any, place: str) -> None:
    if type(value) not in (int, float):
        raise wrong_type(value, place)
    if not isfinite(value) or not 0 <= value <= _LONGEST_PAUSE:
        raise Nonsense(f"{place}: is no number of seconds")


def _moment(value: Any, place: str) -> None:
    if not isinstance(value, datetime):
        raise wrong_type(value, place)
    if value.tzinfo is None:
        raise Nonsense(f"{place}: has no time zone")
    try:
        is_sane = _FIRST <= value < _LAST
    except OverflowError:
        is_sane = False
    if not is_sane:
        raise Nonsense(f"{place}: is not of this age")


def _decimal(value: Any, place: str) -> None:
    if not isinstance(value, Decimal):
        raise wrong_type(value, place)
    if not value.is_finite() or abs(value.adjusted()) > 30:
        raise Nonsense(f"{place}: is no number of this world")


PLAIN: Mapping[Any, Checks] = {
    int: _whole,
    float: _pause,
    str: _text,
    datetime: _moment,
    Decimal: _decimal,
    bool: instance(bool),
    bytes: instance(bytes),
    NoneType: instance(NoneType),
}


def _between(least: int, most: int) -> Checks:
    def check(value: int, place: str) -> None:
        if not least <= value <= most:
            raise Nonsense(f"{place}: is {'below ' if value < least else 'above '}{least if value < least else most}")

    return check


def _id(value: str, place: str) -> None:
    if not value or len(value) > _ID or value != value.strip():
        raise Nonsense(f"{place}: is no id")


def address(value: str, place: str) -> None:
    if not value.isascii() or not value.isprintable() or " " in value or not 1 <= len(value) <= _ADDRESS:
        raise Nonsense(f"{place}: is no address")


def _hash(value: str, place: str) -> None:
    if len(value) != 64 or not _HEX.issuperset(value):
        raise Nonsense(f"{place}: is not 64 hex digits in lower case")


def filled(value: Any, place: str) -> None:
    if not value:
        raise Nonsense(f"{place}: is empty")


def _link(value: str, place: str) -> None:
    if " " in value or value.lower().startswith(_RUNS_CODE):
        raise Nonsense(f"{place}: is no link")


NAMED: Mapping[str, Checks] = {
    "id": _id,
    "reference": _id,
    "operation": _id,
    "token": filled,
    "payload": filled,
    "amount_kopecks": _between(1, _MOST_KOPECKS),
    "units": _between(1, _MOST_UNITS),
    "index": _between(0, _WHOLE),
    "level": _between(0, 100),
    "tx_hash": _hash,
    "address": address,
    "link": _link,
    "form_url": _link,
}
"""What a field of this name is, in whichever record it stands."""
