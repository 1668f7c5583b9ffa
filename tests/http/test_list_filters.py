"""The filters of all lists: `created_from`, `created_to`, and `external_id` for objects with the merchant's own id
(docs/concepts.md "Lists"), on every storage."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_type_hints
from urllib.parse import urlencode
from uuid import UUID

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.kyc.clients import Client
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.payments.payment_links import PaymentLink
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.receipts.receipts import FiscalReceipt, ReceiptKind, ReceiptWriter
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from cambist.core.domain.settlement.settlement import Settlement
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, Event
from cambist.core.usecases.common.encrypted import (
    client_phone_aad,
    event_body_aad,
    exchange_phone_aad,
    open_event_body,
)
from cambist.core.usecases.kyc.register import new_client
from cambist.core.usecases.payments.tallies import add_payment
from cambist.frontends.http.edge.operation import FOUND_BY, MADE, PAGES, Operation, Query
from cambist.frontends.http.operations import OPERATIONS
from cambist.ports.bundle import Ports
from tests.apps import TestApp
from tests.exchange_app import ExchangeApp, open_exchange_app
from tests.planting import beneath
from tests.subscription_app import record, subscribed

START = datetime(2026, 3, 1, tzinfo=UTC)
COUNT = 40
"""Two of each hour, so that the order of ids matters, too; each third without an id of the merchant's."""
LINES = {
    "list_settlement_items",
    "list_withdrawal_items",
    "list_payment_transfers",
    "list_payments_of_link",
    "list_exports",
    "list_report_heads",
    "list_reports",
}
"""Lines of one statement, payment or link, and files and reports, have no filters by time or external id."""
ELSEWHERE = {"list_movements", "list_webhook_endpoints", "list_webhook_endpoint_events", "list_requests"}
"""Narrowed by the same filters, and tried where their objects are made."""


def has(operation: Operation[Any], wanted: Sequence[Query]) -> bool:
    """Whether it takes all these query values."""
    return all(each in operation.query for each in wanted)


LISTS = {each.id: each for each in OPERATIONS if has(each, PAGES)}


def element(operation: Operation[Any]) -> type[msgspec.Struct]:
    """Return the type of a list's elements."""
    assert operation.answer is not None
    found: type[msgspec.Struct] = get_args(get_type_hints(operation.answer)["data"])[0]
    return found


def test_every_list_has_the_filters() -> None:
    """A new list gets them by `ListFilter` or `MomentFilter` (core/usecases/common/paging.py)."""
    for name in LISTS.keys() - LINES:
        named = "external_id" in element(LISTS[name]).__struct_fields__
        assert has(LISTS[name], FOUND_BY if named else MADE), name


def numbered(prefix: str, number: int) -> str:
    """Return ids whose order is not that of time."""
    return f"{prefix}_{UUID(int=(number * 7919) % 10007 << 80 | 7 << 76 | 2 << 62)}"


class Books:
    """Forty objects of every list, and further ones of the other mode and of another account."""

    def __init__(self, app: TestApp, made: dict[str, list[Any]], paths: dict[str, str]) -> None:
        self.app = app
        self.made = made
        self.paths = paths

    async def listed(self, name: str, **query: str) -> tuple[list[str], int]:
        """The ids on all pages of seven, and the total of the last one."""
        found: list[str] = []
        number = 1
        await self.app.clock.advance(60)  # the limit of a minute
        while True:
            text = urlencode({**query, "page": number, "per_page": 7})
            response = await self.app.get(f"{self.paths[name]}?{text}")
            assert response.status_code == 200, response.text
            body = response.json()
            found += [each["id"] for each in body["data"]]
            if number >= body["pagination"]["total_pages"]:
                return found, body["pagination"]["total"]
            number += 1

    def expected(self, name: str, meets: Callable[[Any], bool]) -> list[str]:
        wanted = [each for each in self.made[name] if meets(each)]
        return [each.id for each in sorted(wanted, key=lambda each: (moment_of(each), each.id), reverse=True)]


def moment_of(made: Any) -> datetime:
    moment: datetime = made.started_at if isinstance(made, Settlement) else made.created_at
    return moment


