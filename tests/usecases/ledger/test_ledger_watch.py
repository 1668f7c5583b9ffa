"""`ledger_faults`: the cheap check behind `/health` and the metrics finds tampering at the chain's end and wrong sums,
however long the journal is."""

from collections.abc import Awaitable, Callable

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.chains import ChainHead, link_in
from cambist.core.domain.ledger import LEDGER, BalanceType, JournalEntry, LedgerAccount, Posting
from cambist.core.domain.payments.tallies import EVER, Tally
from cambist.core.usecases.common.chains import ALTERED, NO_HEAD
from cambist.core.usecases.ledger import watch as ledger_watch
from cambist.core.usecases.ledger.watch import ledger_faults
from cambist.ports.storage import Unit
from tests.apps import TestApp
from tests.planting import beneath
from tests.usecases.ledger.test_ledger_check import changed, head_of, lived_in

Chain = list[JournalEntry]
Tampering = Callable[[Unit, TestApp, Chain], Awaitable[None]]


@pytest.fixture
async def chain(app: TestApp) -> Chain:
    return await lived_in(app)


async def _sums_off(unit: Unit, app: TestApp, chain: Chain) -> None:
    [row, *_] = await unit[LedgerAccount].find(limit=1)
    unit[LedgerAccount].increase(row.id, "balance", 1)


async def _count_below_zero(unit: Unit, app: TestApp, chain: Chain) -> None:
    [ever, *_] = await unit[Tally].find(period=EVER)
    unit[Tally].increase(ever.id, "count", -ever.count - 1)


async def _reserve_below_zero(unit: Unit, app: TestApp, chain: Chain) -> None:
    for balance_type, by in ((BalanceType.RESERVED, -1), (BalanceType.PAID_OUT, 1)):
        unit[LedgerAccount].add(
            LedgerAccount(id=balance_type, owner="acc", mode=Mode.TEST, balance_type=balance_type, balance=by)
        )


async def _said_otherwise(unit: Unit, app: TestApp, chain: Chain) -> None:
    unit[JournalEntry].save(changed(chain[-2], account_id="acc_other"))


async def _first_said_otherwise(unit: Unit, app: TestApp, chain: Chain) -> None:
    unit[JournalEntry].save(changed(chain[0], account_id="acc_other"))


async def _not_zero(unit: Unit, app: TestApp, chain: Chain) -> None:
    first, *others = chain[-1].postings
    unit[JournalEntry].save(changed(chain[-1], postings=(Posting(first.balance_type, first.amount + 1), *others)))


async def _removed(unit: Unit, app: TestApp, chain: Chain) -> None:
    unit[JournalEntry].remove(chain[-3])


async def _last_removed(unit: Unit, app: TestApp, chain: Chain) -> None:
    unit[JournalEntry].remove(chain[-1])


async def _beyond_the_head(unit: Unit, app: TestApp, chain: Chain) -> None:
    unit[JournalEntry].add(changed(chain[-1], id="made:up:1", number=len(chain) + 1, version=0))


async def _last_made_anew(unit: Unit, app: TestApp, chain: Chain) -> None:
    other = changed(chain[-1], account_id="acc_other")
    unit[JournalEntry].save(changed(other, seal=LEDGER.link(other, len(chain), link_in(chain[-2].seal))))


async def _head_removed(unit: Unit, app: TestApp, chain: Chain) -> None:
    unit[ChainHead].remove(await head_of(app))


async def _head_moved(unit: Unit, app: TestApp, chain: Chain) -> None:
    unit[type(head := await head_of(app))].save(changed(head, number=head.number + 1))


async def _head_resealed(unit: Unit, app: TestApp, chain: Chain) -> None:
    unit[type(head := await head_of(app))].save(changed(head, seal=bytes(32)))


@pytest.mark.parametrize(
    ("tamper", "word"),
    [
        (_sums_off, "are 1 off zero"),
        (_count_below_zero, "1 counts of payments are below zero"),
        (_reserve_below_zero, "1 reserves are below zero"),
        (_said_otherwise, "ledger: entry 11 is not what was chained"),
        (_first_said_otherwise, "ledger: entry 1 is not what was chained"),
        (_not_zero, "ledger: entry 12 does not sum to zero"),
        (_removed, "does not run"),
        (_last_removed, "does not run"),
        (_beyond_the_head, "does not run"),
        (_last_made_anew, "the head's seal is not that of entry 12"),
        (_head_removed, f"ledger: {NO_HEAD}"),
        (_head_moved, ALTERED),
        (_head_resealed, ALTERED),
    ],
)
async def test_tampering_is_found(app: TestApp, chain: Chain, tamper: Tampering, word: str) -> None:
    assert await ledger_faults(app.ports) == ()
    async with beneath(app.ports).unit() as unit:
        await tamper(unit, app, chain)
        await unit.commit()
    assert word in "; ".join(await ledger_faults(app.ports))


async def test_an_empty_ledger_holds_with_its_head_or_without(app: TestApp) -> None:
    assert await ledger_faults(app.ports) == ()
    async with beneath(app.ports).unit() as unit:
        for head in await unit[ChainHead].find():
            unit[ChainHead].remove(head)
        await unit.commit()
    assert await ledger_faults(app.ports) == ()


async def test_a_reserve_that_came_back_to_nothing_is_not_below_zero(app: TestApp) -> None:
    app.made_up = True
    async with beneath(app.ports).unit() as unit:
        for balance_type in (BalanceType.RESERVED, BalanceType.PAID_OUT):
            unit[LedgerAccount].add(
                LedgerAccount(id=balance_type, owner="acc", mode=Mode.TEST, balance_type=balance_type)
            )
        await unit.commit()
    assert await ledger_faults(app.ports) == ()


async def test_only_the_newest_entries_are_checked(app: TestApp, chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_watch, "NEWEST", 4)
    assert await ledger_faults(app.ports) == ()
    async with beneath(app.ports).unit() as unit:
        unit[JournalEntry].save(changed(chain[2], account_id="acc_other"))
        await unit.commit()
    assert await ledger_faults(app.ports) == (), "that is what `cambist ledger verify` is for"
    async with beneath(app.ports).unit() as unit:
        unit[JournalEntry].save(changed(chain[-4], account_id="acc_other"))
        await unit.commit()
    assert await ledger_faults(app.ports) == ("ledger: entry 9 is not what was chained",)
    async with beneath(app.ports).unit() as unit:
        await _beyond_the_head(unit, app, chain)
        await unit.commit()
    assert "does not run from 8 to 12" in (await ledger_faults(app.ports))[0]
