"""GET /sandbox/letters: the feed that `cambist listen` follows. It loses none, whatever order units commit in."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import msgspec

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.events import Event, EventType
from cambist.core.domain.webhooks.feed import KEPT, FeedEntry
from cambist.core.domain.webhooks.signing import Signer, standard_secret, verify_signature
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.common.encrypted import event_body_aad
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.webhooks.feed import BATCH, TIDY, first_tidying, note_letters
from cambist.core.usecases.webhooks.outbox import announce
from cambist.frontends.http.edge.streams import WindowStreams
from cambist.frontends.server.app import create_app
from cambist.ports.jobs import Job
from tests.apps import WEBHOOK_SECRET, TestApp, open_test_app
from tests.domain.test_payloads import full
from tests.tables import table


async def letters(app: TestApp, client: httpx.AsyncClient | None = None, **query: str) -> dict[str, Any]:
    response = await (client or app.http).get("/api/v1/sandbox/letters", params=query, headers=app.headers())
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def failed(app: TestApp) -> str:
    payment: str = (await app.created())["id"]
    await app.simulate(payment, outcome="failed")
    return payment


def event(app: TestApp, number: int) -> Event:

    event_id = f"evt_{app.ports.ids.uuid()}"
    body = app.ports.vault.encrypt(msgspec.json.encode(full("gateway.status_changed")), event_body_aad(event_id))
    return Event(
        id=event_id,
        account_id=app.account.account_id,
        mode=Mode.TEST,
        type=EventType.GATEWAY_STATUS_CHANGED,
        object_id="g",
        sequence=number,
        body=body,
        created_at=app.clock.now(),
    )


async def write(app: TestApp, *events: Event) -> None:
    async with app.ports.storage.unit() as unit:
        for each in events:
            announce(app.ports, unit, each, None)
        await unit.commit()


async def test_letters_carry_the_very_text_and_the_accounts_own_signature(app: TestApp) -> None:
    payment = await failed(app)
    found = await letters(app)
    [letter] = found["data"]
    assert (letter["type"], letter["object_id"], letter["sequence"]) == ("payment.status_changed", payment, 1)
    assert (letter["resent"], letter["headers"]["X-Webhook-Attempt"]) == (False, "1")
    assert found["signing_secret"] is None
    sent = int(letter["headers"]["X-Webhook-Timestamp"])
    assert sent == int(app.clock.now().timestamp())
    assert verify_signature(letter["headers"], letter["body"].encode(), [WEBHOOK_SECRET], sent) == letter["id"]
    await app.work()
    assert app.postman.webhooks[0].body.decode() == letter["body"]


async def test_an_account_without_a_secret_is_shown_one_that_lasts() -> None:
    async with open_test_app(receiver=False) as app:
        await failed(app)
        found, again = await letters(app), await letters(app)
        secret = found["signing_secret"]
        assert secret == again["signing_secret"]
        assert standard_secret(secret) == secret
        [letter] = found["data"]
        body = letter["body"].encode()
        assert (
            verify_signature(letter["headers"], body, [secret], int(letter["headers"]["X-Webhook-Timestamp"]))
            == letter["id"]
        )
        other = await accounts.create_account(app.ports, "Another")
        app.account = other
        assert (await letters(app))["signing_secret"] != secret


async def test_both_secrets_sign_during_a_rotation(app: TestApp) -> None:
    """For 24 hours both secrets sign (docs/webhooks.md "Changing the secret")."""
    await failed(app)
    new = "another-secret-of-the-tests"
    await accounts.set_settings(app.ports, app.account.account_id, {"webhook_secret": new})
    [letter] = (await letters(app))["data"]
    sent = int(letter["headers"]["X-Webhook-Timestamp"])
    body = letter["body"].encode()
    assert verify_signature(letter["headers"], body, [WEBHOOK_SECRET], sent) == letter["id"]
    signatures = letter["headers"]["webhook-signature"].split(" ")
    for secret in (WEBHOOK_SECRET, new):
        assert Signer(secret).standard_signature(letter["id"], sent, body) in signatures
    await app.clock.advance(timedelta(hours=24).total_seconds())
    [letter] = (await letters(app))["data"]
    sent = int(letter["headers"]["X-Webhook-Timestamp"])
    assert letter["headers"]["webhook-signature"] == Signer(new).standard_signature(letter["id"], sent, body)


async def test_the_cursor_goes_on_where_it_stopped(app: TestApp) -> None:
    here = await letters(app, after="now")
    assert (here["cursor"], here["more"]) == ("0", False)
    first = await failed(app)
    assert (await letters(app, after="now"))["data"] == []
    here = await letters(app, after="0")
    assert [letter["object_id"] for letter in here["data"]] == [first]
    second = await failed(app)
    there = await letters(app, after=here["cursor"])
    assert [letter["object_id"] for letter in there["data"]] == [second]
    assert (await letters(app, after=there["cursor"]))["data"] == []
    everything = await letters(app, after="beginning")
    assert [letter["object_id"] for letter in everything["data"]] == [first, second]
    [one, _] = everything["data"]
    assert [each["object_id"] for each in (await letters(app, after=one["cursor"]))["data"]] == [second]


async def test_an_event_that_is_committed_late_is_not_passed_over(app: TestApp) -> None:
    """The late event's id and time are older than those of events read before."""
    late, early = event(app, 1), event(app, 2)
    async with app.ports.storage.unit() as unit:
        announce(app.ports, unit, late, None)
        await app.clock.advance(3600)
        await write(app, early)
        read = await letters(app)
        assert [letter["id"] for letter in read["data"]] == [early.id]
        await unit.commit()
    assert [letter["id"] for letter in (await letters(app, after=read["cursor"]))["data"]] == [late.id]
    assert [letter["id"] for letter in (await letters(app))["data"]] == [early.id, late.id]


