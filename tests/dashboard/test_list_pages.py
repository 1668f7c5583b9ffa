"""Pages of lists by cursor (docs/dashboard.md "Payments")."""

import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.people.roles import Role
from cambist.core.domain.settlement.settlement import ItemKind, Settlement, SettlementItem, line_id
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.domain.webhooks.events import Delivery, Event
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.common import keyset
from cambist.core.usecases.kyc import clients as kyc_clients
from cambist.core.usecases.kyc.clients import ClientSimulation, simulate_client
from cambist.frontends.dashboard.pages import clients, developers, money, refunds, trade
from tests import event_factory
from tests.apps import TestApp
from tests.dashboard.browser import Browser, in_test_mode, joined
from tests.dashboard.test_payment_list import DAMAGED, link
from tests.invariants import everything
from tests.people_kit import person
from tests.planting import beneath
from tests.subscription_app import subscribed

EVENTS = ("/developers/events", "/developers/events?q=pay_1", "/developers/events?delivery_status=failed")


async def test_refunds_are_listed_page_by_page(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refunds, "SIZE", 1)
    await set_settings(app.ports, app.account.account_id, {"refunds": "true"})
    payment = await app.created({"amount_rub": "500.00"})
    await app.simulate(payment["id"], outcome="paid")
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for amount in ("10", "20", "30"):
        await owner.open(f"/payments/{payment['id']}")
        await owner.send("/refunds", amount_rub=amount)
        await app.clock.advance(1)

    def amounts() -> list[str]:
        return re.findall(r'<data class="money" value="([^"]+)"', owner.answer.text)

    await owner.open("/refunds")
    assert amounts() == ["30.00"]
    owner.sees("3 in all")
    await owner.open(link(owner, "Older"))
    assert amounts() == ["20.00"]
    await owner.open(link(owner, "Older"))
    assert amounts() == ["10.00"]
    assert ">Older<" not in owner.answer.text
    await owner.open(link(owner, "Newer"))
    assert amounts() == ["20.00"]
    await owner.open(link(owner, "Newest"))
    assert amounts() == ["30.00"]
    await owner.open(f"/refunds?shop_id={app.account.default_shop_id}&status=completed&q=none")
    assert amounts() == []


async def test_subscriptions_are_listed_page_by_page(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trade, "SIZE", 1)
    made = []
    for _ in range(3):
        made.append((await subscribed(app))["id"])
        await app.clock.advance(1)
    viewer = await in_test_mode(await joined(app, Role.VIEWER))
    await viewer.open("/subscriptions?status=pending_binding")
    shown = []
    for _ in range(3):
        shown += [urlsplit(each).path for each in viewer.page.links if "/subscriptions/sub_" in each]
        if ">Older<" in viewer.answer.text:
            await viewer.open(link(viewer, "Older"))
    assert shown == [f"/subscriptions/{each}" for each in reversed(made)]


