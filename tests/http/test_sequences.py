"""`X-Webhook-Sequence` begins with 1 and has no gaps, whatever the events are about (docs/webhooks.md "What a receiver
does")."""

from collections import defaultdict
from uuid import uuid4

import msgspec
import pytest

from cambist.core.domain.webhooks.events import Event, EventType
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.frontends.cli.recipes import RECIPES, filled
from tests.houses import TestHouse
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.proof_kit import DAY, open_exchange
from tests.subscription_house import bound, choose_calendar, play, subscribed

GIVEN = {"amount": "490.00", "phone": "+79001112233", "gateway": "simulator-test"}


async def numbers(house: TestHouse) -> dict[str, list[int]]:
    """The numbers that each object's events bear, in the order in which they were written."""
    found: dict[str, list[int]] = defaultdict(list)
    for event in sorted(await everything(house.ports, Event), key=lambda event: event.id):
        found[event.object_id].append(event.sequence)
    return found


async def check(house: TestHouse, *told: EventType) -> None:
    """There are events of these types, and every object's are numbered 1, 2, 3, …"""
    assert set(told) <= {event.type for event in await everything(house.ports, Event)}
    for object_id, found in (await numbers(house)).items():
        assert sorted(found) == list(range(1, len(found) + 1)), object_id


async def perform(house: TestHouse, name: str) -> None:
    """The calls of a recipe (`cambist trigger`), by the merchant's test keys."""
    known = dict(GIVEN)
    for each in RECIPES[name]:
        call = filled(each, known)
        keys = {"Idempotency_Key": str(uuid4())} if call.keyed else {}
        answer = await house.http.post(f"/api/v1{call.path}", json=dict(call.body), headers=house.headers(**keys))
        assert answer.status_code < 300, answer.text
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
