"""A console keeps running when the operator leaves a screen that still reads, and when a storage raises."""

import asyncio
import re
from collections import deque
from itertools import count
from pathlib import Path

import pytest
from textual.widgets import Input, Label, Static

from cambist.frontends.console.action_dialog import ActionDialog
from cambist.frontends.console.catalogue import KINDS
from cambist.frontends.console.detail import DetailScreen
from cambist.frontends.console.home import HomeScreen
from tests.console.kit import SIZES, Sitting, mismatch, sitting
from tests.refund_app import RefundApp

APP = Path(__file__).parents[2] / "frontends" / "console"
SECRET = "https://qr.example/a-payers-bank-link"


class Edge:
    """A storage's answers, held until they are let out."""

    def __init__(self) -> None:
        self._held: deque[asyncio.Future[None]] = deque()
        self._is_open = False

    async def __call__(self) -> None:
        if self._is_open:
            return
        waiting = asyncio.get_running_loop().create_future()
        self._held.append(waiting)
        await waiting

    async def let(self, shared: Sitting, answers: int) -> None:
        """Give so many answers, one after the other."""
        for _ in range(answers):
            await shared.pilot.pause()
            while self._held and self._held[0].done():  # this reader was cancelled
                self._held.popleft()
            if self._held:
                self._held.popleft().set_result(None)
        await shared.pilot.pause()

    def open(self) -> None:
        """Give all awaited answers and hold none any longer: a reader with an answer may ask for another."""
        self._is_open = True
        for each in self._held:
            if not each.done():
                each.set_result(None)


@pytest.mark.parametrize("first", [0, 2])
async def test_each_screen_is_left_while_it_waits_for_an_answer(first: int) -> None:
    """After none to three answers, in turns: all screens read in one way."""
    made: list[str] = []
    turns = count(first)

    async def seed(refunds: RefundApp) -> None:
        made.append(await mismatch(refunds))

    async with sitting(SIZES[0], seed) as shared:
        edge = shared.storage.gate = Edge()
        for kind in KINDS:
            if kind.key:
                await shared.pilot.press(kind.key)
                await edge.let(shared, next(turns) % 4)
                await shared.pilot.press("escape")
                await edge.let(shared, 1)
        await shared.app.push_screen(DetailScreen(shared.app.shared, KINDS[0], made[0]))
        await edge.let(shared, next(turns) % 4)
        await shared.pilot.press("escape", "slash", *"order-7", "enter")
        await edge.let(shared, next(turns) % 4)
        await shared.pilot.press("escape", "escape")
        await edge.let(shared, 1)
        shared.storage.gate = None
        edge.open()
        await shared.press("0")
        assert isinstance(shared.front(), HomeScreen)
        await shared.press("r", "1")
        assert "100.00" in shared.shown()


async def raise_a_slip() -> None:
    raise RuntimeError(SECRET)


async def test_error_of_a_read_or_action_is_a_line_with_a_retry() -> None:
    async with sitting(SIZES[0], mismatch) as shared:
        slip, told = "a fault of the console (RuntimeError)", "r: try again · a fault of the console"
        for key in ("0", "1", "L"):
            shared.storage.gate = raise_a_slip
            await shared.press(key, "r")
            assert told in shared.shown()
            shared.storage.gate = None
            await shared.press("r")
            assert told not in shared.shown()
        await shared.press("1", "enter")
        shared.storage.gate = raise_a_slip
        await shared.press("r")
        assert told in shared.shown()
        await shared.press("slash", *"order-7", "enter")
        assert f"enter: try again · {slip}" in str(shared.front().query_one("#outcome", Label).content)
        await shared.press("escape", "b")
        assert isinstance(shared.front(), ActionDialog)
        shared.front().query_one("#reason", Input).value = "as an example"
        await shared.press("ctrl+s")
        assert f"look before you try again. {slip}" in str(shared.front().query_one("#outcome", Static).content)
        shared.storage.gate = None
        await shared.press("escape", "r")
        assert "amount_mismatch" in shared.shown()
        assert SECRET not in "".join(shared.slips)
        assert all("RuntimeError" in each and "test_left.py" in each for each in shared.slips)
        assert len(shared.slips) > 4
        shared.slips.clear()


async def test_the_last_words_of_a_console_hold_nothing_of_what_it_showed(capsys: pytest.CaptureFixture[str]) -> None:
    def stumble() -> None:
        secret = SECRET
        raise ValueError(secret)

    with pytest.raises(ValueError, match=r"qr\.example"):  # noqa: PT012 - the pilot raises it when it ends
        async with sitting(SIZES[0]) as shared:
            shared.app.call_later(stumble)
            await shared.pilot.pause()
            assert shared.slips.pop().startswith("the console ended: ValueError")
    said = capsys.readouterr()
    assert "ended by a fault of its own" in said.err + said.out
    assert "in stumble" in said.err + said.out
    assert SECRET not in said.err + said.out


async def test_a_key_whose_action_stumbles_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(_self: HomeScreen) -> None:
        raise KeyError(SECRET)

    async with sitting(SIZES[0]) as shared:
        monkeypatch.setattr(HomeScreen, "action_reload", stumble)
        await shared.pilot.press("r")
        await shared.pilot.pause()
        assert "a fault of the console (KeyError)" in [each.message for each in shared.app._notifications]
        assert "KeyError" in shared.slips[-1]
        assert SECRET not in shared.slips[-1]
        shared.slips.clear()


async def test_two_keys_on_their_way_close_one_screen_each() -> None:
    """The second key reaches a screen that is closed already."""
    async with sitting(SIZES[0], mismatch) as shared:
        await shared.press("1", "enter")
        detail = shared.front()
        assert isinstance(detail, DetailScreen)
        detail.action_back()
        detail.action_back()
        await shared.pilot.pause()
        assert len(shared.app.screen_stack) == 2
        await shared.press("slash")
        dialog = shared.front()
        dialog.dismiss(None)
        dialog.dismiss(None)
        await shared.pilot.pause()
        assert len(shared.app.screen_stack) == 2


async def test_request_replaced_or_left_before_its_first_step_never_begins() -> None:
    """No coroutine is made and never awaited: that is an error in this suite (`filterwarnings`)."""
    async with sitting(SIZES[0], mismatch) as shared:
        await shared.press("1", "enter")
        detail = shared.front()
        assert isinstance(detail, DetailScreen)
        read = detail.record
        detail.pane.record = None
        detail.action_reload()
        detail.action_reload()
        await shared.settle()
        assert detail.record == read, "the second one reads"
        detail.action_reload()
        for worker in shared.app.workers:
            worker.cancel()
        await shared.settle()
        assert not detail.is_asking("read")


def test_work_is_begun_in_one_room_only() -> None:
    """Textual's own workers end the application by whatever they raise."""
    for place in APP.rglob("*.py"):
        begins = re.search(r"run_worker|import .*\bwork\b|pop_screen\(", place.read_text("utf-8"))
        assert place.name in ("asking.py", "app.py") or begins is None, place
