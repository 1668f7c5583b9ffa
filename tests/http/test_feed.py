"""GET /sandbox/letters: the feed that `cambist listen` follows. It loses none, whatever order units commit in."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.events import Event, EventType
from cambist.core.domain.webhooks.feed import KEPT, FeedEntry
from cambist.core.domain.webhooks.signing import Signer, standard_secret, verify_signature
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.sealed import event_body_place
from cambist.core.usecases.standing import start_standing
from cambist.core.usecases.webhooks.feed import BATCH, TIDY, first_tidying, note_letters
from cambist.core.usecases.webhooks.outbox import announce
from cambist.frontends.http.app import create_app
from cambist.frontends.http.door.streams import WindowStreams
from cambist.ports.jobs import Job
from tests.domain.test_payloads import full
from tests.houses import WEBHOOK_SECRET, TestHouse, open_test_house


async def letters(house: TestHouse, client: httpx.AsyncClient | None = None, **query: str) -> dict[str, Any]:
    response = await (client or house.http).get("/api/v1/sandbox/letters", params=query, headers=house.headers())
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def failed(house: TestHouse) -> str:
    payment: str = (await house.created())["id"]
    await house.simulate(payment, outcome="failed")
    return payment


def event(house: TestHouse, number: int) -> Event:

    event_id = f"evt_{house.ports.ids.uuid()}"
    body = house.ports.vault.seal(msgspec.json.encode(full("gateway.status_changed")), event_body_place(event_id))
    return Event(
        id=event_id,
        account_id=house.account.account_id,
        mode=Mode.TEST,
        type=EventType.GATEWAY_STATUS_CHANGED,
        object_id="g",
        sequence=number,
        body=body,
        created_at=house.clock.now(),
    )


async def write(house: TestHouse, *events: Event) -> None:
    async with house.ports.storage.unit() as unit:
        for each in events:
            announce(house.ports, unit, each, None)
        await unit.commit()


async def test_letters_carry_the_very_text_and_the_accounts_own_signature(house: TestHouse) -> None:
    payment = await failed(house)
    found = await letters(house)
    [letter] = found["data"]
    assert (letter["type"], letter["object_id"], letter["sequence"]) == ("payment.status_changed", payment, 1)
    assert (letter["resent"], letter["headers"]["X-Webhook-Attempt"]) == (False, "1")
    assert found["signing_secret"] is None
    sent = int(letter["headers"]["X-Webhook-Timestamp"])
    assert sent == int(house.clock.now().timestamp())
    assert verify_signature(letter["headers"], letter["body"].encode(), [WEBHOOK_SECRET], sent) == letter["id"]
    await house.work()
    assert house.postman.webhooks[0].body.decode() == letter["body"]


async def test_an_account_without_a_secret_is_shown_one_that_lasts() -> None:
    async with open_test_house(receiver=False) as house:
        await failed(house)
        found, again = await letters(house), await letters(house)
        secret = found["signing_secret"]
        assert secret == again["signing_secret"]
        assert standard_secret(secret) == secret
        [letter] = found["data"]
        body = letter["body"].encode()
        assert (
            verify_signature(letter["headers"], body, [secret], int(letter["headers"]["X-Webhook-Timestamp"]))
            == letter["id"]
        )
        other = await accounts.create_account(house.ports, "Another")
        house.account = other
        assert (await letters(house))["signing_secret"] != secret


async def test_while_a_secret_is_being_rotated_both_sign(house: TestHouse) -> None:
    """For 24 hours both secrets sign (docs/webhooks.md "Changing the secret")."""
    await failed(house)
    new = "another-secret-of-the-tests"
    await accounts.set_settings(house.ports, house.account.account_id, {"webhook_secret": new})
    [letter] = (await letters(house))["data"]
    sent = int(letter["headers"]["X-Webhook-Timestamp"])
    body = letter["body"].encode()
    assert verify_signature(letter["headers"], body, [WEBHOOK_SECRET], sent) == letter["id"]
    signatures = letter["headers"]["webhook-signature"].split(" ")
    for secret in (WEBHOOK_SECRET, new):
        assert Signer(secret).standard_signature(letter["id"], sent, body) in signatures
    await house.clock.advance(timedelta(hours=24).total_seconds())
    [letter] = (await letters(house))["data"]
    sent = int(letter["headers"]["X-Webhook-Timestamp"])
    assert letter["headers"]["webhook-signature"] == Signer(new).standard_signature(letter["id"], sent, body)


async def test_the_cursor_goes_on_where_it_stopped(house: TestHouse) -> None:
    here = await letters(house, after="now")
    assert (here["cursor"], here["more"]) == ("0", False)
    first = await failed(house)
    assert (await letters(house, after="now"))["data"] == []
    here = await letters(house, after="0")
    assert [letter["object_id"] for letter in here["data"]] == [first]
    second = await failed(house)
    there = await letters(house, after=here["cursor"])
    assert [letter["object_id"] for letter in there["data"]] == [second]
    assert (await letters(house, after=there["cursor"]))["data"] == []
    everything = await letters(house, after="beginning")
    assert [letter["object_id"] for letter in everything["data"]] == [first, second]
    [one, _] = everything["data"]
    assert [each["object_id"] for each in (await letters(house, after=one["cursor"]))["data"]] == [second]


async def test_an_event_that_is_committed_late_is_not_passed_over(house: TestHouse) -> None:
    """The late event's id and time are older than those of events read before."""
    late, early = event(house, 1), event(house, 2)
    async with house.ports.storage.unit() as unit:
        announce(house.ports, unit, late, None)
        await house.clock.advance(3600)
        await write(house, early)
        read = await letters(house)
        assert [letter["id"] for letter in read["data"]] == [early.id]
        await unit.commit()
    assert [letter["id"] for letter in (await letters(house, after=read["cursor"]))["data"]] == [late.id]
    assert [letter["id"] for letter in (await letters(house))["data"]] == [early.id, late.id]


