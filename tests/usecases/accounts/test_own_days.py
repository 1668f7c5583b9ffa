"""The daily settlement of a test account whose clock was moved (docs/sandbox.md "The clock")."""

from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.settlement.settlement import SettlementBatch
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.settlement.days import OWN_DAILY, anything_waits
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.ports.bank import RefundStatus
from cambist.ports.jobs import Job
from cambist.ports.payouts import Senders
from tests.apps import TestApp
from tests.clock_kit import DAY, advance, moment, record
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.refund_app import RefundApp, open_refund_app
from tests.usecases.settlement.test_settlement import paid, say

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def job_of(app: TestApp) -> Job:
    found = await app.ports.storage.get(Job, OWN_DAILY.id_of(app.account.account_id))
    assert found is not None
    return found


async def test_settlement_without_a_rate_is_retried_every_minute(app: TestApp) -> None:
    one = await paid(app)
    await say(app, rate=Decimal("92.50"), silent=True)
    await advance(app, DAY + 9 * HOUR + 2.5 * MINUTE)
    assert (await app.payment(one)).status == "paid"
    assert [each.id for each in await everything(app.ports, SettlementBatch)] == []
    job = await job_of(app)
    assert (job.moment, job.attempts) == (moment("2026-01-02T09:03:00Z"), 0)
    await say(app, rate=Decimal("92.50"))
    await advance(app, MINUTE)
    assert (await app.payment(one)).settled_at == moment("2026-01-02T09:03:00Z")


async def test_a_correction_alone_is_settled_on_the_next_day(refunds: RefundApp) -> None:
    _, refund_id = await refunds.completed("40.00")
    await refunds.settle()
    await advance(refunds.app, HOUR)
    await refunds.tell(refund_id, RefundStatus.REVERSED)
    assert (await refunds.balance()).pending == Rub(40_00)
    await advance(refunds.app, 2 * DAY)
    assert (await refunds.balance()).pending == Rub(0)


async def test_common_settlement_skips_only_the_accounts_test_mode(
    refunds: RefundApp,
) -> None:
    await advance(refunds.app, HOUR)
    ours, live = await refunds.paid(), await refunds.paid(mode="live")
    cutoff = refunds.app.clock.now() + 2 * HOUR
    for mode in Mode:
        await settle_now(refunds.ports, mode, cutoff=cutoff)
    assert [(await refunds.payment(each)).status for each in (ours, live)] == ["paid", "settled"]


async def test_a_balance_waits_where_it_can_be_paid_out(app: TestApp) -> None:
    """An installation may have none for test mode."""
    await paid(app)
    await advance(app, 2 * DAY)
    await set_settings(app.ports, app.account.account_id, {"payout_wallet": WALLET})
    nobody = msgspec.structs.replace(app.ports, senders=Senders(senders={}, modes={}))
    async with app.ports.storage.unit() as unit:
        account = await unit[Account].get(app.account.account_id)
        assert account is not None
        assert [await anything_waits(ports, unit, account) for ports in (app.ports, nobody)] == [True, False]
    await advance(app, DAY)
    async with app.ports.storage.unit() as unit:
        assert not await anything_waits(app.ports, unit, account), "what is left is less than the network can move"


async def test_own_settlement_is_also_due_by_the_workers_clock(app: TestApp) -> None:
    """If a merchant does not advance the clock again, a worker settles at 09:00 of the account's own day."""
    await advance(app, DAY)
    one = await paid(app)
    async with app.ports.storage.unit() as unit:
        unit[Job].remove(await job_of(app))
        await unit.commit()
    await advance(app, HOUR)
    job, clock = await job_of(app), (await record(app)).clock
    assert clock is not None
    assert job.moment is not None
    assert job.due == job.moment - clock.ahead
    await app.work((DAY + 8 * HOUR).total_seconds())
    assert (await app.payment(one)).status == "settled"
