"""Subscriptions, exchanges, clients, webhooks, suspense and gateways at the console: many acts in one sitting, because
to open a console takes longer than to use it."""

import asyncio
from typing import Any

import pytest
from textual.widgets import Input

from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.browse.search import kind_of_id, search
from cambist.frontends.console.catalogue import KINDS, kind_of
from cambist.frontends.console.detail import DetailScreen
from cambist.frontends.console.kinds.kinds import Kind, Wish
from cambist.frontends.console.listing import ListScreen
from cambist.ports.bundle import Ports
from tests.console.kit import SIZES, Sitting, sitting
from tests.console.seeds import Seeded, seed
from tests.invariants import everything
from tests.refund_app import RefundApp, open_refund_app

MINE = ("subscription", "exchange", "client", "event", "suspense", "gateway", "receiver")


class Planted:
    """Seeds an app, and keeps what there is."""

    there: Seeded

    async def __call__(self, refunds: RefundApp) -> None:
        self.there = await seed(refunds)


async def find(shared: Sitting, wanted: str) -> None:
    await shared.pilot.press("slash")
    shared.app.screen.query_one("#wanted", Input).value = wanted
    await shared.press("enter")


def front(shared: Sitting) -> Any:
    return shared.app.screen


async def test_lists_follow_their_filters_and_orders() -> None:
    """As the screens ask, without one."""
    async with open_refund_app() as refunds:
        there = await seed(refunds)
        ports, account = refunds.ports, refunds.app.account.account_id
        for name, filters, found in (
            ("exchange", {"direction": "usdt_to_rub", "status": "cancelled"}, [there.late_exchange]),
            ("exchange", {"status": "awaiting_usdt"}, [there.open_exchange]),
            ("exchange", {"direction": "rub_to_usdt"}, []),
            ("client", {"status": "verified"}, [there.client]),
            ("client", {"status": "pending"}, []),
            ("client", {"status": "blocked"}, []),
            ("event", {"status": "failed"}, [there.failed_event]),
            ("event", {"status": "failed", "type": "kyc.status_changed"}, []),
            ("event", {"status": "pending"}, []),
            ("suspense", {"state": "sent back"}, []),
            ("receiver", {}, [f"{account}:test"]),
            ("receiver", {"state": "open"}, []),
            ("subscription", {"status": "active"}, [there.subscription]),
            ("subscription", {"status": "paused"}, []),
            ("gateway", {}, ["simulator-test"]),
        ):
            kind = kind_of(name)
            assert kind is not None
            for further in ({"mode": "test"}, {"mode": "test", "account": account}):
                wish = Wish(filters={**filters, **further}, order=kind.orders[0])
                records = await kind.read(ports, wish, None, 100)
                assert [each.id for each in records] == found, (name, filters)
            assert await kind.read(ports, Wish(filters={"mode": "live"}, order=kind.orders[0]), None, 100) == [
                each for each in await kind.read(ports, Wish(), None, 100) if each.id == "simulator-live"
            ]
        for kind in (each for each in KINDS if each.name in MINE):
            for order in kind.orders:
                assert_pages_join(await pages(ports, kind, order, 1), await pages(ports, kind, order, 100))


async def test_related_objects_are_one_key_away() -> None:
    """One timeline per object: a payment names its refunds, and the owner of a refund or payout opens from it."""
    async with open_refund_app() as refunds:
        payment_id, refund_id = await refunds.completed("40.00")
        ports = refunds.ports
        for kind_name, object_id, named in (
            ("payment", payment_id, ("refund", refund_id, "40.00 RUB: completed")),
            ("refund", refund_id, ("payment", payment_id, "its payment")),
        ):
            kind = kind_of(kind_name)
            assert kind is not None
            moments = await kind.timeline(ports, await kind.get(ports, object_id))
            assert named in [(each.of, each.object_id, each.text) for each in moments]
            assert [each.at for each in moments] == sorted(each.at for each in moments)


async def test_merchants_are_found_by_a_part_of_their_name() -> None:
    async with open_refund_app() as refunds:
        ports = refunds.ports
        names = ("Coffee & Co", "Bakery", "Iced COFFEE", "Кофейня")
        made = {name: (await create_account(ports, name)).account_id for name in names}
        kind = kind_of("account")
        assert kind is not None
        wanted = Wish(filters={"name": "coffee"}, order="oldest")
        assert [each.name for each in await kind.read(ports, wanted, None, 100)] == ["Coffee & Co", "Iced COFFEE"]
        [first] = await kind.read(ports, wanted, None, 1)
        assert [each.name for each in await kind.read(ports, wanted, first, 1)] == ["Iced COFFEE"]
        [hit] = await search(ports, "кофей")
        assert (hit.kind, hit.object_id) == ("account", made["Кофейня"])


async def test_a_transaction_of_an_exchange_and_a_whole_phone_are_found() -> None:
    async with open_refund_app() as refunds:
        there = await seed(refunds)
        [transfer] = await everything(refunds.ports, ExchangeTransfer)
        tx_hash = transfer.id.split(":")[1]
        [came] = await search(refunds.ports, tx_hash)
        assert (came.kind, came.object_id) == ("suspense", transfer.id)
        assert transfer.exchange_id == there.late_exchange
        [paid] = await search(refunds.ports, "+79005551234")
        assert (paid.kind, paid.text[-13:]) == ("payment", "phone ***1234")
        receiver = f"{refunds.app.account.account_id}:test"
        assert kind_of_id(receiver) == "receiver"


