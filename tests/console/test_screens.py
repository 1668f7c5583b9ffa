"""Every screen on the smallest terminal and on a wide one: its list, on the smallest with filters and order, its detail
with a timeline, the lists that belong to it, and the box that finds it."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from textual.widgets import Input

from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.browse.search import search
from cambist.frontends.console.catalogue import KINDS
from cambist.frontends.console.columns import chosen
from cambist.frontends.console.detail import DetailScreen
from cambist.frontends.console.kinds.kinds import Filter, Kind, Wish
from cambist.frontends.console.kinds.ledger import LEDGER
from cambist.frontends.console.kinds.payments import PAYMENTS
from cambist.frontends.console.listing import ListScreen
from cambist.ports.bundle import Ports
from tests.console.kit import SIZES, Sitting, sitting
from tests.console.seeds import everything_there_is
from tests.refund_app import RefundApp

TYPED = {
    "operator": "ivan",
    "action": "look",
    "from": "2026-01-01",
    "to": "2036-01-01",
    "name": "MERCH",
    "amount": "100",
}
"""Texts to enter in a filter; any other filter takes an id."""
QUIET = ("ledger", "gateway")
"""A balance type has no story but the journal's; nothing happened to the gateway."""


@pytest.mark.parametrize("size", SIZES)
async def test_each_screen_lists_filters_orders_opens_and_is_found(size: tuple[int, int]) -> None:
    there: dict[str, str] = {}

    async def seed(refunds: RefundApp) -> None:
        there.update(await everything_there_is(refunds))

    tried: set[str] = set()
    async with sitting(size, seed) as shared:
        for kind in KINDS if size == SIZES[0] else KINDS[::3]:  # nothing is cut on a wide terminal only
            await opened(shared, kind, there)
            if size == SIZES[0]:  # the queries do not depend on the size
                await ordered(shared, kind)
                for place, each in enumerate(kind.filters):
                    if each.name in tried:  # one dialog chooses for all lists
                        await narrowed(shared, kind, each, there)
                    else:
                        tried.add(each.name)
                        await filtered(shared, place, each, there)
                await shared.press("r")
            await detailed(shared, kind)
            found = [(hit.kind, hit.object_id) for hit in await search(shared.ports, there[kind.name])]
            # A correction has the id of the refund that it is of.
            assert ("refund" if kind.name == "correction" else kind.name, there[kind.name]) in found


def front(shared: Sitting) -> ListScreen:
    screen = shared.app.screen
    assert isinstance(screen, ListScreen)
    return screen


async def opened(shared: Sitting, kind: Kind, there: dict[str, str]) -> None:
    """The list, by its letter, or from the object that it belongs to."""
    if kind.key:
        await shared.press("0", kind.key)
    else:
        owner, part = next((each, part) for each in KINDS for part in each.parts if part.of == kind.name)
        await shared.open(owner.name, there[owner.name])
        await shared.press(part.key)
        assert front(shared).wish.filters == {part.by: there[owner.name]}
    shown = shared.shown()
    assert f"{kind.title} · {len(front(shared).records)}" in shown
    assert front(shared).records
    assert "? Help  ^p Palette" in shown.splitlines()[-1]
    titles = [column.title for column, _ in front(shared)._shown]
    assert any(all(title in line for title in titles) for line in shown.splitlines()), "a title is cut"
    assert not any(column.names for column, _ in front(shared)._shown) or "Merchant" in shown
    for action in kind.list_actions:
        assert f"{action.title} [{action.key}]" in shown


async def ordered(shared: Sitting, kind: Kind) -> None:
    seen = [record.id for record in front(shared).records]
    first, *others = kind.orders
    for order in (*others, first):
        if others:
            await shared.press("o")
        assert f"order: {order}" in shared.shown()
        present = [record.id for record in front(shared).records]
        assert set(present) <= set(seen)
        if (order, first) in (("oldest", "newest"), ("newest", "oldest")):
            assert present == seen[::-1]
    assert [record.id for record in front(shared).records] == seen


async def filtered(shared: Sitting, place: int, each: Filter, there: dict[str, str]) -> None:
    """Chosen by the keys."""
    before = front(shared).wish
    await shared.pilot.press("f", *["down"] * place, "enter")
    await shared.pilot.pause()
    if each.hint:
        shared.app.screen.query_one(Input).value = TYPED.get(each.name) or there.get(each.name, "pay_1")
        await shared.press("enter")
    else:
        to_list = ["down"] if shared.app.screen.query(Input) else []  # many choices begin at the text that narrows them
        await shared.press(*to_list, "down", "enter")
    asked = front(shared).wish.filters[each.name]
    assert asked
    shown = shared.shown()
    assert f"{each.name} {'Merchant' if each.name == 'account' else asked}"[:40] in " ".join(shown.split())
    assert not front(shared)._away
    assert front(shared).records or "Nothing fits these filters" in shown
    fits(front(shared).records, each, asked)
    front(shared).wish = before


