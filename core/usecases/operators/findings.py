"""Findings of `cambist doctor`. They are separate from its checks, so a program that prints findings at its start does
not import the checks."""

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """Result of a check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Finding of a check. `remedy` says what to do, if anything."""

    level: Level
    message: str
    remedy: str | None = None


def ok(message: str) -> Finding:
    return Finding(level=Level.OK, message=message)


def warning(message: str, remedy: str) -> Finding:
    return Finding(level=Level.WARNING, message=message, remedy=remedy)


def failed(message: str, remedy: str) -> Finding:
    return Finding(level=Level.FAILED, message=message, remedy=remedy)
