"""The ledger at work: booking and sealing (ARCHITECTURE.md "Money")."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.chains import FIRST_LINK, ChainHead
from cambist.core.domain.ledger import (
    LEDGER,
    BalanceType,
    EntryKind,
    JournalEntry,
    LedgerAccount,
    Posting,
    journal_entry,
    ledger_account_id,
)
from cambist.core.domain.money import Usdt
from cambist.core.domain.movements import Movement
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.usecases.actions.audit import note
from cambist.core.usecases.ledger import listing
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.ledger.ledger import EXTEND_CHAINS, balance_types, may_take, post
from cambist.core.usecases.ledger.listing import list_all
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.ports.faults import Conflict, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.storage import Storage, Unit
from tests.apps import TestApp
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.planting import beneath
from tests.race_barriers import OtherCommit
from tests.tables import table
from tests.usecases.settlement.test_settlement import paid


async def journal(app: TestApp) -> list[JournalEntry]:
    found: list[JournalEntry] = await everything(app.ports, JournalEntry)
    return found


def plain(entry: JournalEntry) -> list[tuple[str, int]]:
    """Return its postings."""
    return [(posting.balance_type.value, posting.amount) for posting in entry.postings]


def entry(app: TestApp, object_id: str, kopecks: int = 100, *, account_id: str = "acc_other") -> JournalEntry:
    """A receipt of an account that no payment is of."""
    return journal_entry(
        EntryKind.RECEIPT,
        object_id,
        account_id=account_id,
        mode=Mode.TEST,
        at=app.ports.clock.now(),
        postings={BalanceType.BANK: -kopecks, BalanceType.PENDING: kopecks},
    )


async def book(app: TestApp, *entries: JournalEntry) -> None:
    async with app.ports.storage.unit() as unit:
        post(unit, *entries)
        await unit.commit()


async def test_the_same_move_is_booked_once(app: TestApp) -> None:
    """A unique key (kind, object id, version) (ARCHITECTURE.md "Money")."""
    await book(app, entry(app, "pay_1"))
    with pytest.raises(Conflict) as refused:
        await book(app, entry(app, "pay_1", 300))
    assert refused.value.rule == "journal_id"
    [kept] = await journal(app)
    assert plain(kept) == [("bank", -100), ("pending", 100)]
    assert (await verify_ledger(app.ports)).holds


async def test_entries_of_one_unit_move_a_balance_together(app: TestApp) -> None:
    await book(app, entry(app, "pay_1", 5), entry(app, "pay_2", 7), entry(app, "pay_3", 11))
    async with app.ports.storage.unit() as unit:
        assert (await balance_types(unit, "acc_other", Mode.TEST))[BalanceType.PENDING] == 23
        assert await balance_types(unit, "acc_other", Mode.LIVE) == {}
        assert await balance_types(unit, "acc_othe", Mode.TEST) == {}
    assert (await verify_ledger(app.ports)).holds


async def test_sealing_gives_every_entry_its_number_once(app: TestApp) -> None:
    for number in (3, 1, 2):
        await book(app, entry(app, f"pay_{number}"))
    assert await list_all(app.ports) == 3
    assert await list_all(app.ports) == 0
    first = await journal(app)
    await book(app, entry(app, "pay_0"))
    assert await list_all(app.ports) == 1
    by_number = sorted(await journal(app), key=lambda each: each.number or 0)
    assert [each.object_id for each in by_number] == ["pay_1", "pay_2", "pay_3", "pay_0"]
    assert [each for each in by_number if each.number != 4] == first
    last = FIRST_LINK
    for number, each in enumerate(by_number, 1):
        last = LEDGER.link(each, number, last)
        tag = app.ports.vault.tag(last, f"ledger.link:{number}")
        assert (each.number, each.seal) == (number, last + tag)
    head = await app.ports.storage.get(ChainHead, LEDGER.head_id)
    assert head is not None
    assert (head.number, head.seal) == (4, last)
    assert app.ports.vault.fits(head.tag or b"", last, "ledger.head:4")


async def test_more_than_a_thousand_entries_are_chained_in_several_units(app: TestApp) -> None:
    await book(app, *(entry(app, f"pay_{number}") for number in range(2001)))
    told: list[int] = []
    before = await verify_ledger(app.ports)
    assert (before.holds, before.entries, before.unsealed) == (True, 2001, 2001)
    calm = CrashPoint(0, after=False)
    assert await list_all(fused(app.ports, calm)) == 2001
    assert calm.commits == 4, "the last one is of the other mode, and empty"
    report = await verify_ledger(app.ports, progress=told.append)
    assert (report.holds, report.entries, report.unsealed, told) == (True, 2001, 0, [1000, 2000])


async def test_entry_booked_during_a_chain_extension_waits_for_the_next(app: TestApp) -> None:
    """Each pass continues where the previous one ended; with a busy service it would otherwise never end."""
    await book(app, *(entry(app, f"pay_{number:04}") for number in range(1500)))

    came = 0

    class Busy:
        """A storage that books one more entry before every commit, with an id before all waiting ones."""

        def __getattr__(self, name: str) -> Any:
            return getattr(app.ports.storage, name)

        @asynccontextmanager
        async def unit(self) -> AsyncIterator[Unit]:
            async with app.ports.storage.unit() as unit:

                async def commit() -> None:
                    nonlocal came
                    came += 1
                    await book(app, entry(app, f"pay_!{came}"))
                    await unit.commit()

                yield OtherCommit(unit, commit)

    first = await list_all(msgspec.structs.replace(app.ports, storage=cast("Storage", Busy())))
    assert first < 1500 + came
    assert first + await list_all(app.ports) == 1500 + came
    assert (await verify_ledger(app.ports)).unsealed == 0


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3])
async def test_a_sealer_that_died_is_followed_by_another(app: TestApp, at: int, after: bool) -> None:
    await book(app, *(entry(app, f"pay_{number}") for number in range(2001)))
    with pytest.raises(Killed):
        await list_all(fused(app.ports, CrashPoint(at, after=after)))
    assert (await verify_ledger(app.ports)).holds
    await list_all(app.ports)
    report = await verify_ledger(app.ports)
    assert (report.holds, report.entries, report.unsealed) == (True, 2001, 0)


async def test_hourly_jobs_chain_entries_and_actions_and_list_movements(app: TestApp) -> None:
    """Recurring jobs do all of it without a request."""
    await start_recurring_jobs(app.ports)
    began = app.clock.now()
    for hour in (1, 2):
        await paid(app)
        await note(app.ports, OperatorAction(operator="vera", name="look", object_id="pay_1"))
        report = await verify_ledger(app.ports)
        assert (report.unsealed, report.actions_unsealed) == (1, 1)
        assert [each.place for each in await journal(app) if each.number is None] == [None]
        await app.work(3600)
        report = await verify_ledger(app.ports)
        assert (report.holds, report.entries, report.unsealed, report.actions_unsealed) == (True, hour, 0, 0)
        assert sorted(each.place or 0 for each in await journal(app)) == [*range(1, hour + 1)]
        job = await app.ports.storage.get(Job, EXTEND_CHAINS)
        assert job is not None
        assert (job.due, job.attempts) == (began + timedelta(hours=hour + 1), 0)


async def test_entry_that_moves_no_balance_is_not_listed(app: TestApp) -> None:
    app.made_up = True
    plain = entry(app, "pay_1")
    await book(
        app, msgspec.structs.replace(plain, postings=(Posting(BalanceType.BANK, -1), Posting(BalanceType.REVIEW, 1)))
    )
    assert await listing.list_fresh(app.ports, "acc_other", Mode.TEST)
    [listed] = await journal(app)
    assert listed.place == 0
    assert await everything(app.ports, Movement) == []


@pytest.mark.parametrize(("most", "listed", "is_all"), [(1, 2, False), (2, 4, False), (3, 5, True), (None, 5, True)])
async def test_listing_by_a_request_is_bounded(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, most: int | None, listed: int, is_all: bool
) -> None:
    """Two entries are listed at once, so a request does not wait for longer."""
    app.made_up = True
    monkeypatch.setattr(listing, "AT_ONCE", 2)
    await book(app, *(entry(app, f"pay_{each}") for each in range(5)))
    assert await listing.list_fresh(app.ports, "acc_other", Mode.TEST, most=most) is is_all
    assert len(await everything(app.ports, Movement)) == listed


@pytest.mark.parametrize(("fault", "goes_on"), [(Unavailable("away"), False), (ValueError("a slip"), True)])
async def test_failed_listing_of_one_account_delays_no_other(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, fault: Exception, goes_on: bool
) -> None:
    """If the storage itself is unavailable, the hourly job is retried."""
    app.made_up = True
    await book(app, *(entry(app, f"pay_{owner}", account_id=owner) for owner in ("acc_1", "acc_2")))
    tried = []

    async def fail(_ports: object, account_id: str, mode: Mode, *_: object, **_kept: object) -> None:
        tried.append((account_id, mode))
        raise fault

    monkeypatch.setattr(listing, "_list", fail)
    told: list[Exception] = []
    try:
        await listing.list_all(app.ports)
    except Unavailable as away:
        told.append(away)
    assert (len(tried), told) == ((4, []) if goes_on else (1, [fault]))


@table(
    ("balance", "amount", "overdraft", "may"),
    [
        (None, 0, 0, True), (None, 1, 0, False), (None, 1, 1, True), (None, 2, 1, False),
        (5, 5, 0, True), (5, 6, 0, False), (5, 6, 1, True), (5, 7, 1, False),
        (-3, 1, 4, True), (-3, 2, 4, False), (-3, 0, 0, False),
    ],
)  # fmt: skip
async def test_no_more_is_taken_than_there_is_and_the_overdraft_allows(
    app: TestApp, balance: int | None, amount: int, overdraft: int, may: bool
) -> None:
    """Taking saves the balance, so that of two concurrent units one reads again."""
    account_id = f"acc_{balance}_{amount}_{overdraft}"
    row_id = ledger_account_id(account_id, Mode.TEST, BalanceType.AVAILABLE)
    app.made_up = True
    if balance is not None:
        row = LedgerAccount(
            id=row_id, owner=account_id, mode=Mode.TEST, balance_type=BalanceType.AVAILABLE, balance=balance
        )
        async with beneath(app.ports).unit() as unit:
            unit[LedgerAccount].add(row)
            await unit.commit()
    before = await app.ports.storage.get(LedgerAccount, row_id)
    async with app.ports.storage.unit() as unit:
        assert await may_take(unit, account_id, Mode.TEST, Usdt(amount), overdraft=Usdt(overdraft)) is may
        await unit.commit()
    after = await app.ports.storage.get(LedgerAccount, row_id)
    assert (after != before) is may, "a version more, where it may"
    assert (0 if after is None else after.balance) == (balance or 0)
