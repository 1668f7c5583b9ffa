"""Search of payments on every storage: pages by cursor show each payment once, whatever is added meanwhile, and a
search finds the same as a full scan (docs/dashboard.md "Payments")."""

import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.usecases.common import keyset
from cambist.core.usecases.common.encrypted import payer_email_digest
from cambist.core.usecases.common.keyset import Cursor, read_cursor, write_cursor
from cambist.core.usecases.payments import search
from cambist.core.usecases.payments.list import PaymentFilter
from cambist.core.usecases.payments.search import FoundPayments, search_payments
from cambist.core.usecases.payments.tallies import add_payment
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.storage import Storage

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHOPS = tuple(str(UUID(int=number)) for number in range(1, 4))
ACCOUNT = Account(id="acc_1", name="Merchant", default_shop_id=SHOPS[0], created_at=NOON)
CALLER = Caller(account=ACCOUNT, mode=Mode.TEST, key_id="k")
STATUSES = (PaymentStatus.PENDING, PaymentStatus.PAID, PaymentStatus.FAILED)
MAILS = (None, "anna@shop.example", "Boris@Shop.example")
SIZE = 7


@pytest.fixture
async def ports(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ports]:
    monkeypatch.setattr(keyset, "COUNTED", 40)
    async with open_app(Settings(database_url="memory://")) as app:
        async with storage.unit() as unit:
            for number, shop in enumerate(SHOPS):
                name = f"Shop {number}"
                unit[Shop].add(
                    Shop(id=shop, account_id="acc_1", name=name, name_folded=name.lower(), markup="0", created_at=NOON)
                )
            await unit.commit()
        yield msgspec.structs.replace(app.ports, storage=storage)


def payment(ports: Ports, number: int, at: datetime, chance: random.Random) -> Payment:
    mail = chance.choice(MAILS)
    owner = chance.choice(["acc_1"] * 4 + ["acc_2"])
    mode = chance.choice([Mode.TEST] * 4 + [Mode.LIVE])
    caller = Caller(account=msgspec.structs.replace(ACCOUNT, id=owner), mode=mode, key_id="k")
    return Payment(
        id=f"pay_{UUID(int=chance.getrandbits(100) << 16 | number)}",
        account_id=owner,
        mode=mode,
        shop_id=chance.choice(SHOPS),
        status=chance.choice(STATUSES),
        amount=Rub(chance.choice([1490_00, 1490_50, 55_00])),
        payment_method=chance.choice(["sbp", "recurring"]),
        created_at=at,
        expires_at=at,
        external_id=chance.choice([None, "1490", f"order-{number}"]),
        payer_contact=chance.choice([None, "***1490", "***0055"]),
        payer_email_digest=payer_email_digest(ports.vault, caller, mail),
    )


async def write(storage: Storage, payments: Sequence[Payment]) -> None:
    async with storage.unit() as unit:
        for each in payments:
            add_payment(unit, each)
        await unit.commit()


