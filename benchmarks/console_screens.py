"""CPU cost of the operators' console at a million payments, for each screen, key and filter.

    python -m benchmarks.console_screens --payments 1000000 [--folder FOLDER] [--database URL] [--size 200x50] [--reads]

The program creates a SQLite database of about 2 GB; in FOLDER it is kept and reused. With a URL it fills that database
if it has no merchants (4 GB in Postgres; run ANALYZE, as Postgres does by itself after a while). Then it operates the
console, and prints a row for each step: opening a screen, its next pages, filters, dialogs, a search. Each step runs
three times, on a terminal of `--size`, and has two figures: the time until the result is first painted, and the time
until everything is complete, such as the object beside a list, totals, and the amounts of an operator action.

Time is CPU time of the whole process: database access, painting and terminal output. Wall-clock time would include
other programs. Only the reads (`--reads`) use wall-clock time, because a database server does part of their work.
"""

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any, NamedTuple

from rich.console import RenderableType
from textual._compositor import CompositorUpdate
from textual.pilot import Pilot
from textual.screen import Screen
from textual.worker import WorkerCancelled

from benchmarks.console_rows import fill
from cambist.adapters.storage.migrate import migrate
from cambist.core.domain.accounts.accounts import Account
from cambist.core.usecases.accounts.accounts import list_accounts
from cambist.core.usecases.browse.search import search
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.frontends.app.compose import open_app
from cambist.frontends.console import app as app_module
from cambist.frontends.console.app import Console
from cambist.frontends.console.catalogue import KINDS
from cambist.frontends.console.context import ConsoleContext
from cambist.frontends.console.kinds.kinds import Kind, Wish
from cambist.frontends.console.listing import ListScreen
from cambist.frontends.console.pages import PAGE
from cambist.frontends.console.run import FULL_AFTER
from cambist.frontends.process.gc_pause import keep_for_good
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from tests.invariants import everything

LIMIT_MS = 100
_TIMES = 3
_PAGES = 30


class Cost(NamedTuple):
    """Cost of one step, in ms of CPU."""

    paint: float
    """Until the first paint."""
    whole: float


class Painted(Console):
    """The console without a terminal. It still produces the terminal's output."""

    CSS_PATH = str(Path(app_module.__file__).with_name("console.tcss"))

    def __init__(self, shared: ConsoleContext) -> None:
        super().__init__(shared)
        self.paints: list[tuple[Screen[Any], float]] = []
        """Painted screens and the times."""

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        if isinstance(renderable, CompositorUpdate):
            renderable.render_segments(self.console)
            self.paints.append((screen, process_time()))
        super()._display(screen, renderable)


class Desk:
    """A simulated operator. It waits for each answer and records the cost."""

    def __init__(self, console: Painted, pilot: Pilot[None]) -> None:
        self._app = console
        self._pilot = pilot
        self.took: dict[str, list[Cost]] = {}

    async def press(self, *keys: str) -> None:
        """Press keys, and wait for all answers."""
        await self._pilot.press(*keys)
        await self._settle()

    async def step(self, name: str, *keys: str) -> None:
        """Press keys, and record the cost."""
        with self._counted(name):
            await self.press(*keys)

    async def ask(self, name: str, kind: Kind, wish: Wish) -> None:
        """Open a list with filters, and record the cost."""
        screen = ListScreen(self._app.shared, kind, wish)
        with self._counted(name):
            self._app.push_screen(screen)
            await self._pilot.pause()
            await self._settle()
        await self.press("escape")

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        self._app.paints.clear()
        began = process_time()
        yield
        ended = process_time()
        paints = [at for screen, at in self._app.paints if screen is self._app.screen]
        cost = Cost((paints[0] - began) * 1000 if paints else 0.0, (ended - began) * 1000)
        self.took.setdefault(name, []).append(cost)

    async def _settle(self) -> None:
        """Wait for the requests of the front screen. The screen below a dialog waits for the dialog."""
        while waiting := [each for each in self._app.workers if each.node is self._app.screen and not each.is_finished]:
            try:
                await self._app.workers.wait_for_complete(waiting)
            except WorkerCancelled:
                continue
        await self._pilot.pause()


