"""Money as integers of its smallest unit. Decimal only for input and output, never float
(docs/concepts.md "Amounts and times")."""

import re
from decimal import ROUND_HALF_EVEN, Context, DivisionByZero, InvalidOperation, Overflow
from functools import lru_cache
from typing import Self

import msgspec

# ASCII digits only and `\Z`, because `$` accepts a final newline and `\d` accepts Arabic digits.
_RUB = re.compile(r"-?[0-9]{1,10}(?:\.[0-9]{1,2})?\Z")
_LONG = re.compile(r"-?[0-9]{11,}(?:\.[0-9]*)?\Z")
_USDT = re.compile(r"-?[0-9]{1,10}(?:\.[0-9]{1,8})?\Z")


@lru_cache(maxsize=1024)  # rules parse an order's amount several times; errors are never cached
def _parse(text: str, pattern: re.Pattern[str], decimals: int) -> int:
    if not pattern.match(text):
        raise ValueError(f"must be a decimal string with up to {decimals} decimals{_too_long(text, decimals)}")
    whole, _, part = text.partition(".")
    units = int(whole.lstrip("-") + part.ljust(decimals, "0"))
    return -units if text.startswith("-") else units


def _too_long(text: str, decimals: int) -> str:
    """Return an addition to the message for a number with too many digits before the point that may be valid
    otherwise."""
    if not _LONG.match(text):
        return ""
    return f" and up to 10 digits before the point: the largest is {'9' * 10}.{'9' * decimals}"


def _print(units: int, decimals: int) -> str:
    digits = str(abs(units)).rjust(decimals + 1, "0")
    return f"{'-' if units < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}"


class Rub(msgspec.Struct, frozen=True, order=True):
    """Roubles, counted in kopecks. Mixing currencies fails: `Rub + Usdt` is a TypeError."""

    kopecks: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an amount of the API. Raises ValueError for anything but up to 10 digits and up to 2 decimals; a valid
        negative amount is accepted, so that the caller can distinguish it from an invalid text
        (docs/concepts.md "Amounts and times")."""
        return cls(_parse(text, _RUB, 2))

    def __str__(self) -> str:
        return _print(self.kopecks, 2)

    def __add__(self, other: "Rub") -> "Rub":
        if type(other) is not Rub:
            return NotImplemented
        return Rub(self.kopecks + other.kopecks)

    def __sub__(self, other: "Rub") -> "Rub":
        if type(other) is not Rub:
            return NotImplemented
        return Rub(self.kopecks - other.kopecks)


class Usdt(msgspec.Struct, frozen=True, order=True):
    """USDT, counted in units of 0.00000001."""

    units: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an amount of the API with up to 8 decimals. Raises ValueError for anything else."""
        return cls(_parse(text, _USDT, 8))

    def __str__(self) -> str:
        return _print(self.units, 8)

    def __add__(self, other: "Usdt") -> "Usdt":
        if type(other) is not Usdt:
            return NotImplemented
        return Usdt(self.units + other.units)

    def __sub__(self, other: "Usdt") -> "Usdt":
        if type(other) is not Usdt:
            return NotImplemented
        return Usdt(self.units - other.units)


def arithmetic(digits: int) -> Context:
    """Return our decimal context, with every option set, because omitted ones would come from the embedding program."""
    return Context(
        prec=digits,
        rounding=ROUND_HALF_EVEN,
        Emin=-999_999,
        Emax=999_999,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )


def grouped(text: str, language: str) -> str:
    """Return a decimal number with grouped thousands: `1 234,50` in Russian, `1,234.50` in English."""
    sign = "\u2212" if text.startswith("-") else ""
    whole, point, decimals = text.lstrip("-").partition(".")
    separator, comma = ("\u202f", ",") if language == "ru" else (",", ".")
    parts: list[str] = []
    while len(whole) > 3:
        parts.insert(0, whole[-3:])
        whole = whole[:-3]
    return f"{sign}{separator.join([whole, *parts])}{comma if point else ''}{decimals}"
