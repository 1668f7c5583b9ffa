"""The page of a receiver that answered badly: its endpoint, and the webhooks that failed for it (docs/console.md)."""

import msgspec
import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import Act
from cambist.core.domain.webhooks.breaker import Breaker
from cambist.core.domain.webhooks.delivery import given_up
from cambist.core.domain.webhooks.endpoints import EndpointKey
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EndpointDelivery, EventType
from cambist.core.usecases.acts.audit import acting
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
from tests.houses import WEBHOOK_URL, TestHouse
from tests.http.test_webhook_endpoints import AWAY, URL, by_address, made, paid, sent_to
from tests.invariants import everything


async def broken(house: TestHouse) -> EndpointKey:
    """A further endpoint for which a webhook was given up; the account's own is broken, too, and gave up nothing."""
    endpoint = (await made(house))["id"]
    by_address(house, {URL: AWAY, WEBHOOK_URL: AWAY})
    await paid(house)
    await house.work(30)
    by_address(house, {})
    await house.work(3600)
    async with house.ports.storage.unit() as unit:
        [delivery] = await unit[EndpointDelivery].find(endpoint_id=endpoint)
        unit[EndpointDelivery].save(msgspec.structs.replace(delivery, status=DeliveryStatus.FAILED, due=None))
        await unit.commit()
    [further] = [each.id for each in await everything(house.ports, Breaker) if endpoint in each.id]
    return EndpointKey.of(further)


async def test_a_further_endpoint_has_a_page_with_its_address_and_what_failed(house: TestHouse) -> None:
    key = await broken(house)
    shown = await RECEIVERS.get(house.ports, key.id)
    assert shown is not None
    facts = dict(RECEIVERS.facts(shown))
    assert (facts["address"], facts["endpoint"], facts["wants"]) == (URL, key.further, "all events")
    assert (facts["given up"], facts["others"]) == ("1 webhook", "the account's own")
    own = await RECEIVERS.get(house.ports, EndpointKey(key.account_id, key.mode).id)
    assert own is not None
    facts = dict(RECEIVERS.facts(own))
    assert (facts["address"], facts["endpoint"], facts["given up"]) == (WEBHOOK_URL, "the account's own", "none")
    assert facts["others"] == key.further


async def test_what_failed_there_is_sent_again_there_alone(house: TestHouse) -> None:
    key = await broken(house)
    before = len(sent_to(house, WEBHOOK_URL)), len(sent_to(house, URL))
    assert await resend_given_up(house.ports, key) == 1
    await house.work(5)
    assert (len(sent_to(house, WEBHOOK_URL)), len(sent_to(house, URL))) == (before[0], before[1] + 1)


async def test_both_are_listed_and_no_event_twice(house: TestHouse) -> None:
    key = await broken(house)
    listed = await browse_receivers(house.ports, Wanted(), None, 10)
    assert {each.id for each in listed} == {key.id, EndpointKey(key.account_id, key.mode).id}
    for status in DeliveryStatus:
        listed_events = await browse_events(house.ports, Wanted(status=status), None, 10)
        assert len({each.id for each in listed_events}) == len(listed_events)
        assert {each.id for each in listed_events if "/" in each.id} == (
            {each.id for each in await everything(house.ports, EndpointDelivery)}
            if status is DeliveryStatus.FAILED
            else set()
        )
    [failed] = await browse_events(house.ports, Wanted(status=DeliveryStatus.FAILED), None, 10)
    assert await browse_events(house.ports, Wanted(status=DeliveryStatus.FAILED), failed, 10) == []
    assert await browse_events(
        house.ports, Wanted(status=DeliveryStatus.FAILED, account_id=key.account_id, mode=key.mode), None, 10
    ) == [failed]


async def test_a_delivery_to_a_further_endpoint_is_opened_and_sent_again_there(house: TestHouse) -> None:
    key = await broken(house)
    [delivery] = await everything(house.ports, EndpointDelivery)
    shown = await EVENTS.get(house.ports, delivery.id)
    assert shown is not None
    facts = dict(EVENTS.facts(shown))
    assert (facts["status"], facts["endpoint"], facts["attempts"]) == ("failed", key.further, delivery.attempts)
    before = len(sent_to(house, WEBHOOK_URL)), len(sent_to(house, URL))
    [resend] = EVENTS.acts
    act = Act(operator="olga", name=resend.name, object_id=shown.id, seen_version=shown.version)
    ports = acting(house.ports, act)
    await resend.run(Doing(ports=ports, record=shown, given={}, tell=print))
    await house.work(5)
    assert (len(sent_to(house, WEBHOOK_URL)), len(sent_to(house, URL))) == (before[0], before[1] + 1)
    after = await EVENTS.get(house.ports, delivery.id)
    assert after is not None
    assert EVENTS.timeline is not None
    told = [each.text for each in await EVENTS.timeline(house.ports, after)]
    assert "olga: event.resend" in told
    with pytest.raises(Refusal, match="changed meanwhile"):
        await resend.run(Doing(ports=acting(house.ports, act), record=shown, given={}, tell=print))
    for nobody in (f"{delivery.event_id}/we_1", f"{delivery.event_id}/", "evt_1", "/", "evt_1/x"):
        assert await EVENTS.get(house.ports, nobody) is None