async def sit(desk: Desk, ports: Ports, count: int) -> None:
    """Go through every screen as an operator would."""
    for kind in KINDS:
        if kind.key:
            await desk.step(f"{kind.title}: opened", kind.key)
            for _ in range(3):
                await desk.step(f"{kind.title}: page down", "pagedown")
            await desk.step(f"{kind.title}: a line down", "down")
            await desk.step(f"{kind.title}: an object", "enter")
            await desk.press("escape")
            await desk.press("0")
    await desk.step("home", "r")
    for name, key in (("find", "slash"), ("go", "g"), ("help", "question_mark")):
        await desk.step(f"dialog: {name}", key)
        await desk.press("escape")
    await desk.press("4")
    for name, key in (("an action", "s"), ("filters", "f")):
        await desk.step(f"dialog: {name}", key)
        await desk.press("escape")
    await desk.press("0")
    for name, text in (
        ("an order", f"order-{count // 2}"), ("the beginning of one", f"order-{count // 2}"[:-2]),
        ("nothing", "no such thing"), ("last digits of a phone", "1234"),
    ):  # fmt: skip
        await desk.press("slash", *text)
        await desk.step(f"search: {name}", "enter")
        await desk.press("escape", "escape", "0")
    account = next(each.id for each in await everything(ports, Account) if each.name == "Merchant 1")
    for kind, told, filters in asked(account, count):
        await desk.ask(f"{kind.title}: {told}", kind, Wish(filters=filters, order=kind.orders[0]))


def asked(account: str, count: int) -> Iterator[tuple[Kind, str, dict[str, str]]]:
    """Yield the filters of lists: each filter alone, and usual pairs."""
    typed = {
        "account": account, "from": "2025-12-15", "to": "2025-12-16", "order": f"order-{count // 2}",
        "amount": "123.45", "name": "erchant 1", "operator": "ivan", "action": "refund.approve", "object": account,
    }  # fmt: skip
    for kind in KINDS:
        if not kind.key:
            continue
        for each in kind.filters:
            for value in each.choices or ((typed[each.name],) if each.name in typed else ()):
                yield kind, f"{each.name} {'' if value == account else value}", {each.name: value}
                if each.choices and any(other.name == "account" for other in kind.filters):
                    yield kind, f"{each.name} {value} of a merchant", {each.name: value, "account": account}
        names = {each.name: each for each in kind.filters}
        if {"status", "type"} <= names.keys():
            for status in names["status"].choices:
                for of_type in ("payment.status_changed", "refund.failed"):
                    yield kind, f"status {status}, type {of_type}", {"status": status, "type": of_type}


async def read(ports: Ports, count: int) -> dict[str, list[Cost]]:
    """Measure the same lists, objects and searches without a screen: reading rows and decoding records."""
    took: dict[str, list[Cost]] = {}

    async def timed(name: str, ask: Callable[[], Awaitable[Any]]) -> Any:
        began = perf_counter()
        found = await ask()
        took.setdefault(name, []).append(Cost(0, (perf_counter() - began) * 1000))
        return found

    account = next(each.id for each in await everything(ports, Account) if each.name == "Merchant 1")
    for kind in (each for each in KINDS if each.key):
        for order in kind.orders:
            last = None
            for number in range(_PAGES):
                page = partial(kind.read, ports, Wish(order=order), last, PAGE)
                found = await timed(f"{kind.title}: {order}, page {number + 1}", page)
                if number == 0 and found:
                    await timed(f"{kind.title}: an object", partial(_open, ports, kind, found[0].id))
                if len(found) < PAGE:
                    break
                last = found[-1]
    for kind, told, filters in asked(account, count):
        wish = Wish(filters=filters, order=kind.orders[0])
        await timed(f"{kind.title}: {told}", partial(kind.read, ports, wish, None, PAGE))
    for text in (f"order-{count // 2}", f"order-{count // 2}"[:-2], "no such thing", "1234"):
        await timed(f"search: {text}", partial(search, ports, text))
    await timed("home: action items", partial(read_action_items, ports))
    return took


