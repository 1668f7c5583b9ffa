"""Log lines on stderr, each with the request or the job it belongs to. No body, no header, no query is ever logged, and
what slips through is masked (masking.py)."""

import logging
import sys
from collections.abc import MutableMapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from ...ports.jobs import Job
from .masking import mask_event

ACCESS = ("method", "route", "status", "took_ms", "account_id", "mode")
"""The fields of a line of the access log; nothing else that a library hangs on a record gets into a line."""


_BOUND: ContextVar[dict[str, Any]] = ContextVar("what log lines carry")


class _Carrying:
    """Log lines inside the block carry these fields; every request passes here, so it is no generator."""

    __slots__ = ("_fields", "_token")

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._token = _BOUND.set(self._fields)

    def __exit__(self, *_: object) -> None:
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


def _add_bound(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in _BOUND.get({}).items():
        event.setdefault(name, value)
    return event


def configure_logging(level: str, form: str) -> None:
    """Send all logging of the process to stderr, as JSON lines or as text for people; `auto`: text on a terminal."""
    # Imported here: a worker that is embedded carries its fields, and logs as its program does.
    import structlog

    if form == "auto":
        form = "text" if sys.stderr.isatty() else "json"
    shared: list[structlog.types.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(allow=ACCESS),
        _add_bound,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Plain tracebacks: the renderer's own choice, where rich is installed, prints the local variables of every frame,
    # and those are request bodies and secrets.
    for_people = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    renderer: structlog.types.Processor = structlog.processors.JSONRenderer() if form == "json" else for_people
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                mask_event,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # What libraries say at their lower levels is of no use to operators, and statements carry their values.
    for name in ("alembic", "aiosqlite", "asyncio", "dramatiq", "opentelemetry", "sqlalchemy", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)
