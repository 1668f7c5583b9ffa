"""Answers to a merchant in live mode while the installation is quarantined, and after its release."""

from uuid import uuid4

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode, Scheme
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.installation import Because
from cambist.core.usecases.common.quarantine import hold
from cambist.core.usecases.installation.resume import resume
from cambist.core.usecases.refunds.refunds import approve_refund
from cambist.frontends.app import simulated_banks
from cambist.ports.jobs import Job
from tests.charge_app import ChargeApp, open_charge_app, told
from tests.invariants import everything
from tests.refund_app import RefundApp, open_refund_app


@pytest.fixture
def charging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enable charges of live mandates."""
    ready = msgspec.structs.replace(simulated_banks._LIVE_BANK, mandate_charges=True)
    monkeypatch.setattr(simulated_banks, "_LIVE_BANK", ready)


async def free_period(charges: ChargeApp, subscription_id: str) -> str:
    """Return the period that the merchant may charge now."""
    shown = (await charges.app.get(f"/subscriptions/{subscription_id}/charge-window", mode="live")).json()
    assert (shown["can_charge"], shown["reason"]) == (True, None)
    period: str = shown["period_ref"]
    return period


@pytest.mark.usefixtures("charging")
async def test_charge_is_refused_while_held_and_works_later_with_the_same_key() -> None:
    async with open_charge_app() as charges:
        subscription_id, key = await charges.subscribed(mode=Mode.LIVE, scheme=Scheme.CALENDAR), str(uuid4())
        period = await free_period(charges, subscription_id)
        before = await made(charges)
        await hold(charges.ports, Because.BY_HAND)
        for _ in range(2):
            response = await charges.post(subscription_id, key=key, mode="live")
            assert told(response) == (503, "PROVIDER_NOT_CONFIGURED")
        assert await made(charges) == before
        assert await charges.payments(subscription_id) == []
        assert sum((await charges.debits()).values()) == 0
        await resume(charges.ports)
        assert await free_period(charges, subscription_id) == period
        response = await charges.post(subscription_id, key=key, mode="live")
        assert (response.status_code, response.json()["period_ref"]) == (201, period), response.text
        assert "Idempotent-Replayed" not in response.headers
        await charges.app.work(10)
        assert await charges.statuses(subscription_id) == ["paid"]
        assert sum((await charges.debits()).values()) == 1


async def made(charges: ChargeApp) -> tuple[set[str], set[str]]:
    """The ids of all keys and jobs."""
    keys = {each.id for each in await everything(charges.ports, IdempotencyKey)}
    return keys, {each.id for each in await everything(charges.ports, Job)}


@pytest.mark.usefixtures("charging")
async def test_test_mode_is_charged_meanwhile() -> None:
    async with open_charge_app() as charges:
        subscription_id = await charges.subscribed(scheme=Scheme.CALENDAR)
        await hold(charges.ports, Because.BY_HAND)
        assert (await charges.post(subscription_id)).status_code == 201


async def test_a_refund_stays_pending_and_is_completed_afterwards() -> None:
    async with open_refund_app() as app:
        payment_id = await app.paid(mode="live")
        await hold(app.ports, Because.BY_HAND)
        refund_id = await app.apply(payment_id, "40.00", mode="live")
        await approve_refund(app.ports, refund_id)
        await app.app.work(3 * 3600)
        assert await shown(app, refund_id) == "pending"
        assert await app.left_at_bank(payment_id, "live") == 100_00
        await resume(app.ports)
        await app.app.work(60)
        assert await shown(app, refund_id) == "completed"
        assert await app.left_at_bank(payment_id, "live") == 60_00
        assert [event["status"] for event in await app.app.events(refund_id)][-1] == "completed"


async def shown(app: RefundApp, refund_id: str) -> str:
    """Return the refund's status as the merchant reads it."""
    response = await app.app.get(f"/refunds/{refund_id}", mode="live")
    assert response.status_code == 200, response.text
    status: str = response.json()["status"]
    return status
