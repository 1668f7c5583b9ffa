"""A new screen is painted together with its data, and not before (docs/console.md "Keys")."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import call, patch

import pytest
from textual._compositor import Compositor
from textual._styles_cache import StylesCache
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Label

from cambist.frontends.console import app, asking
from cambist.frontends.console.app import Console
from cambist.frontends.console.detail import DetailScreen
from cambist.frontends.console.listing import ListScreen
from tests.console.kit import SIZES, Sitting, both, sitting
from tests.console.test_left import Edge


@contextmanager
def painting(shared: Sitting, patience: float = 3600) -> Iterator[list[str]]:
    """Record the screen whenever a part of it is painted. `patience`: seconds to wait, for tests that wait for the
    machine and not for the clock."""
    found: list[str] = []

    def paint(compositor: Compositor, **_: Any) -> None:
        if compositor._dirty_regions:
            compositor._dirty_regions.clear()
            found.append(shared.shown())

    with patch.object(Compositor, "render_update", paint), patch.object(asking, "_BLANK", patience):
        yield found


@pytest.mark.parametrize("size", SIZES)
async def test_lists_objects_and_dialogs_are_first_painted_with_what_they_show(size: tuple[int, int]) -> None:
    async with sitting(size, both) as shared:
        with painting(shared) as painted:
            await shared.press("1")
            assert isinstance(shared.front(), ListScreen)
            lists = [each for each in painted if "external id" in each]
            assert lists
            assert all("100.00" in each for each in lists)
            painted.clear()
            await shared.press("enter")
            assert isinstance(shared.front(), DetailScreen)
            objects = [each for each in painted if "when (UTC)" in each and "Payments · 1 of 2 · pay_" in each]
            assert objects
            assert all("simulator-live told" in each for each in objects)
            await shared.press("0", "2", "enter")
            for key, told in (("a", "Approve ^s"), ("question_mark", "To move"), ("slash", "Find")):
                painted.clear()
                await shared.press(key)
                assert painted
                assert all(told in each for each in painted), key
                await shared.press("escape")


async def test_a_screen_whose_answer_is_late_is_painted_without_it() -> None:
    async with sitting(SIZES[0], both) as shared:
        edge = shared.storage.gate = Edge()
        with painting(shared, asking._BLANK) as painted:
            await shared.pilot.press("1")
            while not any("external id" in each for each in painted):
                await shared.pilot.pause(0.02)
            assert "100.00" not in painted[-1]
            while "working…" not in painted[-1]:
                await shared.pilot.pause(0.02)
            shared.storage.gate = None
            edge.open()
            await shared.settle()
            assert "100.00" in painted[-1]
            assert shared.front().query_one("#state", Label).content == ""


async def test_caches_of_painted_widgets_go_with_their_screen() -> None:
    """Otherwise each full garbage collection would walk over the caches of the last thousand widgets."""
    async with sitting(SIZES[1], both) as shared:
        await shared.press("1")
        shared.shown()
        widgets = list(shared.front().query(Widget))
        assert any(each._styles_cache._cache for each in widgets)
        assert StylesCache.get_inner_outer.cache_info().currsize > 0
        await shared.press("escape")
        assert not any(each._styles_cache._cache for each in widgets)
        assert StylesCache.get_inner_outer.cache_info().currsize == 0


async def test_a_full_collection_comes_when_nobody_has_typed_for_a_while() -> None:
    """It would hold up a key (docs/performance.md)."""
    came = asyncio.Event()
    async with sitting(SIZES[0]) as shared:
        with patch.object(app, "collect_in_full", came.set), patch.object(app, "_IDLE", 0.01):
            async with Console(shared.app.shared, owns_process=True).run_test():
                await came.wait()


async def test_collection_waits_while_the_operator_types() -> None:
    async with sitting(SIZES[0]) as shared:
        opened = Console(shared.app.shared, owns_process=True)
        async with opened.run_test() as pilot:
            with patch.object(Timer, "reset", autospec=True) as waits_anew:
                await pilot.press("down")
            assert call(opened._idle) in waits_anew.call_args_list


async def test_in_a_process_of_others_it_is_theirs() -> None:
    async with sitting(SIZES[0]) as shared:
        assert shared.app._idle is None
