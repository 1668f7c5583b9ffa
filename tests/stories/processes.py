"""Real processes of `cambist` for scenarios, started as in a shell, in a folder and an environment of their own. Most
are forked from a loaded one (preloaded.py). Output goes to files, so that nothing blocks and everything can be read
after a kill. All waiting is polling for a condition, with an end."""

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from cambist.core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from cambist.frontends.app.compose import migrate, open_app
from cambist.frontends.settings.settings import Settings
from cambist.frontends.settings.sources import load
from cambist.ports.bundle import Ports
from tests.patience import HANGS
from tests.stories.preloaded import Forked, template

T = TypeVar("T")

WEBHOOK_SECRET = "a-webhook-secret-of-the-stories"
PROGRAM = Path(sysconfig.get_path("scripts"), "cambist")
_READY = re.compile(r"cambist serves at (\S+)\n")
WORKS = re.compile(r"cambist works\n")
_POLL = 0.02


async def eventually(look: Callable[[], Awaitable[T | None]], within: float = HANGS, every: float = _POLL) -> T:
    """Poll `look` until its result is true, and return it. Raises TimeoutError."""
    async with asyncio.timeout(within):
        while not (found := await look()):
            await asyncio.sleep(every)
    return found


@dataclass(frozen=True)
class Outcome:
    """Result of a command."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as one JSON document."""
        return msgspec.json.decode(self.out)


class Process:
    """A running command, leader of a process group of its own."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        environ: dict[str, str],
        number: int,
        program: Path | None = PROGRAM,
    ) -> None:
        """Start the process. Without a `program`, fork it from a loaded one where possible."""
        self._out = folder / f"{number}-{arguments[0]}.out"
        self._err = folder / f"{number}-{arguments[0]}.err"
        self._process: Forked | subprocess.Popen[bytes]
        if program is None and sys.platform == "linux" and environ.get("LD_PRELOAD") == os.environ.get("LD_PRELOAD"):
            self._process = template().start(arguments, folder, environ, self._out, self._err)
            return
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [program or PROGRAM, *arguments],
                cwd=folder,
                env=environ,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def out(self) -> str:
        """Standard output so far."""
        return self._out.read_text("utf-8")

    @property
    def err(self) -> str:
        """Standard error so far."""
        return self._err.read_text("utf-8")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the whole group with SIGKILL."""
        if not self.ended:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(HANGS)

    def wait(self) -> int:
        """The exit status of a process that is about to end."""
        return self._process.wait(HANGS)

    def terminate(self) -> int:
        """Send SIGTERM, and return the exit status."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def said(self, pattern: "re.Pattern[str]") -> "re.Match[str]":
        """The first place in standard output that matches, once it is there."""
        deadline = time.monotonic() + HANGS
        while not (found := pattern.search(self.out)):
            if self.ended and not pattern.search(self.out):
                raise AssertionError(f"it ended without saying so: {self.out}{self.err}")
            assert time.monotonic() < deadline, f"it does not say so: {self.out}{self.err}"
            time.sleep(_POLL)
        return found


class Service(Process):
    """`cambist serve`, or `cambist api`."""

    def ready(self) -> str:
        """The base URL, once the service accepts requests."""
        return self.said(_READY)[1]


class Installation:
    """Shared parts of one installation's processes: folder, settings, data."""

    def __init__(self, folder: Path, loaded_anew: bool = False, /, **settings: str) -> None:
        self.folder = folder
        self.loaded_anew = loaded_anew
        """Whether processes are started by the program's file, as a shell does it."""
        wanted = {"data_dir": str(folder / "data"), "port": "0", **settings}
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CAMBIST_")},
            **{f"CAMBIST_{name.upper()}": value for name, value in wanted.items()},
        }
        self.started: list[Process] = []

    @property
    def settings(self) -> Settings:
        """Settings as the processes read them."""
        return load(self.environ, {}, self.folder).settings

    @property
    def _program(self) -> Path | None:
        return PROGRAM if self.loaded_anew else None

    def start(self, *arguments: str) -> Process:
        """Start a command."""
        process = Process(arguments, self.folder, self.environ, len(self.started), self._program)
        self.started.append(process)
        return process

    def start_service(self, *arguments: str) -> Service:
        """Start `cambist serve` and do not wait for it."""
        service = Service(("serve", *arguments), self.folder, self.environ, len(self.started), self._program)
        self.started.append(service)
        return service

    def start_api(self, *arguments: str) -> Service:
        """Start `cambist api` and do not wait for it."""
        service = Service(("api", *arguments), self.folder, self.environ, len(self.started), self._program)
        self.started.append(service)
        return service

    def serve(self, *arguments: str) -> tuple[Service, str]:
        """Start `cambist serve`; it and its base URL once it accepts requests."""
        service = self.start_service(*arguments)
        return service, service.ready()

    def call(self, *arguments: str) -> Outcome:
        """Run a command to its end."""
        process = self.start(*arguments)
        return Outcome(process.wait(), process.out, process.err)

    def damage(self, *statements: str) -> None:
        """Change the SQLite file without the running processes' knowledge."""
        with closing(sqlite3.connect(self.settings.data_dir / "cambist.db", isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)

    async def migrate(self) -> None:
        """Migrate the schema."""
        await migrate(self.settings)

    @asynccontextmanager
    async def app(self) -> AsyncIterator[Ports]:
        """The ports of an app on the same data, in this process, beside the service or without it."""
        async with open_app(self.settings) as app:
            yield app.ports

    async def accounts(self, count: int, webhook_url: str | None = None) -> list[NewAccount]:
        """Create accounts, as `cambist account create` and `account set` do."""
        async with self.app() as ports:
            made = [await create_account(ports, f"Merchant {number}") for number in range(count)]
            if webhook_url is not None:
                wish = {"webhook_url": webhook_url, "webhook_secret": WEBHOOK_SECRET}
                for account in made:
                    await set_settings(ports, account.account_id, wish)
        return made

    async def account(self, webhook_url: str | None = None) -> NewAccount:
        """Make one account."""
        [made] = await self.accounts(1, webhook_url)
        return made


@contextmanager
def installation(folder: Path, loaded_anew: bool = False, /, **settings: str) -> Iterator[Installation]:
    """An installation in `folder`; at the end none of its processes is left."""
    made = Installation(folder, loaded_anew, **settings)
    try:
        yield made
    finally:
        for process in made.started:
            process.kill()
