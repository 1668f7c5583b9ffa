"""Counts of lists, and how a filtered list continues its search (docs/console.md "Keys", "Filters")."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.widgets import Label

from cambist.adapters.storage.migrate import migrate
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EventType
from cambist.core.usecases.browse import browse as browse_room
from cambist.core.usecases.browse import events as events_room
from cambist.core.usecases.browse import leaves
from cambist.core.usecases.browse.browse import Wanted
from cambist.core.usecases.browse.events import TrackedEvent, browse_events
from cambist.core.usecases.browse.leaves import Leaf, counted
from cambist.frontends.console import pages
from cambist.frontends.console.kinds.audit import AUDIT
from cambist.frontends.console.kinds.events import EVENTS
from cambist.frontends.console.kinds.kinds import Kind, Wish
from cambist.frontends.console.kinds.ledger import JOURNAL
from cambist.frontends.console.kinds.payments import PAYMENTS
from cambist.frontends.console.kinds.refunds import REFUNDS
from cambist.frontends.console.kinds.statements import CORRECTIONS, LINES, STATEMENTS
from cambist.frontends.console.kinds.suspense import SUSPENSE
from cambist.frontends.console.listing import ListScreen
from cambist.frontends.console.pages import PAGE
from tests.console.kit import SIZES, Sitting, sitting
from tests.console.payments_in_bulk import fill
from tests.console.seeds import everything_there_is
from tests.console.test_plans import wishes
from tests.refund_app import RefundApp, open_refund_app
from tests.servers import service_url

COUNTED_LISTS = (PAYMENTS, REFUNDS, EVENTS, STATEMENTS, LINES, CORRECTIONS, SUSPENSE, AUDIT, JOURNAL)
MANY = 250


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return service_url(request, "postgres", tmp_path)


@pytest.fixture
async def app(url: str, tmp_path: Path) -> AsyncIterator[tuple[RefundApp, dict[str, str]]]:
    """Open an app with one object of each kind and some more payments, on Postgres. Yield it with the objects' ids."""
    async with open_refund_app(made_up=True, database_url=url, data_dir=tmp_path) as refunds:
        there = await everything_there_is(refunds)
        await fill(refunds, url, 20)
        yield refunds, there


async def whole(refunds: RefundApp, kind: Kind, wish: Wish) -> list[str]:
    """The ids of all of a list, leafed through."""
    seen: list[Any] = []
    while page := await kind.read(refunds.ports, wish, seen[-1] if seen else None, 7):
        seen += page
    return [each.id for each in seen]