async def specimens(exchanges: ExchangeApp) -> dict[str, Any]:
    """Return one record of each list, in the merchant's test mode."""
    app = exchanges.app
    account_id, mode = app.account.account_id, Mode.TEST
    payment = await app.payment((await app.created())["id"])
    subscription = await record(app, (await subscribed(app))["id"])
    exchange = await exchanges.made()
    client = new_client(app.ports, account_id, mode, "+79000000000")
    refund = Refund(
        id="", account_id=account_id, mode=mode, payment_id=payment.id, shop_id=payment.shop_id,
        status=RefundStatus.CANCELLED, amount=Rub(100), created_at=START,
    )  # fmt: skip
    receipt = FiscalReceipt(
        id="", account_id=account_id, mode=mode, payment_id=payment.id, shop_id=payment.shop_id, amount=Rub(100),
        kind=ReceiptKind.SALE, writer=ReceiptWriter.BANK, provider="simulator", attempt_at=START, created_at=START,
        changed_at=START,
    )  # fmt: skip
    withdrawal = Withdrawal(
        id="", account_id=account_id, mode=mode, status=WithdrawalStatus.COMPLETED, amount=Usdt(1), wallet="T",
        sender="simulator", network="tron", created_at=START,
    )  # fmt: skip
    settlement = Settlement(
        id="", batch_id="", account_id=account_id, mode=mode, cutoff=START, rate_market="90", started_at=START
    )
    await app.simulate(payment.id, outcome="paid")
    async with app.ports.storage.unit() as unit:
        [event] = await unit[Event].find(object_id=payment.id)
    return {
        "list_payments": payment,
        "list_charges": msgspec.structs.replace(payment, subscription_id=subscription.id, payment_method="recurring"),
        "list_refunds": refund,
        "list_receipts": receipt,
        "list_payment_links": PaymentLink(
            id="", account_id=account_id, mode=mode, shop_id=payment.shop_id, description="Class", created_at=START
        ),
        "list_subscriptions": subscription,
        "list_exchanges": msgspec.structs.replace(exchange, active_slot=None),
        "list_exchange_clients": client,
        "list_settlements": settlement,
        "list_withdrawals": withdrawal,
        "list_events": event,
    }


