"""A real node for tests: anvil, a whole EVM node that makes blocks on request. The tests use the first program found
in this order: the one that CAMBIST_TEST_ANVIL names; `anvil` on the path; the one that an earlier run fetched; the
npm package for this machine, fetched by `npm pack`, which runs none of its code. Without a node the tests are
skipped with the reason, or fail when CI is `true`, as in tests/servers.py."""

import fcntl
import json
import os
import platform
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANGS
from tests.servers import _free_port

VERSION = "1.7.1"
_PROGRAM_VARIABLE = "CAMBIST_TEST_ANVIL"
_PACKAGES = {
    ("Linux", "x86_64"): "anvil-linux-amd64",
    ("Linux", "aarch64"): "anvil-linux-arm64",
    ("Darwin", "x86_64"): "anvil-darwin-amd64",
    ("Darwin", "arm64"): "anvil-darwin-arm64",
}
_HASHES = {"anvil-linux-amd64": "5727dd8f08f3bf6dde4ec1d9832e87c43f9315ef824bff1ab18486bf51bc7af3"}
"""Hashes of the packages that somebody has inspected. npm checks every package against its registry's hash."""


@cache
def anvil_program() -> Path:
    """The program. Skips the test, or fails it in CI, where it cannot be had."""
    given = os.environ.get(_PROGRAM_VARIABLE) or shutil.which("anvil")
    if given:
        return Path(given)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cambist-tests"
    program = folder / f"anvil-{VERSION}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                _fetch(program)
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, tarfile.TarError) as error:
        reason = f"no anvil: {_PROGRAM_VARIABLE} is not set, none is installed, and npm brings none ({error})"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return program


def _fetch(program: Path) -> None:
    """Put the program there, whole or not at all. Raises: OSError, subprocess.SubprocessError, ValueError, LookupError,
    tarfile.TarError."""
    package = _PACKAGES[platform.system(), platform.machine()]
    with tempfile.TemporaryDirectory(dir=program.parent) as place:
        subprocess.run(
            ["npm", "pack", "--silent", f"@foundry-rs/{package}@{VERSION}"],
            cwd=place,
            check=True,
            capture_output=True,
            timeout=HANGS,
        )
        [packed] = Path(place).glob("*.tgz")
        if package in _HASHES and sha256(packed.read_bytes()).hexdigest() != _HASHES[package]:
            raise ValueError("the package is another than the one that was looked at")
        with tarfile.open(packed) as archive:
            inside = archive.extractfile("package/bin/anvil")
            if inside is None:
                raise ValueError("the package has no program")
            fresh = Path(place) / "anvil"
            with fresh.open("wb") as file:
                shutil.copyfileobj(inside, file)
        fresh.chmod(0o755)
        fresh.rename(program)


class Anvil:
    """A node on a port of its own. It mines on request, and reports a block as final once it has two blocks on top."""

    def __init__(self, chain_id: int, folder: Path, start: int) -> None:
        """Prepare a node. `folder` keeps its state over a restart; `start` is the first block's time in seconds."""
        self.port = _free_port()
        self._program = anvil_program()
        self._state = folder / f"anvil-{self.port}.json"
        self._arguments = ("--chain-id", str(chain_id), "--timestamp", str(start))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, again with the chain that it had when it was stopped."""
        self._process = subprocess.Popen(
            [
                *(str(self._program), "--host", "127.0.0.1", "--port", str(self.port), "--silent"),
                *("--slots-in-an-epoch", "1", "--no-mining", "--state", str(self._state), *self._arguments),
                # By default the state of the first block is gone after 4100 blocks, also if the chain was reverted.
                *("--max-persisted-states", "1000000"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + HANGS
        while True:
            try:
                self.ask("eth_chainId")
            except OSError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("anvil does not start") from None
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """Stop it; it keeps its chain."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(HANGS)
            self._process = None

    def ask(self, method: str, *params: Any) -> Any:
        """The result. Raises: RuntimeError when it refuses; OSError when it does not answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=HANGS) as answer:
            said = json.loads(answer.read())
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']}")
        return said["result"]


@contextmanager
def anvil(chain_id: int, folder: Path, start: int) -> Iterator[Anvil]:
    """A running node; nothing of it is left behind."""
    node = Anvil(chain_id, folder, start)
    node.start()
    try:
        yield node
    finally:
        node.stop()
