"""Further webhook endpoints: merchants create, read, change and delete them, and each works independently
(docs/webhooks.md "Further endpoints")."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cambist.core.domain.accounts.accounts import Account
from cambist.core.domain.errors import Refusal
from cambist.core.domain.webhooks.breaker import Breaker
from cambist.core.domain.webhooks.delivery import LIFETIME
from cambist.core.domain.webhooks.endpoints import MOST, WebhookEndpoint
from cambist.core.domain.webhooks.events import Attempt, Delivery, EndpointDelivery, Event
from cambist.core.domain.webhooks.signing import NotVerified, verify_signature
from cambist.core.domain.webhooks.wanted import ALWAYS
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.retention import KEPT, first_retention
from cambist.core.usecases.webhooks.endpoints import switch_endpoint
from cambist.core.usecases.webhooks.outbox import ask_to_deliver, further_delivery
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from cambist.ports.storage import Storage
from tests.apps import WEBHOOK_SECRET, WEBHOOK_URL, TestApp, open_test_app
from tests.invariants import everything
from tests.subscription_app import bound
from tests.tables import table

PATH = "/api/v1/webhook-endpoints"
URL = "https://books.example/hooks"
AWAY = DeliveryResult(answer=Answer.RESPONDED, status=503)


async def send(
    app: TestApp, method: str, path: str, body: Any = None, *, mode: str = "test", **more: str
) -> httpx.Response:
    return await app.http.request(method, f"{PATH}{path}", json=body, headers=app.headers(mode, **more))


async def make(
    app: TestApp, *, url: str = URL, key: str | None = None, mode: str = "test", **body: Any
) -> httpx.Response:
    return await send(app, "POST", "", {"url": url, **body}, mode=mode, Idempotency_Key=key or str(uuid4()))


async def made(app: TestApp, **body: Any) -> dict[str, Any]:
    response = await make(app, **body)
    assert response.status_code == 201, response.text
    endpoint: dict[str, Any] = response.json()
    return endpoint


async def paid(app: TestApp) -> str:
    payment: str = (await app.created())["id"]
    await app.simulate(payment, outcome="paid")
    return payment


def refused(response: httpx.Response, status: int, code: str) -> str:
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    message: str = response.json()["error"]["message"]
    return message


def by_address(app: TestApp, answers: dict[str, DeliveryResult]) -> None:
    """From now on receivers of these addresses answer with these statuses, all others with 200."""

    async def answer(webhook: WebhookRequest) -> DeliveryResult:
        app.postman.webhooks.append(webhook)
        return answers.get(webhook.url, DeliveryResult(answer=Answer.RESPONDED, status=200))

    app.postman.send = answer  # type: ignore[method-assign]


def sent_to(app: TestApp, url: str) -> list[WebhookRequest]:
    return [webhook for webhook in app.postman.webhooks if webhook.url == url]


class TestMaking:
    async def test_new_endpoint_is_this_object_and_shows_its_secret_once(self, app: TestApp) -> None:
        new = await made(app, description="books")
        secret = new.pop("secret")
        assert len(secret) == 64
        assert new == {
            "id": new["id"],
            "url": URL,
            "event_types": None,
            "description": "books",
            "enabled": True,
            "header_names": [],
            "previous_secret_until": None,
            "breaker": {"state": "closed", "failures": 0, "opened_at": None, "next_probe_at": None},
            "backlog": {"held": 0, "pending": 0, "failed": 0},
            "last_success_at": None,
            "last_failure": None,
            "created_at": new["created_at"],
            "sandbox": True,
        }
        assert new["id"].startswith("we_")
        assert (await app.get(f"/webhook-endpoints/{new['id']}")).json() == new
        listed = (await app.get("/webhook-endpoints")).json()
        assert listed == {"data": [new], "pagination": {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}}
        assert (await app.get("/webhook-endpoint")).json()["url"] == WEBHOOK_URL, "the first is as it was"

    async def test_secret_of_an_endpoint_is_stored_encrypted(self, app: TestApp) -> None:
        new = await made(app)
        [stored] = await everything(app.ports, WebhookEndpoint)
        assert new["secret"].encode() not in stored.secret
        assert new["secret"] not in repr(stored)

    async def test_a_repeat_answers_with_the_same_one_and_without_the_secret(self, app: TestApp) -> None:
        key = str(uuid4())
        new = await made(app, key=key)
        again = await make(app, key=key, url="https://other.example")
        assert again.status_code == 200
        assert again.json() == {**new, "secret": None}
        other_mode = await make(app, key=key, mode="live")
        assert other_mode.status_code == 201
        await send(app, "DELETE", f"/{new['id']}")
        refused(await make(app, key=key), 404, "WEBHOOK_ENDPOINT_NOT_FOUND")

    async def test_a_key_is_needed_and_read_first(self, app: TestApp) -> None:
        refused(await send(app, "POST", "", {"url": "no"}), 400, "MISSING_IDEMPOTENCY_KEY")

    @table(
        "body, says",
        [
            ({}, "url"),
            ({"url": None}, "url"),
            ({"url": "ftp://m.example"}, "url: must be an http or https URL"),
            ({"url": URL, "event_types": ["nothing.such"]}, "event_types: must be some of: payment.status_changed"),
            ({"url": URL, "event_types": []}, "event_types: must name at least one type"),
            ({"url": URL, "description": "x" * 257}, "description: has at most 256 characters"),
            ({"url": URL, "description": "a\nb"}, "description: has at most 256 characters"),
            ({"url": URL, "secret": "mine"}, "secret"),
            ([], ""),
        ],
    )
    async def test_invalid_endpoint_is_refused(self, app: TestApp, body: Any, says: str) -> None:
        headers = app.headers(Idempotency_Key=str(uuid4()))
        answer = await app.http.post(PATH, json=body, headers=headers)
        assert says in refused(answer, 400, "VALIDATION_ERROR")
        assert await everything(app.ports, WebhookEndpoint) == []

    async def test_in_live_mode_its_address_is_https(self, app: TestApp) -> None:
        assert (await make(app, url="http://m.example")).status_code == 201
        said = refused(await make(app, url="http://m.example", mode="live"), 400, "VALIDATION_ERROR")
        assert said == "url: must be https in live mode"


class TestLimit:
    async def test_there_are_five_in_a_mode_with_the_account_s_own(self, app: TestApp) -> None:
        last = [await made(app) for _ in range(MOST - 1)][-1]
        for mode, status in (("test", 409), ("live", 201)):
            assert (await make(app, mode=mode)).status_code == status
        refused(await make(app), 409, "WEBHOOK_ENDPOINT_LIMIT")
        await send(app, "DELETE", f"/{last['id']}")
        assert (await make(app)).status_code == 201

    async def test_two_requests_at_once_make_no_sixth(self, app: TestApp) -> None:
        for _ in range(MOST - 2):
            await made(app)
        answers = await asyncio.gather(*(make(app) for _ in range(6)))
        assert sorted(each.status_code for each in answers) == [201, *[409] * 5]
        [account] = await everything(app.ports, Account)
        assert {ref.id for ref in account.endpoints} == {
            each.id for each in await everything(app.ports, WebhookEndpoint)
        }

    async def test_one_key_twice_at_once_makes_one_and_meets_no_limit(self, app: TestApp) -> None:
        for _ in range(MOST - 2):
            await made(app)
        key = str(uuid4())
        answers = await asyncio.gather(*(make(app, key=key) for _ in range(4)))
        assert sorted(each.status_code for each in answers) == [200, 200, 200, 201]
        assert len({each.json()["id"] for each in answers}) == 1


class TestWhoseItIs:
    @table(
        "method, path, body",
        [
            ("GET", "", None),
            ("PATCH", "", {"url": URL}),
            ("DELETE", "", None),
            ("POST", "/rotate-secret", None),
            ("POST", "/test", None),
            ("GET", "/events", None),
        ],
    )
    async def test_another_mode_and_what_is_none_are_404(self, app: TestApp, method: str, path: str, body: Any) -> None:
        live = (await make(app, mode="live")).json()["id"]
        for endpoint_id in (live, f"we_{uuid4()}", "we_", "we_%00", "evt_1", "%F0%9F%92%A9"):
            answer = await send(app, method, f"/{endpoint_id}{path}", body)
            refused(answer, 404, "WEBHOOK_ENDPOINT_NOT_FOUND")
        assert app.postman.webhooks == []
        await send(app, "DELETE", f"/{live}", mode="live")

    async def test_lists_are_of_the_mode(self, app: TestApp) -> None:
        await made(app)
        listed = (await app.get("/webhook-endpoints", mode="live")).json()
        assert listed["pagination"]["total"] == 0


class TestDelivering:
    async def test_every_endpoint_gets_the_event_signed_with_its_own_secret(self, app: TestApp) -> None:
        new = await made(app)
        payment = await paid(app)
        await app.work(5)
        [own], [further] = sent_to(app, WEBHOOK_URL), sent_to(app, URL)
        assert own.body == further.body
        assert own.headers["X-Webhook-Id"] == further.headers["X-Webhook-Id"]
        sent = int(further.headers["X-Webhook-Timestamp"])
        assert verify_signature(further.headers, further.body, [new["secret"]], sent)
        with pytest.raises(NotVerified):
            verify_signature(further.headers, further.body, [WEBHOOK_SECRET], sent)
        [event] = (await app.get(f"/events?object_id={payment}")).json()["data"]
        assert (event["endpoint_id"], event["attempt_count"]) == (None, 1)
        whole = (await app.get(f"/events/{event['id']}")).json()
        assert [each["endpoint_id"] for each in whole["attempts"]].count(new["id"]) == 1
        [there] = whole["further_deliveries"]
        assert (there["endpoint_id"], there["delivery_status"], there["attempt_count"]) == (new["id"], "delivered", 1)
        shown = (await app.get(f"/webhook-endpoints/{new['id']}")).json()
        assert shown["last_success_at"] is not None

    async def test_only_of_its_mode_and_from_then_on(self, app: TestApp) -> None:
        await paid(app)
        await app.work(5)
        await make(app, mode="live")
        new = await made(app, url="https://later.example")
        await paid(app)
        await app.work(5)
        assert sent_to(app, URL) == []
        assert len(sent_to(app, "https://later.example")) == 1
        listed = (await app.get(f"/webhook-endpoints/{new['id']}/events")).json()
        assert [each["endpoint_id"] for each in listed["data"]] == [new["id"]]

    async def test_only_the_types_that_it_wants(self, app: TestApp) -> None:
        new = await made(app, event_types=list(ALWAYS))
        await bound(app)
        await app.work(5)
        assert {each.headers["X-Webhook-Event"] for each in sent_to(app, URL)} == {"payment.status_changed"}
        assert (await send(app, "PATCH", f"/{new['id']}", {"event_types": ["*"]})).json()["event_types"] is None
        await bound(app)
        await app.work(5)
        types = {each.headers["X-Webhook-Event"] for each in sent_to(app, URL)}
        assert types == {"payment.status_changed", "subscription.status_changed"}

    async def test_webhook_endpoint_works_without_a_webhook_url(self) -> None:
        async with open_test_app(receiver=False) as app:
            await made(app)
            payment = await paid(app)
            await app.work(5)
            assert len(sent_to(app, URL)) == 1
            [event] = (await app.get(f"/events?object_id={payment}")).json()["data"]
            assert event["delivery_status"] == "held"

    async def test_dead_endpoint_has_its_own_backoff_and_delays_no_other(self, app: TestApp) -> None:
        dead, alive = await made(app), await made(app, url="https://alive.example")
        by_address(app, {URL: AWAY})
        for _ in range(4):
            await paid(app)
        await app.work(600)
        for url in (WEBHOOK_URL, "https://alive.example"):
            assert [int(each.headers["X-Webhook-Attempt"]) for each in sent_to(app, url)] == [1, 1, 1, 1]
        states = {each["id"]: each["breaker"]["state"] for each in (await app.get("/webhook-endpoints")).json()["data"]}
        assert states == {dead["id"]: "open", alive["id"]: "closed"}
        assert (await app.get("/webhook-endpoint")).json()["breaker"]["failures"] == 0
        shown = (await app.get(f"/webhook-endpoints/{dead['id']}")).json()
        assert shown["backlog"] == {"held": 0, "pending": 4, "failed": 0}
        events = {each["id"] for each in (await app.get("/events")).json()["data"]}
        assert shown["last_failure"]["event_id"] in events
        by_address(app, {})
        before = len(sent_to(app, URL))
        await app.work(3600)
        assert len(sent_to(app, URL)) == before + 4
        assert (await app.get(f"/webhook-endpoints/{dead['id']}")).json()["backlog"] == {
            "held": 0,
            "pending": 0,
            "failed": 0,
        }

    async def test_a_dead_own_one_delays_no_further_one(self, app: TestApp) -> None:
        await made(app)
        by_address(app, {WEBHOOK_URL: AWAY})
        for _ in range(3):
            await paid(app)
        await app.work(2)
        assert len(sent_to(app, URL)) == 3

    async def test_failed_events_of_an_endpoint_are_counted_listed_and_resent(self, app: TestApp) -> None:
        new = await made(app)
        by_address(app, {URL: AWAY})
        payment = await paid(app)
        await app.work(LIFETIME.total_seconds() + 4000)
        shown = (await app.get(f"/webhook-endpoints/{new['id']}")).json()
        assert shown["backlog"] == {"held": 0, "pending": 0, "failed": 1}
        path = f"/webhook-endpoints/{new['id']}/events?delivery_status=failed"
        [event] = (await app.get(path)).json()["data"]
        assert (event["object_id"], event["delivery_status"]) == (payment, "failed")
        by_address(app, {})
        again = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z", "delivery_status": "failed"}
        answer = await app.http.post(
            "/api/v1/events/resend", json={**again, "endpoint_id": new["id"]}, headers=app.headers()
        )
        assert answer.json() == {"events": 1}
        own = len(sent_to(app, WEBHOOK_URL))
        await app.work(60)
        assert (await app.get(path)).json()["data"] == []
        assert len(sent_to(app, WEBHOOK_URL)) == own, "the account's own is not asked for"


class TestSendingAgain:
    async def test_to_one_endpoint_only(self, app: TestApp) -> None:
        new = await made(app)
        await paid(app)
        await app.work(5)
        [event] = (await app.get("/events")).json()["data"]
        path = f"/api/v1/events/{event['id']}/resend"
        answer = await app.http.post(f"{path}?endpoint_id={new['id']}", headers=app.headers())
        assert (answer.json()["endpoint_id"], answer.json()["delivery_status"]) == (new["id"], "pending")
        await app.work(5)
        assert (len(sent_to(app, URL)), len(sent_to(app, WEBHOOK_URL))) == (2, 1)
        assert sent_to(app, URL)[-1].headers["X-Webhook-Attempt"] == "2"
        await app.http.post(path, headers=app.headers())
        await app.work(5)
        assert (len(sent_to(app, URL)), len(sent_to(app, WEBHOOK_URL))) == (2, 2)

    async def test_also_what_happened_before_it_was_there(self, app: TestApp) -> None:
        """So events written by a process of an older version reach it, too."""
        await paid(app)
        await app.work(5)
        new = await made(app)
        [event] = (await app.get("/events")).json()["data"]
        answer = await app.http.post(
            f"/api/v1/events/{event['id']}/resend?endpoint_id={new['id']}", headers=app.headers()
        )
        assert answer.status_code == 200
        body = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z", "endpoint_id": new["id"]}
        await app.work(5)
        assert len(sent_to(app, URL)) == 1
        await app.http.post("/api/v1/events/resend", json=body, headers=app.headers())
        await app.work(5)
        assert len(sent_to(app, URL)) == 2

    async def test_to_none_of_ours_is_404(self, app: TestApp) -> None:
        await paid(app)
        [event] = (await app.get("/events")).json()["data"]
        live = (await make(app, mode="live")).json()["id"]
        for endpoint_id in (live, "we_1", ""):
            path = f"/api/v1/events/{event['id']}/resend?endpoint_id={endpoint_id}"
            refused(await app.http.post(path, headers=app.headers()), 404, "WEBHOOK_ENDPOINT_NOT_FOUND")
            body = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z", "endpoint_id": endpoint_id}
            answer = await app.http.post("/api/v1/events/resend", json=body, headers=app.headers())
            refused(answer, 404, "WEBHOOK_ENDPOINT_NOT_FOUND")


BOOKS = ["payment.status_changed"]
REST = [each for each in ALWAYS if each != BOOKS[0]]


class TestTypesTogether:
    """Over all enabled endpoints of a mode, at least one gets each type about money."""

    async def first_takes(self, app: TestApp, types: Sequence[str]) -> None:
        await set_settings(app.ports, app.account.account_id, {"webhook_events": ",".join(types)})

    async def split(self, app: TestApp) -> str:
        """The first endpoint takes all but payments, a further one in each mode takes these."""
        await made(app, mode="live", event_types=BOOKS)
        new = await made(app, event_types=BOOKS)
        await self.first_takes(app, REST)
        return f"/{new['id']}"

    async def test_a_bookkeeping_endpoint_takes_payments_alone(self, app: TestApp) -> None:
        await self.split(app)
        await bound(app)
        await app.work(5)
        assert [each.headers["X-Webhook-Event"] for each in sent_to(app, URL)] == BOOKS
        assert sent_to(app, WEBHOOK_URL) == []

    @table(
        ("method", "body"),
        [
            ("DELETE", None),
            ("PATCH", {"enabled": False}),
            ("PATCH", {"event_types": ["kyc.status_changed"]}),
            ("PATCH", {"event_types": REST, "url": "https://new.example"}),
        ],
    )
    async def test_the_last_taker_of_a_type_stays(self, app: TestApp, method: str, body: Any) -> None:
        path = await self.split(app)
        before = (await send(app, "GET", path)).json()
        said = refused(await send(app, method, path, body), 409, "INVALID_STATE")
        assert said.startswith("No enabled webhook endpoint of test mode would take payment.status_changed: ")
        assert (await send(app, "GET", path)).json() == before
        other = await made(app, event_types=BOOKS)
        assert (await send(app, method, path, body)).status_code == 200
        refused(await send(app, "DELETE", f"/{other['id']}"), 409, "INVALID_STATE")
        await self.first_takes(app, ALWAYS)
        assert (await send(app, "DELETE", f"/{other['id']}")).status_code == 200

    async def test_an_operator_cannot_leave_a_type_without_a_taker(self, app: TestApp) -> None:
        path = await self.split(app)
        with pytest.raises(Refusal, match=r"would take payment\.status_changed"):
            await switch_endpoint(app.ports, path[1:], enabled=False)
        with pytest.raises(Refusal, match=f"of live mode would take {REST[0]}"):
            await self.first_takes(app, BOOKS)

    async def test_an_endpoint_that_is_off_takes_nothing(self, app: TestApp) -> None:
        path = await self.split(app)
        off = await made(app, event_types=BOOKS)
        assert (await send(app, "PATCH", f"/{off['id']}", {"enabled": False})).status_code == 200
        refused(await send(app, "DELETE", path), 409, "INVALID_STATE")

    async def test_two_removals_at_once_leave_a_taker(self, app: TestApp) -> None:
        path = await self.split(app)
        other = await made(app, event_types=BOOKS)
        answers = await asyncio.gather(
            send(app, "DELETE", path), send(app, "PATCH", f"/{other['id']}", {"enabled": False})
        )
        assert sorted(each.status_code for each in answers) == [200, 409]

    async def test_a_removal_and_the_operators_change_at_once_leave_a_taker(self, app: TestApp) -> None:
        new = await made(app, mode="live", event_types=BOOKS), await made(app, event_types=BOOKS)
        removal, change = await asyncio.gather(
            send(app, "DELETE", f"/{new[1]['id']}"), self.first_takes(app, REST), return_exceptions=True
        )
        assert isinstance(removal, httpx.Response)
        assert (removal.status_code == 200) is isinstance(change, Refusal)


class TestChanging:
    async def test_patch_keeps_the_fields_it_does_not_name(self, app: TestApp) -> None:
        new = await made(app, description="books", event_types=list(ALWAYS))
        changed = (await send(app, "PATCH", f"/{new['id']}", {"url": "https://new.example"})).json()
        assert (changed["url"], changed["description"]) == ("https://new.example", "books")
        assert changed["event_types"] == list(ALWAYS)
        cleared = (await send(app, "PATCH", f"/{new['id']}", {"description": "", "url": None})).json()
        assert (cleared["url"], cleared["description"]) == ("https://new.example", None)
        assert "secret" not in cleared
        said = refused(await send(app, "PATCH", f"/{new['id']}", {"url": "no"}), 400, "VALIDATION_ERROR")
        assert said.startswith("url: must be")

    async def test_another_address_closes_its_breaker_and_what_waits_leaves(self, app: TestApp) -> None:
        new = await made(app)
        by_address(app, {URL: AWAY})
        for _ in range(4):
            await paid(app)
        await app.work(600)
        await send(app, "PATCH", f"/{new['id']}", {"url": "https://new.example"})
        shown = (await app.get(f"/webhook-endpoints/{new['id']}")).json()
        assert shown["breaker"]["state"] == "closed"
        await app.work(2)
        assert len(sent_to(app, "https://new.example")) == 4

    async def test_a_new_secret_signs_and_the_old_one_beside_it_for_a_day(self, app: TestApp) -> None:
        new = await made(app)
        answer = (await send(app, "POST", f"/{new['id']}/rotate-secret")).json()
        assert answer["secret"] not in (None, new["secret"])
        assert answer["previous_secret_until"] is not None
        await paid(app)
        await app.work(5)
        [webhook] = sent_to(app, URL)
        sent = int(webhook.headers["X-Webhook-Timestamp"])
        assert verify_signature(webhook.headers, webhook.body, [new["secret"]], sent)
        assert len(webhook.headers["webhook-signature"].split(" v1,")) >= 2
        await app.work(25 * 3600)
        await paid(app)
        await app.work(5)
        webhook = sent_to(app, URL)[-1]
        sent = int(webhook.headers["X-Webhook-Timestamp"])
        assert verify_signature(webhook.headers, webhook.body, [answer["secret"]], sent)
        with pytest.raises(NotVerified):
            verify_signature(webhook.headers, webhook.body, [new["secret"]], sent)

    async def test_oldest_secret_still_signs_after_two_changes_within_a_day(self, app: TestApp) -> None:
        new = await made(app)
        await send(app, "POST", f"/{new['id']}/rotate-secret")
        await send(app, "POST", f"/{new['id']}/rotate-secret")
        await paid(app)
        await app.work(5)
        [webhook] = sent_to(app, URL)
        sent = int(webhook.headers["X-Webhook-Timestamp"])
        assert verify_signature(webhook.headers, webhook.body, [new["secret"]], sent)

    async def test_a_test_webhook_goes_there_alone(self, app: TestApp) -> None:
        new = await made(app)
        report = (await send(app, "POST", f"/{new['id']}/test")).json()
        assert report["delivered"] is True
        [webhook] = app.postman.webhooks
        assert (webhook.url, webhook.headers["X-Webhook-Event"]) == (URL, "webhook.test")
        assert webhook.open_network is True, "an address of this machine will do in test mode, by the first one's rule"
        live = (await make(app, mode="live")).json()
        await send(app, "POST", f"/{live['id']}/test", mode="live")
        assert app.postman.webhooks[-1].open_network is False


class TestDeleting:
    async def test_nothing_goes_there_any_more_and_nothing_is_left(self, app: TestApp) -> None:
        new = await made(app)
        by_address(app, {URL: AWAY})
        for _ in range(4):
            await paid(app)
        await app.work(600)
        answer = await send(app, "DELETE", f"/{new['id']}")
        assert (answer.status_code, answer.json()) == (200, {"id": new["id"], "deleted": True})
        refused(await send(app, "DELETE", f"/{new['id']}"), 404, "WEBHOOK_ENDPOINT_NOT_FOUND")
        before = len(sent_to(app, URL))
        await paid(app)
        await app.work(5000)
        assert len(sent_to(app, URL)) == before
        assert await everything(app.ports, EndpointDelivery) == []
        assert [each.endpoint_id for each in await everything(app.ports, Attempt) if each.endpoint_id] == []
        assert [each.id for each in await everything(app.ports, Breaker) if "/" in each.id] == []
        assert [each.id for each in await everything(app.ports, Job) if new["id"] in each.id] == []
        [account] = await everything(app.ports, Account)
        assert account.endpoints is None

    async def test_an_event_that_was_written_meanwhile_is_put_away(self, app: TestApp) -> None:
        """Its unit read the account before the endpoint was gone."""
        new = await made(app)
        payment = (await app.created())["id"]
        storage = app.ports.storage
        await app.simulate(payment, outcome="paid")
        await app.work(5)
        [kept] = await everything(app.ports, EndpointDelivery)
        await send(app, "DELETE", f"/{new['id']}")
        await app.work(5)
        await _write_late(storage, kept, app)
        await app.work(5)
        assert await everything(app.ports, EndpointDelivery) == []


async def _write_late(storage: Storage, kept: EndpointDelivery, app: TestApp) -> None:
    async with storage.unit() as unit:
        event = await unit[Event].get(kept.event_id)
        assert event is not None
        unit[EndpointDelivery].add(further_delivery(event, kept.endpoint_id))
        ask_to_deliver(app.ports, unit, event.account_id, event.mode, kept.endpoint_id)
        await unit.commit()


class TestKeeping:
    async def test_test_data_is_forgotten_and_the_endpoint_stays(self, app: TestApp) -> None:
        new = await made(app)
        await paid(app)
        await app.work(5)
        assert await everything(app.ports, EndpointDelivery)
        assert (await app.http.delete("/api/v1/sandbox/data", headers=app.headers())).status_code == 200
        for kind in (Event, Delivery, EndpointDelivery, Attempt, Breaker):
            assert await everything(app.ports, kind) == []
        assert (await app.get(f"/webhook-endpoints/{new['id']}")).status_code == 200

    async def test_after_30_days_an_event_is_deleted_with_what_went_everywhere(self, app: TestApp) -> None:
        await made(app)
        await paid(app)
        await app.work(5)
        await app.clock.advance((KEPT + LIFETIME).total_seconds())
        job = first_retention(app.clock.now())
        async with app.ports.storage.unit() as unit:
            unit[Job].add(job)
            await unit.commit()
        await app.work(1)
        for kind in (Event, Delivery, EndpointDelivery, Attempt):
            assert await everything(app.ports, kind) == []

    async def test_settings_of_the_operator_leave_further_ones_alone(self, app: TestApp) -> None:
        new = await made(app)
        await set_settings(app.ports, app.account.account_id, {"webhook_url": "", "acceptance": "true"})
        await paid(app)
        await app.work(5)
        assert len(sent_to(app, URL)) == 1
        assert (await app.get(f"/webhook-endpoints/{new['id']}")).json()["url"] == URL

    async def test_an_advance_of_the_test_clock_ends_beside_a_dead_endpoint(self, app: TestApp) -> None:
        await made(app)
        by_address(app, {URL: AWAY})
        await paid(app)
        answer = await app.http.post("/api/v1/sandbox/clock/advance", json={"seconds": 3600}, headers=app.headers())
        assert answer.status_code in (200, 202), answer.text
        await app.work(60)
        assert len(sent_to(app, WEBHOOK_URL)) == 1