def copies(ports: Ports, specimen: Any, owner: dict[str, Any], first: int) -> list[Any]:
    """Add as many objects of one owner, spread over twenty hours."""
    prefix = PREFIXES[type(specimen)]
    field = "started_at" if isinstance(specimen, Settlement) else "created_at"
    made = []
    for number in range(first, first + COUNT):
        more: dict[str, Any] = {field: START + timedelta(hours=(number - first) // 2)}
        if "external_id" in specimen.__struct_fields__:
            more["external_id"] = f"order-{number % 3}" if number % 3 else None
        if isinstance(specimen, Settlement):
            more["batch_id"] = str(number)
        if isinstance(specimen, Client):
            more["phone_digest"] = str(number).encode()
        made_id = numbered(prefix, number)
        if (place := ENCRYPTED_IN.get(type(specimen))) is not None:
            phone = "phone" if isinstance(specimen, Client) else "client_phone"
            more[phone] = ports.vault.encrypt(b"+79000000000", place(made_id))
        if isinstance(specimen, Event):
            more["body"] = ports.vault.encrypt(open_event_body(ports.vault, specimen), event_body_aad(made_id))
        made.append(msgspec.structs.replace(specimen, id=made_id, version=0, **owner, **more))
    return made


WITHOUT_ORDER = ("list_exchange_clients", "list_settlements", "list_withdrawals", "list_events", "list_receipts")
"""Lists whose records have no external id."""
PREFIXES: dict[Any, str] = {
    Payment: "pay", PaymentLink: "plink", Refund: "ref", Subscription: "sub", Exchange: "exch", Client: "cl",
    Settlement: "stl", Withdrawal: "wd", Event: "evt", FiscalReceipt: "rcpt",
}  # fmt: skip
ENCRYPTED_IN: dict[Any, Callable[[str], str]] = {Client: client_phone_aad, Exchange: exchange_phone_aad}


async def write(app: TestApp, records: Sequence[Any]) -> None:
    async with beneath(app.ports).unit() as unit:
        for each in records:
            if isinstance(each, Payment):
                add_payment(unit, each)
                continue
            unit[type(each)].add(each)
            if isinstance(each, Event):
                told = DeliveryStatus.DELIVERED
                owner: dict[str, Any] = {"account_id": each.account_id, "mode": each.mode, "type": each.type}
                unit[Delivery].add(Delivery(id=each.id, status=told, created_at=each.created_at, **owner))
        await unit.commit()


@pytest.fixture
async def books(url: str, tmp_path: Path) -> AsyncIterator[Books]:
    async with open_exchange_app(database_url=url, data_dir=tmp_path) as exchanges:
        await exchanges.set(refunds="true")
        app = exchanges.app
        app.made_up = True
        templates = await specimens(exchanges)
        made: dict[str, list[Any]] = {name: [] for name in templates}
        for place, (name, template) in enumerate(templates.items()):
            first = place * 500
            mine = copies(app.ports, template, {}, first)
            others = copies(app.ports, template, {"mode": Mode.LIVE}, first + 100)
            foreign = copies(app.ports, template, {"account_id": "acc_0"}, first + 200)
            await write(app, [*mine, *others, *foreign])
            made[name] = mine
        charge = templates["list_charges"]
        paths = {
            **{name: each.path.removeprefix("/api/v1") for name, each in LISTS.items()},
            "list_charges": f"/subscriptions/{charge.subscription_id}/charges",
            # Beside the charges, which are payments, too.
            "list_payments": "/payments",
        }
        made["list_payments"] += made["list_charges"]
        yield Books(app, made, paths)


def iso(hours: float) -> str:
    return (START + timedelta(hours=hours)).isoformat()


async def test_every_list_is_narrowed_by_each_filter_and_by_all_of_them(books: Books) -> None:
    assert books.made.keys() | LINES | ELSEWHERE == LISTS.keys(), "a list without its specimen here"
    low, high = START + timedelta(hours=3), START + timedelta(hours=9)
    within = {"created_from": iso(3), "created_to": iso(9)}
    until = START + timedelta(hours=20)
    for name in books.made:
        every = {"created_from": iso(0), "created_to": iso(20)}
        whole = books.expected(name, lambda _: True)
        assert await books.listed(name, **every) == (whole, len(whole)), name
        wanted = books.expected(name, lambda each: low <= moment_of(each) < high)
        assert await books.listed(name, **within) == (wanted, len(wanted)), name
        assert len(wanted) in (12, 24), "with the first moment, without the last"
        from_on = books.expected(name, lambda each: moment_of(each) >= low)
        assert await books.listed(name, created_from=iso(3), created_to=until.isoformat()) == (from_on, len(from_on))
        assert await books.listed(name, created_from=iso(9), created_to=iso(3)) == ([], 0)
        if name not in WITHOUT_ORDER:
            named = books.expected(name, lambda each: each.external_id == "order-2")
            assert await books.listed(name, external_id="order-2") == (named, len(named)), name
            both = books.expected(name, lambda each: each.external_id == "order-2" and low <= each.created_at < high)
            assert await books.listed(name, external_id="order-2", **within) == (both, len(both)), name
            assert await books.listed(name, external_id="order") == ([], 0)


async def test_pages_below_created_to_stay_while_the_list_grows(books: Books) -> None:
    """`created_to` freezes a list: objects made meanwhile are newer (docs/concepts.md "Lists")."""
    for name, template in ((name, made[0]) for name, made in books.made.items() if name != "list_charges"):
        path, until = books.paths[name], {"created_from": iso(0), "created_to": iso(20), "per_page": 30}
        first = (await books.app.get(f"{path}?{urlencode(until)}")).json()
        newer = copies(books.app.ports, template, {}, 9000)
        moved = {"started_at" if isinstance(template, Settlement) else "created_at": START + timedelta(days=2)}
        await write(books.app, [msgspec.structs.replace(each, **moved) for each in newer])
        second = (await books.app.get(f"{path}?{urlencode({**until, 'page': 2})}")).json()
        seen = [each["id"] for each in first["data"] + second["data"]]
        whole = books.expected(name, lambda _: True)
        assert seen == whole[:60], name
        assert first["pagination"]["total"] == second["pagination"]["total"] == len(whole)


BAD = [
    *((name, text) for name in ("created_from", "created_to") for text in ("", "yesterday", "2026-03-01T00:00:00")),
    ("external_id", "x" * 257),
    ("external_id", "a\0b"),
]


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_impossible_filter_value_is_refused_in_the_envelope(books: Books) -> None:
    for name in books.made:
        await books.app.clock.advance(60)  # the limit of a minute
        known = {each.name for each in LISTS[name].query}
        for field, text in BAD:
            response = await books.app.get(f"{books.paths[name]}?{urlencode({field: text})}")
            if field not in known:
                assert response.status_code == 200, "values that a list does not know are left aside"
                continue
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (400, "VALIDATION_ERROR"), (name, field, text)
            assert error["details"][0]["path"] == field


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_the_older_names_of_events_narrow_beside_the_new_ones(books: Books) -> None:
    """`from` and `to` of GET /events (docs/webhooks.md "Looking, and sending again")."""
    both = {"from": iso(1), "created_from": iso(3), "to": iso(9), "created_to": iso(12)}
    wanted = books.expected("list_events", lambda each: iso(3) <= each.created_at.isoformat() < iso(9))
    assert await books.listed("list_events", **both) == (wanted, 12)
