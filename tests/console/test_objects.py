"""Subscriptions, exchanges, clients, webhooks, suspense and gateways at the console: many acts in one sitting, because
to open a console takes longer than to use it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from textual.widgets import DataTable, Input, Select, Static

from cambist.core.domain.accounts import Mode
from cambist.core.domain.exchanges import Exchange
from cambist.core.domain.gateways import GatewayStatus
from cambist.core.usecases.audit import list_audit
from cambist.core.usecases.browse_events import resend_given_up
from cambist.core.usecases.clients import set_blocked
from cambist.core.usecases.exchanges import cancel_any_exchange
from cambist.core.usecases.gateways import set_gateway
from cambist.core.usecases.suspense_return import return_suspense
from cambist.frontends.console.catalogue import KINDS, kind_of
from cambist.frontends.console.kinds import Kind, Wish
from cambist.frontends.console.listing import ListScreen
from cambist.ports.bundle import Ports
from tests.books import everything
from tests.console.kit import SIZES, Sitting, sitting, sparing
from tests.console.seeds import PHONE, Seeded, seed
from tests.exchange_house import WALLET
from tests.refund_house import RefundHouse, open_refund_house


@pytest.fixture(autouse=True)
def bare() -> Iterator[None]:
    with sparing():
        yield


MINE = ("subscription", "exchange", "client", "event", "suspense", "gateway", "receiver")


class Planted:
    """Seeds a house, and keeps what there is."""

    there: Seeded

    async def __call__(self, refunds: RefundHouse) -> None:
        self.there = await seed(refunds)


def fill(desk: Sitting, **values: str) -> None:
    """The entries of the act in front."""
    for name, value in values.items():
        field = desk.app.screen.query_one(f"#entry-{name}")
        assert isinstance(field, Input | Select)
        field.value = value


async def confirm(desk: Sitting, reason: str, **values: str) -> str:
    """The act in front with these entries; what the dialog then says."""
    fill(desk, **values)
    desk.app.screen.query_one("#reason", Input).value = reason
    await desk.press("ctrl+s")
    said = str(desk.app.screen.query_one("#outcome", Static).content)
    await desk.press("escape")
    return said


async def find(desk: Sitting, wanted: str) -> None:
    await desk.pilot.press("slash")
    desk.app.screen.query_one("#wanted", Input).value = wanted
    await desk.press("enter")


async def rows(desk: Sitting) -> list[tuple[str, str | None, str]]:
    """What the audit log says, the oldest first."""
    return [(row.act, row.object_id, row.reason) for row in reversed(await list_audit(desk.ports, limit=20))]


def front(desk: Sitting) -> Any:
    return desk.app.screen


async def test_lists_follow_their_filters_and_orders() -> None:
    """As the screens ask, without one."""
    async with open_refund_house() as refunds:
        there = await seed(refunds)
        ports, account = refunds.ports, refunds.house.account.account_id
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
async def test_each_screen_opens_from_home_by_its_key_and_by_search(size: tuple[int, int]) -> None:
    planted = Planted()
    async with sitting(size, planted) as desk:
        there = planted.there
        assert "1 webhook given up" in desk.shown()
        # What needs a person opens what is to be decided.
        for need in front(desk).needs:
            await desk.press("enter")
            assert front(desk).record.id == need.object_id
            assert front(desk).acts()
            await desk.press("escape", "down")
        for kind in (each for each in KINDS if each.name in MINE):
            await desk.press(kind.key)
            assert f"{kind.title} · {len(front(desk).records)}" in desk.shown()
            await desk.press("enter")
            assert f"{kind.title} · {front(desk).record.id[:20]}" in desk.shown()
        await find(desk, "club-1")
        assert front(desk).record.id == there.subscription
        # A line of a timeline opens the object that it tells of.
        [charge] = [place for place, each in enumerate(front(desk).moments) if each.of == "payment"]
        front(desk).query_one("#timeline", DataTable).move_cursor(row=charge)
        await desk.press("enter")
        assert front(desk).record.subscription_id == there.subscription


@pytest.mark.parametrize("size", SIZES)
async def test_every_act_changes_what_it_says_and_is_audited(size: tuple[int, int]) -> None:
    planted = Planted()
    async with sitting(size, planted) as desk:
        there, house = planted.there, desk.refunds.house
        await desk.open("client", there.client)
        assert "+79005557788" not in desk.shown()
        await desk.pilot.press("p", *"a call")
        await desk.press("ctrl+s")
        assert "phone: +79005557788" in desk.shown()
        await desk.press("escape")
        assert "Blocked" in await desk.act("b", "stolen")
        assert front(desk).record.blocked
        assert "verified as before" in await desk.act("e", "found again")
        receiver = f"{house.account.account_id}:test"
        await desk.open("receiver", receiver)
        assert "Sent again: 1" in await desk.act("a", "their server is back")
        await house.work()
        await desk.open("event", there.failed_event)
        assert '"client_phone": "***"' in front(desk)._kind.body(front(desk).record)
        assert front(desk).record.status == "delivered"
        assert "It is sent again" in await desk.act("a", "they lost it")
        assert front(desk).record.status == "pending"
        await desk.open("exchange", there.open_exchange)
        assert "cancelled" in await desk.act("x", "the client asked")
        await desk.open("exchange", there.late_exchange)
        await desk.pilot.press("b")
        await desk.pilot.pause()
        assert "Still needed: TRON address" in await confirm(desk, "late")
        await desk.pilot.press("b")
        await desk.pilot.pause()
        assert "7.00000000 USDT go back" in await confirm(desk, "late", address=WALLET)
        assert front(desk).acts() == []
        await desk.open("suspense", there.suspense)
        assert "30.00 RUB go back" in await desk.act("b", "twice paid")
        await desk.open("gateway", "simulator-test")
        await desk.pilot.press("s")
        await desk.pilot.pause()
        assert "It is down" in await confirm(desk, "their notice", status="down", why="maintenance")
        assert front(desk).record.gateway.reason == "maintenance"
        await house.work(60)
        await desk.press("S")
        front(desk).ask_for("state", "sent back")
        await desk.settle()
        assert len(front(desk).records) == 2
        await desk.press("6", "c")
        entries = {"mode": "test", "amount": "1000.00", "phone": PHONE, "address": WALLET}
        assert "Still needed: Account" in await confirm(desk, "by phone", **entries)
        await desk.press("c")
        account = house.account.account_id
        assert "awaiting_rub: 1000.00 RUB" in await confirm(desk, "by phone", account=account, **entries)
        [made] = [each for each in await everything(desk.ports, Exchange) if each.status == "awaiting_rub"]
        assert front(desk).records[0].id == made.id
        assert await rows(desk) == [
            ("private.show", there.client, "a call"),
            ("client.block", there.client, "stolen"),
            ("client.unblock", there.client, "found again"),
            ("event.resend", receiver, "their server is back"),
            ("event.resend", there.failed_event, "they lost it"),
            ("exchange.cancel", there.open_exchange, "the client asked"),
            ("exchange.return", there.late_exchange, "late"),
            ("suspense.return", there.suspense, "twice paid"),
            ("gateway.set", "simulator-test", "their notice"),
            ("exchange.create-rub-usdt", made.id, "by phone"),
        ]


async def test_colleagues_the_mouse_and_a_storage_that_is_late_or_gone() -> None:
    """The question is open at one console while a colleague answers it at another: who comes second is told, and
    changes nothing."""
    planted = Planted()
    async with sitting(SIZES[0], planted) as desk:
        there, ports = planted.there, desk.ports
        account = desk.refunds.house.account.account_id

        async def resent() -> None:
            await resend_given_up(ports, account, Mode.TEST)
            await desk.refunds.house.work()

        changed = "Not done. INVALID_STATE: It was changed meanwhile"
        for kind, object_id, key, colleague, told in (
            ("client", there.client, "b", set_blocked(ports, there.client, True), "Nothing was done: it is so already"),
            ("exchange", there.open_exchange, "x", cancel_any_exchange(ports, there.open_exchange), "INVALID_STATE"),
            ("suspense", there.suspense, "b", return_suspense(ports, there.suspense), changed),
            ("gateway", "simulator-live", "s", set_gateway(ports, "simulator-live", GatewayStatus.DOWN), changed),
            ("receiver", f"{account}:test", "a", resent(), "INVALID_STATE: Nothing is given up there"),
        ):
            await desk.open(kind, object_id)
            await desk.pilot.press(key)
            await desk.pilot.pause()
            await colleague
            assert told in await confirm(desk, "too late"), kind
        assert await rows(desk) == []
        await mouse_palette_and_clipboard(desk, there)
        await late_and_gone(desk)


async def mouse_palette_and_clipboard(desk: Sitting, there: Seeded) -> None:
    await desk.press("6")
    # The second row: bar, wish and titles stand above the rows.
    await desk.pilot.click("#list", offset=(5, 2))
    await desk.settle()
    await desk.pilot.click("#list", offset=(5, 2))
    await desk.settle()
    assert front(desk).record.id == there.late_exchange
    await desk.press("y")
    assert desk.app.clipboard == there.late_exchange
    await desk.pilot.click("#acts Button")
    await desk.settle()
    assert "Return suspended money ^s" in desk.shown()
    await desk.press("escape")
    await desk.pilot.press("ctrl+p", *"gatew")
    while "The list (G)" not in desk.shown():
        await desk.pilot.pause(0.02)
    await desk.pilot.press("enter")
    await desk.pilot.pause()
    await desk.settle()
    assert isinstance(front(desk), ListScreen)
    assert front(desk).kind.name == "gateway"
    await desk.press("y")
    assert desk.app.clipboard == front(desk).records[0].id


async def late_and_gone(desk: Sitting) -> None:
    answered = asyncio.Event()
    question = asyncio.create_task(front(desk).ask(answered.wait()))
    while "working…" not in desk.shown():
        await desk.pilot.pause(0.02)
    answered.set()
    assert await question
    await desk.pilot.pause()
    assert "working…" not in desk.shown()
    desk.storage.gone = True
    await desk.press("S")
    assert "the database does not answer" in desk.shown()
    desk.storage.gone = False
    await desk.press("r")
    assert "does not answer" not in desk.shown()
    assert front(desk).records