async def test_many_readers_at_once_see_one_order_and_every_event(house: TestHouse) -> None:
    written = [event(house, number) for number in range(3 * BATCH + 7)]
    await write(house, *written)

    async def follow() -> list[str]:
        seen: list[str] = []
        cursor, more = "beginning", True
        while more:
            stretch = await letters(house, after=cursor)
            seen += [letter["id"] for letter in stretch["data"]]
            cursor, more = stretch["cursor"], stretch["more"]
        return seen

    for seen in await asyncio.gather(*(follow() for _ in range(5))):
        assert seen == [each.id for each in written]


@pytest.mark.parametrize("receiver", [True, False])
async def test_what_is_sent_again_comes_again(receiver: bool) -> None:
    """At the end of the feed, with its own id; also where the account has no receiver."""
    async with open_test_house(receiver=receiver) as house:
        await failed(house)
        read = await letters(house)
        [letter] = read["data"]
        resent = await house.http.post(f"/api/v1/events/{letter['id']}/resend", headers=house.headers())
        assert resent.status_code == 200
        [again] = (await letters(house, after=read["cursor"]))["data"]
        assert (again["id"], again["body"], again["resent"]) == (letter["id"], letter["body"], True)


async def test_types_choose_and_the_cursor_passes_over_the_others(house: TestHouse) -> None:
    await failed(house)
    await write(house, event(house, 1))
    found = await letters(house, types="gateway.status_changed,refund.failed")
    assert [letter["type"] for letter in found["data"]] == ["gateway.status_changed"]
    none = await letters(house, types="refund.failed")
    assert (none["data"], none["cursor"]) == ([], found["cursor"])


async def test_a_feed_is_its_accounts_alone_and_of_test_mode_alone(house: TestHouse) -> None:
    await failed(house)
    live = (await house.create(mode="live")).json()["id"]
    async with house.ports.storage.unit() as unit:
        note_letters(house.ports, unit, [("evt_x", house.account.account_id, Mode.LIVE)])
        await unit.commit()
    await house.work(3600)
    assert (await house.events(live)) != []
    assert len((await letters(house))["data"]) == 1
    other = await accounts.create_account(house.ports, "Another")
    house.account = other
    assert (await letters(house))["data"] == []
    refused = await house.get("/sandbox/letters", mode="live")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_odd_values_are_refused(house: TestHouse) -> None:
    await failed(house)
    # A cursor from another installation would wait for a past event. A digit may be of any script.
    odd = ("after=9", "after=-1", "after=x", "after=", "after=%D9%A1", f"after={'1' * 4400}")
    for query in (*odd, "wait=31", "wait=x", "wait=-1", "types=x", "types="):
        response = await house.get(f"/sandbox/letters?{query}")
        assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR"), query


async def test_a_waiting_question_is_answered_when_something_happens(house: TestHouse) -> None:
    waiting = asyncio.create_task(letters(house, wait="25"))
    await house.clock.advance(10)
    assert not waiting.done()
    written = event(house, 1)
    await write(house, written)
    await house.clock.advance(0.6)
    assert [letter["id"] for letter in (await waiting)["data"]] == [written.id]


async def test_a_waiting_question_ends_by_itself(house: TestHouse) -> None:
    waiting = asyncio.create_task(letters(house, wait="5"))
    await house.clock.advance(4.9)
    assert not waiting.done()
    await house.clock.advance(1)
    assert (await waiting)["data"] == []


async def test_a_waiting_question_does_not_hold_up_the_stop_of_the_service(house: TestHouse) -> None:
    streams = WindowStreams()
    transport = httpx.ASGITransport(create_app(house.ports, streams=streams))  # type: ignore[arg-type]  # the types of two ASGI libraries differ in name only
    async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
        waiting = asyncio.create_task(letters(house, client, wait="25"))
        await house.clock.advance(1)
        assert (waiting.done(), streams.open) == (False, 1)
        streams.end()
        assert (await waiting)["data"] == []
        assert streams.open == 0
        # None is opened any more, so the clock need not move.
        assert (await letters(house, client, wait="25"))["data"] == []


async def test_too_many_waiting_questions_are_answered_at_once(house: TestHouse) -> None:
    transport = httpx.ASGITransport(create_app(house.ports, streams=WindowStreams(limit=0)))  # type: ignore[arg-type]  # as above
    async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
        assert (await letters(house, client, wait="25"))["data"] == []


async def test_old_entries_are_tidied_away_and_young_ones_stay(house: TestHouse) -> None:
    await start_standing(house.ports)
    async with house.ports.storage.unit() as unit:
        assert await unit[Job].get(first_tidying(house.ports).id) is not None
    await write(house, *(event(house, number) for number in range(2 * BATCH + 5)))
    await house.work((KEPT - timedelta(days=1)).total_seconds())
    young = event(house, 1)
    await write(house, young)
    read = await letters(house, after="now")
    await house.work(timedelta(days=2).total_seconds())
    async with house.ports.storage.unit() as unit:
        left = await unit[FeedEntry].find()
    assert [entry.event_id for entry in left] == [young.id]
    job = await house.ports.storage.get(Job, TIDY)
    assert job is not None
    assert (job.attempts, house.clock.now() < job.due <= house.clock.now() + timedelta(days=1)) == (0, True)
    newer = event(house, 2)
    await write(house, newer)
    # Positions go on; every cursor stays valid.
    assert [each["id"] for each in (await letters(house, after=read["cursor"]))["data"]] == [newer.id]
