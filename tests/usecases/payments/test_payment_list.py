"""GET /payments returns the same page as sorting all payments, by each of its search methods, on every storage
(docs/concepts.md "Lists"; docs/payments.md "Finding payments")."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.payments.list import PaymentFilter, list_payments
from cambist.core.usecases.payments.tallies import add_payment, check_tallies
from cambist.ports.bundle import Ports
from tests.apps import open_test_app

S = PaymentStatus
START = datetime(2026, 3, 1, tzinfo=UTC)
COUNT = 1500
SUBSCRIPTION = f"sub_{UUID(int=7)}"


class Books:
    """A merchant with many payments, and all of them in the order of the list."""

    def __init__(self, ports: Ports, caller: Caller, payments: list[Payment]) -> None:
        self.ports = ports
        self.caller = caller
        self.newest_first = sorted(payments, key=lambda each: (each.created_at, each.id), reverse=True)
        self.shops = sorted({each.shop_id for each in payments})
        self._found: dict[frozenset[tuple[str, str]], list[Payment]] = {}

    async def check(self, number: int, size: int, **asked: str) -> int:
        """Compare a page with the sorted list, and return the total."""
        wanted = self.wanted(asked)
        page = await list_payments(self.ports, self.caller, PaymentFilter(**asked), number, size)
        assert page.total == len(wanted), asked
        expected = wanted[(number - 1) * size : number * size]
        assert [each.id for each in page.records] == [each.id for each in expected], (asked, number, size)
        return page.total

    def wanted(self, asked: dict[str, str]) -> list[Payment]:
        """Return all payments that match; they are searched once, whatever the number of pages."""
        key = frozenset(asked.items())
        if key not in self._found:
            self._found[key] = [each for each in self.newest_first if meets(each, asked)]
        return self._found[key]


def meets(payment: Payment, asked: dict[str, str]) -> bool:
    def one(name: str, value: str) -> bool:
        if name == "created_from":
            return payment.created_at >= datetime.fromisoformat(value)
        if name == "created_to":
            return payment.created_at < datetime.fromisoformat(value)
        return bool(getattr(payment, name) == value)

    return all(one(name, value) for name, value in asked.items())


def some_payments(account: Account, shops: list[str]) -> list[Payment]:
    """Payments over twelve days: one day has most of them, some share a moment, and some days have none."""
    chance = random.Random(7)
    days = [0, 1, 2, *[3] * 30, 6, 7, 7, 7, 8, 9, 10, 11]
    made = []
    for number in range(COUNT):
        # Whole hours: many payments share their moment, and some moments are midnight.
        moment = START + timedelta(days=chance.choice(days), hours=chance.choice([0, 0, 5, 12, 23]))
        recurring = chance.random() < 0.1
        made.append(
            Payment(
                id=f"pay_{UUID(int=chance.getrandbits(128), version=4)}",
                account_id=account.id,
                mode=Mode.TEST,
                shop_id=chance.choices(shops, weights=[20, 5, 1])[0],
                status=chance.choices([S.FAILED, S.EXPIRED, S.CANCELLED], weights=[20, 5, 1])[0],
                amount=Rub(100_00),
                payment_method="recurring" if recurring else "sbp",
                created_at=moment,
                expires_at=moment + timedelta(minutes=15),
                external_id=f"order-{number % 400}" if number % 3 else None,
                subscription_id=SUBSCRIPTION if recurring and number % 2 else None,
            )
        )
    return made


@pytest.fixture
async def books(url: str, tmp_path: Path) -> AsyncIterator[Books]:
    async with open_test_app(database_url=url, data_dir=tmp_path) as app:
        ports = app.ports
        shops = [await create_shop(ports, app.account.account_id, name) for name in ("B", "C")]
        async with ports.storage.unit() as unit:
            account = await unit[Account].get(app.account.account_id)
        assert account is not None
        payments = some_payments(account, [account.default_shop_id, *(shop.id for shop in shops)])
        noise = [
            msgspec.structs.replace(each, id=each.id.replace("pay_", "pay_0"), mode=Mode.LIVE)
            for each in payments[::100]
        ] + [msgspec.structs.replace(each, id=f"{each.id}x", account_id="acc_0") for each in payments[::90]]
        for start in range(0, COUNT, 300):
            async with ports.storage.unit() as unit:
                for payment in payments[start : start + 300]:
                    add_payment(unit, payment)
                await unit.commit()
        async with ports.storage.unit() as unit:
            for payment in noise:
                add_payment(unit, payment)
            await unit.commit()
        caller = Caller(account=account, mode=Mode.TEST, key_id="svc_test_books")
        yield Books(ports, caller, payments)


async def test_every_page_is_the_one_that_sorting_gives(books: Books) -> None:
    """Pages are found by index, by days from either end, and by the counts of partial days: one storage each, all in
    one pass."""
    assert await check_tallies(books.ports) == []
    default = books.caller.account.default_shop_id
    rare = min(books.shops, key=lambda shop: len([1 for each in books.newest_first if each.shop_id == shop]))
    filters: list[dict[str, str]] = [
        {},
        {"status": "failed"},
        {"shop_id": default},
        {"payment_method": "recurring"},
        {"shop_id": rare, "status": "cancelled"},
        {"shop_id": default, "status": "failed", "payment_method": "sbp"},
        {"external_id": "order-7"},
        {"external_id": "order-7", "status": "failed"},
        {"external_id": "none"},
        {"subscription_id": SUBSCRIPTION},
        {"subscription_id": SUBSCRIPTION, "payment_method": "sbp"},
        {"subscription_id": SUBSCRIPTION, "created_from": "2026-03-04T12:00:00Z"},
        {"created_from": "2026-03-04T00:00:00Z"},
        {"created_to": "2026-03-04T00:00:00Z"},
        {"created_from": "2026-03-04T00:00:00Z", "created_to": "2026-03-05T00:00:00Z"},
        {"created_from": "2026-03-04T05:00:00Z", "created_to": "2026-03-04T23:00:00Z", "shop_id": default},
        {"created_from": "2026-03-03T23:00:00Z", "created_to": "2026-03-10T05:00:01+03:00", "status": "failed"},
        {"created_from": "2026-03-05T00:00:00Z", "created_to": "2026-03-07T00:00:00Z"},
        {"created_from": "0001-01-01T00:00:00Z", "created_to": "9999-12-31T23:59:59.999999Z"},
        {"created_from": "2026-03-09T00:00:00Z", "created_to": "2026-03-09T00:00:00Z"},
        {"created_from": "2027-01-01T00:00:00Z", "created_to": "2026-01-01T00:00:00Z"},
    ]
    for asked in filters:
        total = await books.check(1, 20, **asked)
        last = -(-total // 7)
        for number in {2, last // 2, last, last + 1, 250_000} - {0}:
            await books.check(number, 7, **asked)


async def test_all_pages_together_are_the_list(books: Books) -> None:
    """Far pages too, where whole days are skipped: 15 of 100, then none."""
    for number in range(1, 17):
        await books.check(number, 100)
    assert await books.check(1, 100) == COUNT
    for number in (1001, 1400, COUNT, COUNT + 1):
        await books.check(number, 1)


async def test_a_page_is_one_moments_view_while_payments_come(books: Books) -> None:
    """Total and data are of the same moment, however many payments arrive between two reads."""
    caller, ports = books.caller, books.ports
    before = books.newest_first
    extra = [
        msgspec.structs.replace(each, id=f"{each.id}new", created_at=each.created_at + timedelta(minutes=1))
        for each in before[::30]
    ]

    async def come() -> None:
        for payment in extra:
            async with ports.storage.unit() as unit:
                add_payment(unit, payment)
                await unit.commit()

    async def look() -> None:
        for number in (1, 1, 13, 15, 14, 1, 15):
            page = await list_payments(ports, caller, PaymentFilter(), number, 100)
            at_hand = sorted(
                [*before, *extra[: page.total - COUNT]], key=lambda each: (each.created_at, each.id), reverse=True
            )
            expected = at_hand[(number - 1) * 100 : number * 100]
            assert [each.id for each in page.records] == [each.id for each in expected]

    await asyncio.gather(come(), look(), look())
    assert (await list_payments(ports, caller, PaymentFilter(), 1, 1)).total == COUNT + len(extra)
    assert await check_tallies(ports) == []


class Counting:
    """A storage whose snapshots count the reads of payments."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.finds: list[dict[str, Any]] = []
        self.totals = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def snapshot(self) -> Any:
        return _Seen(self._storage.snapshot(), self)


