"""`cambist serve` as a shell starts it (docs/cli.md "Serving")."""

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.cli.conftest import PROGRAM, Call
from tests.patience import HANGS


def test_serve_says_where_it_serves_in_one_line_and_ends_well_on_sigterm(folder: Path) -> None:
    """It prints one line with its address when it accepts requests; SIGTERM drains (docs/cli.md "Serving")."""
    arguments = [sys.executable, "-c", PROGRAM, "serve", "--port", "0", "--workers", "2"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, encoding="utf-8") as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            url = line.split()[-1]
            assert url.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{url}/livez", timeout=HANGS) as answer:
                assert answer.status == 200
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=HANGS)
        finally:
            process.kill()
    assert (process.returncode, rest) == (0, "")


def test_an_address_that_is_taken_is_a_message(spawn: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        outcome = spawn("serve", "--port", str(taken.getsockname()[1]))
    assert (outcome.status, outcome.out) == (1, "")
    assert "error: " in outcome.err
    assert "Traceback" not in outcome.err


def test_flags_are_checked_like_any_other_setting(spawn: Call) -> None:
    outcome = spawn("serve", "--host", "http://127.0.0.1")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == "error: --host: must be a host name or an IP address, without port\n"
