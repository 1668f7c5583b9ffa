"""A monkey at the console: random keys on all its screens, over a storage that is late, away, or raises. python -m
tests.console.monkey --keys 100000 --storage sqlite --payments 20000 [--seed 7] prints the seed of each run; the
same seed types the same keys. A run ends with the first key after which the console ended or reported a fault of
its own. Faults that the storage raises on purpose do not count."""

import argparse
import asyncio
import inspect
import logging
import random
import secrets
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import msgspec
from textual._compositor import Compositor

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.migrate import migrate
from cambist.frontends.console.app import Console
from cambist.frontends.console.catalogue import KINDS
from cambist.frontends.console.context import ConsoleContext
from cambist.frontends.console.home import HomeScreen
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from tests.console.kit import SIZES, Slips, prompt, unpainted
from tests.console.payments_in_bulk import fill
from tests.console.seeds import everything_there_is
from tests.console.storages import Gated
from tests.refund_app import open_refund_app
from tests.servers import database, postgres_server

LATEST = 2.0
"""Seconds after which the storage answers at the latest."""
_TURNS = 6
_TERMINALS = (*SIZES, (120, 30), (200, 50), (40, 10))
_LETTERS = "abcdefghijklmnoprstuvwxyzRSTGWALJCDEN"
_KEYS: tuple[tuple[str, int], ...] = (
    *((each.key, 3) for each in KINDS if each.key),
    *((letter, 1) for letter in _LETTERS),
    ("enter", 14), ("escape", 16), ("down", 10), ("up", 4), ("pagedown", 4), ("ctrl+end", 2), ("home", 1), ("tab", 4),
    ("ctrl+s", 4), ("0", 3), ("r", 3), ("f", 3), ("slash", 4), ("g", 3), ("question_mark", 2), ("ctrl+p", 2),
    ("ctrl+t", 1), ("space", 2), ("backspace", 1), ("minus", 1), ("full_stop", 1), ("ctrl+v", 1), ("shift+tab", 1),
    ("left", 1), ("right", 1),
)  # fmt: skip


_NO_FINDS = ("failed: MadeUp\n", "failed: OperationalError\n", "in _move_page")
"""Faults that the storage raised on purpose, and Textual's own fault at pagedown in a palette that is not drawn yet."""


class MadeUp(Exception):
    """An error that no port declares."""


class Moods:
    """How the storage does, in turns of a seed: well, late, away, or raising."""

    def __init__(self, chance: random.Random, clock: VirtualClock) -> None:
        self._chance = chance
        self._clock = clock
        self.mood = "well"
        self.faults = 0

    def turn(self) -> None:
        """Another mood."""
        self.mood = self._chance.choice(("well", "late", "late", "late", "away", "raises"))

    async def __call__(self) -> None:
        if self.mood != "well":
            await self._clock.sleep(self._chance.uniform(0, LATEST))
        if self.mood == "away" and self._chance.random() < 0.5:
            self.faults += 1
            raise Unavailable("the database does not answer")
        if self.mood == "raises" and self._chance.random() < 0.5:
            self.faults += 1
            raise self._chance.choice((MadeUp("x"), OSError("no route"), sqlite3.OperationalError("disk I/O error")))


class Ended(Exception):
    """The console ended, or reported a fault of its own."""


class TamedConsole(Console):
    """A console that cannot be quit and writes no files. Otherwise the first `q` would be the last key."""

    CSS_PATH = str(Path(inspect.getfile(Console)).with_name("console.tcss"))

    async def action_quit(self) -> None:
        """Stay."""

    def deliver_screenshot(self, *_args: Any, **_named: Any) -> str | None:
        """Write nothing."""
        return None


