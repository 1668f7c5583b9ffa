"""`X-Webhook-Sequence` begins with 1 and has no gaps, whatever the events are about (docs/webhooks.md "What a receiver
does")."""

from collections import defaultdict
from datetime import timedelta
from uuid import uuid4

import msgspec
import pytest

from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.webhooks.events import Event, EventType
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.core.usecases.sealed import event_body_place, open_event_body
from cambist.frontends.cli.recipes import RECIPES, filled
from tests.houses import WEBHOOK_SECRET, WEBHOOK_URL, TestHouse
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.planting import beneath
from tests.proof_kit import DAY, open_exchange
from tests.subscription_house import bound, choose_calendar, play, subscribed

GATEWAY = "simulator-test"
GIVEN = {"amount": "490.00", "phone": "+79001112233", "gateway": GATEWAY}


async def numbers(house: TestHouse) -> dict[str, list[int]]:
    """Return the sequence numbers of each object's events, in the order of writing. Other accounts' events stand under
    both ids."""
    found: dict[str, list[int]] = defaultdict(list)
    for event in sorted(await everything(house.ports, Event), key=lambda event: event.id):
        own = event.account_id == house.account.account_id
        found[event.object_id if own else f"{event.account_id} {event.object_id}"].append(event.sequence)
    return found


async def check(house: TestHouse, *told: EventType) -> None:
    """There are events of these types, and every object's are numbered 1, 2, 3, … for each account."""
    assert set(told) <= {event.type for event in await everything(house.ports, Event)}
    for name, found in (await numbers(house)).items():
        assert sorted(found) == list(range(1, len(found) + 1)), name


async def perform(house: TestHouse, name: str) -> None:
    """The calls of a recipe (`cambist trigger`), by the merchant's test keys."""
    known = dict(GIVEN)
    for each in RECIPES[name]:
        call = filled(each, known)
        keys = {"Idempotency_Key": str(uuid4())} if call.keyed else {}
        answer = await house.http.post(f"/api/v1{call.path}", json=dict(call.body), headers=house.headers(**keys))
        refused = msgspec.json.decode(answer.content)["error"]["code"] if answer.status_code >= 300 else None
        assert refused == call.refused, answer.text
        if call.keeps is not None:
            known[call.keeps] = msgspec.json.decode(answer.content)[call.keeps]
    await house.work(5)


@pytest.mark.parametrize("name", sorted(set(RECIPES) - {"webhook.test", "gateway.operational"}))
async def test_every_object_s_first_event_is_number_1(house: TestHouse, name: str) -> None:
    wanted = dict.fromkeys(("refunds", "exchange", "recurring"), "true") | {"payout_wallet": WALLET}
    await set_settings(house.ports, house.account.account_id, wanted)
    await perform(house, name)
    await check(house)
    assert await numbers(house)


async def test_a_link_that_the_answer_has_takes_no_number(house: TestHouse) -> None:
    """In the calendar scheme the link is usually in the creation's answer, and no event tells it."""
    await choose_calendar(house)
    made = await subscribed(house)
    assert made["binding_url"] is not None
    assert (await play(house, made["id"], "confirm")).status_code == 200
    assert (await numbers(house))[made["id"]] == [1]


async def test_what_is_told_of_attempts_is_numbered_with_the_rest(house: TestHouse) -> None:
    made = await bound(house)
    for _ in range(2):
        await house.work(40 * DAY)
        for _ in range(6):
            headers = house.headers(Idempotency_Key=str(uuid4()))
            path = f"/api/v1/subscriptions/{made['id']}/charges"
            charge = await house.http.post(path, json={"amount_rub": "500.00"}, headers=headers)
            if charge.status_code == 201:
                await house.simulate(charge.json()["id"], outcome="failed")
            await house.work(DAY / 4)
    await check(house, EventType.CHARGE_EXHAUSTED)


async def test_reminders_are_numbered_with_the_moves_of_their_payment() -> None:
    async with open_exchange() as exchange:
        payment_id = await exchange.paid()
        await exchange.work_to_hour(payment_id, 100)
        await check(exchange.house, EventType.DELIVERY_PROOF_REMINDER)


async def test_a_gateway_s_events_are_counted_for_each_account(house: TestHouse) -> None:
    """A new account starts from 1, and an account that received nothing for a while has no gap."""
    own, wish = house.account.account_id, {"webhook_url": WEBHOOK_URL, "webhook_secret": WEBHOOK_SECRET}
    await announce(house, "down")
    later = (await create_account(house.ports, "Later")).account_id
    await set_settings(house.ports, later, wish)
    await announce(house, "operational")
    await set_settings(house.ports, own, dict.fromkeys(wish, ""))
    await announce(house, "degraded")
    await set_settings(house.ports, own, wish)
    await pretend(house, "down")
    await announce(house, "operational")
    await check(house, EventType.GATEWAY_STATUS_CHANGED)
    assert await numbers(house) == {GATEWAY: [1, 2, 3, 4], f"{later} {GATEWAY}": [1, 2, 3]}


async def test_sequence_continues_after_forgetting_and_an_uncounted_event(house: TestHouse) -> None:
    """A program from before the counts, beside this one, tells by the sequence of all."""
    await pretend(house, "down")
    for number in (2, 3):
        assert (await house.http.delete("/api/v1/sandbox/data", headers=house.headers())).status_code == 200
        await pretend(house, "down")
        assert await numbers(house) == {GATEWAY: [number]}
    [told] = await everything(house.ports, Event)
    async with beneath(house.ports).unit() as unit:
        after = told.created_at + timedelta(seconds=1)
        body = house.ports.vault.seal(open_event_body(house.ports.vault, told), event_body_place("evt_before"))
        unit[Event].add(msgspec.structs.replace(told, id="evt_before", sequence=4, created_at=after, body=body))
        await unit.commit()
    await house.clock.advance(2)
    await pretend(house, "operational")
    assert sorted((await numbers(house))[GATEWAY]) == [3, 4, 5]


async def announce(house: TestHouse, status: str) -> None:
    """All merchants are told of the gateway."""
    await set_gateway(house.ports, GATEWAY, GatewayStatus(status))
    await house.work(61)


async def pretend(house: TestHouse, status: str) -> None:
    """The merchant simulates a status of the gateway."""
    path = f"/api/v1/sandbox/gateways/{GATEWAY}/simulate"
    assert (await house.http.post(path, json={"status": status}, headers=house.headers())).status_code == 200
