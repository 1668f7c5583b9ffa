"""Movements on every storage (docs/settlement.md "Movements"). With concurrent readers, each entry gets one position
and the right balance, and every filter and page agrees with the full list."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.days import MOSCOW, iso
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ledger import BalanceType, EntryKind, JournalEntry, journal_entry
from cambist.core.domain.movements import MOVEMENT_KINDS, Balance, Movement, ObjectType, in_order, movement_of, sort_of
from cambist.core.usecases.ledger import day_statement, listing, movements
from cambist.core.usecases.ledger.day_statement import ZERO, Parts, read_day
from cambist.core.usecases.ledger.ledger import post
from cambist.core.usecases.ledger.listing import list_all, list_fresh
from cambist.core.usecases.ledger.movements import MovementFilter, all_movements, list_movements
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.storage import Storage
from tests.contracts.storage_kit import START
from tests.crash_points import CrashPoint, Killed, fused
from tests.movement_checks import check_movements, movements_of

K, P = EntryKind, BalanceType
WAYS: tuple[tuple[EntryKind, str, dict[BalanceType, int]], ...] = (
    (K.RECEIPT, "pay_", {P.BANK: -7, P.PENDING: 7}),
    (K.REVIEW, "pay_", {P.BANK: -9, P.REVIEW: 9}),
    (K.REVIEW_ACCEPTED, "pay_", {P.REVIEW: -9, P.PENDING: 9}),
    (K.SETTLEMENT, "pay_", {P.PENDING: -7, P.CONVERTED_RUB: 7, P.CONVERTED_USDT: -11, P.AVAILABLE: 10, P.FEES: 1}),
    (K.SETTLEMENT, "ref_", {P.PENDING: -3, P.CONVERTED_RUB: 3, P.CONVERTED_USDT: -5, P.AVAILABLE: 4, P.FEES: 1}),
    (K.REFUND_TAKEN, "ref_", {P.PENDING: -2, P.REFUNDING: 2}),
    (K.REFUND_TAKEN, "ref_", {P.AVAILABLE: -2, P.CONVERTED_USDT: 2}),
    (K.REFUND_PAID, "ref_", {P.REFUNDING: -2, P.BANK: 2}),
    (K.PAYOUT_RESERVED, "wd_", {P.AVAILABLE: -6, P.RESERVED: 6}),
    (K.PAYOUT_SENT, "wd_", {P.RESERVED: -6, P.PAID_OUT: 6}),
    (K.PAYOUT_RELEASED, "wd_", {P.RESERVED: -6, P.AVAILABLE: 6}),
    (K.EXCHANGE_COMPLETED, "exch_", {P.STOCK_USDT: -1, P.AVAILABLE: 1}),
    (K.SANDBOX_CLEARED, "pay_", {P.PENDING: -7, P.BANK: 7, P.AVAILABLE: -1, P.CHAIN: 1, P.RESERVED: 1, P.PAID_OUT: -1}),
)
PAUSES = (0, 0, 1, 60, -1, 86_400)
"""Seconds from one entry to the next; below zero where units commit in another order than they were made in."""
SET_RIGHT = -90_000
"""A clock that was set right."""

STEPS = st.lists(st.tuples(st.integers(0, len(WAYS) - 1), st.sampled_from((*PAUSES, SET_RIGHT))), max_size=60)


def caller(account_id: str = "acc_1", mode: Mode = Mode.LIVE) -> Caller:
    account = Account(id=account_id, name="Merchant", default_shop_id="shop", created_at=START)
    return Caller(account=account, mode=mode, key_id="a-key")


def entry(number: int, way: int, at: datetime, account_id: str = "acc_1") -> JournalEntry:
    kind, prefix, postings = WAYS[way]
    return journal_entry(
        kind, f"{prefix}{UUID(int=number)}", account_id=account_id, mode=Mode.LIVE, at=at, postings=postings
    )


def history(chance: random.Random, count: int) -> list[JournalEntry]:
    """Entries in the order of their commits, with those of another account between them."""
    made, at = [], START
    for number in range(count):
        at += timedelta(seconds=chance.choice(PAUSES))
        made.append(entry(number, chance.randrange(len(WAYS)), at, "acc_2" if chance.random() < 0.1 else "acc_1"))
    return made


async def book(ports: Ports, *entries: JournalEntry) -> None:
    async with ports.storage.unit() as unit:
        post(unit, *entries)
        await unit.commit()


@pytest.fixture
async def ports(storage: Storage) -> AsyncIterator[Ports]:
    """Ports over an empty storage of each kind, with two accounts."""
    async with open_app(Settings(database_url="memory://")) as app:
        found = msgspec.structs.replace(app.ports, storage=storage)
        async with storage.unit() as unit:
            for account_id in ("acc_1", "acc_2"):
                unit[Account].add(caller(account_id).account)
            await unit.commit()
        yield found


def taken(listed: Sequence[Movement], asked: MovementFilter) -> list[Movement]:
    """The filter, word for word: the newest first."""
    return [
        each
        for each in listed[::-1]
        if (asked.kind is None or each.kind == asked.kind)
        and (asked.object_type is None or each.object_type == asked.object_type)
        and (asked.object_id is None or each.object_id == asked.object_id)
        and (asked.balance is None or parts(each)[asked.balance])
        and (asked.created_from is None or iso(each.at) >= asked.created_from)
        and (asked.created_to is None or iso(each.at) < asked.created_to)
    ]


def parts(movement: Movement) -> dict[str, int]:
    changed = (movement.available.units, movement.reserved.units, movement.pending.kopecks)
    return dict(zip(("available", "reserved", "pending"), changed, strict=True))


def filters(chance: random.Random, listed: Sequence[Movement]) -> MovementFilter:
    def sometimes(values: Sequence[Any], often: float = 0.4) -> Any:
        return chance.choice(values) if chance.random() < often else None

    moments = [iso(movement.at + timedelta(seconds=chance.choice((-1, 0, 1)))) for movement in listed] or [iso(START)]
    return MovementFilter(
        kind=sometimes([str(kind) for kind in MOVEMENT_KINDS]),
        object_type=sometimes([str(kind) for kind in ObjectType]),
        object_id=sometimes([movement.object_id for movement in listed] or [f"pay_{UUID(int=0)}"], 0.1),
        balance=sometimes([str(balance) for balance in Balance]),
        created_from=sometimes(moments),
        created_to=sometimes(moments),
    )


async def agrees(ports: Ports, asked: MovementFilter, listed: Sequence[Movement], number: int, size: int) -> None:
    wanted = taken(listed, asked)
    page = await list_movements(ports, caller(), asked, number, size)
    assert (page.total, page.records) == (len(wanted), wanted[(number - 1) * size : number * size]), asked
    file = [movement async for batch in await all_movements(ports, caller(), asked) for movement in batch]
    assert file == wanted[::-1], asked


async def test_every_filter_and_page_is_what_a_look_at_all_would_give(ports: Ports) -> None:
    chance = random.Random(1)
    made = history(chance, 300)
    while made:
        count = chance.randrange(1, 120)
        some, made = made[:count], made[count:]
        await book(ports, *some)
        await check_movements(ports)
    listed = await movements_of(ports, "acc_1", Mode.LIVE)
    assert len(listed) > 150
    for _ in range(60):
        await agrees(ports, filters(chance, listed), listed, chance.randrange(1, 5), chance.choice((1, 7, 50)))
    for at in (iso(START - timedelta(days=1)), iso(listed[0].at)):
        await agrees(ports, MovementFilter(created_from=at), listed, 1, 50)
        await agrees(ports, MovementFilter(created_to=at), listed, 1, 50)
    for movement in listed[:: len(listed) // 5]:
        named, at = movement.object_id, iso(movement.at)
        for asked in (MovementFilter(object_id=named, created_from=at), MovementFilter(object_id=named, created_to=at)):
            await agrees(ports, asked, listed, 1, 50)


async def test_statement_of_each_day_is_what_its_movements_give(ports: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every storage: balances at the edges, and numbers and sums by kind."""
    await book(ports, *history(random.Random(4), 200))
    await list_movements(ports, caller(), MovementFilter(), 1, 1)
    listed = await movements_of(ports, "acc_1", Mode.LIVE)
    first, last = (each.at.astimezone(MOSCOW).date() for each in (listed[0], listed[-1]))
    day = first - timedelta(days=1)
    before: Parts = ZERO
    while day <= last + timedelta(days=1):
        found = await read_day(ports, caller(), day)
        of_day = [each for each in listed if each.at.astimezone(MOSCOW).date() == day]
        wanted: dict[EntryKind, tuple[int, Parts]] = {}
        for each in of_day:
            count, change = wanted.get(each.kind, (0, ZERO))
            moved = Parts(available=each.available, reserved=each.reserved, pending=each.pending)
            wanted[each.kind] = count + 1, change + moved
        assert {each.kind: (each.count, each.change) for each in found.lines} == wanted, day
        assert found.opening == before
        before = sum((change for _, change in wanted.values()), before)
        assert found.closing == before
        day += timedelta(days=1)
    assert (await read_day(ports, caller("acc_1", Mode.TEST), first)).closing == ZERO
    monkeypatch.setattr(day_statement, "SUMMED", 1)
    busy = await read_day(ports, caller(), first)
    assert len(busy.lines) > 1
    assert {each.change for each in busy.lines} == {None}
    assert busy.closing == (await read_day(ports, caller(), first + timedelta(days=1))).opening


