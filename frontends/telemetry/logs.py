"""Log lines on stderr, each with the request or the job it belongs to. No body, no header, no query is ever logged, and
what slips through is masked (masking.py)."""

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
"""The fields of a line of the access log; nothing else that a library hangs on a record gets into a line."""


_BOUND: ContextVar[dict[str, Any]] = ContextVar("what log lines carry")


class _Carrying(msgspec.Struct, eq=False):
    """Log lines inside the block carry these fields; every request passes here, so it is no generator, and a struct."""

    _fields: dict[str, Any]
    _token: Token[dict[str, Any]] | None = None

    def __enter__(self) -> None:
        self._token = _BOUND.set(self._fields)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _BOUND.reset(self._token)


def request_context(request_id: str) -> AbstractContextManager[None]:
    """Every log line inside carries this request id, and whose request it is once that is known."""
    return _Carrying({"request_id": request_id})


def of_account(account_id: str, mode: str) -> None:
    """The request is this account's: the log lines that follow say so."""
    fields = _BOUND.get(None)
    if fields is not None:
        fields["account_id"] = account_id
        fields["mode"] = str(mode)


def job_context(job: Job) -> AbstractContextManager[None]:
    """Every log line inside carries the job, and the id of the object that it works on."""
    fields = {"job_id": job.id, "job_kind": job.kind, "attempt": job.attempts}
    return _Carrying({**fields, "object_id": job.argument} if job.argument else fields)


def configure_logging(level: str, form: str) -> None:
    """Send all logging of the process to stderr, as JSON lines or as text for people; `auto`: text on a terminal."""
    if form == "auto":
        form = "text" if sys.stderr.isatty() else "json"
    handler = SparingHandler(sys.stderr)
    handler.setFormatter(_Lines(_as_json if form == "json" else _as_text))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # What libraries say at their lower levels is of no use to operators, and statements carry their values.
    for name in ("alembic", "aiosqlite", "asyncio", "dramatiq", "opentelemetry", "sqlalchemy", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)


class _Lines(logging.Formatter):
    """Makes a line of a record, out of nothing but the message, what is allowed, and what the block around it says."""

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
            # Plain: some tracebacks print the local variables of every frame, and those are bodies and secrets.
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