async def narrowed(shared: Sitting, kind: Kind, each: Filter, there: dict[str, str]) -> None:
    """Read without the keys."""
    asked = TYPED.get(each.name) or there.get(each.name, "pay_1")
    if each.offered is not None:
        asked = (await each.offered(shared.ports, Wish()))[0][0]
    elif each.choices:
        asked = each.choices[0]
    fits(await kind.read(shared.ports, Wish(filters={each.name: asked}, order=kind.orders[0]), None, 50), each, asked)


def fits(records: Sequence[Any], each: Filter, asked: str) -> None:
    for record in records:
        assert getattr(record, each.name, asked) == asked or each.name in TYPED


async def detailed(shared: Sitting, kind: Kind) -> None:
    await shared.press("enter")
    screen = shared.app.screen
    assert isinstance(screen, DetailScreen)
    shown = shared.shown()
    name, _ = next(fact for fact in kind.facts(screen.record) if fact[1] is not None)
    assert name in shown
    assert kind.name in QUIET or screen.moments
    assert (screen.moments[0].text[:20] if screen.moments else "Nothing is told of it") in shown
    for part in kind.parts:
        assert f"{part.title} [{part.key}]" in shown


async def shops(refunds: RefundApp) -> None:
    """A payment in a shop of its own, and one in the default one; another merchant with a shop."""
    shop = await create_shop(refunds.ports, refunds.app.account.account_id, "Corner", "0.02")
    await refunds.paid("100.00", shop_id=shop.id, external_id="corner-1")
    await refunds.paid("200.00")
    await create_account(refunds.ports, "Bakery")


async def begun(shared: Sitting, *keys: str) -> None:
    """Press, where a dialog that is open then is waited for."""
    for key in keys:
        await shared.pilot.press(key)
        await shared.pilot.pause()


async def test_shop_is_chosen_by_name_among_the_merchants_shops() -> None:
    async with sitting(SIZES[0], shops) as shared:
        await shared.press("1")
        await begun(shared, "f", "s", "s", "enter")
        shown = shared.shown()
        assert "Corner  Merchant" in shown
        assert "Default  Bakery" in shown
        await shared.press("c", "enter")
        assert [each.external_id for each in front(shared).records] == ["corner-1"]
        await begun(shared, "f", "a", "enter")
        await shared.press("b", "enter")
        await begun(shared, "f", "s", "s", "enter")
        assert "Default  Bakery" in shared.shown()
        assert "Corner" not in shared.shown()
        await shared.press("escape")
        await begun(shared, "f")
        await shared.press("t", "t", "enter")
        assert front(shared).wish == Wish(order="newest"), "all filters are taken away"
        assert len(front(shared).records) == 2


async def test_shown_filters_are_never_cut() -> None:
    async with sitting(SIZES[0], shops) as shared:
        account_id = shared.refunds.app.account.account_id
        wish = Wish(
            filters={"amount": "100.00", "from": "2026-01-01 00:00", "method": "sbp", "account": account_id},
            order="newest",
        )
        shared.app.push_screen(ListScreen(shared.app.shared, PAYMENTS, wish))
        await shared.settle()
        assert "account Merchant" in shared.shown()
        assert "corner-1" in shared.shown()


async def test_headline_of_a_list_is_not_cut() -> None:
    """Such as a fault of the books."""
    words = " ".join(f"word-{number}" for number in range(20))

    async def headline(_ports: Ports) -> str:
        return words

    async with sitting(SIZES[0], shops) as shared:
        kind = msgspec.structs.replace(LEDGER, headline=headline)
        shared.app.push_screen(ListScreen(shared.app.shared, kind))
        await shared.settle()
        assert words in " ".join(shared.shown().split())


def test_no_column_is_cut_at_the_sizes_they_are_made_for() -> None:
    """Two characters between columns, and one for the scrollbar."""
    for kind in KINDS:
        for room in (80, 96, 120, 160):
            columns = chosen(kind.columns, room)
            assert [each for each, _ in columns if not each.wide] == [each for each in kind.columns if not each.wide]
            assert sum(width + 2 for _, width in columns) < room, (kind.name, room)
            assert all(len(each.title) <= width for each, width in columns)
        assert len(columns) == len(kind.columns), f"{kind.name}: all fit on a wide terminal"
