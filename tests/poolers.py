"""PgBouncer for tests, with its defaults, before a Postgres."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.patience import HANGS
from tests.servers import _free_port, _unprivileged


@contextmanager
def own_pgbouncer(server: str, mode: str, *options: str) -> Iterator[str]:
    """The URL of a database of `server`, by way of a pooler with further lines of configuration. Skips the test, or
    fails it in CI, without a program."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        reason = "no pgbouncer is installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    parts = urlsplit(server)
    # Not below pytest's folder, which is closed to other users: as root the pooler refuses to run.
    folder = Path(tempfile.mkdtemp(prefix="cambist-pgbouncer-"))
    port = _free_port()
    rights = _unprivileged(folder)
    (folder / "users.txt").write_text(f'"{parts.username}" "{parts.password or ""}"\n', "utf-8")
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={parts.hostname} port={parts.port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
        f"auth_file = {folder}/users.txt\npool_mode = {mode}\npidfile = {folder}/pid\n"
        + "".join(f"{option}\n" for option in options),
        "utf-8",
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, str(folder / "pgbouncer.ini")], stdout=log, stderr=log, **rights)
    try:
        deadline = time.monotonic() + HANGS
        while not (folder / "pid").exists():
            assert process.poll() is None, (folder / "log").read_text("utf-8")
            assert time.monotonic() < deadline, "pgbouncer did not start"
            time.sleep(0.02)
        yield urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}"))
    finally:
        process.terminate()
        process.wait(HANGS)
        shutil.rmtree(folder)
