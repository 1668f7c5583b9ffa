"""The ledger at work: what payments book, and what sealing and verifying it find (DECISIONS 4)."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts import Mode
from cambist.core.domain.ledger import (
    FIRST_SEAL,
    HEAD,
    EntryKind,
    JournalEntry,
    LedgerAccount,
    LedgerHead,
    Posting,
    Purse,
    journal_entry,
    seal_of,
)
from cambist.core.domain.money import Rub
from cambist.core.domain.payments import PaymentStatus
from cambist.core.domain.reports import Arrival, Report
from cambist.core.usecases.jobs import start_standing
from cambist.core.usecases.ledger import post, purses, seal_all
from cambist.core.usecases.ledger_check import LedgerReport, verify_ledger
from cambist.core.usecases.operations import resolve_mismatch
from cambist.core.usecases.payment_moves import apply
from cambist.core.usecases.settlement import settle_own
from cambist.ports.faults import Conflict
from tests.books import everything
from tests.fuses import Fuse, Killed, fused
from tests.houses import TestHouse
from tests.usecases.test_settlement import caller, paid

PAID = PaymentStatus.PAID


async def journal(house: TestHouse) -> list[JournalEntry]:
    found: list[JournalEntry] = await everything(house.ports, JournalEntry)
    return found


async def booked(house: TestHouse) -> list[tuple[str, dict[str, int]]]:
    """Kinds and postings of all entries, sorted."""
    rows = [(entry.kind.value, dict(_plain(entry))) for entry in await journal(house)]
    return sorted(rows, key=str)


def _plain(entry: JournalEntry) -> list[tuple[str, int]]:
    return [(posting.purse.value, posting.amount) for posting in entry.postings]


def entry(house: TestHouse, object_id: str, kopecks: int = 100) -> JournalEntry:
    """A receipt of an account that no payment is of."""
    return journal_entry(
        EntryKind.RECEIPT,
        object_id,
        account_id="acc_other",
        mode=Mode.TEST,
        at=house.ports.clock.now(),
        postings={Purse.BANK: -kopecks, Purse.PENDING: kopecks},
    )


async def book(house: TestHouse, *entries: JournalEntry) -> None:
    async with house.ports.storage.unit() as unit:
        post(unit, *entries)
        await unit.commit()


# Booking


async def test_the_same_move_is_booked_once(house: TestHouse) -> None:
    """DECISIONS 4: a unique key (kind, object id, version)."""
    await book(house, entry(house, "pay_1"))
    with pytest.raises(Conflict) as refused:
        await book(house, entry(house, "pay_1", 300))
    assert refused.value.rule == "journal_id"
    [kept] = await journal(house)
    assert _plain(kept) == [("bank", -100), ("pending", 100)]
    assert (await verify_ledger(house.ports)).holds


async def test_entries_of_one_unit_move_a_balance_together(house: TestHouse) -> None:
    await book(house, entry(house, "pay_1", 5), entry(house, "pay_2", 7), entry(house, "pay_3", 11))
    async with house.ports.storage.unit() as unit:
        assert (await purses(unit, "acc_other", Mode.TEST))[Purse.PENDING] == 23
        assert await purses(unit, "acc_other", Mode.LIVE) == {}
        assert await purses(unit, "acc_othe", Mode.TEST) == {}
    assert (await verify_ledger(house.ports)).holds


# What payments book

IN, OUT = {"bank": -100_00, "pending": 100_00}, {"bank": -100_00, "suspense": 100_00}


def report(house: TestHouse, *kopecks: int) -> Report:
    """The bank says paid, by these transfers."""
    now = house.clock.now()
    return Report(
        status=PAID,
        arrivals=tuple(
            Arrival(id=f"t{number}", amount=Rub(each), at=now + timedelta(milliseconds=number))
            for number, each in enumerate(kopecks)
        ),
    )


async def arrives(house: TestHouse, payment_id: str, *kopecks: int) -> None:
    await apply(house.ports, payment_id, report(house, *kopecks))


async def _paid(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id, 100_00)


async def _paid_late(house: TestHouse, payment_id: str) -> None:
    await house.work(3600)
    await arrives(house, payment_id, 100_00)


async def _too_late(house: TestHouse, payment_id: str) -> None:
    await house.work(6 * 3600 + 1)
    await arrives(house, payment_id, 100_00)


async def _after_failed(house: TestHouse, payment_id: str) -> None:
    await apply(house.ports, payment_id, Report(status=PaymentStatus.FAILED))
    await arrives(house, payment_id, 100_00)


async def _second_transfer(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id, 100_00)
    await arrives(house, payment_id, 100_00, 100_00)


async def _two_at_once(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id, 100_00, 100_00)


async def _told_often(house: TestHouse, payment_id: str) -> None:
    for _ in range(2):
        await asyncio.gather(*(arrives(house, payment_id, 100_00, 100_00) for _ in range(5)))


async def _mismatch(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id, 60_00)


async def _mismatch_told_often(house: TestHouse, payment_id: str) -> None:
    await asyncio.gather(*(arrives(house, payment_id, 60_00) for _ in range(5)))


async def _accepted(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id, 60_00)
    await resolve_mismatch(house.ports, payment_id, "paid")
    await arrives(house, payment_id, 60_00)


async def _rejected(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id, 60_00)
    await resolve_mismatch(house.ports, payment_id, "failed")
    await arrives(house, payment_id, 60_00)


async def _unknown(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id)


async def _unknown_accepted(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id)
    await resolve_mismatch(house.ports, payment_id, "paid", amount=Rub(70_00))


async def _unknown_rejected(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id)
    await resolve_mismatch(house.ports, payment_id, "failed")


async def _unknown_rejected_with_an_amount(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id)
    await resolve_mismatch(house.ports, payment_id, "failed", amount=Rub(70_00))


async def _noted(house: TestHouse, payment_id: str) -> None:
    await arrives(house, payment_id)
    for _ in range(2):
        await arrives(house, payment_id, 60_00)


async def _noted_accepted(house: TestHouse, payment_id: str) -> None:
    await _noted(house, payment_id)
    await resolve_mismatch(house.ports, payment_id, "paid")


async def _failed(house: TestHouse, payment_id: str) -> None:
    await apply(house.ports, payment_id, Report(status=PaymentStatus.FAILED))


REVIEWED = {"bank": -60_00, "review": 60_00}
CASES: dict[str, tuple[Callable[[TestHouse, str], Awaitable[None]], list[tuple[str, dict[str, int]]]]] = {
    "nothing but a failure": (_failed, []),
    "paid": (_paid, [("receipt", IN)]),
    "paid late": (_paid_late, [("receipt", IN)]),
    "paid too late": (_too_late, [("suspense", OUT)]),
    "paid after it failed": (_after_failed, [("suspense", OUT)]),
    "a second transfer": (_second_transfer, [("receipt", IN), ("suspense", OUT)]),
    "two transfers in one notice": (_two_at_once, [("receipt", IN), ("suspense", OUT)]),
    "the same notice again and at once": (_told_often, [("receipt", IN), ("suspense", OUT)]),
    "another amount": (_mismatch, [("review", REVIEWED)]),
    "another amount, told often": (_mismatch_told_often, [("review", REVIEWED)]),
    "another amount, accepted": (
        _accepted,
        [("review", REVIEWED), ("review_accepted", {"review": -60_00, "pending": 60_00})],
    ),
    "another amount, rejected": (
        _rejected,
        [("review", REVIEWED), ("suspense", {"review": -60_00, "suspense": 60_00})],
    ),
    "an amount that nobody knows": (_unknown, []),
    "that the operator says, accepting": (_unknown_accepted, [("receipt", {"bank": -70_00, "pending": 70_00})]),
    "that the operator does not say, rejecting": (_unknown_rejected, []),
    "that the operator says, rejecting": (
        _unknown_rejected_with_an_amount,
        [("suspense", {"bank": -70_00, "suspense": 70_00})],
    ),
    "that the bank says later": (_noted, [("review", REVIEWED)]),
    "that the bank says later, accepted": (
        _noted_accepted,
        [("review", REVIEWED), ("review_accepted", {"review": -60_00, "pending": 60_00})],
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_every_move_of_a_payment_s_money_is_booked_once(house: TestHouse, case: str) -> None:
    """DECISIONS 4 and issue 5: every move of money that the service knows passes through the ledger."""
    steps, expected = CASES[case]
    payment = await house.created()
    await steps(house, payment["id"])
    assert await booked(house) == sorted(expected, key=str)
    for each in await journal(house):
        assert (each.account_id, each.mode) == (house.account.account_id, Mode.TEST)


async def test_rejected_money_that_went_back_has_left_the_books(house: TestHouse) -> None:
    payment = await house.created()
    await house.simulate(payment["id"], outcome="paid", actual_amount_rub="60.00")
    await resolve_mismatch(house.ports, payment["id"], "failed")
    await house.work(3600)
    assert ("suspense_returned", {"suspense": -60_00, "bank": 60_00}) in [
        (kind, dict(sorted(postings.items(), reverse=True))) for kind, postings in await booked(house)
    ]
    async with house.ports.storage.unit() as unit:
        found = await purses(unit, house.account.account_id, Mode.TEST)
    assert {purse: amount for purse, amount in found.items() if amount} == {}


# Sealing


async def test_sealing_gives_every_entry_its_number_once(house: TestHouse) -> None:
    for number in (3, 1, 2):
        await book(house, entry(house, f"pay_{number}"))
    assert await seal_all(house.ports) == 3
    assert await seal_all(house.ports) == 0
    first = await journal(house)
    await book(house, entry(house, "pay_0"))
    assert await seal_all(house.ports) == 1
    by_number = sorted(await journal(house), key=lambda each: each.number or 0)
    assert [each.object_id for each in by_number] == ["pay_1", "pay_2", "pay_3", "pay_0"]
    assert [each for each in by_number if each.number != 4] == first
    last = FIRST_SEAL
    for number, each in enumerate(by_number, 1):
        last = seal_of(each, number, last)
        assert (each.number, each.seal) == (number, last)
    [head] = await everything(house.ports, LedgerHead)
    assert (head.id, head.number, head.seal) == (HEAD, 4, last)


async def test_more_than_a_thousand_entries_are_sealed_in_several_units(house: TestHouse) -> None:
    await book(house, *(entry(house, f"pay_{number}") for number in range(2001)))
    told: list[int] = []
    before = await verify_ledger(house.ports)
    assert (before.holds, before.entries, before.unsealed) == (True, 2001, 2001)
    calm = Fuse(0, after=False)
    assert await seal_all(fused(house.ports, calm)) == 2001
    assert calm.commits == 3
    report = await verify_ledger(house.ports, progress=told.append)
    assert (report.holds, report.entries, report.unsealed, told) == (True, 2001, 0, [1000, 2000])


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3])
async def test_a_sealer_that_died_is_followed_by_another(house: TestHouse, at: int, after: bool) -> None:
    await book(house, *(entry(house, f"pay_{number}") for number in range(2001)))
    with pytest.raises(Killed):
        await seal_all(fused(house.ports, Fuse(at, after=after)))
    assert (await verify_ledger(house.ports)).holds
    await seal_all(house.ports)
    report = await verify_ledger(house.ports)
    assert (report.holds, report.entries, report.unsealed) == (True, 2001, 0)


async def test_new_entries_are_sealed_every_hour(house: TestHouse) -> None:
    await start_standing(house.ports)
    await paid(house)
    assert (await verify_ledger(house.ports)).unsealed == 1
    await house.work(3600)
    assert (await verify_ledger(house.ports)).unsealed == 0
    await paid(house)
    await house.work(3600)
    report = await verify_ledger(house.ports)
    assert (report.holds, report.entries, report.unsealed) == (True, 2, 0)


# Verifying


async def lived_in(house: TestHouse) -> list[JournalEntry]:
    """Six receipts, settled and sealed, and two that are not yet; the sealed ones in the order of the chain."""
    for number in range(6):
        await paid(house, f"{100 + number}.00")
    await settle_own(house.ports, await caller(house))
    await paid(house, "200.00")
    await paid(house, "300.00")
    sealed = [each for each in await journal(house) if each.number is not None]
    assert len(sealed) == 12
    house.made_up = True
    return sorted(sealed, key=lambda each: each.number or 0)


async def write(house: TestHouse, *, save: tuple[Any, ...] = (), add: tuple[Any, ...] = (), remove: Any = ()) -> None:
    """Change stored rows as no use case does."""
    async with house.ports.storage.unit() as unit:
        for record in save:
            unit[type(record)].save(record)
        for record in add:
            unit[type(record)].add(record)
        for record in remove:
            unit[type(record)].remove(record)
        await unit.commit()


def changed(record: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(record, **fields)


async def head_of(house: TestHouse) -> LedgerHead:
    [head] = await everything(house.ports, LedgerHead)
    found: LedgerHead = head
    return found


async def test_a_lived_in_ledger_holds(house: TestHouse) -> None:
    assert await verify_ledger(house.ports) == LedgerReport(
        entries=0, unsealed=0, first_bad_entry=None, bad_balances=()
    )
    await lived_in(house)
    assert await verify_ledger(house.ports) == LedgerReport(
        entries=14, unsealed=2, first_bad_entry=None, bad_balances=()
    )


Tampering = Callable[[TestHouse, list[JournalEntry]], Awaitable[None]]


async def _posting_changed(house: TestHouse, chain: list[JournalEntry]) -> None:
    more = tuple(Posting(posting.purse, posting.amount * 2) for posting in chain[4].postings)
    await write(house, save=(changed(chain[4], postings=more),))


async def _account_changed(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, save=(changed(chain[4], account_id="acc_other"),))


async def _moment_changed(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, save=(changed(chain[4], at=chain[4].at - timedelta(days=1)),))


async def _deleted(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, remove=(chain[4],))


async def _deleted_and_moved_up(house: TestHouse, chain: list[JournalEntry]) -> None:
    later = tuple(changed(each, number=(each.number or 0) - 1) for each in chain[5:])
    await write(house, save=later, remove=(chain[4],))


def _forged(house: TestHouse, object_id: str, number: int | None, seal: bytes | None = b"") -> JournalEntry:
    return changed(entry(house, object_id), number=number, seal=seal)  # type: ignore[no-any-return]  # it is one


async def _inserted_before(house: TestHouse, chain: list[JournalEntry]) -> None:
    # Ids are in the order of the chain here: `!` comes before whatever the fifth one's object is called.
    await write(house, add=(_forged(house, "!", 5),))


async def _inserted_after(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, add=(_forged(house, "~", 5),))


async def _inserted_below(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, add=(_forged(house, "~", 0),))


async def _inserted_at_the_end(house: TestHouse, chain: list[JournalEntry]) -> None:
    last = _forged(house, "~", 13)
    await write(house, add=(changed(last, seal=seal_of(last, 13, chain[-1].seal or b"")),))


async def _swapped(house: TestHouse, chain: list[JournalEntry]) -> None:
    one, two = chain[4], chain[5]
    await write(house, save=(changed(one, number=6, seal=two.seal), changed(two, number=5, seal=one.seal)))


async def _swapped_with_their_seals(house: TestHouse, chain: list[JournalEntry]) -> None:
    one, two = chain[4], chain[5]
    await write(house, save=(changed(one, number=6), changed(two, number=5)))


async def _seal_changed(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, save=(changed(chain[4], seal=bytes(32)),))


async def _seal_taken_away(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, save=(changed(chain[4], seal=None),))


async def _number_taken_away(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, save=(changed(chain[4], number=None, seal=None),))


async def _head_changed(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, save=(changed(await head_of(house), seal=bytes(32)),))


async def _head_deleted(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, remove=(await head_of(house),))


async def _cut_off(house: TestHouse, chain: list[JournalEntry]) -> None:
    await write(house, remove=chain[10:])


async def _out_of_balance(house: TestHouse, chain: list[JournalEntry]) -> None:
    [loose, *_] = [each for each in await journal(house) if each.number is None]
    wrong = tuple(changed(posting, amount=posting.amount + (posting.amount > 0)) for posting in loose.postings)
    await write(house, save=(changed(loose, postings=wrong),))


async def _renamed(house: TestHouse, chain: list[JournalEntry]) -> None:
    [loose, *_] = [each for each in await journal(house) if each.number is None]
    await write(house, save=(changed(loose, revision=2),))


SEALED_5 = "is not what was sealed"
TAMPERINGS: dict[str, tuple[Tampering, tuple[int | None, str]]] = {
    "a posting changed": (_posting_changed, (5, SEALED_5)),
    "an account changed": (_account_changed, (5, SEALED_5)),
    "a moment changed": (_moment_changed, (5, SEALED_5)),
    "an entry deleted": (_deleted, (5, "is missing from the chain")),
    "an entry deleted, the rest moved up": (_deleted_and_moved_up, (5, SEALED_5)),
    "an entry inserted before one of its number": (_inserted_before, (5, SEALED_5)),
    "an entry inserted after one of its number": (_inserted_after, (5, "has a number that is not its own")),
    "an entry inserted below the chain": (_inserted_below, (0, "has a number that is not its own")),
    "an entry added to the chain": (_inserted_at_the_end, (14, "the chain should end at number 12")),
    "two swapped": (_swapped, (5, SEALED_5)),
    "two swapped with their seals": (_swapped_with_their_seals, (5, SEALED_5)),
    "a seal changed": (_seal_changed, (5, SEALED_5)),
    "a seal taken away": (_seal_taken_away, (5, SEALED_5)),
    "an entry unsealed": (_number_taken_away, (5, "is missing from the chain")),
    "the head changed": (_head_changed, (13, "the chain should end at number 12")),
    "the head deleted": (_head_deleted, (13, "the chain should end at number 0")),
    "the last entries cut off": (_cut_off, (11, "the chain should end at number 12")),
    "an unsealed entry out of balance": (_out_of_balance, (None, "1 RUB too much")),
    "an unsealed entry of another key": (_renamed, (None, "has another id than its kind, object and revision say")),
}


@pytest.mark.parametrize("case", TAMPERINGS)
async def test_the_first_bad_entry_is_named(house: TestHouse, case: str) -> None:
    """DECISIONS 4: verify recomputes balances, checks the zero sums and a hash chain, and names the first bad entry."""
    tamper, (number, reason) = TAMPERINGS[case]
    chain = await lived_in(house)
    await tamper(house, chain)
    report = await verify_ledger(house.ports)
    assert not report.holds
    assert report.first_bad_entry is not None
    assert (report.first_bad_entry.number, report.first_bad_entry.reason) == (number, reason)
    by_number = {each.number: each.id for each in await journal(house) if each.number is not None}
    if reason == SEALED_5 and "inserted" not in case:
        assert report.first_bad_entry.id == by_number[5]
    if "inserted" in case:
        assert report.first_bad_entry.id in ("receipt:!:1", "receipt:~:1")


async def test_the_last_entries_cut_off_with_their_head_are_missed_by_the_balances(house: TestHouse) -> None:
    chain = await lived_in(house)
    head = await head_of(house)
    await write(house, save=(changed(head, number=10, seal=chain[9].seal),), remove=chain[10:])
    report = await verify_ledger(house.ports)
    assert (report.holds, report.first_bad_entry, report.entries) == (False, None, 12)
    gone = {purse for each in chain[10:] for purse, _ in _plain(each)}
    assert {bad.id.split(":")[2] for bad in report.bad_balances} == gone


async def test_a_running_balance_that_was_changed_is_named_with_what_it_should_be(house: TestHouse) -> None:
    await lived_in(house)
    row = f"{house.account.account_id}:test:available:0"
    async with house.ports.storage.unit() as unit:
        account = await unit[LedgerAccount].get(row)
        assert account is not None
        unit[LedgerAccount].increase(row, "balance", 1)
        invented = LedgerAccount(
            id="acc_other:test:available:0", owner="acc_other", mode=Mode.TEST, purse=Purse.AVAILABLE, balance=7
        )
        unit[LedgerAccount].add(invented)
        await unit.commit()
    report = await verify_ledger(house.ports)
    assert (report.holds, report.first_bad_entry) == (False, None)
    assert [(bad.id, bad.kept, bad.counted) for bad in report.bad_balances] == sorted(
        [(row, account.balance + 1, account.balance), (invented.id, 7, 0)]
    )


async def test_a_running_balance_that_was_deleted_is_named(house: TestHouse) -> None:
    await lived_in(house)
    row = f"{house.account.account_id}:test:available:0"
    async with house.ports.storage.unit() as unit:
        account = await unit[LedgerAccount].get(row)
        assert account is not None
        unit[LedgerAccount].remove(account)
        await unit.commit()
    [bad] = (await verify_ledger(house.ports)).bad_balances
    assert (bad.id, bad.kept, bad.counted) == (row, 0, account.balance)


@pytest.mark.parametrize("number", [1000, -5, 0])
async def test_an_inserted_entry_is_seen_wherever_the_walk_turns_a_page(house: TestHouse, number: int) -> None:
    await book(house, *(entry(house, f"pay_{each}") for each in range(1001)))
    await seal_all(house.ports)
    await write(house, add=(_forged(house, "~", number),))
    report = await verify_ledger(house.ports)
    assert report.first_bad_entry is not None
    assert (report.first_bad_entry.id, report.entries) == ("receipt:~:1", 1002)
    house.made_up = True
