"""Fixtures of all tests."""

import asyncio
import gc
import os
import signal
import sys
import tempfile
import typing
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import cycle, groupby
from pathlib import Path
from typing import Any

import pytest
from dramatiq import worker as dramatiq_worker
from httpx._transports import default as httpx_transports
from httpx2._transports import default as httpx2_transports
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from cambist.adapters.passwords.argon2 import Argon2Passwords
from cambist.adapters.storage.migrate import migrate
from tests.apps import TestApp, open_test_app
from tests.servers import database, postgres_server, service_url
from tests.stories.preloaded import stop_template

# Tests start a hundred processes of the program: each would compile all of it where bytecode may not be kept.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Apps are made and dropped by the thousand; to look for cycles at every 700 objects took a sixth of the time. What the
# collection of the tests creates stays, so nothing looks for cycles there (`pytest_collection_finish`).
gc.set_threshold(100_000, 50, 100)
gc.disable()

# Before 3.12, each `isinstance` of a protocol lists its members anew: a tenth of the CPU of a use case.
typing._get_protocol_attrs = cache(typing._get_protocol_attrs)  # type: ignore[attr-defined]

# How long an example takes, drawn or tried, tells of the machine: at load 16 ten times as long.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

# Hypothesis parses every local module for constants to try, which costs each worker seven seconds of CPU in a new
# clone. Only the constants of the domain rules matter.
providers.is_local_module_file = lambda path: "/core/domain/" in path  # type: ignore[assignment,attr-defined]

# Every client of httpx and httpx2 reads the machine's authorities, in 30 ms: one reading serves them all.
for library in (httpx_transports, httpx2_transports):
    library.create_ssl_context = cache(library.create_ssl_context)  # type: ignore[attr-defined]

# A password takes 27 ms of CPU on purpose, and half of one here. tests/attacks/test_dashboard.py has the parameters.
Argon2Passwords.__init__.__kwdefaults__ = {"memory": 64, "passes": 1}

# After an error, Dramatiq's consumer pauses for three seconds, in which a test would only wait.
dramatiq_worker.CONSUMER_RESTART_DELAY_SECS = 0.05

# Processes started in the background of a shell ignore Ctrl-C, and so do their children. Some tests send Ctrl-C, so
# restore the default handler.
signal.signal(signal.SIGINT, signal.default_int_handler)

_TESTS = Path(__file__).parent
_MEMORY = Path("/dev/shm")
_ROOM = 2 << 30


def _work_in_memory() -> None:
    """Create temporary files in memory, where the machine has room. The tests create thousands of databases, and each
    commit would wait for a disk. A `kill -9` leaves the same files in memory as on disk."""
    if "TMPDIR" not in os.environ and _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK):
        there = os.statvfs(_MEMORY)
        if there.f_bavail * there.f_frsize >= _ROOM and not there.f_flag & os.ST_NOEXEC:
            os.environ["TMPDIR"] = str(_MEMORY)
            tempfile.tempdir = None


_work_in_memory()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Two more than there are processors: much is waiting for servers, browsers and other processes."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return 2 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Use work stealing unless the command line asks for another scheduler: an idle worker takes tests from a busy
    one."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]  # here: it may be left out

    return WorkStealingScheduling(config, log)


def pytest_collection(session: pytest.Session) -> None:
    """In a full run, import the test modules in a different order in each worker. In a new clone each worker then
    compiles its share and finds the others' compiled files; in the same order, all workers would compile every module
    at once."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or [Path(each).name for each in session.config.args] != [_TESTS.name]:
        return
    files = sorted(_TESTS.rglob("test_*.py"))
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[first:] + files[:first]:
        with suppress(Exception, pytest.skip.Exception):  # the collection reports the error
            import_module(".".join(file.relative_to(_TESTS.parent).with_suffix("").parts))


_WAITING = ("tests/drills/", "tests/stories/")
"""Tests that wait most of their time, for processes and the machine's clock."""
_LONGEST = (
    "tests/simulation/", "tests/embedding/", "tests/docs/", "tests/deploy/", "tests/console/",
    "tests/usecases/operators/test_unreadable_fuzz.py", "tests/usecases/settlement/test_settlement_crashes.py",
    "tests/usecases/accounts/test_sandbox_data.py", "tests/contracts/test_histories.py",
)  # fmt: skip
"""Tests that compute for seconds each."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run slow tests first, so that no worker is left with one at the end. Half of the workers begin with the tests
    that mostly wait, which leaves the processors to the others. Each worker begins with an equal part of the list."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    sizes = [len(items) * (place + 1) // workers - len(items) * place // workers for place in range(workers)]
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    half = (workers + 1) // 2
    for kind, its_parts in ((_WAITING, parts[:half]), (_LONGEST, parts[half:] or parts)):
        files = groupby((item for item in items if item.nodeid.startswith(kind)), lambda item: item.path)
        for part, (_, tests) in zip(cycle(its_parts), files, strict=False):
            part.extend(tests)
    rest = deque(item for item in items if not item.nodeid.startswith(_WAITING + _LONGEST))
    for part, size in zip(parts, sizes, strict=True):
        part.extend(rest.popleft() for _ in range(min(size - len(part), len(rest))))
    items[:] = [*(item for part in parts for item in part), *rest]


def pytest_collection_finish() -> None:
    """Look for cycles from now on; everything collected is old, so that young collections pass over it."""
    gc.freeze()
    gc.unfreeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Stop everything that this process started for its tests. Then make garbage collection rare: at exit, pytest
    forces several collections, and each process would spend a second on walking over live objects."""
    stop_template()
    gc.freeze()


@pytest.fixture
async def app() -> AsyncIterator[TestApp]:
    """An app with one merchant, in memory, under a virtual clock."""
    async with open_test_app() as opened:
        yield opened


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a Postgres server."""
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_database(server: str, postgres_template: str) -> Iterator[str]:
    """The URL of a Postgres database at head, for one test after the other; each empties it first."""
    with database(server, postgres_template) as made:
        yield made


@pytest.fixture(scope="session")
def postgres_template(server: str) -> Iterator[str]:
    """The URL of a Postgres database at head and empty, to be copied in a fifth of the time of a migration."""
    with database(server) as made:
        asyncio.run(migrate(made))
        yield made


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file at head and empty, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "app.db"
    asyncio.run(migrate(f"sqlite:///{path}"))
    return path


@pytest.fixture(params=["memory", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The database of an app, at head and empty: one writer at a time, and many. tests/contracts and random histories
    show that SQLite answers as these two do. Not async, because a schema is brought up in an event loop of its own."""
    return service_url(request, request.param, tmp_path)