async def pages(ports: Ports, kind: Kind, order: str, size: int) -> list[str]:
    """The ids of a list that is read so many at a time."""
    found: list[Any] = []
    while page := await kind.read(ports, Wish(order=order), found[-1] if found else None, size):
        found += page
        if kind.name == "gateway":
            break
    return [each.id for each in found]


def assert_pages_join(small: list[str], large: list[str]) -> None:
    assert small == large[: len(small)]
    assert len(small) in (len(large), 1)


@pytest.mark.parametrize("size", SIZES)
async def test_needs_search_and_timelines_open_what_they_tell_of(size: tuple[int, int]) -> None:
    planted = Planted()
    async with sitting(size, planted) as shared:
        there = planted.there
        assert "1 webhook given up" in shared.shown()
        # Each action item opens its object.
        for need in front(shared).items:
            await shared.press("enter")
            assert front(shared).record.id == need.object_id
            assert front(shared).actions()
            await shared.press("escape", "down")
        await find(shared, "club-1")
        assert front(shared).record.id == there.subscription
        # A line of a timeline opens the object that it is about.
        [charge] = [place for place, each in enumerate(front(shared).moments) if each.of == "payment"]
        front(shared).pane.timeline.cursor_row = charge
        await shared.press("enter")
        assert front(shared).record.subscription_id == there.subscription


async def test_the_mouse_the_palette_and_a_storage_that_is_late_or_gone() -> None:
    planted = Planted()
    async with sitting(SIZES[0], planted) as shared:
        await mouse_palette_and_clipboard(shared, planted.there)
        await late_and_gone(shared)


async def mouse_palette_and_clipboard(shared: Sitting, there: Seeded) -> None:
    await shared.press("6")
    # The second row: bar, wish and titles stand above the rows.
    await shared.pilot.click("#list", offset=(5, 2))
    await shared.settle()
    await shared.pilot.click("#list", offset=(5, 2))
    await shared.settle()
    assert front(shared).record.id == there.late_exchange
    await shared.press("y")
    assert shared.app.clipboard == there.late_exchange
    await shared.pilot.click("#object-actions", offset=(3, 0))
    await shared.settle()
    assert "Return suspended money ^s" in shared.shown()
    await shared.press("escape")
    await shared.pilot.press("ctrl+p", *"gatew")
    while "The list (G)" not in shared.shown():
        await shared.pilot.pause(0.02)
    await shared.pilot.press("enter")
    await shared.pilot.pause()
    await shared.settle()
    assert isinstance(front(shared), ListScreen)
    assert front(shared).kind.name == "gateway"
    await shared.press("y")
    assert shared.app.clipboard == front(shared).records[0].id


async def late_and_gone(shared: Sitting) -> None:
    answered = asyncio.Event()
    question = asyncio.create_task(front(shared).ask(answered.wait()))
    while "working…" not in shared.shown():
        await shared.pilot.pause(0.02)
    answered.set()
    assert await question
    await shared.pilot.pause()
    assert "working…" not in shared.shown()
    shared.storage.gone = True
    await shared.press("S")
    assert "the database does not answer" in shared.shown()
    shared.storage.gone = False
    await shared.press("r")
    assert "does not answer" not in shared.shown()
    assert front(shared).records


async def test_merchant_is_chosen_by_a_part_of_its_name() -> None:
    made: dict[str, str] = {}

    async def many(refunds: RefundApp) -> None:
        for number in range(30):
            made[f"Cafe {number}"] = (await create_account(refunds.ports, f"Cafe {number}")).account_id

    async with sitting(SIZES[0], many) as shared:
        await shared.press("1")
        await shared.pilot.press("f", "down", "down", "enter")
        await shared.pilot.pause()
        shared.app.screen.query_one(Input).value = "cafe 17"
        await shared.pilot.pause()
        await shared.press("enter")
        assert front(shared).wish.filters["account"] == made["Cafe 17"]
        assert "account Cafe 17" in shared.shown()


async def test_a_default_shop_says_that_it_stays_enabled_and_no_other_does() -> None:
    async with sitting(SIZES[0]) as shared:
        account_id = shared.refunds.app.account.account_id
        corner = (await create_shop(shared.ports, account_id, "Corner", "0.02")).id
        [default] = [each.id for each in await everything(shared.ports, Shop) if each.id != corner]
        await shared.open("shop", default)
        assert "for good: it is the account's default shop" in shared.shown()
        assert "Disable" not in shared.shown()
        await shared.press("d")
        assert isinstance(shared.front(), DetailScreen), "nothing is begun that would be refused"
        await shared.open("shop", corner)
        assert "Disable [d]" in shared.shown()
        assert "default" not in shared.shown()
        await shared.open("account", account_id)
        await shared.press("s")
        assert {each.id for each in front(shared).records if each.is_default} == {default}
