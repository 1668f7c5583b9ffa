"""Arguments of several commands."""

import re
import sys
from collections.abc import Sequence
from datetime import timedelta

import click

_DURATION = re.compile(r"([0-9]{1,6})([smhd])\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

_LONGEST_LINE = 4096
FROM_STDIN = "-"
"""Value that stands for a secret to read from standard input."""


class Duration(click.ParamType[timedelta]):
    """Parameter type of a duration: `90s`, `30m`, `24h`, `7d`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        match = _DURATION.match(str(value))
        if match is None:
            self.fail("a duration is a whole number and a unit: 90s, 30m, 24h, 7d", param, ctx)
        return timedelta(**{_UNITS[match[2]]: int(match[1])})


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """Parse `NAME=TEXT` arguments. Raises click.UsageError, which never quotes them, because one may be a secret."""
    named: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError("each setting is written NAME=VALUE")
        if name in named:
            raise click.UsageError("each setting is named once")
        named[name] = value
    return named


def read_secret(what: str) -> str:
    """Read a line of standard input without its line end. At a terminal, prompt without echo. Raises click.UsageError
    when the line is empty."""
    if sys.stdin.isatty():
        secret: str = click.prompt(what, hide_input=True, err=True)
    else:
        secret = sys.stdin.readline(_LONGEST_LINE).rstrip("\r\n")
    if not secret:
        raise click.UsageError("standard input has no secret: give it in one line")
    return secret
