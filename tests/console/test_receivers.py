"""The page of a receiver that answered badly: its endpoint, and the webhooks that failed for it (docs/console.md)."""

import msgspec
import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.domain.webhooks.breaker import Breaker
from cambist.core.domain.webhooks.delivery import given_up
from cambist.core.domain.webhooks.endpoints import EndpointKey
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EndpointDelivery, EventType
from cambist.core.usecases.actions.audit import acting
from cambist.core.usecases.browse import events
from cambist.core.usecases.browse.browse import Wanted
from cambist.core.usecases.browse.events import TrackedEvent, browse_events, browse_receivers, resend_given_up
from cambist.core.usecases.browse.search import search
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.webhooks.endpoints import switch_endpoint
from cambist.core.usecases.webhooks.results import ask_now
from cambist.frontends.console.kinds.events import EVENTS
from cambist.frontends.console.kinds.kinds import Doing
from cambist.frontends.console.kinds.receivers import RECEIVERS
from tests.apps import WEBHOOK_URL, TestApp
from tests.http.test_webhook_endpoints import AWAY, URL, by_address, made, paid, sent_to
from tests.invariants import everything


async def broken(app: TestApp) -> EndpointKey:
    """A further endpoint for which a webhook was given up; the account's own is broken, too, and gave up nothing."""
    endpoint = (await made(app))["id"]
    by_address(app, {URL: AWAY, WEBHOOK_URL: AWAY})
    await paid(app)
    await app.work(30)
    by_address(app, {})
    await app.work(3600)
    async with app.ports.storage.unit() as unit:
        [delivery] = await unit[EndpointDelivery].find(endpoint_id=endpoint)
        unit[EndpointDelivery].save(msgspec.structs.replace(delivery, status=DeliveryStatus.FAILED, due=None))
        await unit.commit()
    [further] = [each.id for each in await everything(app.ports, Breaker) if endpoint in each.id]
    return EndpointKey.of(further)


async def test_a_further_endpoint_has_a_page_with_its_address_and_what_failed(app: TestApp) -> None:
    key = await broken(app)
    shown = await RECEIVERS.get(app.ports, key.id)
    assert shown is not None
    facts = dict(RECEIVERS.facts(shown))
    assert (facts["address"], facts["endpoint"], facts["wants"]) == (URL, key.further, "all events")
    assert (facts["given up"], facts["others"]) == ("1 webhook", "the account's own")
    own = await RECEIVERS.get(app.ports, EndpointKey(key.account_id, key.mode).id)
    assert own is not None
    facts = dict(RECEIVERS.facts(own))
    assert (facts["address"], facts["endpoint"], facts["given up"]) == (WEBHOOK_URL, "the account's own", "none")
    assert facts["others"] == key.further


async def test_failed_events_are_resent_to_that_receiver_alone(app: TestApp) -> None:
    key = await broken(app)
    before = len(sent_to(app, WEBHOOK_URL)), len(sent_to(app, URL))
    assert await resend_given_up(app.ports, key) == 1
    await app.work(5)
    assert (len(sent_to(app, WEBHOOK_URL)), len(sent_to(app, URL))) == (before[0], before[1] + 1)


async def test_both_are_listed_and_no_event_twice(app: TestApp) -> None:
    key = await broken(app)
    listed = await browse_receivers(app.ports, Wanted(), None, 10)
    assert {each.id for each in listed} == {key.id, EndpointKey(key.account_id, key.mode).id}
    for status in DeliveryStatus:
        listed_events = await browse_events(app.ports, Wanted(status=status), None, 10)
        assert len({each.id for each in listed_events}) == len(listed_events)
        assert {each.id for each in listed_events if "/" in each.id} == (
            {each.id for each in await everything(app.ports, EndpointDelivery)}
            if status is DeliveryStatus.FAILED
            else set()
        )
    [failed] = await browse_events(app.ports, Wanted(status=DeliveryStatus.FAILED), None, 10)
    assert await browse_events(app.ports, Wanted(status=DeliveryStatus.FAILED), failed, 10) == []
    assert await browse_events(
        app.ports, Wanted(status=DeliveryStatus.FAILED, account_id=key.account_id, mode=key.mode), None, 10
    ) == [failed]


async def test_a_delivery_to_a_further_endpoint_is_opened_and_sent_again_there(app: TestApp) -> None:
    key = await broken(app)
    [delivery] = await everything(app.ports, EndpointDelivery)
    shown = await EVENTS.get(app.ports, delivery.id)
    assert shown is not None
    facts = dict(EVENTS.facts(shown))
    assert (facts["status"], facts["endpoint"], facts["attempts"]) == ("failed", key.further, delivery.attempts)
    before = len(sent_to(app, WEBHOOK_URL)), len(sent_to(app, URL))
    [resend] = EVENTS.actions
    action = OperatorAction(operator="olga", name=resend.name, object_id=shown.id, seen_version=shown.version)
    ports = acting(app.ports, action)
    await resend.run(Doing(ports=ports, record=shown, given={}, tell=print))
    await app.work(5)
    assert (len(sent_to(app, WEBHOOK_URL)), len(sent_to(app, URL))) == (before[0], before[1] + 1)
    after = await EVENTS.get(app.ports, delivery.id)
    assert after is not None
    assert EVENTS.timeline is not None
    told = [each.text for each in await EVENTS.timeline(app.ports, after)]
    assert "olga: event.resend" in told
    with pytest.raises(Refusal, match="changed meanwhile"):
        await resend.run(Doing(ports=acting(app.ports, action), record=shown, given={}, tell=print))
    for nobody in (f"{delivery.event_id}/we_1", f"{delivery.event_id}/", "evt_1", "/", "evt_1/x"):
        assert await EVENTS.get(app.ports, nobody) is None