class Monkey:
    """Types at a console."""

    def __init__(self, ports: Ports, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = VirtualClock()
        self.moods = Moods(random.Random(seed + 1), self.clock)
        self.app = TamedConsole(
            ConsoleContext(
                ports=msgspec.structs.replace(ports, storage=Gated(ports.storage, self.moods)), operator="olga"
            )
        )
        self.app.animation_level = "none"
        self.typed: list[str] = []
        self.visited: set[str] = set()

    async def type(self, keys: int, pass_time: Callable[[float], Awaitable[None]]) -> None:
        """Type `keys` keys, each while the work of earlier ones may still run. Raises: Ended."""
        names, weights = [name for name, _ in _KEYS], [weight for _, weight in _KEYS]
        with patch.object(Compositor, "render_update", unpainted), Slips().listening() as slips, prompt(self.app):
            try:
                async with self.app.run_test(size=SIZES[0]) as pilot:
                    for number in range(keys):
                        if number % 40 == 0:
                            self.moods.turn()
                        if number % 200 == 199:
                            await pilot.resize_terminal(*self.chance.choice(_TERMINALS))
                        await self._key(self.chance.choices(names, weights)[0], pass_time)
                        self._look(slips.told)
                    self.moods.mood = "well"
                    await self._rest(pass_time)
                    self._look(slips.told)
            except Ended:
                raise
            except Exception as fault:
                raise Ended(self._told(repr(fault))) from fault

    async def _key(self, key: str, pass_time: Callable[[float], Awaitable[None]]) -> None:
        self.typed.append(key)
        self.app.simulate_key(key) if len(key) > 1 else await self.app._press_keys([key])
        for _ in range(self.chance.randrange(_TURNS)):
            await asyncio.sleep(0)
        await self.clock.advance(self.chance.choice((0.0, 0.1, 0.3, 0.8)))
        if self.chance.random() < 0.1:
            await pass_time(1.0)
        kind = getattr(self.app.screen, "kind", None) or getattr(self.app.screen, "_kind", None)
        self.visited.add(type(self.app.screen).__name__ + (f" {kind.name}" if kind else ""))

    async def _rest(self, pass_time: Callable[[float], Awaitable[None]]) -> None:
        """All is answered, all is closed, and home is there."""
        for _ in range(200):
            await self.clock.advance(LATEST)
            await pass_time(LATEST)
            self.app.simulate_key("escape")
            await asyncio.sleep(0.01)
            if isinstance(self.app.screen, HomeScreen) and all(each.is_finished for each in self.app.workers):
                return
        raise Ended(self._told(f"it does not come to rest: {self.app.screen!r}"))

    def _look(self, told: list[str]) -> None:
        if self.app._exception is not None:
            raise Ended(self._told(repr(self.app._exception)))
        made_up = [each for each in told if any(known in each for known in _NO_FINDS)]
        if len(made_up) != len(told):
            raise Ended(self._told(next(each for each in told if each not in made_up)))
        told.clear()

    def _told(self, what: str) -> str:
        return f"after {len(self.typed)} keys, the last of which were {' '.join(self.typed[-25:])}:\n{what}"


async def run(url: str, folder: Path, *, seed: int, keys: int, payments: int) -> str:
    """Do one run on an empty database at `url`, and return a line about it. Raises: Ended."""
    await migrate(url)
    async with open_refund_app(made_up=True, database_url=url, data_dir=folder) as refunds:
        await everything_there_is(refunds)
        await fill(refunds, url, payments)
        monkey = Monkey(refunds.ports, seed)

        async def pass_time(seconds: float) -> None:
            await refunds.app.clock.advance(seconds)

        await monkey.type(keys, pass_time)
        return f"{keys} keys, {len(monkey.visited)} screens, {monkey.moods.faults} faults of the storage, 0 ends"


def main() -> int:
    """`python -m tests.console.monkey`."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--keys", type=int, default=100_000)
    asked.add_argument("--payments", type=int, default=20_000)
    asked.add_argument("--storage", choices=("sqlite", "postgres"), action="append")
    asked.add_argument("--seed", type=int, help="of the first run")
    asked.add_argument("--each", type=int, default=2_000, help="keys of a run; the next one has the next seed")
    given = asked.parse_args()
    seed = given.seed if given.seed is not None else secrets.randbelow(1_000_000)
    logging.getLogger().addHandler(logging.NullHandler())
    storages = given.storage or ["sqlite", "postgres"]
    left, ended = given.keys, 0
    while left > 0:
        storage, keys, began = storages[seed % len(storages)], min(given.each, left), process_time()
        try:
            met = on_storage(storage, seed=seed, keys=keys, payments=given.payments)
        except Ended as found:
            ended, met = ended + 1, f"ENDED {found}"
        print(f"seed {seed}, {storage}: {met} ({process_time() - began:.0f} s of CPU)", flush=True)
        left, seed = left - keys, seed + 1
    print(f"{given.keys} keys, {ended} ends")
    return 1 if ended else 0


def on_storage(storage: str, *, seed: int, keys: int, payments: int) -> str:
    """Do one run on a database of its own, and return a line about it. Raises: Ended."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'app.db'}"
        if storage == "postgres":
            url = closing.enter_context(database(closing.enter_context(postgres_server())))
        return asyncio.run(run(url, folder, seed=seed, keys=keys, payments=payments))


if __name__ == "__main__":
    sys.exit(main())
