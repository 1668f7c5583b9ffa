"""The audit log: an action and its row are one commit, and the row is there for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.operators.audit import AuditEntry, OperatorAction
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.actions.audit import acting, list_audit, note, on
from cambist.core.usecases.browse.gateways import known_gateways
from cambist.core.usecases.common.units import FREE
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.core.usecases.refunds.refunds import approve_refund, reject_refund, reverse_refund
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.core.usecases.webhooks.resends import resend_event
from cambist.ports.faults import Stale
from cambist.ports.forwarding import ForwardingStorage
from cambist.ports.storage import Storage, Unit
from tests.apps import TestApp
from tests.crash_points import CrashPoint, Killed, fused
from tests.quiesce import at_rest
from tests.race_barriers import OtherCommit
from tests.refund_app import RefundApp, open_refund_app
from tests.tables import table


def action(name: str, object_id: str | None = None, **more: Any) -> OperatorAction:
    return OperatorAction(operator="olga", name=name, object_id=object_id, **more)


async def rows(ports: Any) -> list[AuditEntry]:
    return (await list_audit(ports, limit=100))[::-1]


async def waiting(refunds: RefundApp) -> str:
    return await refunds.apply(await refunds.paid(mode="live"), mode="live")


async def test_a_row_says_who_what_why_and_what_changed() -> None:
    async with open_refund_app() as refunds:
        refund_id = await waiting(refunds)
        await reject_refund(acting(refunds.ports, action("refund.reject", refund_id, reason="fraud")), refund_id, "no")
        [row] = await rows(refunds.ports)
        assert (row.operator, row.action, row.object_id, row.reason) == ("olga", "refund.reject", refund_id, "fraud")
        assert row.account_id == refunds.app.account.account_id
        assert (row.before, row.after) == (
            "status=pending pending_reason=awaiting_approval",
            "status=rejected",
        )
        assert row.at == refunds.app.clock.now()


async def test_refused_action_leaves_no_row(app: TestApp) -> None:
    payment = await app.created()
    with pytest.raises(Refusal):
        await resolve_mismatch(acting(app.ports, action("payment.resolve", payment["id"])), payment["id"], "paid")
    assert await rows(app.ports) == []


@table("after", [False, True])
async def test_a_crash_leaves_both_the_action_and_its_row_or_neither(after: bool) -> None:
    async with open_refund_app() as refunds:
        refund_id = await waiting(refunds)
        dying = fused(refunds.ports, CrashPoint(1, after=after))
        with pytest.raises(Killed):
            await approve_refund(acting(dying, action("refund.approve", refund_id)), refund_id)
        is_approved = (await refunds.refund(refund_id)).approved_at is not None
        assert is_approved is after
        assert len(await rows(refunds.ports)) == int(after)


async def test_an_action_of_many_units_has_one_row(app: TestApp) -> None:
    for _ in range(3):
        await app.simulate((await app.created())["id"], outcome="paid")
    await app.clock.advance(1)
    batch = await settle_now(acting(app.ports, action("settle")), Mode.TEST, cutoff=app.clock.now())
    assert batch.payments == 3
    [row] = await rows(app.ports)
    assert (row.action, row.object_id) == ("settle", batch.id)


async def test_an_action_on_many_objects_has_a_row_for_each(app: TestApp) -> None:
    for _ in range(2):
        await app.simulate((await app.created())["id"], outcome="paid")
    await app.work()
    async with app.ports.storage.unit() as unit:
        events = [event.id for event in await unit[Event].find()]
    ports = acting(app.ports, action("event.resend"))
    for event_id in events:
        await resend_event(on(ports, event_id), None, event_id)
    assert [row.object_id for row in await rows(app.ports)] == events
    assert on(app.ports, "x") is app.ports


async def test_action_that_is_retried_after_a_lost_race_leaves_one_row() -> None:
    async with open_refund_app() as refunds:
        refund_id = await waiting(refunds)
        approving = [
            approve_refund(acting(refunds.ports, action("refund.approve", refund_id)), refund_id) for _ in range(2)
        ]
        await asyncio.gather(*approving)
        assert [row.action for row in await rows(refunds.ports)] == ["refund.approve"] * 2


async def test_action_on_an_object_that_changed_since_it_was_seen_is_refused() -> None:
    """If two operators act on one object, one wins and the other is refused."""
    async with open_refund_app() as refunds:
        refund_id = await waiting(refunds)
        seen = (await refunds.refund(refund_id)).version
        first, second = (
            acting(refunds.ports, action("refund.approve", refund_id, seen_version=seen)),
            acting(refunds.ports, action("refund.reject", refund_id, seen_version=seen)),
        )
        ends = await asyncio.gather(
            approve_refund(first, refund_id), reject_refund(second, refund_id, "no"), return_exceptions=True
        )
        refused = [end for end in ends if isinstance(end, Refusal)]
        assert [refusal.code for refusal in refused] == ["INVALID_STATE"]
        assert len(await rows(refunds.ports)) == 1
        assert (await refunds.refund(refund_id)).version == seen + 1


async def test_first_change_by_another_operator_meanwhile_is_not_overwritten(app: TestApp) -> None:
    gateway = next(each for each in await known_gateways(app.ports) if each.id == "simulator-test")
    for status in (GatewayStatus.DEGRADED, GatewayStatus.OPERATIONAL):
        await set_gateway(app.ports, gateway.id, status)
        ports = acting(app.ports, action("gateway.set", gateway.id, seen_version=gateway.version))
        with pytest.raises(Refusal, match="was changed meanwhile"):
            await set_gateway(ports, gateway.id, GatewayStatus.DOWN)
    assert await rows(app.ports) == []


async def test_a_reversed_refund_is_the_merchants_money_again() -> None:
    async with open_refund_app() as refunds:
        payment_id = await refunds.paid(mode="live")
        refund_id = await refunds.apply(payment_id, mode="live")
        await approve_refund(refunds.ports, refund_id)
        await refunds.app.work(5)
        assert await refunds.status(refund_id) == "completed"
        await reverse_refund(acting(refunds.ports, action("refund.reverse", refund_id)), refund_id)
        assert await refunds.said(refund_id) == ["completed", "reversed"]
        assert (await refunds.payment(payment_id)).status == "paid"
        with pytest.raises(Refusal) as refused:
            await reverse_refund(refunds.ports, refund_id)
        assert refused.value.code == "INVALID_STATE"


async def test_the_row_of_settings_hides_secrets(app: TestApp) -> None:
    ports = acting(app.ports, action("account.set", app.account.account_id))
    wish = {"webhook_secret": "another-secret-of-the-tests", "refunds": "true"}
    await accounts.set_settings(ports, app.account.account_id, wish)
    [row] = await rows(app.ports)
    assert "refunds=true" in row.after
    assert "another-secret" not in row.before + row.after


async def test_looking_at_personal_data_is_an_action_of_its_own(app: TestApp) -> None:
    await note(app.ports, action("private.show", "pay_1", reason="the payer called"))
    [row] = await rows(app.ports)
    assert (row.action, row.reason, row.after) == ("private.show", "the payer called", "")


async def test_rows_can_be_neither_changed_nor_removed(app: TestApp) -> None:
    await note(app.ports, action("private.show"))
    [row] = await rows(app.ports)
    async with app.ports.storage.unit() as unit:
        repository = unit[AuditEntry]
        for change in (repository.save, repository.remove, repository.accrue):
            with pytest.raises(TypeError):
                change(row)
        with pytest.raises(TypeError):
            repository.increase(row.id, "version", 1)


class Overtaken(ForwardingStorage):
    """A storage whose first units are overtaken by others."""

    def __init__(self, inner: Storage, times: int) -> None:
        super().__init__(inner)
        self.times = times
        self.commits = 0

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        async with self.inner.unit() as unit:

            async def commit() -> None:
                self.commits += 1
                if self.commits <= self.times:
                    raise Stale("another unit was first")
                await unit.commit()

            yield OtherCommit(unit, commit)


async def test_an_action_that_loses_races_waits_for_its_turn_as_any_unit_does() -> None:
    async with open_refund_app() as refunds:
        refund_id = await waiting(refunds)
        storage = Overtaken(refunds.ports.storage, FREE)
        ports = msgspec.structs.replace(refunds.ports, storage=storage)
        async with storage.turn():
            doing = asyncio.ensure_future(approve_refund(acting(ports, action("refund.approve", refund_id)), refund_id))
            await at_rest()
            assert (storage.commits, doing.done()) == (FREE, False)
        assert (await doing).approved_at is not None
        assert len(await rows(refunds.ports)) == 1
