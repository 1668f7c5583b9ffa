"""Log lines on stderr, each with the id of the request it belongs to. No body, no header, no query is ever logged."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


@contextmanager
def request_context(request_id: str) -> Iterator[None]:
    """Every log line inside carries this request id."""
    tokens = structlog.contextvars.bind_contextvars(request_id=request_id)
    try:
        yield
    finally:
        structlog.contextvars.reset_contextvars(**tokens)


def configure_logging(level: str, form: str) -> None:
    """Send all logging of the process to stderr, as JSON lines or as text for people."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Plain tracebacks: the renderer's own choice, where rich is installed, prints the local variables of every frame,
    # and those are request bodies and secrets.
    for_people = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    renderer: structlog.types.Processor = structlog.processors.JSONRenderer() if form == "json" else for_people
    exceptions = [structlog.processors.format_exc_info] if form == "json" else []
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *exceptions, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # What libraries say at their lower levels is of no use to operators, and statements carry their values.
    for name in ("alembic", "aiosqlite", "asyncio", "dramatiq", "sqlalchemy"):
        logging.getLogger(name).setLevel(logging.WARNING)
