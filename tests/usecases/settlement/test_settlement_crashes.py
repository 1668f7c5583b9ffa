"""A settlement that is killed at any point and started again ends as if it had never stopped
(docs/settlement.md "When")."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.ledger import JournalEntry
from cambist.core.domain.operators.audit import AuditEntry, OperatorAction
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.settlement.settlement import Settlement, SettlementBatch
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.actions.audit import acting
from cambist.core.usecases.operators.settlement import settle_asked
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.settlement.run import HELD
from cambist.core.usecases.settlement.settlement import settle_now, settle_own
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import check_books, everything
from tests.usecases.settlement.test_settlement import NINE, caller, paid, to

WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"
PAYMENTS = 7
SAME = ("amount", "fee", "credit", "payments", "items", "rate_market")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.core.usecases.settlement.run.CHUNK", 3)


async def ready(app: TestApp) -> None:
    await set_settings(app.ports, app.account.account_id, {"payout_wallet": WALLET})
    for number in range(PAYMENTS):
        await paid(app, f"{100 + number}.07")


async def by_the_worker(app: TestApp) -> None:
    await to(app, NINE)


async def by_the_sandbox(app: TestApp) -> None:
    await settle_own(app.ports, await caller(app))


async def by_the_operator(app: TestApp) -> None:
    await settle_now(app.ports, Mode.TEST, cutoff=app.ports.clock.now() + timedelta(seconds=1))


WAYS: dict[str, Callable[[TestApp], Any]] = {
    "worker": by_the_worker,
    "sandbox": by_the_sandbox,
    "operator": by_the_operator,
}


async def outcome(app: TestApp) -> dict[str, Any]:
    """Return the result of a settlement, without random ids."""
    await check_books(app.ports)
    payments = await everything(app.ports, Payment)
    assert {payment.status for payment in payments} == {PaymentStatus.SETTLED}
    assert [payment.sequence for payment in payments] == [2] * PAYMENTS
    events = [event for event in await everything(app.ports, Event) if event.object_id.startswith("pay_")]
    assert len(events) == 2 * PAYMENTS
    batches = [batch for batch in await everything(app.ports, SettlementBatch) if batch.payments]
    statements = await everything(app.ports, Settlement)
    withdrawals = await everything(app.ports, Withdrawal)
    assert (len(batches), len(statements)) == (1, 1)
    assert batches[0].completed_at is not None
    assert statements[0].completed_at is not None
    # A signed transfer that the crash kept back until it ran out has failed, and the next settlement paid it out.
    [done] = [each for each in withdrawals if each.status is WithdrawalStatus.COMPLETED]
    assert {each.status for each in withdrawals} <= {WithdrawalStatus.COMPLETED, WithdrawalStatus.FAILED}
    entries = await everything(app.ports, JournalEntry)
    return {
        **{field: getattr(statements[0], field) for field in SAME},
        "paid out": done.amount,
        "entries": sorted(
            (entry.kind, str(entry.postings)) for entry in entries if not entry.kind.startswith("payout")
        ),
    }


async def run(way: str, fuse: CrashPoint) -> dict[str, Any]:
    """Settle with a crash on the way; then a new process continues."""
    async with open_test_app() as app:
        await app.work(43_200)
        await ready(app)
        await start_recurring_jobs(app.ports)
        if way == "worker":  # commits of the night's other jobs are no crash points of the settlement
            await to(app, NINE - timedelta(minutes=1))
        whole = app.ports
        app.ports = fused(whole, fuse)
        with suppress(Killed):
            await WAYS[way](app)
        app.ports = whole
        await start_recurring_jobs(whole)
        await app.work(86_400 + 300)
        return await outcome(app)


@pytest.mark.parametrize("way", WAYS)
async def test_killed_at_any_commit_it_ends_as_if_it_had_never_stopped(way: str) -> None:
    calm = CrashPoint(0, after=False)
    expected = await run(way, calm)
    assert calm.commits > 6
    assert await run(way, CrashPoint(1, after=False)) == expected
    # Just before a commit there is on disk what there was just after the one before it.
    for at in range(1, calm.commits + 1):
        assert await run(way, CrashPoint(at, after=True)) == expected, at


async def test_batch_that_another_process_settles_is_left_to_it(app: TestApp) -> None:
    await ready(app)
    cutoff = app.ports.clock.now() + timedelta(seconds=1)
    with suppress(Killed):
        await settle_now(fused(app.ports, CrashPoint(4, after=True)), Mode.TEST, cutoff=cutoff)
    with pytest.raises(Exception, match="Another process is settling"):
        await settle_now(app.ports, Mode.TEST, cutoff=cutoff)
    await app.clock.advance(HELD.total_seconds() + 1)
    batch = await settle_now(app.ports, Mode.TEST, cutoff=cutoff)
    assert batch.payments == PAYMENTS
    await app.work(3600)


async def test_a_batch_that_was_left_open_is_taken_up_before_another_is_opened(app: TestApp) -> None:
    """It uses the rate of its beginning. It is reported from the first moment, with the amount of open work."""
    await ready(app)
    first = app.ports.clock.now() + timedelta(seconds=1)
    with suppress(Killed):
        await settle_now(fused(app.ports, CrashPoint(4, after=True)), Mode.TEST, cutoff=first)
    await app.clock.advance(HELD.total_seconds() + 1)
    await paid(app, "50.00")
    told: list[tuple[bool, int, int]] = []
    ports = acting(app.ports, OperatorAction(operator="olga", name="settle", reason="late"))
    cutoff = app.ports.clock.now() + timedelta(seconds=1)
    batches = await settle_asked(
        ports, Mode.TEST, cutoff, lambda pace: told.append((pace.is_taken_up, pace.batch.payments, pace.of))
    )
    assert [(batch.cutoff, batch.payments) for batch in batches] == [(first, PAYMENTS), (cutoff, 1)]
    assert told[0] == (True, 3, PAYMENTS)
    assert (True, PAYMENTS, PAYMENTS) in told
    assert told[-1] == (False, 1, 1)
    # Each batch is an action.
    rows = sorted(await everything(app.ports, AuditEntry), key=lambda row: row.id)
    assert [(row.action, row.object_id) for row in rows] == [("settle", batch.id) for batch in batches]
    assert await settle_asked(ports, Mode.TEST, cutoff, lambda _: None) == batches[1:]
