"""Home's numbers: payments, deliveries, limits hit, as they are now, on the smallest terminal and on a wide one."""

import pytest
from textual.widgets import Sparkline

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.rate_limit import WINDOW, window
from cambist.core.usecases.accounts.limit_hits import HOUR, HitCounter
from cambist.core.usecases.operators.dashboard import read_dashboard
from cambist.core.usecases.settlement.rates import market_rate
from cambist.frontends.console import home
from cambist.frontends.console.demo import living
from cambist.frontends.console.home import HomeScreen
from cambist.frontends.console.rows import Rows
from cambist.frontends.console.texts import brief
from cambist.ports.bundle import Ports
from tests.console.kit import SIZES, Sitting, sitting, waiting

WIDEST = (200, 50)


async def hit(ports: Ports, counter: str, times: int, *, minutes_ago: int = 0) -> None:
    """As an API process writes it."""
    hits = HitCounter()
    hits.add(counter, (window(int(ports.clock.now().timestamp())) - minutes_ago) * WINDOW, times)
    await hits.flush(ports)


def line(shared: Sitting, name: str) -> list[float]:
    """Return the values that a sparkline draws."""
    screen = shared.app.screen
    assert isinstance(screen, HomeScreen)
    return list(screen.query_one(f"#{name} Sparkline", Sparkline).data or ())


@pytest.mark.parametrize("size", SIZES)
async def test_limits_hit_are_counted_and_drawn_and_refresh_by_themselves(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "_DASHBOARD", 0.1)
    async with sitting(size) as shared:
        assert "0 limits hit" in shared.shown()
        await shared.refunds.app.clock.advance(600)  # the day is older than the minutes that are shown
        await hit(shared.ports, "general:key", 40, minutes_ago=3)
        await hit(shared.ports, "money:ip", 17)
        while "57 limits hit" not in shared.shown():
            await shared.pilot.pause()
        assert "40 key, 17 IP" in shared.shown()
        assert "limits hit, hour: 57" in shared.shown()
        drawn = line(shared, "hits")
        assert len(drawn) == HOUR
        assert (drawn[-4], drawn[-1], sum(drawn)) == (40, 17, 57)


@pytest.mark.parametrize("size", SIZES)
async def test_all_of_home_fits(size: tuple[int, int]) -> None:
    """No line is cut, and nothing has to be moved sideways to be read."""
    async with sitting(size, waiting) as shared:
        await hit(shared.ports, "general:key", 12_345)
        await hit(shared.ports, "general:ip", 67_890)
        await shared.press("0")
        screen = shared.app.screen
        assert isinstance(screen, HomeScreen)
        screen.refresh_dashboard()
        await shared.settle()
        shown = shared.shown()
        for words in (
            "80235 limits hit 12345 key, 67890 IP",
            "both modes",
            "payments, 2 min",
            "deliveries, 2 min",
            "hour: 80235",
        ):
            assert words in shown, words
        assert screen.query_one("#action-items", Rows).max_scroll_x == 0
        assert (brief(screen.items[0].object_id, 24) in shown) is (size == SIZES[1])
        lines = [each for each in screen.query(".line") if each.display]
        bottom = screen.query_one("#dashboard").content_region.bottom
        assert all(each.region.bottom <= bottom for each in lines)


async def test_another_size_of_the_terminal_brings_the_ids_and_takes_them_away() -> None:
    async with sitting(SIZES[0], waiting) as shared:
        screen = shared.app.screen
        assert isinstance(screen, HomeScreen)
        for size, there in ((WIDEST, True), (SIZES[0], False)):
            await shared.pilot.resize_terminal(*size)
            await shared.settle()
            assert (screen.items[0].object_id in shared.shown()) is there
            free = size[0] - 40 if there else size[0]
            assert screen.query_one("#action-items", Rows).virtual_size.width > free - 8, "no room is left empty"
            assert "awaits approval" in shared.shown()


async def test_the_demonstration_has_limits_that_were_hit() -> None:
    async with living("olga") as shared:
        assert sum((await read_dashboard(shared.ports)).hits.hour) > 0


async def test_home_polls_only_while_it_is_in_front() -> None:
    async with sitting(SIZES[0]) as shared:
        screen = shared.app.screen
        assert isinstance(screen, HomeScreen)
        await shared.press("1")
        await waiting(shared.refunds)
        dashboard = screen.dashboard
        screen.look_for_action_items()
        screen.refresh_dashboard()
        await shared.settle()
        assert (screen.items, screen.dashboard) == ([], dashboard)
        await shared.press("escape")
        assert screen.items


async def test_settlement_without_a_rate_shows_when_the_rate_is_requested() -> None:
    async with sitting(SIZES[0], lambda refunds: refunds.paid("300.00")) as shared:
        assert "rate: asked then" not in shared.shown(), "it was paid today, after the last cutoff"
        await shared.refunds.app.clock.advance(86_400)
        await shared.press("r")
        assert "300.00 RUB  rate: asked then" in shared.shown()
        await market_rate(shared.ports, Mode.TEST)
        await shared.press("r")
        assert "rate: asked then" not in shared.shown()
        assert "300.00 RUB  ≈ " in shared.shown()