async def test_an_object_of_another_account_has_no_movements_here(ports: Ports) -> None:
    theirs = entry(1, 0, START, "acc_2")
    await book(ports, theirs)
    asked = MovementFilter(object_id=theirs.object_id)
    assert (await list_movements(ports, caller("acc_2"), asked, 1, 20)).total == 1
    assert (await list_movements(ports, caller("acc_1"), asked, 1, 20)).total == 0


async def test_a_file_has_what_was_booked_just_now(ports: Ports) -> None:
    await book(ports, entry(1, 0, START))
    file = [movement async for batch in await all_movements(ports, caller(), MovementFilter()) for movement in batch]
    assert [movement.at for movement in file] == [START]


async def test_readers_at_once_list_each_entry_once(ports: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers run beside bookings and the job that chains the same entries."""
    monkeypatch.setattr(listing, "AT_ONCE", 5)
    made = history(random.Random(2), 60)
    readers = [list_fresh(ports, "acc_1", Mode.LIVE) for _ in range(4)]
    await asyncio.gather(*(book(ports, each) for each in made[:30]), *readers)
    await asyncio.gather(
        *(book(ports, each) for each in made[30:]),
        list_all(ports),
        *(list_fresh(ports, "acc_1", Mode.LIVE) for _ in range(4)),
    )
    await check_movements(ports)


async def test_a_journal_of_before_is_listed_when_it_is_first_asked_for(ports: Ports) -> None:
    """Neither the migration nor a program of an older revision says which entries move no balance."""
    made = [msgspec.structs.replace(each, place=None) for each in history(random.Random(3), 120)]
    await book(ports, *made)
    page = await list_movements(ports, caller(), MovementFilter(), 1, 100)
    listed = await movements_of(ports, "acc_1", Mode.LIVE)
    assert page.total == len(listed) > 60
    async with ports.storage.unit() as unit:
        assert await unit[JournalEntry].find(place=None, account_id="acc_1") == []
    # In the order of moments, which differs from that of ids.
    mine = [each for each in in_order(made) if each.account_id == "acc_1" and each.kind in MOVEMENT_KINDS]
    assert [movement.entry_id for movement in listed] == [each.id for each in mine]


async def test_movement_booked_after_the_clock_was_set_back_is_listed_at_once(ports: Ports) -> None:
    """The search begins near the end of the list, and the balance shows that it is not there."""
    await book(ports, entry(1, 0, START + timedelta(days=365)))
    assert (await list_movements(ports, caller(), MovementFilter(), 1, 20)).total == 1
    await book(ports, entry(2, 0, START))
    [newest, _] = (await list_movements(ports, caller(), MovementFilter(), 1, 20)).records
    assert newest.at == START


async def test_movements_that_cancel_out_are_listed_at_once(ports: Ports) -> None:
    await book(ports, entry(1, 8, START))
    assert (await list_movements(ports, caller(), MovementFilter(), 1, 20)).total == 1
    await book(ports, entry(2, 8, START + timedelta(seconds=1)), entry(2, 10, START + timedelta(seconds=1)))
    assert (await list_movements(ports, caller(), MovementFilter(), 1, 20)).total == 3


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_while_listing_leaves_all_of_a_unit_or_nothing(
    ports: Ports, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr(listing, "AT_ONCE", 10)
    await book(ports, *history(random.Random(4), 120))
    for at in (1, 2, 3):
        with pytest.raises(Killed):
            await list_fresh(fused(ports, CrashPoint(at, after=after)), "acc_1", Mode.LIVE)
    await check_movements(ports)


async def test_a_request_waits_for_so_many_units_and_the_next_goes_on(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "AT_ONCE", 10)
    monkeypatch.setattr(movements, "MOST", 2)
    await book(ports, *(entry(number, 0, START + timedelta(seconds=number)) for number in range(35)))
    with pytest.raises(Refusal) as refused:
        await list_movements(ports, caller(), MovementFilter(), 1, 20)
    assert (refused.value.code, refused.value.retry_after) == ("PROVIDER_UNAVAILABLE", movements.RETRY_AFTER)
    async with ports.storage.unit() as unit:
        assert await unit[Movement].total() == 20
    assert (await list_movements(ports, caller(), MovementFilter(), 1, 20)).total == 35


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(WAYS) - 1), st.sampled_from((*PAUSES, SET_RIGHT))), max_size=60), st.data()
)
def test_counts_and_balances_follow_from_the_movements_before(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    """A clock that was set right by more than an hour is believed; less is the order of commits."""
    last: Movement | None = None
    sums = dict.fromkeys(("available", "reserved", "pending"), 0)
    seen: list[Movement] = []
    at = START
    for number, (way, pause) in enumerate(steps):
        at += timedelta(seconds=pause)
        made = entry(number, way, at)
        movement = movement_of(made, last)
        assert (movement is None) is (made.place == 0)
        if movement is None:
            continue
        before, last = last, movement
        seen.append(last)
        sums = {part: amount + parts(last)[part] for part, amount in sums.items()}
        assert (last.available_after.units, last.reserved_after.units, last.pending_after.kopecks) == tuple(
            sums.values()
        )
        late = before is not None and timedelta(0) < before.at - at <= timedelta(hours=1)
        assert last.at == (before.at if late and before is not None else at)
    if last is not None:
        sort = data.draw(st.sampled_from([sort_of(movement) for movement in seen]))
        assert last.counts[sort] == sum(sort_of(movement) == sort for movement in seen)
        assert sum(last.counts.values()) == last.number == len(seen)
