"""The page of a receiver that answered badly: its endpoint, and what was given up for it (docs/console.md)."""

import msgspec

from cambist.core.domain.webhooks.breaker import Breaker
from cambist.core.domain.webhooks.endpoints import EndpointKey
from cambist.core.domain.webhooks.events import DeliveryStatus, EndpointDelivery
from cambist.core.usecases.browse.browse import Wanted
from cambist.core.usecases.browse.events import browse_events, browse_receivers, resend_given_up
from cambist.core.usecases.operators.action_items import read_action_items
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
        events = await browse_events(house.ports, Wanted(status=status), None, 10)
        assert len({each.id for each in events}) == len(events)


async def test_the_action_item_counts_what_was_given_up_there(house: TestHouse) -> None:
    key = await broken(house)
    items = [each for each in (await read_action_items(house.ports)).found if each.kind == "delivery"]
    assert [(each.object_id, each.text) for each in items] == [(key.id, "1 webhook given up")]