async def test_damaged_cursor_of_any_list_leads_to_its_top(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for path in (
        "/refunds",
        "/subscriptions",
        "/exchanges",
        "/payouts",
        "/clients",
        "/clients?q=900",
        "/developers/requests",
        *EVENTS,
    ):
        for cursor in DAMAGED:
            await owner.open(f"{path}{'&' if '?' in path else '?'}cursor={cursor or '%20'}")
            assert owner.answer.status_code == 400, (path, cursor)
            owner.sees("Start at the top of the list")
            assert urlsplit(link(owner, "To the top of the list")).path == urlsplit(path).path
        for cursor in ("0.", "-0.~", "99999999999999999.~", "-1764300000000000.ref_1"):
            await owner.open(f"{path}{'&' if '?' in path else '?'}cursor={cursor}")
            assert owner.answer.status_code == 200, (path, cursor)


async def walked(owner: Browser, path: str, row: str, add: Callable[[], Awaitable[object]]) -> tuple[list[str], int]:
    """Return the rows of a list from its top to its end, and the number of pages. A row is added behind each page."""
    shown, pages = list[str](), 0
    await owner.open(path)
    while True:
        assert owner.answer.status_code == 200, owner.text
        shown += [urlsplit(each).path for each in owner.page.links if row in each]
        pages += 1
        if ">Older<" not in owner.answer.text:
            return shown, pages
        await add()
        await owner.open(link(owner, "Older"))


async def test_events_are_listed_once_while_new_ones_happen(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(developers, "SIZE", 2)

    async def happen() -> None:
        await app.clock.advance(1)
        await event_factory.happen(app.ports, app.account.account_id)

    owner = await in_test_mode(await joined(app, Role.OWNER))
    for _ in range(5):
        await happen()
    statuses = {each.status for each in await everything(app.ports, Delivery)}
    assert len(statuses) == 1
    [status] = statuses
    kind = "payment.status_changed"
    day = app.clock.now().date()
    for query in ("", f"?type={kind}", f"?delivery_status={status}", f"?delivery_status={status}&from={day}"):
        before = [each.id for each in await everything(app.ports, Event)]
        shown, pages = await walked(owner, f"/developers/events{query}", "/developers/events/evt_", happen)
        assert shown == [f"/developers/events/{each}" for each in sorted(before, reverse=True)], query
        assert pages == (len(before) + 1) // 2
        await owner.open(link(owner, "Newer"))
        again = [urlsplit(each).path for each in owner.page.links if "/developers/events/evt_" in each]
        last = len(shown) % 2 or 2
        assert again == shown[-last - 2 : -last], query
        await owner.open(link(owner, "Newest"))
        assert ">Newer<" not in owner.answer.text


async def test_events_of_one_object_are_listed_page_by_page(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(developers, "SIZE", 1)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await event_factory.happen(app.ports, app.account.account_id, 3)

    async def nothing() -> None:
        """An object gets no more events."""

    shown, pages = await walked(owner, "/developers/events?q=pay_1", "/developers/events/evt_", nothing)
    assert (len(shown), len({*shown}), pages) == (3, 3, 3)
    await owner.open(link(owner, "Newer"))
    assert [urlsplit(each).path for each in owner.page.links if "/developers/events/evt_" in each] == [shown[1]]


async def test_bounded_search_of_deliveries_reaches_each_event(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(developers, "SIZE", 2)
    monkeypatch.setattr(keyset, "SCANNED", 1)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for _ in range(4):
        await event_factory.happen(app.ports, app.account.account_id)
        await app.clock.advance(1)
    [status] = {each.status for each in await everything(app.ports, Delivery)}
    made = sorted((each.id for each in await everything(app.ports, Event)), reverse=True)
    await owner.open(f"/developers/events?delivery_status={status}&type=payment.status_changed")
    for way, expected in (("Search further", made), ("Newer", made[1::-1])):
        shown = list[str]()
        for _ in range(len(made)):
            rows = [urlsplit(each).path for each in owner.page.links if "/developers/events/evt_" in each]
            shown += [each.rpartition("/")[2] for each in rows if each.rpartition("/")[2] not in shown]
            if f">{way}<" not in owner.answer.text:
                break
            await owner.open(link(owner, way))
        assert {*expected} <= {*shown}, way
    await owner.open(f"/developers/events?delivery_status={status}&type=refund.failed")
    owner.sees("Search further")
    owner.sees("There may be more")


@pytest.mark.parametrize("kind", ["payouts", "settlements"])
async def test_payouts_and_settlements_are_each_listed_once(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(money, "SIZE", 2)
    made = list[str]()
    account_id, mode = app.account.account_id, Mode.TEST

    async def add() -> None:
        await app.clock.advance(1)
        now = app.clock.now()
        async with beneath(app.ports).unit() as unit:
            if kind == "payouts":
                made.append(f"wd_{app.ports.ids.uuid()}")
                withdrawal = Withdrawal(
                    id=made[-1], account_id=account_id, mode=mode, status=WithdrawalStatus.COMPLETED, amount=Usdt(1),
                    wallet="T", sender="simulator", network="tron", created_at=now,
                )  # fmt: skip
                unit[Withdrawal].add(withdrawal)
            else:
                made.append(f"stl_{app.ports.ids.uuid()}")
                settlement = Settlement(
                    id=made[-1], batch_id=made[-1], account_id=account_id, mode=mode, cutoff=now, rate_market="90",
                    started_at=now,
                )  # fmt: skip
                unit[Settlement].add(settlement)
            await unit.commit()

    for _ in range(5):
        await add()
    before = [*made]
    owner = await in_test_mode(await joined(app, Role.OWNER))
    shown, pages = await walked(owner, "/payouts", f"/{kind}/", add)
    assert (shown, pages) == ([f"/{kind}/{each}" for each in reversed(before)], 3)
    await owner.open(link(owner, "Newer"))
    assert [urlsplit(each).path for each in owner.page.links if f"/{kind}/" in each] == shown[2:4]
    async with beneath(app.ports).unit() as unit:
        for each in await unit[Withdrawal].find():
            unit[Withdrawal].remove(each)  # no entries book it
        await unit.commit()


async def test_settlement_lines_are_each_listed_once(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(money, "SIZE", 2)
    now, account_id, mode = app.clock.now(), app.account.account_id, Mode.TEST
    first, *others = [f"stl_{app.ports.ids.uuid()}" for _ in range(3)]
    payments = sorted(f"pay_{app.ports.ids.uuid()}" for _ in range(5))
    async with beneath(app.ports).unit() as unit:
        settlement = Settlement(
            id=first, batch_id=first, account_id=account_id, mode=mode, cutoff=now, rate_market="90", started_at=now,
            items=len(payments),
        )  # fmt: skip
        unit[Settlement].add(settlement)
        for settlement_id in (first, *others):
            for payment_id in payments:
                item = SettlementItem(
                    id=line_id(settlement_id, payment_id), settlement_id=settlement_id, payment_id=payment_id,
                    shop_id="s", kind=ItemKind.PAYMENT, amount=Rub(100), markup="0", fee=Usdt(1), credit=Usdt(1),
                )  # fmt: skip
                unit[SettlementItem].add(item)
        await unit.commit()
    owner = await in_test_mode(await joined(app, Role.OWNER))

    async def nothing() -> None:
        """A statement's lines are written once."""

    shown, pages = await walked(owner, f"/settlements/{first}", "/payments/pay_", nothing)
    assert (shown, pages) == ([f"/payments/{each}" for each in reversed(payments)], 3)
    await owner.open(link(owner, "Newer"))
    assert [urlsplit(each).path for each in owner.page.links if "/payments/pay_" in each] == shown[2:4]
    await owner.open(f"/settlements/{first}?cursor=2")
    assert owner.answer.status_code == 400
    # A cursor of another statement does not lead into it.
    for cursor in ("1.", "-1.~", *(f"1.{line_id(each, payments[2])}" for each in others)):
        await owner.open(f"/settlements/{first}?cursor={cursor}")
        assert owner.answer.status_code == 200, cursor
        assert {urlsplit(each).path for each in owner.page.links if "/payments/pay_" in each} <= {*shown}, cursor
    async with beneath(app.ports).unit() as unit:
        for item in await unit[SettlementItem].find():
            unit[SettlementItem].remove(item)  # no entries book it
        unit[Settlement].remove(settlement)
        await unit.commit()


async def test_damaged_cursor_of_settlements_leads_to_the_top(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for name in ("cursor", "settled"):
        await owner.open(f"/payouts?{name}=2")
        assert owner.answer.status_code == 400
        owner.sees("Start at the top of the list")
        await owner.open(link(owner, "To the top of the list"))
        assert owner.answer.status_code == 200


async def test_movements_are_listed_once_while_new_ones_are_booked(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(money, "SIZE", 2)

    async def pay() -> None:
        await app.clock.advance(1)
        await app.simulate((await app.created())["id"], outcome="paid")

    for _ in range(5):
        await pay()
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for query in ("", f"?from={app.clock.now().date()}"):
        before = [each.id for each in await everything(app.ports, Payment)]
        shown, pages = await walked(owner, f"/balance{query}", "/payments/pay_", pay)
        assert shown == [f"/payments/{each}" for each in sorted(before, reverse=True)]
        assert pages == (len(before) + 1) // 2
        last = len(shown) % 2 or 2
        await owner.open(link(owner, "Newer"))
        assert [urlsplit(each).path for each in owner.page.links if "/payments/pay_" in each] == shown[
            -last - 2 : -last
        ]
        await owner.open(link(owner, "Newest"))
        assert ">Newer<" not in owner.answer.text


async def test_damaged_cursor_of_the_balance_leads_to_the_top(app: TestApp) -> None:
    await app.simulate((await app.created())["id"], outcome="paid")
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for cursor in (*DAMAGED, "0.", "-0.~", "1.1.1", "1." + "9" * 40):
        await owner.open(f"/balance?cursor={cursor or '%20'}")
        assert owner.answer.status_code == 400, cursor
        owner.sees("Start at the top of the list")
    for cursor in ("1.0", "-1.0", "1.99999999999999999", "-1.99999999999999999", "1.1", "-1.1"):
        await owner.open(f"/balance?cursor={cursor}")
        assert owner.answer.status_code == 200, cursor
        shown = [each for each in owner.page.links if "/payments/pay_" in each]
        assert len(shown) == (0 if cursor in ("1.0", "1.1") else 1), cursor


async def test_clients_are_listed_once_while_new_ones_come(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "SIZE", 2)
    merchant = (await person(app, Role.VIEWER)).caller
    made = list[str]()

    async def come() -> None:
        await app.clock.advance(1)
        wanted = ClientSimulation(phone=f"+79001234{len(made):03}", kyc_status="verified")
        made.append((await simulate_client(app.ports, merchant, wanted)).client.id)

    for _ in range(5):
        await come()
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for query in ("", "?status=verified", "?q=1234"):
        before = [*made]
        shown, pages = await walked(owner, f"/clients{query}", "/clients/", come)
        assert shown == [f"/clients/{each}" for each in reversed(before)], query
        assert pages == (len(before) + 1) // 2
        last = len(shown) % 2 or 2
        await owner.open(link(owner, "Newer"))
        again = [urlsplit(each).path for each in owner.page.links if "/clients/" in each]
        assert again == shown[-last - 2 : -last], query
    for status in ("pending", "rejected", "blocked"):
        await owner.open(f"/clients?status={status}")
        assert not [each for each in owner.page.links if "/clients/" in each]


async def test_search_of_clients_reads_a_bounded_number(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "SIZE", 2)
    monkeypatch.setattr(kyc_clients, "_BATCH", 2)
    monkeypatch.setattr(keyset, "SCANNED", 4)
    merchant = (await person(app, Role.VIEWER)).caller
    made = []
    for number in range(11):
        await app.clock.advance(1)
        phone = f"+7900{'555' if number in (0, 1, 2, 10) else '444'}0{number:03}"
        wanted = ClientSimulation(phone=phone, kyc_status="verified")
        made.append((await simulate_client(app.ports, merchant, wanted)).client.id)
    owner = await in_test_mode(await joined(app, Role.OWNER))

    def rows() -> list[str]:
        return [urlsplit(each).path.rpartition("/")[2] for each in owner.page.links if "/clients/" in each]

    await owner.open("/clients?q=0555")
    assert rows() == [made[10]]
    owner.sees("There may be more")
    shown = rows()
    while ">Search further<" in owner.answer.text or ">Older<" in owner.answer.text:
        await owner.open(link(owner, "Search further" if ">Search further<" in owner.answer.text else "Older"))
        assert len(rows()) <= 2
        shown += rows()
    assert shown == [made[each] for each in (10, 2, 1, 0)]
    back = rows()
    while ">Newer<" in owner.answer.text:
        await owner.open(link(owner, "Newer"))
        back = rows() + [each for each in back if each not in rows()]
    assert back == shown


async def test_empty_list_blames_a_filter_only_when_there_is_one(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for path in ("/refunds", "/subscriptions", "/exchanges", "/clients", "/developers/events", "/developers/requests"):
        await owner.open(f"{path}?lang=en")
        owner.sees("Nothing here yet.")
        await owner.open(f"{path}?lang=en&from=2026-01-01")
        owner.sees("Nothing matches the filter.")


async def test_page_that_needs_a_second_factor_leads_to_its_set_up(app: TestApp) -> None:
    finance = await joined(app, Role.FINANCE)
    await finance.open("/balance?lang=en")
    finance.sees("authenticator app")
    assert "/profile" in urlsplit(link(finance, "Set it up")).path
