"""The one-time sign-in that `cambist serve` prints in a fresh installation (docs/cli.md "Serving")."""

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Account
from cambist.core.domain.people.people import Invitation
from cambist.core.usecases.accounts.accounts import create_account
from cambist.frontends.app.compose import App, open_app
from cambist.frontends.server.first_sign_in import OWNER, is_private, show_first_sign_in
from cambist.frontends.settings.settings import Settings
from tests.cli.conftest import PROGRAM
from tests.invariants import everything
from tests.tables import table

LINK = re.compile(r"http://\S+/invite\?token=[0-9a-f]{64}")


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
async def fresh(tmp_path: Path) -> AsyncIterator[App]:
    async with open_app(Settings(data_dir=tmp_path)) as app:
        yield app


async def test_terminal_gets_the_sign_in_of_an_empty_database_once(fresh: App) -> None:
    screen = Screen()
    await show_first_sign_in(fresh, screen)
    assert len(LINK.findall(screen.getvalue())) == 1
    assert OWNER in screen.getvalue()
    [invitation] = await everything(fresh.ports, Invitation)
    assert (invitation.role, invitation.live) == ("owner", False)
    again = Screen()
    await show_first_sign_in(fresh, again)
    assert again.getvalue() == ""
    assert len(await everything(fresh.ports, Account)) == 1


async def test_pipe_file_and_journal_get_no_sign_in(fresh: App) -> None:
    out = io.StringIO()
    await show_first_sign_in(fresh, out)
    assert out.getvalue() == ""
    assert await everything(fresh.ports, Account) == []


async def test_database_with_an_account_gives_no_sign_in(fresh: App) -> None:
    await create_account(fresh.ports, "Shop")
    screen = Screen()
    await show_first_sign_in(fresh, screen)
    assert screen.getvalue() == ""
    assert await everything(fresh.ports, Invitation) == []


@table(
    ("given", "private"),
    [
        ({}, True),
        ({"host": "::1"}, True),
        ({"host": "localhost"}, True),
        ({"host": "0.0.0.0"}, False),
        ({"host": "192.168.1.7"}, False),
        ({"host": "pay.example"}, False),
        ({"base_url": "https://pay.example"}, False),
        ({"base_url": "https://pay.example", "allow_live_simulators": True}, False),
        ({"app_url": "https://app.example"}, False),
        ({"pay_url": "https://pay.example"}, False),
        ({"app_url": "http://shop.localhost"}, False),
        ({"allow_live_simulators": False}, False),
    ],
)
def test_only_this_machine_in_simulated_live_mode_is_private(given: dict[str, Any], private: bool) -> None:
    assert is_private(Settings(**given)) is private


@pytest.mark.skipif(sys.platform != "linux", reason="needs a pseudo-terminal")
def test_serve_in_a_terminal_prints_it_at_the_first_start_only(folder: Path) -> None:
    assert len(LINK.findall(served(folder))) == 1
    assert LINK.findall(served(folder)) == []


def served(folder: Path) -> str:
    """What `cambist serve` prints in a terminal until it is stopped; its log must not repeat the address."""
    ours, theirs = os.openpty()
    arguments = [sys.executable, "-c", PROGRAM, "serve", "--port", "0"]
    with (folder / "log").open("wb") as log, subprocess.Popen(arguments, stdout=theirs, stderr=log) as process:
        os.close(theirs)
        said = b""
        try:
            while b"cambist serves at" not in said:
                said += os.read(ours, 65_536)
            process.send_signal(signal.SIGTERM)
            while chunk := _rest(ours):
                said += chunk
            assert process.wait() == 0
        finally:
            process.kill()
            os.close(ours)
    assert "token=" not in (folder / "log").read_text("utf-8")
    return said.decode()


def _rest(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other side is closed
        return b""
