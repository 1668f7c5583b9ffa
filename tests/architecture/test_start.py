"""A process loads at its start only the modules that it needs.

The rules protect two promises: the first sandbox of a test run starts in half a second (docs/testing.md), and an idle
service takes little memory (docs/performance.md).
"""

import gc
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from cambist.frontends.app.compose import migrate
from cambist.frontends.process.gc_pause import collect_in_full, gc_paused
from cambist.frontends.settings.settings import Settings

PAGES = (
    *("jinja2", "segno", "markupsafe", "gzip", "cambist.frontends.http.openapi.openapi"),
    *("cambist.frontends.http.openapi.docs_page", "cambist.frontends.http.openapi.documentation"),
    *("cambist.frontends.http.framework", "cambist.frontends.http.payer.window", "cambist.frontends.http.front"),
    *("cambist.frontends.http.notifications", "cambist.frontends.http.uploads", "cambist.core.usecases.payer.window"),
)
"""Modules loaded with the first page."""
NEVER = ("faker", "polyfactory", "rich_click")
"""Requirements of litestar that the image does not have (noxfile.py), and one that only its own commands need."""
NOT_IN_A_SANDBOX = (
    *PAGES,
    *("sqlalchemy", "aiosqlite", "asyncpg", "alembic", "aiohttp", "cryptography", "uvicorn", "redis", "dramatiq"),
    *("prometheus_client", "textual", "cambist.adapters.vault.sealed", "cambist.adapters.storage.sql.sql"),
    *("cambist.core.usecases.alarms.problems", "cambist.core.usecases.operators.action_items"),
)
NOT_IN_A_SERVICE_ON_SQLITE = (
    *PAGES,
    *(
        "alembic",
        "asyncpg",
        "sqlalchemy.dialects.postgresql",
        "rich",
        "pygments",
        "httpx",
        "httpx2",
        "redis",
        "dramatiq",
    ),
    *("prometheus_client", "textual", "cambist.frontends.client", "cambist.adapters.storage.memory.memory"),
    *("cambist.core.usecases.reconciliation.reconciliation", "cambist.core.usecases.reconciliation.counted"),
    *("cambist.frontends.telemetry.signs", "cambist.core.usecases.reconciliation.signs"),
)

_SANDBOX = """
import sys
from cambist.frontends.testing import open_stage
with open_stage() as stage, stage.open_sandbox() as sandbox:
    payment = sandbox.client.payments.create(amount_rub="100.00", description="order 1")
    assert sandbox.pay(payment.id).status == "paid"
    print(*[name for name in {unwanted!r} if name in sys.modules])
    waiting = sandbox.client.payments.create(amount_rub="100.00", description="order 2")
    for path in ("/docs", f"/p/{{waiting.id}}"):
        assert sandbox.http().get(path).status_code == 200
    print(*[name for name in {pages!r} if name not in sys.modules])
    assert sandbox.http().get("/openapi.json").status_code == 200
    print(*[name for name in {never!r} if name in sys.modules])
"""
_SERVICE = """
import asyncio, sys
from pathlib import Path
import cambist.frontends.cli.service
from cambist.frontends.server.server import create_app
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.frontends.telemetry.logs import configure_logging
async def asked(app, path):
    answers = []
    async def send(message):
        answers.append(message)
    scope = {{"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}}
    await app(scope, None, send)
    return answers[0]["status"]
async def main():
    configure_logging("warning", "json")
    async with open_app(Settings(data_dir=Path(sys.argv[1]))) as opened:
        app = create_app(opened.ports)
        for path in ("/livez", "/readyz", "/health", "/api/v1/payments"):
            print(await asked(app, path))
    print(*[name for name in {unwanted!r} if name in sys.modules])
asyncio.run(main())
"""


def said_by(script: str, *arguments: str, **values: tuple[str, ...]) -> list[str]:
    command = [sys.executable, "-c", script.format(**values), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_sandbox_loads_nothing_that_it_does_not_use_until_it_does() -> None:
    at_start, missing_after_pages, never = said_by(_SANDBOX, unwanted=NOT_IN_A_SANDBOX, pages=PAGES, never=NEVER)
    assert at_start == ""
    assert missing_after_pages == ""
    assert never == ""


async def test_a_service_on_sqlite_loads_nothing_of_other_configurations(tmp_path: Path) -> None:
    await migrate(Settings(data_dir=tmp_path))
    *statuses, loaded = said_by(_SERVICE, str(tmp_path), unwanted=NOT_IN_A_SERVICE_ON_SQLITE)
    assert statuses == ["200", "200", "503", "401"]  # /health: nothing works on jobs there
    assert loaded == ""


def test_import_caches_are_freed_and_later_imports_still_work() -> None:
    """Not those of the standard library alone: the folder of the package is read anew, too."""
    script = """
import linecache, sys
import cambist.frontends.server.server
from cambist.frontends.process.gc_pause import keep_for_good
keep_for_good()
print(len(sys.path_importer_cache), len(linecache.cache))
import colorsys, cambist.frontends.http.framework
print(colorsys.__name__, cambist.frontends.http.framework.__name__)
"""
    assert said_by(script) == ["0 0", "colorsys cambist.frontends.http.framework"]


class TestCollector:
    """Every use restores the garbage collector's settings."""

    def test_collector_rests_inside_and_runs_afterwards(self) -> None:
        with gc_paused():
            assert not gc.isenabled()
        assert gc.isenabled()

    def test_collector_stopped_by_the_program_stays_stopped(self) -> None:
        gc.disable()
        try:
            with gc_paused():
                pass
            assert not gc.isenabled()
        finally:
            gc.enable()

    def test_collector_runs_again_after_a_failure(self) -> None:
        with pytest.raises(ImportError), gc_paused():
            raise ImportError
        assert gc.isenabled()

    def test_objects_made_meanwhile_are_old_and_not_frozen(self) -> None:
        with gc_paused():
            made: list[Any] = [[]]
        assert any(each is made for each in gc.get_objects(generation=2))
        assert gc.get_freeze_count() == 0

    def test_objects_frozen_by_the_program_stay_frozen(self) -> None:
        gc.freeze()
        try:
            with gc_paused():
                pass
            assert gc.get_freeze_count() > 0
        finally:
            gc.unfreeze()

    def test_full_collection_runs_only_if_objects_grew_old(self) -> None:
        gc.collect()
        gc.disable()
        try:
            gone = _cycle()
            collect_in_full()
            assert gone() is not None
            gc.collect(1)  # young objects are old now
            kept = _cycle()
            collect_in_full()
            assert gone() is None
            assert kept() is None
        finally:
            gc.enable()


class _Looped:
    """Refers to itself: only a collection takes it away."""

    def __init__(self) -> None:
        self.itself = self


def _cycle() -> "weakref.ref[_Looped]":
    return weakref.ref(_Looped())
