"""Verification of the ledger from a checkpoint (docs/operations.md "The proof of the books")."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.adapters.vault.memory import MemoryVault
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ledger import LEDGER, JournalEntry, LedgerAccount
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.ledger import checkpoint as checkpoints
from cambist.core.usecases.ledger.check import LedgerReport, verify_ledger
from cambist.core.usecases.ledger.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from cambist.core.usecases.ledger.listing import list_all
from cambist.core.usecases.settlement.settlement import settle_own
from tests.apps import TestApp
from tests.invariants import everything
from tests.usecases.ledger.test_ledger import journal
from tests.usecases.ledger.test_ledger_check import changed, lived_in, write
from tests.usecases.settlement.test_settlement import caller, paid


async def proved(app: TestApp, since: Checkpoint | None = None) -> Checkpoint:
    """The checkpoint of a ledger that holds, after its way through a file."""
    report = await verify_ledger(app.ports, since=since)
    assert report.holds
    assert report.checkpoint is not None
    return read_checkpoint(app.ports.vault, write_checkpoint(app.ports.vault, report.checkpoint))


async def goes_on(app: TestApp) -> None:
    """One payment is settled, another one is paid, and some entries are chained and listed."""
    await paid(app, "70.00")
    await settle_own(app.ports, await caller(app))
    await paid(app, "80.00")
    await list_all(app.ports)


def faults(report: LedgerReport) -> Any:
    return report.first_bad_entry, report.bad_balances, report.first_bad_action, report.bad_values, report.differing


async def test_checkpoints_of_a_whole_and_a_continued_verification_are_equal(app: TestApp) -> None:
    await lived_in(app)
    since = await proved(app)
    for _ in range(3):
        await app.clock.advance(3600)
        await goes_on(app)
        report = await verify_ledger(app.ports, since=since)
        whole = await verify_ledger(app.ports)
        assert (report.entries, report.heads, faults(report)) == (whole.entries, whole.heads, faults(whole))
        assert report.proved_before == since.end_of(LEDGER).number > 0
        assert whole.checkpoint is not None
        expected = msgspec.structs.replace(whole.checkpoint, complete_at=since.complete_at)
        since = await proved(app, since)
        assert since == expected


PLANTS: dict[str, tuple[type[Any], Callable[[Any], Any]]] = {
    "an entry": (JournalEntry, lambda row: changed(row, object_id="pay_x")),
    "a payment": (Payment, lambda row: changed(row, actual_amount=Rub(1))),
    "a balance": (LedgerAccount, lambda row: changed(row, balance=row.balance + 1)),
}


@pytest.mark.parametrize("plant", PLANTS)
async def test_altered_rows_since_the_checkpoint_are_named(app: TestApp, plant: str) -> None:
    """The newest row of each kind."""
    await lived_in(app)
    since = await proved(app)
    await goes_on(app)
    kind, altered = PLANTS[plant]
    rows = await everything(app.ports, kind)
    newest = max(rows, key=lambda row: (getattr(row, "number", None) or 0, row.id))
    await write(app, remove=(newest,))
    await write(app, add=(msgspec.structs.replace(altered(newest), version=0),))
    report = await verify_ledger(app.ports, since=since)
    assert faults(report) == faults(await verify_ledger(app.ports))
    assert (report.holds, report.checkpoint) == (False, None)


async def test_untouched_old_payments_are_read_in_a_complete_verification_only(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "RECENT", timedelta())
    await lived_in(app)
    await list_all(app.ports)
    await app.clock.advance(3600)
    since = await proved(app)
    payments = sorted(await everything(app.ports, Payment), key=lambda each: each.id)
    old, unsettled = payments[0], payments[-1]
    await settle_own(app.ports, await caller(app))
    rows = {each.id: each for each in await everything(app.ports, Payment)}
    await write(app, save=tuple(changed(rows[each.id], actual_amount=Rub(1)) for each in (old, unsettled)))
    report = await verify_ledger(app.ports, since=since)
    assert {each.id for each in report.bad_values} == {unsettled.id}, "its settlement touched it"
    whole = {each.id for each in (await verify_ledger(app.ports)).bad_values}
    assert whole == {old.id, unsettled.id}


async def test_another_history_than_the_checkpoint_is_named(app: TestApp) -> None:
    """An older copy of the database, in which entries of the checkpoint are missing."""
    await lived_in(app)
    await list_all(app.ports)
    since = await proved(app)
    last = max(await journal(app), key=lambda each: each.number or 0)
    await write(app, remove=(last,))
    report = await verify_ledger(app.ports, since=since)
    assert f"ledger={since.end_of(LEDGER).number}" in " ".join(report.differing)
    assert report.proved_before == 0, "every row was read"
    await write(app, add=(changed(last, version=0, seal=bytes(64)),))
    assert not (await verify_ledger(app.ports, since=since)).holds


async def test_altered_checkpoints_are_refused(app: TestApp) -> None:
    await lived_in(app)
    text = write_checkpoint(app.ports.vault, await proved(app))
    for altered in (
        text.replace(b'"ledger=', b'"ledger=1', 1),
        text[:-20],
        b"{}",
        b"",
        text.replace(b'": -', b'": ', 1),
    ):
        assert altered != text
        with pytest.raises(Refusal, match="checkpoint is not what this installation's vault tagged"):
            read_checkpoint(app.ports.vault, altered)
    with pytest.raises(Refusal):
        read_checkpoint(MemoryVault(), text)
