"""Charges with an unknown outcome: looked up under the same operation id, never debited twice (docs/subscriptions.md
"When a charge is refused"; ARCHITECTURE.md "Three outcomes")."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.subscriptions.moves import cancelled, mandate_lost, mandate_restored
from cambist.core.domain.subscriptions.periods import Interval
from cambist.ports.faults import NotConfigured
from cambist.ports.jobs import Job
from cambist.ports.mandates import ChargeStatus
from tests.charge_app import HOUR, ChargeApp, open_charge_app
from tests.invariants import everything

PAID, FAILED = ChargeStatus.PAID, ChargeStatus.FAILED


@pytest.fixture
async def charges() -> AsyncIterator[ChargeApp]:
    async with open_charge_app() as opened:
        yield opened


@pytest.fixture
async def due(charges: ChargeApp) -> str:
    """A subscription of three days whose second period has just opened."""
    subscription_id = await charges.subscribed(Interval.DAY, 3)
    await charges.open_next(subscription_id)
    return subscription_id


async def pending(charges: ChargeApp, subscription_id: str) -> str:
    """Start a charge that stays in processing, and return its id."""
    await charges.next(subscription_id, "pending")
    return (await charges.charge(subscription_id)).payment.id


async def cancel(charges: ChargeApp, subscription_id: str) -> None:
    await charges.put(cancelled(await charges.subscription(subscription_id), charges.clock.now()))


async def jobs(charges: ChargeApp, kind: str) -> list[Job]:
    return [job for job in await everything(charges.ports, Job) if job.kind == kind]


class TestUnknown:
    """A lost answer is found out about under the same operation id."""

    async def lose(self, charges: ChargeApp, subscription_id: str, *endings: Ending) -> str:
        charges.app.script.charge.extend(Twist(ending=ending) for ending in endings)
        with pytest.raises(Refusal) as refused:
            await charges.charge(subscription_id)
        assert refused.value.code == "PROVIDER_UNAVAILABLE"
        [*_, last] = await charges.payments(subscription_id)
        return last.id

    async def test_the_watch_finds_what_was_done(self, charges: ChargeApp, due: str) -> None:
        payment_id = await self.lose(charges, due, Ending.UNKNOWN_DONE)
        await charges.app.work(12)
        assert (await charges.payment(payment_id)).status == "paid"

    async def test_the_watch_sends_again_what_was_lost(self, charges: ChargeApp, due: str) -> None:
        """The same operation: it debits once at most, and the period gets a definite answer."""
        payment_id = await self.lose(charges, due, *[Ending.UNKNOWN_NOT_DONE] * 3)
        await charges.app.work(40)
        assert (await charges.payment(payment_id)).status == "pending"
        await charges.app.work(60)
        assert (await charges.payment(payment_id)).status == "paid"
        assert sum((await charges.debits()).values()) == 1

    async def test_nothing_is_sent_again_after_the_end(self, charges: ChargeApp, due: str) -> None:
        """Cancelling stops queued charges in the same unit (docs/subscriptions.md "Changing and ending")."""
        payment_id = await self.lose(charges, due, Ending.UNKNOWN_NOT_DONE)
        await cancel(charges, due)
        await charges.app.work(300)
        assert (await charges.payment(payment_id)).status == "pending", "a request may still be on its way"
        await charges.app.work(3600)
        payment = await charges.payment(payment_id)
        assert (payment.status, payment.failure_reason) == ("failed", "mandate_revoked")
        assert not await charges.debits()

    async def test_a_paused_one_waits_and_goes_on_when_the_mandate_is_back(self, charges: ChargeApp, due: str) -> None:
        payment_id = await self.lose(charges, due, Ending.UNKNOWN_NOT_DONE)
        lost = mandate_lost(await charges.subscription(due), charges.clock.now())
        await charges.put(lost)
        await charges.app.work(3600)
        assert (await charges.payment(payment_id)).status == "pending"
        restored = mandate_restored(await charges.subscription(due), charges.clock.now())
        await charges.put(restored)
        await charges.app.work((6 * HOUR).total_seconds() + 2)
        assert (await charges.payment(payment_id)).status == "paid"

    async def test_after_a_day_it_is_only_asked_for_and_then_given_up(self, charges: ChargeApp, due: str) -> None:
        """A documented decision: payers do not expect a debit that late. The charge fails once no request can still be
        running."""
        payment_id = await self.lose(charges, due, *[Ending.UNKNOWN_NOT_DONE] * 50)
        await charges.app.work((25 * HOUR).total_seconds())
        left = len(charges.app.script.charge)
        await charges.app.work((8 * HOUR).total_seconds())
        assert len(charges.app.script.charge) == left, "nothing was sent any more"
        payment = await charges.payment(payment_id)
        assert (payment.status, payment.failure_reason) == ("failed", "unknown")
        assert await charges.told(due) == ["exhausted"]
        charges.app.script.charge.clear()

    async def test_a_bank_that_is_gone_leaves_it_pending(self, charges: ChargeApp, due: str) -> None:
        payment_id = await self.lose(charges, due, Ending.UNAVAILABLE)
        charges.app.script.find_charge.extend([Twist(ending=Ending.UNAVAILABLE)] * 6)
        await charges.app.work(3600)
        assert (await charges.payment(payment_id)).status == "pending"
        await charges.app.work((13 * HOUR).total_seconds())
        assert (await charges.payment(payment_id)).status == "paid"

    async def test_a_bank_that_charges_no_more_when_it_is_asked_leaves_nothing(
        self, charges: ChargeApp, due: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """503 PROVIDER_NOT_CONFIGURED: no payment, and the period is free
        (docs/subscriptions.md "When a charge is refused"); the key, too."""
        key = str(uuid4())
        before = await charges.subscription(due)

        async def charges_no_more(_: object) -> None:
            raise NotConfigured("switched off just now")

        with monkeypatch.context() as patched:
            patched.setattr(charges.bank(), "charge", charges_no_more)
            with pytest.raises(Refusal) as refused:
                await charges.charge(due, key=key)
        assert refused.value.code == "PROVIDER_NOT_CONFIGURED"
        assert await charges.payments(due) == []
        after = await charges.subscription(due)
        assert (after.attempts, after.anchor) == (before.attempts, before.anchor)
        assert await jobs(charges, "charge.watch") == []
        assert (await charges.charge(due, key=key)).is_new

    async def test_the_watch_hints_of_the_bank_are_followed(self, charges: ChargeApp, due: str) -> None:
        await charges.charge(due)
        [job] = await jobs(charges, "charge.watch")
        assert job.due == charges.clock.now() + timedelta(seconds=1)


async def test_bindings_and_charges_keep_the_markup_that_they_were_accepted_at(charges: ChargeApp, due: str) -> None:
    """They are settled by it, as every payment is (docs/settlement.md "How much")."""
    charge = await charges.charged(due)
    found = {each.id: each for each in await everything(charges.ports, Payment)}
    assert {each.markup for each in found.values()} == {"0.03"}
    assert {each.binding is None for each in found.values()} == {True, False}
    assert charge in found