async def test_many_readers_at_once_see_one_order_and_every_event(app: TestApp) -> None:
    written = [event(app, number) for number in range(3 * BATCH + 7)]
    await write(app, *written)

    async def follow() -> list[str]:
        seen: list[str] = []
        cursor, more = "beginning", True
        while more:
            stretch = await letters(app, after=cursor)
            seen += [letter["id"] for letter in stretch["data"]]
            cursor, more = stretch["cursor"], stretch["more"]
        return seen

    for seen in await asyncio.gather(*(follow() for _ in range(5))):
        assert seen == [each.id for each in written]


@table("receiver", [True, False])
async def test_resent_event_comes_again(receiver: bool) -> None:
    """At the end of the feed, with its own id; also where the account has no receiver."""
    async with open_test_app(receiver=receiver) as app:
        await failed(app)
        read = await letters(app)
        [letter] = read["data"]
        resent = await app.http.post(f"/api/v1/events/{letter['id']}/resend", headers=app.headers())
        assert resent.status_code == 200
        [again] = (await letters(app, after=read["cursor"]))["data"]
        assert (again["id"], again["body"], again["resent"]) == (letter["id"], letter["body"], True)


async def test_types_choose_and_the_cursor_passes_over_the_others(app: TestApp) -> None:
    await failed(app)
    await write(app, event(app, 1))
    found = await letters(app, types="gateway.status_changed,refund.failed")
    assert [letter["type"] for letter in found["data"]] == ["gateway.status_changed"]
    none = await letters(app, types="refund.failed")
    assert (none["data"], none["cursor"]) == ([], found["cursor"])


async def test_a_feed_is_its_accounts_alone_and_of_test_mode_alone(app: TestApp) -> None:
    await failed(app)
    live = (await app.create(mode="live")).json()["id"]
    async with app.ports.storage.unit() as unit:
        note_letters(app.ports, unit, [("evt_x", app.account.account_id, Mode.LIVE)])
        await unit.commit()
    await app.work(3600)
    assert (await app.events(live)) != []
    assert len((await letters(app))["data"]) == 1
    other = await accounts.create_account(app.ports, "Another")
    app.account = other
    assert (await letters(app))["data"] == []
    refused = await app.get("/sandbox/letters", mode="live")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_odd_values_are_refused(app: TestApp) -> None:
    await failed(app)
    # A cursor from another installation would wait for a past event. A digit may be of any script.
    odd = ("after=9", "after=-1", "after=x", "after=", "after=%D9%A1", f"after={'1' * 4400}")
    for query in (*odd, "wait=31", "wait=x", "wait=-1", "types=x", "types="):
        response = await app.get(f"/sandbox/letters?{query}")
        assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR"), query


async def test_a_waiting_question_is_answered_when_something_happens(app: TestApp) -> None:
    waiting = asyncio.create_task(letters(app, wait="25"))
    await app.clock.advance(10)
    assert not waiting.done()
    written = event(app, 1)
    await write(app, written)
    await app.clock.advance(0.6)
    assert [letter["id"] for letter in (await waiting)["data"]] == [written.id]


async def test_a_waiting_question_ends_by_itself(app: TestApp) -> None:
    waiting = asyncio.create_task(letters(app, wait="5"))
    await app.clock.advance(4.9)
    assert not waiting.done()
    await app.clock.advance(1)
    assert (await waiting)["data"] == []


async def test_a_waiting_question_does_not_hold_up_the_stop_of_the_service(app: TestApp) -> None:
    streams = WindowStreams()
    transport = httpx.ASGITransport(create_app(app.ports, streams=streams))  # type: ignore[arg-type]  # the types of two ASGI libraries differ in name only
    async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
        waiting = asyncio.create_task(letters(app, client, wait="25"))
        await app.clock.advance(1)
        assert (waiting.done(), streams.open) == (False, 1)
        streams.end()
        assert (await waiting)["data"] == []
        assert streams.open == 0
        # None is opened any more, so the clock need not move.
        assert (await letters(app, client, wait="25"))["data"] == []


async def test_too_many_waiting_questions_are_answered_at_once(app: TestApp) -> None:
    transport = httpx.ASGITransport(create_app(app.ports, streams=WindowStreams(limit=0)))  # type: ignore[arg-type]  # as above
    async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
        assert (await letters(app, client, wait="25"))["data"] == []


async def test_old_entries_are_tidied_away_and_young_ones_stay(app: TestApp) -> None:
    await start_recurring_jobs(app.ports)
    async with app.ports.storage.unit() as unit:
        assert await unit[Job].get(first_tidying(app.ports).id) is not None
    await write(app, *(event(app, number) for number in range(2 * BATCH + 5)))
    await app.work((KEPT - timedelta(days=1)).total_seconds())
    young = event(app, 1)
    await write(app, young)
    read = await letters(app, after="now")
    await app.work(timedelta(days=2).total_seconds())
    async with app.ports.storage.unit() as unit:
        left = await unit[FeedEntry].find()
    assert [entry.event_id for entry in left] == [young.id]
    job = await app.ports.storage.get(Job, TIDY)
    assert job is not None
    assert (job.attempts, app.clock.now() < job.due <= app.clock.now() + timedelta(days=1)) == (0, True)
    newer = event(app, 2)
    await write(app, newer)
    # Positions continue; every cursor stays valid.
    assert [each["id"] for each in (await letters(app, after=read["cursor"]))["data"]] == [newer.id]
