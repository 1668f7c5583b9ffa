"""Log lines on stderr, each with the request or job it belongs to. Bodies, headers and queries are never logged, and
masking.py masks secrets that slip through."""

import json
import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...ports.jobs import Job
from .masking import mask_event
from .sparing import SparingHandler

ACCESS = ("method", "route", "status", "took_ms", "account_id", "mode")
"""Fields of an access log line. Other attributes that a library adds to a record are dropped."""


_CLIENTS = frozenset({"httpcore", "httpcore2", "httpx", "httpx2"})
"""HTTP clients of adapters, which log each address with its query. Only their warnings are shown."""

_BOUND: ContextVar[dict[str, Any]] = ContextVar("what log lines carry")


class _Carrying(msgspec.Struct, eq=False):
    """Adds these fields to log lines inside the block. Every request enters one, so it is a struct and not a
    generator."""

    _fields: dict[str, Any]
    _token: Token[dict[str, Any]] | None = None

    def __enter__(self) -> None:
        self._token = _BOUND.set(self._fields)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _BOUND.reset(self._token)


def request_context(request_id: str) -> AbstractContextManager[None]:
    """Add this request id to every log line in the block, and the account once it is known."""
    return _Carrying({"request_id": request_id})


def of_account(account_id: str, mode: str) -> None:
    """Add the account of the request to the following log lines."""
    fields = _BOUND.get(None)
    if fields is not None:
        fields["account_id"] = account_id
        fields["mode"] = str(mode)


def job_context(job: Job) -> AbstractContextManager[None]:
    """Add the job and the id of its object to every log line in the block."""
    fields = {"job_id": job.id, "job_kind": job.kind, "attempt": job.attempts}
    return _Carrying({**fields, "object_id": job.argument} if job.argument else fields)


def configure_logging(level: str, form: str) -> None:
    """Send all logging of the process to stderr, as JSON lines or as text; `auto`: text on a terminal."""
    if form == "auto":
        form = "text" if sys.stderr.isatty() else "json"
    handler = SparingHandler(sys.stderr)
    handler.addFilter(lambda line: line.levelno >= logging.WARNING or line.name.partition(".")[0] not in _CLIENTS)
    handler.setFormatter(_Lines(_as_json if form == "json" else _as_text))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Debug output of libraries is of no use to operators, and SQL statements contain values.
    for name in ("alembic", "aiosqlite", "asyncio", "dramatiq", "opentelemetry", "sqlalchemy", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)


class _Lines(logging.Formatter):
    """Formats a record from its message, the allowed fields, and the fields of the enclosing block only."""

    def __init__(self, write: Callable[[dict[str, Any]], str]) -> None:
        super().__init__()
        self._write = write

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "event": _message(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            **{name: vars(record)[name] for name in ACCESS if name in vars(record)},
        }
        line = {**line, **{name: value for name, value in _BOUND.get({}).items() if name not in line}}
        line["timestamp"] = f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        if record.exc_info:
            # Plain traceback: some formatters print the local variables of every frame, which include bodies and
            # secrets.
            line["exception"] = self.formatException(record.exc_info)
        return self._write(mask_event(line))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as fault:  # noqa: BLE001 - `logging` would print the arguments as they are, past every mask
        text = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
        return f"{text} (its arguments do not fit: {type(fault).__name__})"


def _as_json(line: dict[str, Any]) -> str:
    return json.dumps(line, default=str, skipkeys=True)


def _as_text(line: dict[str, Any]) -> str:
    moment, level, event, logger = (line.pop(name) for name in ("timestamp", "level", "event", "logger"))
    exception = line.pop("exception", None)
    rest = "".join(f" {name}={_as_word(value)}" for name, value in sorted(line.items()))
    text = f"{moment} [{level:<8}] {event:<30} [{logger}]{rest}"
    return text if exception is None else f"{text}\n{exception}"


def _as_word(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text else repr(value)
