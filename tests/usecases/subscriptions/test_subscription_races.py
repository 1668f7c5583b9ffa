"""Payers, merchants and banks at once, on every storage: versions decide, not the order in which requests were read
(ARCHITECTURE.md "Units and jobs")."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import msgspec
import pytest

from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.subscriptions import subscriptions as use_case
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.ports.bank import Notification
from cambist.ports.mandates import MandateEvent, MandateSimulation
from cambist.ports.storage import Storage
from tests.apps import TestApp, open_test_app
from tests.invariants import everything
from tests.race_barriers import Interrupted
from tests.subscription_app import (
    bindings,
    bound,
    call,
    open_link,
    patch,
    play,
    record,
    shown,
    simulator,
    statuses,
    subscribe,
    subscribed,
)


@pytest.fixture
async def busy(url: str, tmp_path: Path) -> AsyncIterator[TestApp]:
    async with open_test_app(database_url=url, data_dir=tmp_path) as opened:
        yield opened


async def test_openings_at_once_make_one_binding(busy: TestApp) -> None:
    """No bank is asked before the link is opened (docs/subscriptions.md "How the payer binds")."""
    made = await subscribed(busy)
    await asyncio.gather(*(open_binding(busy.ports, made["id"]) for _ in range(6)))
    [payment] = await bindings(busy, made["id"])
    assert payment.qr_payload is not None
    binding = (await record(busy, made["id"])).binding
    assert binding is not None
    assert (binding.payment_id, binding.bank_reference) == (payment.id, payment.bank_reference)


async def test_one_key_at_once_makes_one_subscription(busy: TestApp) -> None:
    key = str(uuid4())
    answers = await asyncio.gather(*(subscribe(busy, key=key) for _ in range(5)))
    assert sorted(each.status_code for each in answers) == [200, 200, 200, 200, 201]
    assert len({each.json()["id"] for each in answers}) == 1


async def test_patch_loses_against_cancel_or_comes_before_it(busy: TestApp) -> None:
    """INVALID_STATE also when cancel wins a race (docs/subscriptions.md "Changing and ending")."""
    for _ in range(4):
        made = await bound(busy)
        patched, cancelled = await asyncio.gather(
            patch(busy, made["id"], {"amount_rub": "400"}), call(busy, made["id"], "cancel")
        )
        assert cancelled.status_code == 200
        after = await shown(busy, made["id"])
        assert after["status"] == "cancelled"
        if patched.status_code == 200:
            assert after["amount_rub"] == "400.00"
        else:
            assert (patched.json()["error"]["code"], after["amount_rub"]) == ("INVALID_STATE", "500.00")


async def test_confirm_and_cancel_at_once_lose_no_money(busy: TestApp) -> None:
    """Either the payment took the money and the subscription was active first, or the money waits for the operator;
    the mandate is ended either way."""
    for _ in range(4):
        made = await subscribed(busy)
        payment = await open_link(busy, made["id"])
        binding = (await record(busy, made["id"])).binding
        assert binding is not None
        simulation = MandateSimulation(event=MandateEvent.CONFIRM, doubled=True)
        notifications = await simulator(busy).simulate_mandate(binding.operation, simulation)
        await asyncio.gather(
            *(on_notification(busy.ports, Notification(operation=each.operation)) for each in notifications),
            call(busy, made["id"], "cancel"),
        )
        [after] = await bindings(busy, made["id"])
        unapplied = [each for each in await everything(busy.ports, Suspense) if each.payment_id == payment.id]
        told = await statuses(busy, made["id"])
        if after.status is PaymentStatus.PAID:
            assert (unapplied, told) == ([], [("pending_binding", "active"), ("active", "cancelled")])
        else:
            assert (len(unapplied), told) == (1, [("pending_binding", "cancelled")])
        await busy.work(30)
        assert (await simulator(busy).mandate_state(payment.bank_reference or "")).status == "ended"


async def test_stale_read_of_a_payment_does_not_make_its_money_unapplied(busy: TestApp) -> None:
    """The notification comes twice. The second handler reads the payment before the first one's commit, and the
    subscription after it and a cancellation."""
    made = await subscribed(busy)
    payment = await open_link(busy, made["id"])
    binding = (await record(busy, made["id"])).binding
    assert binding is not None
    simulation = MandateSimulation(event=MandateEvent.CONFIRM)
    told = await simulator(busy).simulate_mandate(binding.operation, simulation)
    notifications = [Notification(operation=each.operation) for each in told]

    async def confirmed_and_cancelled() -> None:
        for notification in notifications:
            await on_notification(busy.ports, notification)
        assert (await call(busy, made["id"], "cancel")).status_code == 200

    storage = Interrupted(busy.ports.storage, Payment, confirmed_and_cancelled)
    await on_notification(msgspec.structs.replace(busy.ports, storage=cast("Storage", storage)), notifications[-1])
    assert storage.happened
    [after] = await bindings(busy, made["id"])
    assert (after.id, after.status) == (payment.id, PaymentStatus.PAID)
    assert await everything(busy.ports, Suspense) == []
    assert (await verify_ledger(busy.ports)).holds


async def test_a_rebinding_that_what_its_key_did_meanwhile_refuses_is_a_repeat(
    busy: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request found no such key. It polls once the payer has confirmed the link that another request with the key
    returned."""
    made, key, own = await bound(busy), str(uuid4()), use_case._own
    await play(busy, made["id"], "mandate_lost")

    async def owned_late(*given: Any) -> Any:
        monkeypatch.undo()
        assert (await call(busy, made["id"], "rebind", Idempotency_Key=key)).status_code == 201
        assert (await play(busy, made["id"], "confirm")).json()["status"] == "active"
        return await own(*given)

    monkeypatch.setattr(use_case, "_own", owned_late)
    answer = await call(busy, made["id"], "rebind", Idempotency_Key=key)
    assert (answer.status_code, answer.json()["status"]) == (200, "active")


async def test_rebinding_at_once_by_two_keys_leaves_one_open_binding(busy: TestApp) -> None:
    made = await bound(busy)
    op = (await record(busy, made["id"])).binding
    assert op is not None
    for notification in await simulator(busy).simulate_mandate(
        op.operation, MandateSimulation(event=MandateEvent.MANDATE_LOST)
    ):
        await on_notification(busy.ports, notification)
    answers = await asyncio.gather(*(call(busy, made["id"], "rebind", Idempotency_Key=str(uuid4())) for _ in range(2)))
    assert [each.status_code for each in answers] == [201, 201]
    await asyncio.gather(*(open_binding(busy.ports, made["id"]) for _ in range(3)))
    assert len(await bindings(busy, made["id"])) == 2
