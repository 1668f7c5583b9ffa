"""The ledger under many at once, on every storage: running balances lose nothing, of two that take the same money one
gets it, and sealers do not cross (ARCHITECTURE.md "Money")."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.chains import ChainHead, link_in
from cambist.core.domain.installation import Because
from cambist.core.domain.ledger import LEDGER, BalanceType, EntryKind, JournalEntry, LedgerAccount, journal_entry
from cambist.core.domain.money import Usdt
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.usecases.actions.audit import acting
from cambist.core.usecases.common.chains import begin_chains, extend_audit
from cambist.core.usecases.common.quarantine import hold
from cambist.core.usecases.common.units import retrying
from cambist.core.usecases.ledger import listing
from cambist.core.usecases.ledger.check import LedgerReport, verify_ledger
from cambist.core.usecases.ledger.ledger import LEDGER_RULES, balance_types, may_take, post
from cambist.core.usecases.ledger.listing import list_all
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.faults import Conflict, Stale
from cambist.ports.storage import Storage, Unit
from tests.contracts.storage_kit import START
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything

ACCOUNT = "acc_1"


@pytest.fixture
async def fresh(storage: Storage) -> AsyncIterator[Ports]:
    """Ports over an empty storage of each kind."""
    async with open_app(Settings(database_url="memory://")) as app:
        yield msgspec.structs.replace(app.ports, storage=storage)


@pytest.fixture
async def ports(fresh: Ports) -> Ports:
    """The same once the chains have begun."""
    async with fresh.storage.unit() as unit:
        await begin_chains(fresh, unit)
        await unit.commit()
    return fresh


def receipt(object_id: str, kopecks: int) -> JournalEntry:
    postings = {BalanceType.BANK: -kopecks, BalanceType.PENDING: kopecks}
    return journal_entry(EntryKind.RECEIPT, object_id, account_id=ACCOUNT, mode=Mode.LIVE, at=START, postings=postings)


def moved(kind: EntryKind, object_id: str, source: BalanceType, target: BalanceType, units: int) -> JournalEntry:
    postings = {source: -units, target: units}
    return journal_entry(kind, object_id, account_id=ACCOUNT, mode=Mode.LIVE, at=START, postings=postings)


def journal_holds(report: LedgerReport) -> bool:
    """Check entries, balances and chains. The payments of these entries do not exist in these tests."""
    return (report.first_bad_entry, report.bad_balances, report.first_bad_action) == (None, (), None)


async def book(ports: Ports, *entries: JournalEntry) -> None:
    async with ports.storage.unit() as unit:
        post(unit, *entries)
        await unit.commit()


async def credit(ports: Ports, units: int, object_id: str = "pay_0") -> None:
    await book(ports, moved(EntryKind.SETTLEMENT, object_id, BalanceType.CONVERTED_USDT, BalanceType.AVAILABLE, units))


async def take(ports: Ports, withdrawal_id: str, units: int, *, overdraft: int = 0) -> bool:
    """Take USDT as a payout or a refund does."""

    async def work(unit: Unit) -> bool:
        if not await may_take(unit, ACCOUNT, Mode.LIVE, Usdt(units), overdraft=Usdt(overdraft)):
            return False
        post(unit, moved(EntryKind.PAYOUT_RESERVED, withdrawal_id, BalanceType.AVAILABLE, BalanceType.RESERVED, units))
        return True

    return await retrying(ports.storage, work, again_on=LEDGER_RULES)


async def balances(ports: Ports) -> dict[BalanceType, int]:
    async with ports.storage.unit() as unit:
        return await balance_types(unit, ACCOUNT, Mode.LIVE)


async def test_running_balances_lose_nothing_under_many_units_at_once(ports: Ports) -> None:
    await asyncio.gather(*(book(ports, receipt(f"pay_{number}", number)) for number in range(1, 101)))
    assert await balances(ports) == {BalanceType.PENDING: 5050}
    rows = await everything(ports, LedgerAccount)
    assert {row.balance_type for row in rows} == {BalanceType.PENDING, BalanceType.BANK}
    assert sum(row.balance for row in rows) == 0
    report = await verify_ledger(ports)
    assert (journal_holds(report), report.entries) == (True, 100)


async def test_same_move_booked_simultaneously_is_kept_once(ports: Ports) -> None:
    outcomes = await asyncio.gather(*(book(ports, receipt("pay_1", 5)) for _ in range(8)), return_exceptions=True)
    refused = [each for each in outcomes if each is not None]
    assert len(refused) == 7
    assert all(isinstance(each, Conflict) and each.rule == "journal_id" for each in refused)
    assert await balances(ports) == {BalanceType.PENDING: 5}
    assert journal_holds(await verify_ledger(ports))


async def test_two_takings_of_the_same_money_have_one_winner(ports: Ports) -> None:
    await credit(ports, 100)
    assert sorted(await asyncio.gather(take(ports, "wd_1", 60), take(ports, "wd_2", 60))) == [False, True]
    assert await balances(ports) == {BalanceType.AVAILABLE: 40, BalanceType.RESERVED: 60}
    assert journal_holds(await verify_ledger(ports))


async def test_many_that_take_at_once_take_no_more_than_there_is(ports: Ports) -> None:
    await credit(ports, 100)
    took = await asyncio.gather(*(take(ports, f"wd_{number}", 30) for number in range(8)))
    assert sum(took) == 3
    assert await balances(ports) == {BalanceType.AVAILABLE: 10, BalanceType.RESERVED: 90}


async def test_taking_read_before_another_commit_is_stale(ports: Ports) -> None:
    """The step in which the race is lost, made by hand: both have read, then both commit."""
    await credit(ports, 100)
    async with ports.storage.unit() as first, ports.storage.unit() as second:
        for number, unit in enumerate((first, second)):
            assert await may_take(unit, ACCOUNT, Mode.LIVE, Usdt(60), overdraft=Usdt(0))
            post(
                unit, moved(EntryKind.PAYOUT_RESERVED, f"wd_{number}", BalanceType.AVAILABLE, BalanceType.RESERVED, 60)
            )
        await first.commit()
        with pytest.raises(Stale):
            await second.commit()
    assert await balances(ports) == {BalanceType.AVAILABLE: 40, BalanceType.RESERVED: 60}


async def test_money_that_comes_meanwhile_makes_nobody_stale(ports: Ports) -> None:
    await credit(ports, 100)
    async with ports.storage.unit() as unit:
        assert await may_take(unit, ACCOUNT, Mode.LIVE, Usdt(60), overdraft=Usdt(0))
        post(unit, moved(EntryKind.PAYOUT_RESERVED, "wd_1", BalanceType.AVAILABLE, BalanceType.RESERVED, 60))
        await credit(ports, 7, "pay_1")
        await unit.commit()
    assert await balances(ports) == {BalanceType.AVAILABLE: 47, BalanceType.RESERVED: 60}
    assert journal_holds(await verify_ledger(ports))


@pytest.mark.parametrize(
    ("there", "units", "overdraft", "may"),
    [
        (100, 100, 0, True),
        (100, 101, 0, False),
        (100, 150, 50, True),
        (100, 151, 50, False),
        (None, 1, 0, False),
        (None, 50, 50, True),
        (None, 51, 50, False),
        (-50, 1, 50, False),
        (-49, 1, 50, True),
    ],
)
async def test_taking_is_limited_by_balance_and_overdraft(
    ports: Ports, there: int | None, units: int, overdraft: int, may: bool
) -> None:
    if there is not None:
        await credit(ports, there)
    assert await take(ports, "wd_1", units, overdraft=overdraft) is may
    found = await balances(ports)
    assert found.get(BalanceType.AVAILABLE, 0) == (there or 0) - (units if may else 0)
    assert journal_holds(await verify_ledger(ports))


async def test_the_first_to_take_makes_the_row_and_of_two_one_gets_the_overdraft(ports: Ports) -> None:
    took = await asyncio.gather(take(ports, "wd_1", 60, overdraft=100), take(ports, "wd_2", 60, overdraft=100))
    assert sorted(took) == [False, True]
    assert await balances(ports) == {BalanceType.AVAILABLE: -60, BalanceType.RESERVED: 60}


async def test_a_row_that_a_credit_makes_meanwhile_is_read_again(ports: Ports) -> None:
    tries = 0

    async def work(unit: Unit) -> bool:
        nonlocal tries
        tries += 1
        may = await may_take(unit, ACCOUNT, Mode.LIVE, Usdt(60), overdraft=Usdt(60))
        if tries == 1:
            await credit(ports, 10)
        post(unit, moved(EntryKind.PAYOUT_RESERVED, "wd_1", BalanceType.AVAILABLE, BalanceType.RESERVED, 60))
        return may

    assert await retrying(ports.storage, work, again_on=LEDGER_RULES)
    assert tries == 2
    assert await balances(ports) == {BalanceType.AVAILABLE: -50, BalanceType.RESERVED: 60}


async def test_sealers_at_once_give_each_entry_one_number(ports: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "AT_ONCE", 7)
    await book(ports, *(receipt(f"pay_{number:03}", 5) for number in range(40)))
    sealed = await asyncio.gather(*(list_all(ports) for _ in range(3)))
    assert sum(sealed) == 40
    entries = sorted(await everything(ports, JournalEntry), key=lambda each: each.number)
    assert [each.number for each in entries] == list(range(1, 41))
    assert [each.object_id for each in entries] == sorted(each.object_id for each in entries)
    head = await ports.storage.get(ChainHead, LEDGER.head_id)
    assert head is not None
    assert (head.number, head.seal) == (40, link_in(entries[-1].seal))
    report = await verify_ledger(ports)
    assert (journal_holds(report), report.entries, report.unsealed) == (True, 40, 0)


async def test_entries_booked_during_a_chain_extension_are_chained_later(ports: Ports) -> None:
    await book(ports, receipt("pay_1", 5))
    await asyncio.gather(list_all(ports), book(ports, receipt("pay_2", 5)), book(ports, receipt("pay_0", 5)))
    await list_all(ports)
    report = await verify_ledger(ports)
    assert (journal_holds(report), report.entries, report.unsealed) == (True, 3, 0)


@pytest.mark.parametrize("after", [False, True])
async def test_a_sealer_that_dies_leaves_a_chain_that_holds(
    ports: Ports, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr(listing, "AT_ONCE", 3)
    await book(ports, *(receipt(f"pay_{number}", 5) for number in range(8)))
    with pytest.raises(Killed):
        await list_all(fused(ports, CrashPoint(2, after=after)))
    report = await verify_ledger(ports)
    assert (journal_holds(report), report.entries, report.unsealed) == (True, 8, 2 if after else 5)
    assert await list_all(ports) == report.unsealed
    assert journal_holds(await verify_ledger(ports))


async def test_a_changed_row_is_found_on_every_storage(ports: Ports) -> None:
    await book(ports, *(receipt(f"pay_{number}", 5) for number in range(5)))
    await list_all(ports)
    async with ports.storage.unit() as unit:
        [third] = await unit[JournalEntry].find(number=3)
        unit[JournalEntry].save(msgspec.structs.replace(third, account_id="acc_2"))
        await unit.commit()
    report = await verify_ledger(ports)
    assert report.first_bad_entry is not None
    assert (report.first_bad_entry.number, report.first_bad_entry.id) == (3, third.id)
    assert sorted(bad.counted - bad.kept for bad in report.bad_balances) == [-5, 5]


async def test_the_chains_begin_with_the_first_actions_where_there_is_no_account(fresh: Ports) -> None:
    actions = [OperatorAction(operator=operator, name="hold", reason="set back") for operator in ("olga", "vera")]
    await asyncio.gather(*(hold(acting(fresh, action), Because.BY_HAND) for action in actions))
    report = await verify_ledger(fresh)
    assert (report.holds, report.actions, report.actions_unsealed) == (True, 2, 2), report.first_bad_action
    assert await extend_audit(fresh) == 2
    assert (await verify_ledger(fresh)).holds
