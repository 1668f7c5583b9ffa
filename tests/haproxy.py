"""HAProxy for tests, with the configuration that is deployed, but for its addresses, its certificate and its log."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import HANGS
from tests.servers import _free_port

DEPLOYED = Path(__file__).parents[1] / "deploy" / "haproxy"


class HAProxy:
    """A running HAProxy in front of processes on this machine."""

    def __init__(self, log: Path, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self._log = log

    @property
    def accesses(self) -> list[str]:
        """The lines of its log."""
        return self._log.read_text("utf-8").splitlines()

    @property
    def errors(self) -> list[str]:
        """The lines about failed requests and servers that went down."""
        return [line for line in self.accesses if re.search(r" 5\d\d | is DOWN", line)]


@contextmanager
def own_haproxy(folder: Path, upstreams: Sequence[str]) -> Iterator[HAProxy]:
    """HAProxy before processes at these addresses (`host:port`). Without a program, skip the test, or fail it in CI."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        reason = "no HAProxy is installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    folder.mkdir()
    port = _free_port()
    (folder / "haproxy.cfg").write_text(_configuration(port, upstreams), "utf-8")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-f", folder / "haproxy.cfg", "-db"], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + HANGS
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None, (folder / "log").read_text("utf-8")
            assert time.monotonic() < deadline, "HAProxy did not start"
            time.sleep(0.02)
        yield HAProxy(folder / "log", port)
    finally:
        process.terminate()
        process.wait(HANGS)


def _configuration(port: int, upstreams: Sequence[str]) -> str:
    """Return the deployed configuration, over plain HTTP at this port."""
    text = (DEPLOYED / "haproxy.cfg").read_text("utf-8")
    names = sorted(set(re.findall(r"^    server \S+ (\S+):8080", text, re.MULTILINE)))
    assert len(names) == len(upstreams)
    for name, address in zip(names, upstreams, strict=True):
        text = text.replace(f" {name}:8080", f" {address}")
    text = re.sub(r"^    (user|group) .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^    bind :443 .*$", f"    bind 127.0.0.1:{port}", text, flags=re.MULTILINE)
    text = re.sub(r"^    (bind :80|http-request redirect .*)\n", "", text, flags=re.MULTILINE)
    text = text.replace("maxconn 20000", "maxconn 2000")  # a test may open fewer files than a server
    text = text.replace("log /dev/log local0", "log stdout format raw local0")
    return text.replace("/etc/haproxy/", f"{DEPLOYED}/")