async def test_a_list_is_counted_as_far_as_its_bound_whatever_it_is_filtered_by(
    app: tuple[RefundApp, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    refunds, there = app
    told: set[str] = set()
    for kind in COUNTED_LISTS:
        asked = list(wishes(kind, refunds.app.account.account_id))
        if kind is LINES:
            asked = [Wish(filters={"statement": there["settlement"]}, order=kind.orders[0])]
        for wish in asked:
            if "shop" in wish.filters:
                wish = msgspec.structs.replace(wish, filters={**wish.filters, "shop": there["shop"]})
            expected = len(await whole(refunds, kind, wish))
            leaf = await kind.read(refunds.ports, wish, None, 3)
            if not (isinstance(leaf, Leaf) and leaf.ways):
                assert wish.filters.keys() & {"order", "type", "object"}, (kind.name, wish)
                continue
            told.add(kind.name)
            for bound in (10_000, 3, 1):
                monkeypatch.setattr(leaves, "COUNTED", bound)
                assert await counted(refunds.ports, leaf) == min(expected, bound + 1), (kind.name, wish, bound)
    assert told == {kind.name for kind in COUNTED_LISTS}


async def of_many(tmp_path: Path) -> tuple[Any, dict[str, Any]]:
    """Return the function that fills an app with many payments, and the arguments that open it."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    await migrate(url)

    async def seed(refunds: RefundApp) -> None:
        await fill(refunds, url, MANY)

    return seed, {"made_up": True, "database_url": url, "data_dir": tmp_path}


def heading(shared: Sitting) -> str:
    return str(shared.front().query_one("#heading", Label).content)


async def test_a_list_says_how_many_there_are_or_how_many_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the count stopped at its limit; once all rows are loaded, the exact number is shown."""
    seed, app = await of_many(tmp_path)
    async with sitting(SIZES[0], seed, **app) as shared:
        await shared.press("1")
        screen = shared.front()
        assert isinstance(screen, ListScreen)
        assert (len(screen.records), heading(shared)) == (PAGE, f"Payments · {MANY}")
        await shared.press("m")
        live = len(await whole(shared.refunds, PAYMENTS, screen.wish))
        assert PAGE < live < MANY
        assert heading(shared) == f"Payments · {live}"
        await shared.press("enter")
        assert heading(shared).startswith(f"Payments · 1 of {live} · pay_")
        await shared.press("n")
        assert heading(shared).startswith(f"Payments · 2 of {live} · pay_")
        await shared.press("escape")
        for room in (leaves, pages):
            monkeypatch.setattr(room, "COUNTED", 150)
        await shared.press("m", "m")
        assert (len(screen.records), heading(shared)) == (PAGE, "Payments · 150+")
        await shared.press("ctrl+end")
        assert (len(screen.records), heading(shared)) == (2 * PAGE, f"Payments · {2 * PAGE}+")
        await shared.press("ctrl+end")
        assert (len(screen.records), heading(shared)) == (MANY, f"Payments · {MANY}")


async def test_unindexed_search_shows_how_far_it_came_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search of some records does not claim that nothing exists."""
    monkeypatch.setattr(browse_room, "LOOKED_AT", 60)
    seed, app = await of_many(tmp_path)
    async with sitting(SIZES[0], seed, **app) as shared:
        async with shared.ports.storage.unit() as unit:
            [oldest] = await unit[Payment].find(order="created_at", limit=1)
        wish = Wish(filters={"amount": str(oldest.amount)}, order="newest")
        screen = ListScreen(shared.app.shared, PAYMENTS, wish)
        await shared.app.push_screen(screen)
        await shared.settle()
        assert (screen.records, heading(shared)) == ([], "Payments · 0+")
        assert "Nothing fits of what was looked at so far: x goes on." in shared.shown()
        looked_at = screen.pages.looked_at
        assert f"{looked_at} looked at, as far as 2025-12-" in shared.shown()
        assert 0 < looked_at < MANY
        presses = 0
        while "looked at, as far as" in shared.shown():
            await shared.press("x")
            presses += 1
            assert presses < MANY
        assert presses > 1
        assert ([each.id for each in screen.records], heading(shared)) == ([oldest.id], "Payments · 1")
        assert screen.table.cursor_row == 0
        assert "Nothing fits" not in shared.shown()
        await shared.press("x", "r")
        assert (screen.records, screen.pages.looked_at) == ([], looked_at), "from the top again"


@pytest.mark.parametrize("order", PAYMENTS.orders)
async def test_looking_further_misses_nothing_and_finds_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """This holds even if all records have the same time, and with a further filter."""
    monkeypatch.setattr(browse_room, "LOOKED_AT", 20)
    seed, app = await of_many(tmp_path)
    async with open_refund_app(**app) as refunds:
        await seed(refunds)
        async with refunds.ports.storage.unit() as unit:
            sign = "-" if order == "newest" else ""
            everything = await unit[Payment].find(order=f"{sign}created_at")
            for each in everything[40:80]:
                unit[Payment].save(msgspec.structs.replace(each, created_at=everything[40].created_at))
            await unit.commit()
            everything = await unit[Payment].find(order=f"{sign}created_at")
        for filters in ({"method": "sbp"}, {"method": "sbp", "status": "failed"}, {"method": "sbp", "mode": "live"}):
            seen, after, looked_at = list[str](), None, 0
            while True:
                leaf = await PAYMENTS.read(refunds.ports, Wish(filters=filters, order=order), after, 30)
                assert isinstance(leaf, Leaf)
                seen, looked_at = [*seen, *(each.id for each in leaf)], looked_at + leaf.looked_at
                after = leaf.onward or (leaf[-1] if len(leaf) == 30 else None)
                if after is None:
                    break
            expected = [
                each.id
                for each in everything
                if filters.get("status") in (None, each.status) and filters.get("mode") in (None, each.mode)
            ]
            assert seen == expected
            assert looked_at


async def test_webhooks_of_a_type_and_status_are_looked_for_further_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """If many webhooks have the status, the search goes by the events of the type."""
    monkeypatch.setattr(events_room, "FEW", 0)
    monkeypatch.setattr(events_room, "LOOKED_AT", 1)
    async with open_refund_app(made_up=True) as refunds:
        for _ in range(5):
            await refunds.paid("100.00")
        async with refunds.ports.storage.unit() as unit:
            oldest, *others = await unit[Delivery].find(order="id")
            unit[Delivery].save(msgspec.structs.replace(oldest, status=DeliveryStatus.HELD))
            await unit.commit()
        of_type = EventType.PAYMENT_STATUS_CHANGED
        leaf, turns = Leaf[TrackedEvent](), 0
        while not leaf and turns <= len(others):
            leaf = await browse_events(refunds.ports, Wanted(status="held"), leaf.onward, 2, kind=of_type)
            turns += 1
            assert leaf or leaf.looked_at == 2
        assert ([each.id for each in leaf], leaf.onward) == ([oldest.id], None)
        assert turns > 1