def some(ports: Ports, chance: random.Random, count: int, start: int = 0) -> list[Payment]:
    """Payments of two accounts; several have the same moment."""
    moments = [NOON + chance.randrange(count // 2) * timedelta(hours=5, microseconds=1) for _ in range(count)]
    return [payment(ports, start + number, at, chance) for number, at in enumerate(moments)]


async def find(
    ports: Ports, text: str = "", named: str | None = None, cursor: Cursor | None = None, **asked: Any
) -> FoundPayments:
    return await search_payments(ports, CALLER, PaymentFilter(**asked), text, named, cursor, SIZE)


def taken(payments: Sequence[Payment], **wanted: Any) -> list[str]:
    """The list, word for word: the newest first."""
    mine = (each for each in payments if each.account_id == "acc_1" and each.mode is Mode.TEST)
    found = [each for each in mine if all(getattr(each, name) == value for name, value in wanted.items())]
    return [each.id for each in sorted(found, key=lambda each: (each.created_at, each.id), reverse=True)]


def through(cursor: Cursor) -> Cursor:
    """The cursor as it comes back from an address."""
    return read_cursor(write_cursor(cursor))


FILTERS: tuple[tuple[dict[str, Any], str, str | None, dict[str, Any]], ...] = (
    ({}, "", None, {}),
    ({"status": "paid"}, "", None, {"status": PaymentStatus.PAID}),
    ({"shop_id": SHOPS[1]}, "", None, {"shop_id": SHOPS[1]}),
    ({"payment_method": "recurring"}, "", None, {"payment_method": "recurring"}),
    (
        {"status": "paid", "shop_id": SHOPS[1], "payment_method": "sbp"},
        "",
        None,
        {"status": PaymentStatus.PAID, "shop_id": SHOPS[1], "payment_method": "sbp"},
    ),
    ({}, "1490", "order", {"external_id": "1490"}),
    ({}, "1490", "amount", {"amount": Rub(1490_00)}),
    ({"status": "failed"}, "1490,5 ₽", "amount", {"amount": Rub(1490_50), "status": PaymentStatus.FAILED}),
    ({}, "1490", "phone", {"payer_contact": "***1490"}),
    ({"shop_id": SHOPS[2]}, "+7 900 123-00-55", "phone", {"payer_contact": "***0055", "shop_id": SHOPS[2]}),
)


@pytest.mark.parametrize("scanned", [5, 20_000])
async def test_pages_show_each_payment_once_in_both_directions(
    ports: Ports, monkeypatch: pytest.MonkeyPatch, scanned: int
) -> None:
    monkeypatch.setattr(keyset, "SCANNED", scanned)
    # The first of the two reads of a page is always tried, too.
    monkeypatch.setattr(keyset, "_NEAR", min(scanned // 2, 4))
    chance = random.Random(scanned)
    payments = some(ports, chance, 160)
    await write(ports.storage, payments)
    for asked, text, named, wanted in FILTERS:
        expected = taken(payments, **wanted)
        found = await find(ports, text, named, **asked)
        shown = [each.id for each in found.page.records]
        while found.page.older is not None:
            assert len(found.page.records) == SIZE or (scanned == 5 and found.page.searched_to is not None)
            found = await find(ports, text, named, through(Cursor(found.page.older)), **asked)
            shown += [each.id for each in found.page.records]
        assert shown == expected, (asked, text)
        assert expected, f"the filter matches nothing: {asked}, {text}"
        # And back to the top.
        back = [each.id for each in found.page.records]
        while found.page.newer is not None:
            found = await find(ports, text, named, through(Cursor(found.page.newer, newer=True)), **asked)
            here = [each.id for each in found.page.records]
            back = here + [each for each in back if each not in here]
        assert back == expected, (asked, text)


@pytest.mark.parametrize("seed", range(2))
async def test_pages_show_each_payment_once_while_others_are_added(ports: Ports, seed: int) -> None:
    chance = random.Random(seed)
    payments = some(ports, chance, 120)
    await write(ports.storage, payments)
    at_first, shown, cursor = taken(payments), list[str](), None
    while True:
        found = await find(ports, cursor=cursor)
        shown += [each.id for each in found.page.records]
        if found.page.older is None:
            break
        cursor = through(Cursor(found.page.older))
        # Newer payments, and payments of every earlier moment, which a slow unit may commit late.
        more = some(ports, chance, 6, len(payments))
        payments += more
        await write(ports.storage, more)
    assert len(shown) == len(set(shown))
    assert [each for each in shown if each in set(at_first)] == at_first


async def test_dates_bound_the_list_and_its_count(ports: Ports) -> None:
    payments = some(ports, random.Random(3), 160)
    await write(ports.storage, payments)
    everything = taken(payments)
    low, high = NOON + timedelta(days=3), NOON + timedelta(days=9)
    moments = {each.id: each.created_at for each in payments}
    expected = [each for each in everything if low <= moments[each] < high]
    shown, cursor = list[str](), None
    dates = {"created_from": low.isoformat(), "created_to": high.isoformat()}
    for _ in range(50):
        found = await find(ports, cursor=cursor, **dates)
        assert found.count is not None
        assert (found.count.number, found.count.is_exact) == (min(len(expected), 40), len(expected) <= 40)
        shown += [each.id for each in found.page.records]
        if found.page.older is None:
            break
        cursor = through(Cursor(found.page.older))
    assert shown == expected


async def test_counts_are_bounded(ports: Ports) -> None:
    payments = some(ports, random.Random(4), 300)
    await write(ports.storage, payments)
    of_status = taken(payments, status=PaymentStatus.PAID)
    since = "2026-01-01T00:00:00Z"

    async def counted(text: str = "", named: str | None = None, **asked: Any) -> tuple[int, bool] | None:
        found = (await find(ports, text, named, **asked)).count
        return None if found is None else (found.number, found.is_exact)

    assert await counted() == (len(taken(payments)), True), "tallies know it"
    assert await counted(status="paid") == (len(of_status), True)
    assert await counted(status="paid", created_from=since) == (len(of_status), True)
    assert await counted(status="failed", created_from=since) == (40, False)
    assert await counted("1490", "order") == (40, False)
    assert await counted("1490", "amount") == (SIZE, False)
    assert await counted("order-1", "order") == (len(taken(payments, external_id="order-1")), True)


async def test_mail_is_found_in_any_case_and_only_in_its_account(ports: Ports) -> None:
    payments = some(ports, random.Random(5), 60)
    await write(ports.storage, payments)
    digest = payer_email_digest(ports.vault, CALLER, "boris@shop.example")
    expected = taken(payments, payer_email_digest=digest)
    found = await find(ports, " BORIS@shop.EXAMPLE ")
    assert found.reading is search.Reading.EMAIL
    assert [each.id for each in found.page.records] == expected[:SIZE]
    assert len(expected) > 3
    assert not (await find(ports, "boris@shop.exampl")).page.records


async def test_first_meaning_with_a_payment_is_taken(ports: Ports) -> None:
    chance = random.Random(6)

    def one(number: int, **changes: Any) -> Payment:
        made = payment(ports, number, NOON + timedelta(hours=number), chance)
        plain = {"account_id": "acc_1", "mode": Mode.TEST, "external_id": None, "payer_contact": None}
        return msgspec.structs.replace(made, **{**plain, "amount": Rub(100_00), **changes})

    by_amount = one(1, amount=Rub(1234_00))
    by_phone = one(2, payer_contact="***1234")
    by_order = one(3, external_id="1234")

    async def read() -> tuple[search.Reading | None, list[str]]:
        found = await find(ports, "1234")
        return found.reading, [each.id for each in found.page.records]

    assert await read() == (search.Reading.ORDER, [])
    for each, reading in ((by_amount, "amount"), (by_phone, "phone"), (by_order, "order")):
        await write(ports.storage, [each])
        assert await read() == (reading, [each.id])
    found = await find(ports, "1234", "amount")
    assert [each.id for each in found.page.records] == [by_amount.id]
    assert set(found.others) == {search.Reading.ORDER, search.Reading.PHONE}


async def test_search_without_an_index_stops_and_says_how_far_it_came(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyset, "SCANNED", 20)
    chance = random.Random(7)
    plain = {"account_id": "acc_1", "mode": Mode.TEST, "external_id": None, "payer_contact": None}
    payments = [
        msgspec.structs.replace(
            payment(ports, number, NOON + timedelta(hours=number), chance), amount=Rub(100_00), **plain
        )
        for number in range(50)
    ]
    payments[3] = msgspec.structs.replace(payments[3], amount=Rub(777_00))
    await write(ports.storage, payments)
    found = await find(ports, "777.00")
    assert (found.reading, found.page.records) == (search.Reading.AMOUNT, [])
    assert found.page.searched_to == NOON + timedelta(hours=29)
    steps = 0
    while not found.page.records:
        assert found.page.older is not None
        found = await find(ports, "777.00", "amount", through(Cursor(found.page.older)))
        steps += 1
    assert (steps, [each.id for each in found.page.records]) == (2, [payments[3].id])
    assert found.page.searched_to is None