async def test_endpoint_is_found_by_its_id_before_the_first_webhook(house: TestHouse) -> None:
    endpoint = (await made(house))["id"]
    [hit] = await search(house.ports, endpoint)
    assert (hit.kind, hit.object_id, hit.account_id) == ("receiver", endpoint, house.account.account_id)
    shown = await RECEIVERS.get(house.ports, hit.object_id)
    assert shown is not None
    facts = dict(RECEIVERS.facts(shown))
    assert (facts["address"], facts["endpoint"], facts["switched off"]) == (URL, endpoint, None)
    off = await switch_endpoint(acting(house.ports, Act(operator="olga", name="x")), endpoint, enabled=False)
    shown = await RECEIVERS.get(house.ports, off.key.id)
    assert shown is not None
    assert dict(RECEIVERS.facts(shown))["switched off"] == off.disabled_at
    for nobody in ("we_1", f"{house.account.account_id}:test/we_1", "x:y", "", f"{endpoint}0"):
        assert await RECEIVERS.get(house.ports, nobody) is None


async def test_the_action_item_counts_what_was_given_up_there(house: TestHouse) -> None:
    key = await broken(house)
    items = [each for each in (await read_action_items(house.ports)).found if each.kind == "delivery"]
    assert [(each.object_id, each.text) for each in items] == [(key.id, "1 webhook given up")]


async def away(house: TestHouse) -> EndpointKey:
    """The account's own endpoint, which is asked now and then, and is there again since."""
    by_address(house, {WEBHOOK_URL: AWAY})
    await paid(house)
    await house.work(3600)
    by_address(house, {})
    [own] = await everything(house.ports, Breaker)
    assert own.next_probe_at is not None
    return EndpointKey.of(own.id)


async def test_a_receiver_that_is_back_is_asked_before_its_time(house: TestHouse) -> None:
    key = await away(house)
    [ask, _] = RECEIVERS.acts
    shown = await RECEIVERS.get(house.ports, key.id)
    assert shown is not None
    assert ask.allowed(shown)
    before = len(sent_to(house, WEBHOOK_URL))
    await house.work(5)
    assert len(sent_to(house, WEBHOOK_URL)) == before
    ports = acting(house.ports, Act(operator="olga", name=ask.name, object_id=shown.id, reason="it is back"))
    assert "asked now" in str(await ask.run(Doing(ports=ports, record=shown, given={}, tell=print)))
    await house.work(5)
    assert len(sent_to(house, WEBHOOK_URL)) > before
    after = await RECEIVERS.get(house.ports, key.id)
    assert after is not None
    assert (dict(RECEIVERS.facts(after))["breaker"], ask.allowed(after)) == ("closed", False)
    assert "olga: receiver.ask" in [each.text for each in await RECEIVERS.timeline(house.ports, after)]


async def test_failed_manual_probe_counts_and_delays_the_next_probe(house: TestHouse) -> None:
    key = await away(house)
    by_address(house, {WEBHOOK_URL: AWAY})
    before = await house.ports.storage.get(Breaker, key.id)
    await ask_now(house.ports, key)
    await house.work(5)
    after = await house.ports.storage.get(Breaker, key.id)
    assert before is not None
    assert before.next_probe_at is not None
    assert after is not None
    assert after.probes == before.probes + 1
    assert after.next_probe_at is not None
    assert after.next_probe_at > before.next_probe_at


async def test_one_that_answers_or_has_nothing_waiting_is_not_asked(house: TestHouse) -> None:
    key = await away(house)
    await ask_now(house.ports, key)
    await house.work(5)
    with pytest.raises(Refusal, match="does not wait"):
        await ask_now(house.ports, key)
    with pytest.raises(Refusal, match="does not wait"):
        await ask_now(house.ports, EndpointKey(key.account_id, key.mode, "we_1"))
    key = await away(house)
    async with house.ports.storage.unit() as unit:
        for each in await unit[Delivery].find(status=DeliveryStatus.PENDING):
            unit[Delivery].save(given_up(each))
        await unit.commit()
    with pytest.raises(Refusal, match="Nothing waits"):
        await ask_now(house.ports, key)


@pytest.mark.parametrize("newest_first", [True, False])
async def test_by_status_and_type_events_are_the_same_whichever_index_is_gone_by(
    house: TestHouse, monkeypatch: pytest.MonkeyPatch, newest_first: bool
) -> None:
    await made(house)
    for _ in range(3):
        await paid(house)
        await house.clock.advance(1)
    await house.work(30)
    kind = EventType.PAYMENT_STATUS_CHANGED
    wanted = Wanted(status=DeliveryStatus.DELIVERED, newest_first=newest_first)
    few = await browse_events(house.ports, wanted, None, 100, kind=kind)
    assert len({each.id for each in few}) == len(few) == 6, "each went to both endpoints"
    assert await browse_events(house.ports, wanted, None, 100, kind=EventType.REFUND_FAILED) == []
    monkeypatch.setattr(events, "FEW", 1)
    many = await browse_events(house.ports, wanted, None, 100, kind=kind)
    assert {each.id for each in many} == {each.id for each in few}
    moments = [each.event.created_at for each in many]
    assert moments == sorted(moments, reverse=newest_first)
    assert len(await browse_events(house.ports, wanted, None, 3, kind=kind)) == 4, "all of an event are on one page"
    pages: list[TrackedEvent] = []
    while page := await browse_events(house.ports, wanted, pages[-1] if pages else None, 1, kind=kind):
        pages += page
    assert pages == many
    assert await browse_events(house.ports, wanted, None, 100, kind=EventType.REFUND_FAILED) == []
