"""Validates single values of a provider's answer, by type (`PLAIN`) and by field name (`NAMED`).

The bounds are far above realistic values and below those that would break storage, arithmetic or logs. A finding names
the path of the value in the answer (`answer.transfers[0].amount_kopecks`) and never the value itself, which may be
personal.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from types import NoneType
from typing import Any

_MOST_KOPECKS = 10**13
"""A hundred billion roubles: ten times the maximum of a request."""
_MOST_UNITS = 10**18
"""Ten billion USDT."""
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
_LAST = datetime(2200, 1, 1, tzinfo=UTC)
_LONGEST_PAUSE = 10**9
"""Maximum pause in seconds."""
_TEXT = 4096
_ID = 512
_ADDRESS = 128
"""Maximum characters, as for the two constants above."""
_WHOLE = 2**63
"""Exclusive bound of integers: both databases store 64 bits."""
_HEX = frozenset("0123456789abcdef")
_RUNS_CODE = ("javascript:", "data:", "vbscript:", "file:", "blob:", "filesystem:", "about:")


Checks = Callable[[Any], None]
"""Checks a value. Raises: Garbage, with a path relative to the value."""


class InvalidAnswer(ValueError):
    """An answer of a provider that cannot be true; the cause of the fault that the caller sees.

    Its path is assembled while the exception propagates (`within`), so that valid answers cost nothing.
    """

    def __init__(self, finding: str, place: str = "") -> None:
        super().__init__(finding, place)
        self.finding = finding
        self.place = place

    def within(self, outer: str) -> None:
        """Prefix the path with the enclosing field or index."""
        self.place = f"{outer}{self.place}"

    def __str__(self) -> str:
        return f"{self.place}: {self.finding}"


def instance(kind: type) -> Checks:
    """Return a check for instances of `kind`."""

    def check(value: Any) -> None:
        if not isinstance(value, kind):
            raise wrong_type(value)

    return check


def wrong_type(value: Any) -> InvalidAnswer:
    """Return the finding for a value of a wrong type."""
    return InvalidAnswer(f"is of type {type(value).__name__}")


def _whole(value: Any) -> None:
    if type(value) is not int:
        raise wrong_type(value)
    if not -_WHOLE <= value < _WHOLE:
        raise InvalidAnswer("is out of range")


def _text(value: Any) -> None:
    if not isinstance(value, str):
        raise wrong_type(value)
    if len(value) > _TEXT:
        raise InvalidAnswer(f"is longer than {_TEXT} characters")
    # Databases refuse NUL, UTF-8 cannot encode lone surrogates, and a line break would forge a log line.
    if not value.isprintable() and any(ord(each) < 32 or 0xD800 <= ord(each) < 0xE000 for each in value):
        raise InvalidAnswer("has characters that no text has")


def _pause(value: Any) -> None:
    if type(value) not in (int, float):
        raise wrong_type(value)
    if not isfinite(value) or not 0 <= value <= _LONGEST_PAUSE:
        raise InvalidAnswer("is no number of seconds")


def _moment(value: Any) -> None:
    if not isinstance(value, datetime):
        raise wrong_type(value)
    if value.tzinfo is None:
        raise InvalidAnswer("has no time zone")
    try:
        is_sane = _FIRST <= value < _LAST
    except OverflowError:
        is_sane = False
    if not is_sane:
        raise InvalidAnswer("is not of this age")


def _decimal(value: Any) -> None:
    if not isinstance(value, Decimal):
        raise wrong_type(value)
    if not value.is_finite() or abs(value.adjusted()) > 30:
        raise InvalidAnswer("is no number of this world")


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
    def check(value: int) -> None:
        if not least <= value <= most:
            raise InvalidAnswer(f"is {'below ' if value < least else 'above '}{least if value < least else most}")

    return check


def _id(value: str) -> None:
    if not value or len(value) > _ID or value != value.strip():
        raise InvalidAnswer("is no id")


def address(value: str) -> None:
    """Check the form of a blockchain address; the core checks the rules of its network. Raises: Garbage."""
    if not value.isascii() or not value.isprintable() or " " in value or not 1 <= len(value) <= _ADDRESS:
        raise InvalidAnswer("is no address")


def _hash(value: str) -> None:
    if len(value) != 64 or not _HEX.issuperset(value):
        raise InvalidAnswer("is not 64 hex digits in lower case")


def filled(value: Any) -> None:
    """Check that a text or bytes are not empty. Raises: Garbage."""
    if not value:
        raise InvalidAnswer("is empty")


def _link(value: str) -> None:
    if " " in value or value.lower().startswith(_RUNS_CODE):
        raise InvalidAnswer("is no link")


NAMED: Mapping[str, Checks] = {
    "id": _id,
    "reference": _id,
    "operation": _id,
    "token": filled,
    "payload": filled,
    "amount_kopecks": _between(1, _MOST_KOPECKS),
    "fee_kopecks": _between(0, _MOST_KOPECKS),
    "payer_bank": _id,
    "sbp_operation_id": _id,
    "units": _between(1, _MOST_UNITS),
    "index": _between(0, _WHOLE),
    "level": _between(0, 100),
    "tx_hash": _hash,
    "address": address,
    "link": _link,
    "form_url": _link,
}
"""Checks by field name, which means the same in every record of the ports. They run after the check by type, and not
for null."""
