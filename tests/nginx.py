"""nginx for tests, with the configuration that is deployed, but for its addresses, its certificate and its logs."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import HANGS
from tests.servers import _free_port

DEPLOYED = Path(__file__).parents[1] / "deploy" / "nginx" / "cambist.conf"


class Nginx:
    """A running nginx in front of processes on this machine."""

    def __init__(self, folder: Path, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self._folder = folder

    @property
    def errors(self) -> list[str]:
        """The lines of its error log, without information."""
        lines = (self._folder / "error.log").read_text("utf-8").splitlines()
        return [line for line in lines if "[info]" not in line]

    @property
    def accesses(self) -> list[str]:
        """The lines of its access log."""
        return (self._folder / "access.log").read_text("utf-8").splitlines()


@contextmanager
def own_nginx(folder: Path, upstreams: Sequence[str]) -> Iterator[Nginx]:
    """nginx before processes at these addresses (`host:port`). Skips the test, or fails it in CI, without a program."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        reason = "no nginx is installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    folder.mkdir()
    port = _free_port()
    (folder / "nginx.conf").write_text(_configuration(folder, port, upstreams), "utf-8")
    process = subprocess.Popen(
        [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + HANGS
        while not (folder / "nginx.pid").exists():
            assert process.poll() is None, (folder / "error.log").read_text("utf-8")
            assert time.monotonic() < deadline, "nginx did not start"
            time.sleep(0.02)
        yield Nginx(folder, port)
    finally:
        process.terminate()
        process.wait(HANGS)


def _configuration(folder: Path, port: int, upstreams: Sequence[str]) -> str:
    """Return the deployed configuration, over plain HTTP at this port."""
    text = DEPLOYED.read_text("utf-8")
    servers = re.findall(r"^    server \S+:8080 (.*);$", text, re.MULTILINE)
    assert len(servers) == len(upstreams)
    for address in upstreams:
        text = re.sub(r"^    server \S+:8080 ", f"    server {address} ", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^server \{\n    listen 80 .*?^\}\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    listen 443 .*;$", f"    listen 127.0.0.1:{port};", text, flags=re.MULTILINE)
    text = re.sub(r"^    (listen \[|ssl_|access_log ).*\n", "", text, flags=re.MULTILINE)
    kept = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Run the workers as root if nginx was started as root: other users cannot read the folders of tests.
    user = "user root root;" if os.getuid() == 0 else ""
    return f"""daemon off;
{user}
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 2048; }}
http {{
{kept}{text}
access_log {folder}/access.log cambist;
}}
"""