async def _open(ports: Ports, kind: Kind, object_id: str) -> None:
    record = await kind.get(ports, object_id)
    if kind.figures is not None:
        await kind.figures(ports, record)
    await kind.timeline(ports, record)


@asynccontextmanager
async def console(url: str, folder: Path, size: tuple[int, int]) -> AsyncIterator[tuple[Desk, Ports]]:
    """Open the console on the database as `cambist console` does."""
    async with open_app(Settings(database_url=url, data_dir=folder)) as app:
        keep_for_good(FULL_AFTER)
        console = Painted(ConsoleContext(ports=app.ports, operator="olga"))
        console.animation_level = "none"
        async with console.run_test(size=size) as pilot:
            desk = Desk(console, pilot)
            await desk.press("0")
            yield desk, app.ports


async def measured(
    url: str, folder: Path, count: int, size: tuple[int, int], *, reads_alone: bool
) -> dict[str, list[Cost]]:
    """Run all steps several times. A database without merchants is filled first."""
    await migrate(url)
    async with open_app(Settings(database_url=url, data_dir=folder)) as app:
        is_empty = not await list_accounts(app.ports)
    if is_empty:
        await fill(url, folder, count)
    async with console(url, folder, size) as (desk, ports):
        took = desk.took
        for _ in range(_TIMES):
            if reads_alone:
                for name, each in (await read(ports, count)).items():
                    took.setdefault(name, []).extend(each)
            else:
                await sit(desk, ports, count)
        return took


def _size(told: str) -> tuple[int, int]:
    columns, lines = map(int, told.split("x"))
    return columns, lines


def main() -> None:
    """Run `python -m benchmarks.console_screens`."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--payments", type=int, default=1_000_000)
    given.add_argument("--folder", type=Path)
    given.add_argument("--database", help="in place of SQLite in the folder, as postgresql://localhost/console")
    given.add_argument("--size", type=_size, default=(80, 24), help="columns and lines of the terminal, as 200x50")
    given.add_argument("--reads", action="store_true", help="what is read, without the screens")
    told = given.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = told.folder or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        url = told.database or f"sqlite:///{folder / 'console.db'}"
        steps = asyncio.run(measured(url, folder, told.payments, told.size, reads_alone=told.reads))
    print(f"first paint  at most    whole  at most  (ms{'' if told.reads else ' of CPU'}, medians)")
    for name, took in sorted(steps.items(), key=lambda each: -median(cost.whole for cost in each[1])):
        paint, whole = [each.paint for each in took], [each.whole for each in took]
        late = f"  painted after {LIMIT_MS} ms" if median(paint) > LIMIT_MS else ""
        print(f"{median(paint):11.1f} {max(paint):8.1f} {median(whole):8.1f} {max(whole):8.1f}  {name}{late}")
    if not told.reads:
        _tell_shares("first paint", [median(each.paint for each in took) for took in steps.values()])
    _tell_shares("whole", [median(each.whole for each in took) for took in steps.values()])


def _tell_shares(what: str, medians: list[float]) -> None:
    half, most, nearly_all = (quantiles(medians, n=100)[share - 1] for share in (50, 95, 99))
    shares = f"half up to {half:.0f} ms, 95 of 100 up to {most:.0f}, 99 up to {nearly_all:.0f}"
    print(f"{what}: of {len(medians)} steps {shares}, all up to {max(medians):.0f}")


if __name__ == "__main__":
    main()