async def test_endpoint_is_found_by_its_id_before_the_first_webhook(app: TestApp) -> None:
    endpoint = (await made(app))["id"]
    [hit] = await search(app.ports, endpoint)
    assert (hit.kind, hit.object_id, hit.account_id) == ("receiver", endpoint, app.account.account_id)
    shown = await RECEIVERS.get(app.ports, hit.object_id)
    assert shown is not None
    facts = dict(RECEIVERS.facts(shown))
    assert (facts["address"], facts["endpoint"], facts["switched off"]) == (URL, endpoint, None)
    off = await switch_endpoint(acting(app.ports, OperatorAction(operator="olga", name="x")), endpoint, enabled=False)
    shown = await RECEIVERS.get(app.ports, off.key.id)
    assert shown is not None
    assert dict(RECEIVERS.facts(shown))["switched off"] == off.disabled_at
    for nobody in ("we_1", f"{app.account.account_id}:test/we_1", "x:y", "", f"{endpoint}0"):
        assert await RECEIVERS.get(app.ports, nobody) is None


async def test_the_action_item_counts_what_was_given_up_there(app: TestApp) -> None:
    key = await broken(app)
    items = [each for each in (await read_action_items(app.ports)).found if each.kind == "delivery"]
    assert [(each.object_id, each.text) for each in items] == [(key.id, "1 webhook given up")]


async def away(app: TestApp) -> EndpointKey:
    """The account's own endpoint, which is probed now and then, and has recovered."""
    by_address(app, {WEBHOOK_URL: AWAY})
    await paid(app)
    await app.work(3600)
    by_address(app, {})
    [own] = await everything(app.ports, Breaker)
    assert own.next_probe_at is not None
    return EndpointKey.of(own.id)


async def test_a_receiver_that_is_back_is_asked_before_its_time(app: TestApp) -> None:
    key = await away(app)
    [ask, _] = RECEIVERS.actions
    shown = await RECEIVERS.get(app.ports, key.id)
    assert shown is not None
    assert ask.allowed(shown)
    before = len(sent_to(app, WEBHOOK_URL))
    await app.work(5)
    assert len(sent_to(app, WEBHOOK_URL)) == before
    ports = acting(app.ports, OperatorAction(operator="olga", name=ask.name, object_id=shown.id, reason="it is back"))
    assert "asked now" in str(await ask.run(Doing(ports=ports, record=shown, given={}, tell=print)))
    await app.work(5)
    assert len(sent_to(app, WEBHOOK_URL)) > before
    after = await RECEIVERS.get(app.ports, key.id)
    assert after is not None
    assert (dict(RECEIVERS.facts(after))["breaker"], ask.allowed(after)) == ("closed", False)
    assert "olga: receiver.ask" in [each.text for each in await RECEIVERS.timeline(app.ports, after)]


async def test_failed_manual_probe_counts_and_delays_the_next_probe(app: TestApp) -> None:
    key = await away(app)
    by_address(app, {WEBHOOK_URL: AWAY})
    before = await app.ports.storage.get(Breaker, key.id)
    await ask_now(app.ports, key)
    await app.work(5)
    after = await app.ports.storage.get(Breaker, key.id)
    assert before is not None
    assert before.next_probe_at is not None
    assert after is not None
    assert after.probes == before.probes + 1
    assert after.next_probe_at is not None
    assert after.next_probe_at > before.next_probe_at


async def test_receiver_that_answers_or_has_nothing_waiting_is_not_probed(app: TestApp) -> None:
    key = await away(app)
    await ask_now(app.ports, key)
    await app.work(5)
    with pytest.raises(Refusal, match="is not waiting for a probe"):
        await ask_now(app.ports, key)
    with pytest.raises(Refusal, match="is not waiting for a probe"):
        await ask_now(app.ports, EndpointKey(key.account_id, key.mode, "we_1"))
    key = await away(app)
    async with app.ports.storage.unit() as unit:
        for each in await unit[Delivery].find(status=DeliveryStatus.PENDING):
            unit[Delivery].save(given_up(each))
        await unit.commit()
    with pytest.raises(Refusal, match="No webhook waits"):
        await ask_now(app.ports, key)


@pytest.mark.parametrize("newest_first", [True, False])
async def test_events_by_status_and_type_are_the_same_by_either_index(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, newest_first: bool
) -> None:
    await made(app)
    for _ in range(3):
        await paid(app)
        await app.clock.advance(1)
    await app.work(30)
    kind = EventType.PAYMENT_STATUS_CHANGED
    wanted = Wanted(status=DeliveryStatus.DELIVERED, newest_first=newest_first)
    few = await browse_events(app.ports, wanted, None, 100, kind=kind)
    assert len({each.id for each in few}) == len(few) == 6, "each went to both endpoints"
    assert await browse_events(app.ports, wanted, None, 100, kind=EventType.REFUND_FAILED) == []
    monkeypatch.setattr(events, "FEW", 1)
    many = await browse_events(app.ports, wanted, None, 100, kind=kind)
    assert {each.id for each in many} == {each.id for each in few}
    moments = [each.event.created_at for each in many]
    assert moments == sorted(moments, reverse=newest_first)
    assert len(await browse_events(app.ports, wanted, None, 3, kind=kind)) == 4, "all of an event are on one page"
    pages: list[TrackedEvent] = []
    while page := await browse_events(app.ports, wanted, pages[-1] if pages else None, 1, kind=kind):
        pages += page
    assert pages == many
    assert await browse_events(app.ports, wanted, None, 100, kind=EventType.REFUND_FAILED) == []
