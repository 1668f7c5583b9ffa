"""What a check of `cambist doctor` found: who tells of it at a start needs none of the checks."""

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """A verdict."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found; `remedy` says what to do, where something is to be done."""

    level: Level
    message: str
    remedy: str | None = None


def ok(message: str) -> Finding:
    return Finding(level=Level.OK, message=message)


def warning(message: str, remedy: str) -> Finding:
    return Finding(level=Level.WARNING, message=message, remedy=remedy)


def failed(message: str, remedy: str) -> Finding:
    return Finding(level=Level.FAILED, message=message, remedy=remedy)
