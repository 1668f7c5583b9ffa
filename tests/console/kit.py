"""Apps with an operator at the console."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from unittest.mock import patch

import msgspec
from textual._compositor import Compositor
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input, Select, Static
from textual.worker import WorkerCancelled

from cambist.frontends.console.app import Console
from cambist.frontends.console.asking import log
from cambist.frontends.console.catalogue import kind_of
from cambist.frontends.console.context import ConsoleContext
from cambist.frontends.console.detail import DetailScreen
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.faults import Unavailable
from tests.console.storages import Gate, Gated
from tests.quiesce import at_rest
from tests.refund_app import RefundApp, open_refund_app

SIZES = [(80, 24), (160, 48)]
_PATIENCE = 20


class Fragile:
    """A storage that can be gone; everything else is the storage's own."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.gone = False
        self.gate: Gate | None = None
        """Gate that each read and commit of a unit passes first."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def unit(self) -> Any:
        if self.gone:
            raise Unavailable("the database does not answer")
        return Gated(self._storage, self.gate).unit() if self.gate else self._storage.unit()


class Slips(logging.Handler):
    """The console's own faults, which its bar shows and its log records."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())

    @contextmanager
    def listening(self) -> Iterator["Slips"]:
        """Hear of them inside; at the end there may be none that the test has not taken out."""
        log.addHandler(self)
        try:
            yield self
        finally:
            log.removeHandler(self)
        assert self.told == []


class Sitting:
    """A console over an app, and what operators do at it."""

    def __init__(
        self, refunds: RefundApp, console: Console, pilot: Pilot[None], storage: Fragile, slips: list[str]
    ) -> None:
        self.refunds = refunds
        self.ports = refunds.ports
        self.app = console
        self.pilot = pilot
        self.storage = storage
        self.slips = slips
        """Faults of the console itself so far. Any fault left here at the end fails the test."""

    async def press(self, *keys: str) -> None:
        """Press the keys, and wait until all reads have finished."""
        await self.pilot.press(*keys)
        await self.settle()

    async def open(self, of: str, object_id: str) -> DetailScreen:
        """The detail of an object, over whatever is open."""
        kind = kind_of(of)
        assert kind is not None
        screen = DetailScreen(self.app.shared, kind, object_id)
        await self.app.push_screen(screen)
        await self.settle()
        return screen

    def front(self) -> Any:
        """The screen in front."""
        return self.app.screen

    def fill(self, reason: str, given: Mapping[str, str]) -> None:
        """The entries of the action in front."""
        for name, value in {**{f"entry-{name}": value for name, value in given.items()}, "reason": reason}.items():
            field = self.app.screen.query_one(f"#{name}")
            assert isinstance(field, Input | Select)
            field.value = value

    async def confirm(self, reason: str, given: Mapping[str, str]) -> str:
        """Confirm the operator action in front with these entries, and return its outcome. A dialog that waits for the
        service sees it work."""
        self.fill(reason, given)
        await self.pilot.press("ctrl+s")
        for turn in range(_PATIENCE):
            await self.pilot.pause()
            if all(worker.is_finished for worker in self.app.workers):
                break
            if turn > _PATIENCE // 2:
                await self.refunds.app.work(1)
        await self.settle()
        return str(self.app.screen.query_one("#outcome", Static).content)

    async def action(self, key: str, reason: str = "") -> str:
        """Confirm an operator action of the screen in front, and return the dialog's outcome."""
        await self.pilot.press(key)
        await self.pilot.pause()
        dialog = self.app.screen
        dialog.query_one("#reason", Input).value = reason
        await self.press("ctrl+s")
        said = str(dialog.query_one("#outcome", Static).content)
        await self.press("escape")
        return said

    async def settle(self) -> None:
        while any(not worker.is_finished for worker in self.app.workers):
            # Do not wait for reads that were started again.
            with suppress(WorkerCancelled):
                await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    def shown(self) -> str:
        """Return the whole screen as text."""
        lines = [[segment.text for segment in strip] for strip in self.app.screen._compositor.render_strips()]
        return "\n".join("".join(line) for line in lines)


def unpainted(compositor: Compositor, **_: Any) -> None:
    """There is no terminal: painting after every change would cost a third of a sitting, and `Sitting.shown` paints for
    itself."""
    compositor._dirty_regions.clear()


@contextmanager
def prompt(console: App[Any]) -> Iterator[None]:
    """Inside, a key or a pause ends once the app has nothing left to do. Textual sleeps 20 ms at a time until the
    process slept for as long: most of a test's time, and a guess."""

    async def idle(*_limits: float) -> None:
        await at_rest()
        while console.is_running:
            if console._resize_timer is not None:  # within moments it would fit the screens to the terminal
                console._check_resize()
            elif console.screen._update_timer._active.is_set():  # and paint
                console.screen._on_timer_update()
            else:
                return
            await at_rest()

    with patch("textual.app.wait_for_idle", idle), patch("textual.pilot.wait_for_idle", idle):
        yield


@asynccontextmanager
async def sitting(
    size: tuple[int, int], seed: Callable[[RefundApp], Awaitable[Any]] | None = None, **app: Any
) -> AsyncIterator[Sitting]:
    async with open_refund_app(**app) as refunds:
        if seed is not None:
            await seed(refunds)
        storage = Fragile(refunds.ports.storage)
        ports = msgspec.structs.replace(refunds.ports, storage=storage)
        console = Console(ConsoleContext(ports=ports, operator="olga"))
        console.animation_level = "none"
        with patch.object(Compositor, "render_update", unpainted), Slips().listening() as slips, prompt(console):
            async with console.run_test(size=size) as pilot:
                opened = Sitting(refunds, console, pilot, storage, slips.told)
                await opened.settle()
                yield opened


async def mismatch(refunds: RefundApp) -> str:
    """A live payment of 100 RUB for which 60 came; its id."""
    made = (await refunds.app.create({"external_id": "order-7"}, mode="live")).json()["id"]
    await refunds.app.told(made, Simulation(status=InvoiceStatus.PAID, amount_kopecks=60_00))
    return str(made)


async def waiting(refunds: RefundApp) -> str:
    """A live refund that awaits approval; its id."""
    return await refunds.apply(await refunds.paid(mode="live"), mode="live")


async def both(refunds: RefundApp) -> None:
    """A payment for which another amount came, and a refund that awaits approval."""
    await mismatch(refunds)
    await refunds.app.clock.advance(1)
    await waiting(refunds)