class _Seen:
    def __init__(self, inner: Any, counting: Counting) -> None:
        self._inner = inner
        self._counting = counting

    async def __aenter__(self) -> Self:
        self._seen = await self._inner.__aenter__()
        return self

    async def __aexit__(self, *how: object) -> None:
        await self._inner.__aexit__(*how)

    def __getitem__(self, kind: Any) -> Any:
        return self._seen[kind] if kind is not Payment else _Repository(self._seen[kind], self._counting)


class _Repository:
    def __init__(self, repository: Any, counting: Counting) -> None:
        self._repository = repository
        self._counting = counting

    async def find(self, **asked: Any) -> list[Payment]:
        self._counting.finds.append(asked)
        found: list[Payment] = await self._repository.find(**asked)
        return found

    async def page(self, number: int, size: int, *, skip: int = 0, **asked: Any) -> list[Payment]:
        self._counting.finds.append({"offset": skip + (number - 1) * size, "limit": size, **asked})
        found: list[Payment] = await self._repository.page(number, size, skip=skip, **asked)
        return found

    async def total(self, **asked: Any) -> int:
        self._counting.totals += 1
        total: int = await self._repository.total(**asked)
        return total


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_reads_of_a_page_do_not_grow_with_the_payments(books: Books) -> None:
    """Only partial days are counted payment by payment; a page past the end reads nothing; no scan is longer than half
    the payments of the page's days."""
    counting = Counting(books.ports.storage)
    ports = msgspec.structs.replace(books.ports, storage=counting)

    async def ask(number: int, size: int, **asked: str) -> tuple[int, list[dict[str, Any]]]:
        counting.finds.clear()
        counting.totals = 0
        await list_payments(ports, books.caller, PaymentFilter(**asked), number, size)
        return counting.totals, list(counting.finds)

    assert await ask(250_000, 100) == (0, [])
    assert await ask(76, 20, status="failed", shop_id=books.shops[0]) == (0, [])
    totals, [found] = await ask(1, 20)
    assert (totals, found["limit"], found["offset"]) == (0, 20, 0)
    totals, [found] = await ask(COUNT, 1)
    assert (totals, found["order"], found["offset"]) == (0, "created_at", 0)
    biggest = len([1 for each in books.newest_first if each.created_at.date() == (START + timedelta(days=3)).date()])
    for number in range(1001, COUNT, 50):
        totals, [found] = await ask(number, 1)
        assert totals == 0
        assert found["offset"] <= biggest // 2
    totals, _ = await ask(1, 20, created_from="2026-03-02T05:00:00Z", created_to="2026-03-10T00:00:00Z")
    assert totals == 1
