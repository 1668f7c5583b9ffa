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
from cambist.core.usecases.common.encrypted import event_body_aad, open_event_body
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.frontends.cli.recipes import RECIPES, filled
from tests.apps import WEBHOOK_SECRET, WEBHOOK_URL, TestApp
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.planting import beneath
from tests.proof_kit import DAY, open_exchange
from tests.subscription_app import bound, choose_calendar, play, subscribed

GATEWAY = "simulator-test"
GIVEN = {"amount": "490.00", "phone": "+79001112233", "gateway": GATEWAY}


async def numbers(app: TestApp) -> dict[str, list[int]]:
    """Return the sequence numbers of each object's events, in the order of writing. Other accounts' events stand under
    both ids."""
    found: dict[str, list[int]] = defaultdict(list)
    for event in sorted(await everything(app.ports, Event), key=lambda event: event.id):
        own = event.account_id == app.account.account_id
        found[event.object_id if own else f"{event.account_id} {event.object_id}"].append(event.sequence)
    return found


async def check(app: TestApp, *told: EventType) -> None:
    """Check that there are events of these types, and that every object's are numbered 1, 2, 3, … for each account."""
    assert set(told) <= {event.type for event in await everything(app.ports, Event)}
    for name, found in (await numbers(app)).items():
        assert sorted(found) == list(range(1, len(found) + 1)), name


async def perform(app: TestApp, name: str) -> None:
    """The calls of a recipe (`cambist trigger`), by the merchant's test keys."""
    known = dict(GIVEN)
    for each in RECIPES[name]:
        call = filled(each, known)
        keys = {"Idempotency_Key": str(uuid4())} if call.keyed else {}
        answer = await app.http.post(f"/api/v1{call.path}", json=dict(call.body), headers=app.headers(**keys))
        refused = msgspec.json.decode(answer.content)["error"]["code"] if answer.status_code >= 300 else None
        assert refused == call.refused, answer.text
        if call.keeps is not None:
            known[call.keeps] = msgspec.json.decode(answer.content)[call.keeps]
    await app.work(5)


@pytest.mark.parametrize("name", sorted(set(RECIPES) - {"webhook.test", "gateway.operational"}))
async def test_every_object_s_first_event_is_number_1(app: TestApp, name: str) -> None:
    wanted = dict.fromkeys(("refunds", "exchange", "recurring"), "true") | {"payout_wallet": WALLET}
    await set_settings(app.ports, app.account.account_id, wanted)
    await perform(app, name)
    await check(app)
    assert await numbers(app)


async def test_a_link_that_the_answer_has_takes_no_number(app: TestApp) -> None:
    """In the calendar scheme the link is usually in the answer to the creation, and no event reports it."""
    await choose_calendar(app)
    made = await subscribed(app)
    assert made["binding_url"] is not None
    assert (await play(app, made["id"], "confirm")).status_code == 200
    assert (await numbers(app))[made["id"]] == [1]


async def test_events_of_attempts_share_the_sequence(app: TestApp) -> None:
    made = await bound(app)
    for _ in range(2):
        await app.work(40 * DAY)
        for _ in range(6):
            headers = app.headers(Idempotency_Key=str(uuid4()))
            path = f"/api/v1/subscriptions/{made['id']}/charges"
            charge = await app.http.post(path, json={"amount_rub": "500.00"}, headers=headers)
            if charge.status_code == 201:
                await app.simulate(charge.json()["id"], outcome="failed")
            await app.work(DAY / 4)
    await check(app, EventType.CHARGE_EXHAUSTED)


async def test_reminders_are_numbered_with_the_moves_of_their_payment() -> None:
    async with open_exchange() as exchange:
        payment_id = await exchange.paid()
        await exchange.work_to_hour(payment_id, 100)
        await check(exchange.app, EventType.DELIVERY_PROOF_REMINDER)


async def test_a_gateway_s_events_are_counted_for_each_account(app: TestApp) -> None:
    """A new account starts from 1, and an account that received nothing for a while has no gap."""
    own, wish = app.account.account_id, {"webhook_url": WEBHOOK_URL, "webhook_secret": WEBHOOK_SECRET}
    await announce(app, "down")
    later = (await create_account(app.ports, "Later")).account_id
    await set_settings(app.ports, later, wish)
    await announce(app, "operational")
    await set_settings(app.ports, own, dict.fromkeys(wish, ""))
    await announce(app, "degraded")
    await set_settings(app.ports, own, wish)
    await simulate(app, "down")
    await announce(app, "operational")
    await check(app, EventType.GATEWAY_STATUS_CHANGED)
    assert await numbers(app) == {GATEWAY: [1, 2, 3, 4], f"{later} {GATEWAY}": [1, 2, 3]}


async def test_sequence_continues_after_forgetting_and_an_uncounted_event(app: TestApp) -> None:
    """A process of an older version, without the counts, takes the sequence from all events."""
    await simulate(app, "down")
    for number in (2, 3):
        assert (await app.http.delete("/api/v1/sandbox/data", headers=app.headers())).status_code == 200
        await simulate(app, "down")
        assert await numbers(app) == {GATEWAY: [number]}
    [told] = await everything(app.ports, Event)
    async with beneath(app.ports).unit() as unit:
        after = told.created_at + timedelta(seconds=1)
        body = app.ports.vault.encrypt(open_event_body(app.ports.vault, told), event_body_aad("evt_before"))
        unit[Event].add(msgspec.structs.replace(told, id="evt_before", sequence=4, created_at=after, body=body))
        await unit.commit()
    await app.clock.advance(2)
    await simulate(app, "operational")
    assert sorted((await numbers(app))[GATEWAY]) == [3, 4, 5]


async def announce(app: TestApp, status: str) -> None:
    """Send the event of the gateway's status to all merchants."""
    await set_gateway(app.ports, GATEWAY, GatewayStatus(status))
    await app.work(61)


async def simulate(app: TestApp, status: str) -> None:
    """The merchant simulates a status of the gateway."""
    path = f"/api/v1/sandbox/gateways/{GATEWAY}/simulate"
    assert (await app.http.post(path, json={"status": status}, headers=app.headers())).status_code == 200
