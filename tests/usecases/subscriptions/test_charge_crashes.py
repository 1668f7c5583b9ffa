"""A crash at any commit of a charge, with lost answers of the bank: nothing is lost, nothing is debited twice
(ARCHITECTURE.md "Units and jobs")."""

from contextlib import suppress
from uuid import UUID

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.errors import Refusal
from cambist.core.domain.subscriptions.periods import Interval
from cambist.core.usecases.jobs import LEASE
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from tests.charge_app import ChargeApp, open_charge_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.tables import table

KEY = str(UUID(int=7))
LOST = Twist(ending=Ending.UNKNOWN_NOT_DONE)
DONE = Twist(ending=Ending.UNKNOWN_DONE)
AWAY = Twist(ending=Ending.UNAVAILABLE)
BANKS = {"well": (), "answer lost": (DONE,), "request lost": (LOST,), "lost twice": (LOST, LOST), "away": (AWAY,)}
COMMITS = {"well": 4, "answer lost": 5, "request lost": 6, "lost twice": 8, "away": 6}
"""Commits of the request and of all jobs up to the end; a receiver's webhook is one more."""


async def story(charges: ChargeApp, subscription_id: str, ports: Ports) -> str:
    """Charge, repeat the request while the outcome is unknown, and let the jobs run to the end. Return the payment's
    id."""
    for _ in range(4):
        with suppress(Refusal):
            await charges.charge(subscription_id, key=KEY, ports=ports)
            break
    answer = await charges.charge(subscription_id, key=KEY, ports=ports)
    charges.app.ports = ports
    await charges.app.work(30)
    return answer.payment.id


async def run_with_crash(bank: str, at: int, *, after: bool) -> int:
    """Run the story with a crash at commit `at`, recover, finish it, check everything. Returns commits seen."""
    async with open_charge_app(receiver=False) as charges:
        subscription_id = await charges.subscribed(Interval.MONTH)
        await charges.open_next(subscription_id)
        charges.app.script.charge.extend(BANKS[bank])
        whole, fuse = charges.ports, CrashPoint(at, after=after)
        with suppress(Killed):
            await story(charges, subscription_id, fused(whole, fuse))
        # The new process: the dead one's leases expire, and the watch resumes its work.
        charges.app.ports = whole
        await charges.app.work(LEASE + 30)
        payment_id = await story(charges, subscription_id, whole)
        await check(charges, subscription_id, payment_id)
        return fuse.commits


async def check(charges: ChargeApp, subscription_id: str, payment_id: str) -> None:
    [payment] = await charges.payments(subscription_id)
    assert (payment.id, payment.status, payment.sequence) == (payment_id, "paid", 1)
    assert await charges.told(payment_id) == ["paid"]
    assert await charges.told(subscription_id) == []
    keys = [each for each in await everything(charges.ports, IdempotencyKey) if each.kind == "charge"]
    assert [each.resource_id for each in keys] == [payment_id]
    assert await charges.debits() == {payment.period_ref: 1}
    subscription = await charges.subscription(subscription_id)
    assert subscription.anchor == payment.paid_at
    assert subscription.attempts is not None
    assert (subscription.attempts.used, subscription.attempts.paid) == (1, True)
    assert not [job for job in await everything(charges.ports, Job) if job.kind == "charge.watch"]


@table("bank", BANKS)
async def test_the_story_has_as_many_commits_as_are_swept(bank: str) -> None:
    assert await run_with_crash(bank, 0, after=False) == COMMITS[bank]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("bank", "at"), [(bank, at) for bank, last in COMMITS.items() for at in range(1, last + 1)])
async def test_a_crash_at_any_commit_loses_nothing_and_debits_once(bank: str, at: int, after: bool) -> None:
    await run_with_crash(bank, at, after=after)


async def fail(charges: ChargeApp, subscription_id: str, ports: Ports) -> None:
    """Let both attempts of a daily period fail, each under its own key, and run the jobs."""
    for number in (1, 2):
        await charges.next(subscription_id, "insufficient_funds")
        with suppress(Refusal):
            await charges.charge(subscription_id, key=str(UUID(int=number)), ports=ports)
    charges.app.ports = ports
    await charges.app.work(30)


@table("after", [False, True], ids=["before", "after"])
@table("at", range(1, 5))
async def test_a_crash_at_any_commit_gives_a_period_up_once(at: int, after: bool) -> None:
    """One `subscription.charge_exhausted` a period, always sent (docs/subscriptions.md "Periods and attempts")."""
    async with open_charge_app(receiver=False) as charges:
        subscription_id = await charges.subscribed(Interval.DAY)
        await charges.open_next(subscription_id)
        whole, fuse = charges.ports, CrashPoint(at, after=after)
        with suppress(Killed):
            await fail(charges, subscription_id, fused(whole, fuse))
        charges.app.ports = whole
        await charges.app.work(LEASE + 30)
        await fail(charges, subscription_id, whole)
        assert await charges.told(subscription_id) == ["exhausted"]
        assert await charges.statuses(subscription_id) == ["failed", "failed"]
        for payment in await charges.payments(subscription_id):
            assert await charges.told(payment.id) == ["failed"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_crash_while_a_charge_is_taken_back_leaves_nothing_or_one_charge(
    after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 PROVIDER_NOT_CONFIGURED leaves nothing (docs/subscriptions.md "When a charge is refused")."""
    async with open_charge_app(receiver=False) as charges:
        subscription_id = await charges.subscribed(Interval.DAY)
        await charges.open_next(subscription_id)
        charges.app.script.charge.append(Twist(ending=Ending.UNAVAILABLE))
        key = str(UUID(int=9))
        with suppress(Killed, Refusal):
            await charges.charge(subscription_id, key=key, ports=fused(charges.ports, CrashPoint(1, after=after)))
        await charges.app.work(LEASE)
        charges.app.script.charge.clear()
        answer = await charges.charge(subscription_id, key=key)
        await charges.app.work(30)
        assert (await charges.payment(answer.payment.id)).status == "paid"
        assert sum((await charges.debits()).values()) == 1
