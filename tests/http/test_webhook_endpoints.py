"""Further webhook endpoints: made, read, changed and deleted by merchants, and each by itself
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
from tests.houses import WEBHOOK_SECRET, WEBHOOK_URL, TestHouse, open_test_house
from tests.invariants import everything
from tests.subscription_house import bound
from tests.tables import table

PATH = "/api/v1/webhook-endpoints"
URL = "https://books.example/hooks"
AWAY = DeliveryResult(answer=Answer.RESPONDED, status=503)


async def send(
    house: TestHouse, method: str, path: str, body: Any = None, *, mode: str = "test", **more: str
) -> httpx.Response:
    return await house.http.request(method, f"{PATH}{path}", json=body, headers=house.headers(mode, **more))


async def make(
    house: TestHouse, *, url: str = URL, key: str | None = None, mode: str = "test", **body: Any
) -> httpx.Response:
    return await send(house, "POST", "", {"url": url, **body}, mode=mode, Idempotency_Key=key or str(uuid4()))


async def made(house: TestHouse, **body: Any) -> dict[str, Any]:
    response = await make(house, **body)
    assert response.status_code == 201, response.text
    endpoint: dict[str, Any] = response.json()
    return endpoint


async def paid(house: TestHouse) -> str:
    payment: str = (await house.created())["id"]
    await house.simulate(payment, outcome="paid")
    return payment


def refused(response: httpx.Response, status: int, code: str) -> str:
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    message: str = response.json()["error"]["message"]
    return message


def by_address(house: TestHouse, answers: dict[str, DeliveryResult]) -> None:
    """From now on receivers of these addresses answer so, all others 200."""

    async def answer(webhook: WebhookRequest) -> DeliveryResult:
        house.postman.webhooks.append(webhook)
        return answers.get(webhook.url, DeliveryResult(answer=Answer.RESPONDED, status=200))

    house.postman.send = answer  # type: ignore[method-assign]


def sent_to(house: TestHouse, url: str) -> list[WebhookRequest]:
    return [webhook for webhook in house.postman.webhooks if webhook.url == url]


class TestMaking:
    async def test_its_object_is_this_and_the_secret_is_shown_once(self, house: TestHouse) -> None:
        new = await made(house, description="books")
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
        assert (await house.get(f"/webhook-endpoints/{new['id']}")).json() == new
        listed = (await house.get("/webhook-endpoints")).json()
        assert listed == {"data": [new], "pagination": {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}}
        assert (await house.get("/webhook-endpoint")).json()["url"] == WEBHOOK_URL, "the first is as it was"

    async def test_its_secret_is_sealed(self, house: TestHouse) -> None:
        new = await made(house)
        [stored] = await everything(house.ports, WebhookEndpoint)
        assert new["secret"].encode() not in stored.secret
        assert new["secret"] not in repr(stored)

    async def test_a_repeat_answers_with_the_same_one_and_without_the_secret(self, house: TestHouse) -> None:
        key = str(uuid4())
        new = await made(house, key=key)
        again = await make(house, key=key, url="https://other.example")
        assert again.status_code == 200
        assert again.json() == {**new, "secret": None}
        other_mode = await make(house, key=key, mode="live")
        assert other_mode.status_code == 201
        await send(house, "DELETE", f"/{new['id']}")
        refused(await make(house, key=key), 404, "WEBHOOK_ENDPOINT_NOT_FOUND")

    async def test_a_key_is_needed_and_read_first(self, house: TestHouse) -> None:
        refused(await send(house, "POST", "", {"url": "no"}), 400, "MISSING_IDEMPOTENCY_KEY")

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
    async def test_what_makes_none(self, house: TestHouse, body: Any, says: str) -> None:
        headers = house.headers(Idempotency_Key=str(uuid4()))
        answer = await house.http.post(PATH, json=body, headers=headers)
        assert says in refused(answer, 400, "VALIDATION_ERROR")
        assert await everything(house.ports, WebhookEndpoint) == []

    async def test_in_live_mode_its_address_is_https(self, house: TestHouse) -> None:
        assert (await make(house, url="http://m.example")).status_code == 201
        said = refused(await make(house, url="http://m.example", mode="live"), 400, "VALIDATION_ERROR")
        assert said == "url: must be https in live mode"


class TestLimit:
    async def test_there_are_five_in_a_mode_with_the_account_s_own(self, house: TestHouse) -> None:
        last = [await made(house) for _ in range(MOST - 1)][-1]
        for mode, status in (("test", 409), ("live", 201)):
            assert (await make(house, mode=mode)).status_code == status
        refused(await make(house), 409, "WEBHOOK_ENDPOINT_LIMIT")
        await send(house, "DELETE", f"/{last['id']}")
        assert (await make(house)).status_code == 201

    async def test_two_requests_at_once_make_no_sixth(self, house: TestHouse) -> None:
        for _ in range(MOST - 2):
            await made(house)
        answers = await asyncio.gather(*(make(house) for _ in range(6)))
        assert sorted(each.status_code for each in answers) == [201, *[409] * 5]
        [account] = await everything(house.ports, Account)
        assert {ref.id for ref in account.endpoints} == {
            each.id for each in await everything(house.ports, WebhookEndpoint)
        }

    async def test_one_key_twice_at_once_makes_one_and_meets_no_limit(self, house: TestHouse) -> None:
        for _ in range(MOST - 2):
            await made(house)
        key = str(uuid4())
        answers = await asyncio.gather(*(make(house, key=key) for _ in range(4)))
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
    async def test_another_mode_and_what_is_none_are_404(
        self, house: TestHouse, method: str, path: str, body: Any
    ) -> None:
        live = (await make(house, mode="live")).json()["id"]
        for endpoint_id in (live, f"we_{uuid4()}", "we_", "we_%00", "evt_1", "%F0%9F%92%A9"):
            answer = await send(house, method, f"/{endpoint_id}{path}", body)
            refused(answer, 404, "WEBHOOK_ENDPOINT_NOT_FOUND")
        assert house.postman.webhooks == []
        await send(house, "DELETE", f"/{live}", mode="live")

    async def test_lists_are_of_the_mode(self, house: TestHouse) -> None:
        await made(house)
        listed = (await house.get("/webhook-endpoints", mode="live")).json()
        assert listed["pagination"]["total"] == 0


class TestDelivering:
    async def test_every_endpoint_gets_the_event_signed_with_its_own_secret(self, house: TestHouse) -> None:
        new = await made(house)
        payment = await paid(house)
        await house.work(5)
        [own], [further] = sent_to(house, WEBHOOK_URL), sent_to(house, URL)
        assert own.body == further.body
        assert own.headers["X-Webhook-Id"] == further.headers["X-Webhook-Id"]
        sent = int(further.headers["X-Webhook-Timestamp"])
        assert verify_signature(further.headers, further.body, [new["secret"]], sent)
        with pytest.raises(NotVerified):
            verify_signature(further.headers, further.body, [WEBHOOK_SECRET], sent)
        [event] = (await house.get(f"/events?object_id={payment}")).json()["data"]
        assert (event["endpoint_id"], event["attempt_count"]) == (None, 1)
        whole = (await house.get(f"/events/{event['id']}")).json()
        assert [each["endpoint_id"] for each in whole["attempts"]].count(new["id"]) == 1
        [there] = whole["further_deliveries"]
        assert (there["endpoint_id"], there["delivery_status"], there["attempt_count"]) == (new["id"], "delivered", 1)
        shown = (await house.get(f"/webhook-endpoints/{new['id']}")).json()
        assert shown["last_success_at"] is not None

    async def test_only_of_its_mode_and_from_then_on(self, house: TestHouse) -> None:
        await paid(house)
        await house.work(5)
        await make(house, mode="live")
        new = await made(house, url="https://later.example")
        await paid(house)
        await house.work(5)
        assert sent_to(house, URL) == []
        assert len(sent_to(house, "https://later.example")) == 1
        listed = (await house.get(f"/webhook-endpoints/{new['id']}/events")).json()
        assert [each["endpoint_id"] for each in listed["data"]] == [new["id"]]

    async def test_only_the_types_that_it_wants(self, house: TestHouse) -> None:
        new = await made(house, event_types=list(ALWAYS))
        await bound(house)
        await house.work(5)
        assert {each.headers["X-Webhook-Event"] for each in sent_to(house, URL)} == {"payment.status_changed"}
        assert (await send(house, "PATCH", f"/{new['id']}", {"event_types": ["*"]})).json()["event_types"] is None
        await bound(house)
        await house.work(5)
        types = {each.headers["X-Webhook-Event"] for each in sent_to(house, URL)}
        assert types == {"payment.status_changed", "subscription.status_changed"}

    async def test_it_needs_no_own_endpoint(self) -> None:
        async with open_test_house(receiver=False) as house:
            await made(house)
            payment = await paid(house)
            await house.work(5)
            assert len(sent_to(house, URL)) == 1
            [event] = (await house.get(f"/events?object_id={payment}")).json()["data"]
            assert event["delivery_status"] == "held"

    async def test_one_that_is_dead_has_its_own_ladder_and_breaker_and_delays_no_other(self, house: TestHouse) -> None:
        dead, alive = await made(house), await made(house, url="https://alive.example")
        by_address(house, {URL: AWAY})
        for _ in range(4):
            await paid(house)
        await house.work(600)
        for url in (WEBHOOK_URL, "https://alive.example"):
            assert [int(each.headers["X-Webhook-Attempt"]) for each in sent_to(house, url)] == [1, 1, 1, 1]
        states = {
            each["id"]: each["breaker"]["state"] for each in (await house.get("/webhook-endpoints")).json()["data"]
        }
        assert states == {dead["id"]: "open", alive["id"]: "closed"}
        assert (await house.get("/webhook-endpoint")).json()["breaker"]["failures"] == 0
        shown = (await house.get(f"/webhook-endpoints/{dead['id']}")).json()
        assert shown["backlog"] == {"held": 0, "pending": 4, "failed": 0}
        events = {each["id"] for each in (await house.get("/events")).json()["data"]}
        assert shown["last_failure"]["event_id"] in events
        by_address(house, {})
        before = len(sent_to(house, URL))
        await house.work(3600)
        assert len(sent_to(house, URL)) == before + 4
        assert (await house.get(f"/webhook-endpoints/{dead['id']}")).json()["backlog"] == {
            "held": 0,
            "pending": 0,
            "failed": 0,
        }

    async def test_a_dead_own_one_delays_no_further_one(self, house: TestHouse) -> None:
        await made(house)
        by_address(house, {WEBHOOK_URL: AWAY})
        for _ in range(3):
            await paid(house)
        await house.work(2)
        assert len(sent_to(house, URL)) == 3

    async def test_what_failed_for_good_is_counted_listed_and_sent_again(self, house: TestHouse) -> None:
        new = await made(house)
        by_address(house, {URL: AWAY})
        payment = await paid(house)
        await house.work(LIFETIME.total_seconds() + 4000)
        shown = (await house.get(f"/webhook-endpoints/{new['id']}")).json()
        assert shown["backlog"] == {"held": 0, "pending": 0, "failed": 1}
        path = f"/webhook-endpoints/{new['id']}/events?delivery_status=failed"
        [event] = (await house.get(path)).json()["data"]
        assert (event["object_id"], event["delivery_status"]) == (payment, "failed")
        by_address(house, {})
        again = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z", "delivery_status": "failed"}
        answer = await house.http.post(
            "/api/v1/events/resend", json={**again, "endpoint_id": new["id"]}, headers=house.headers()
        )
        assert answer.json() == {"events": 1}
        own = len(sent_to(house, WEBHOOK_URL))
        await house.work(60)
        assert (await house.get(path)).json()["data"] == []
        assert len(sent_to(house, WEBHOOK_URL)) == own, "the account's own is not asked for"


class TestSendingAgain:
    async def test_to_one_endpoint_only(self, house: TestHouse) -> None:
        new = await made(house)
        await paid(house)
        await house.work(5)
        [event] = (await house.get("/events")).json()["data"]
        path = f"/api/v1/events/{event['id']}/resend"
        answer = await house.http.post(f"{path}?endpoint_id={new['id']}", headers=house.headers())
        assert (answer.json()["endpoint_id"], answer.json()["delivery_status"]) == (new["id"], "pending")
        await house.work(5)
        assert (len(sent_to(house, URL)), len(sent_to(house, WEBHOOK_URL))) == (2, 1)
        assert sent_to(house, URL)[-1].headers["X-Webhook-Attempt"] == "2"
        await house.http.post(path, headers=house.headers())
        await house.work(5)
        assert (len(sent_to(house, URL)), len(sent_to(house, WEBHOOK_URL))) == (2, 2)

    async def test_also_what_happened_before_it_was_there(self, house: TestHouse) -> None:
        """So what programs of an older version wrote beside this one reaches it, too."""
        await paid(house)
        await house.work(5)
        new = await made(house)
        [event] = (await house.get("/events")).json()["data"]
        answer = await house.http.post(
            f"/api/v1/events/{event['id']}/resend?endpoint_id={new['id']}", headers=house.headers()
        )
        assert answer.status_code == 200
        body = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z", "endpoint_id": new["id"]}
        await house.work(5)
        assert len(sent_to(house, URL)) == 1
        await house.http.post("/api/v1/events/resend", json=body, headers=house.headers())
        await house.work(5)
        assert len(sent_to(house, URL)) == 2

    async def test_to_none_of_ours_is_404(self, house: TestHouse) -> None:
        await paid(house)
        [event] = (await house.get("/events")).json()["data"]
        live = (await make(house, mode="live")).json()["id"]
        for endpoint_id in (live, "we_1", ""):
            path = f"/api/v1/events/{event['id']}/resend?endpoint_id={endpoint_id}"
            refused(await house.http.post(path, headers=house.headers()), 404, "WEBHOOK_ENDPOINT_NOT_FOUND")
            body = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z", "endpoint_id": endpoint_id}
            answer = await house.http.post("/api/v1/events/resend", json=body, headers=house.headers())
            refused(answer, 404, "WEBHOOK_ENDPOINT_NOT_FOUND")


BOOKS = ["payment.status_changed"]
REST = [each for each in ALWAYS if each != BOOKS[0]]


class TestTypesTogether:
    """Over all enabled endpoints of a mode each type about money is taken by at least one."""

    async def first_takes(self, house: TestHouse, types: Sequence[str]) -> None:
        await set_settings(house.ports, house.account.account_id, {"webhook_events": ",".join(types)})

    async def split(self, house: TestHouse) -> str:
        """The first endpoint takes all but payments, a further one in each mode takes these."""
        await made(house, mode="live", event_types=BOOKS)
        new = await made(house, event_types=BOOKS)
        await self.first_takes(house, REST)
        return f"/{new['id']}"

    async def test_a_bookkeeping_endpoint_takes_payments_alone(self, house: TestHouse) -> None:
        await self.split(house)
        await bound(house)
        await house.work(5)
        assert [each.headers["X-Webhook-Event"] for each in sent_to(house, URL)] == BOOKS
        assert sent_to(house, WEBHOOK_URL) == []

    @table(
        ("method", "body"),
        [
            ("DELETE", None),
            ("PATCH", {"enabled": False}),
            ("PATCH", {"event_types": ["kyc.status_changed"]}),
            ("PATCH", {"event_types": REST, "url": "https://new.example"}),
        ],
    )
    async def test_the_last_taker_of_a_type_stays(self, house: TestHouse, method: str, body: Any) -> None:
        path = await self.split(house)
        before = (await send(house, "GET", path)).json()
        said = refused(await send(house, method, path, body), 409, "INVALID_STATE")
        assert said.startswith("No enabled webhook endpoint of test mode would take payment.status_changed: ")
        assert (await send(house, "GET", path)).json() == before
        other = await made(house, event_types=BOOKS)
        assert (await send(house, method, path, body)).status_code == 200
        refused(await send(house, "DELETE", f"/{other['id']}"), 409, "INVALID_STATE")
        await self.first_takes(house, ALWAYS)
        assert (await send(house, "DELETE", f"/{other['id']}")).status_code == 200

    async def test_an_operator_cannot_leave_a_type_without_a_taker(self, house: TestHouse) -> None:
        path = await self.split(house)
        with pytest.raises(Refusal, match=r"would take payment\.status_changed"):
            await switch_endpoint(house.ports, path[1:], enabled=False)
        with pytest.raises(Refusal, match=f"of live mode would take {REST[0]}"):
            await self.first_takes(house, BOOKS)

    async def test_an_endpoint_that_is_off_takes_nothing(self, house: TestHouse) -> None:
        path = await self.split(house)
        off = await made(house, event_types=BOOKS)
        assert (await send(house, "PATCH", f"/{off['id']}", {"enabled": False})).status_code == 200
        refused(await send(house, "DELETE", path), 409, "INVALID_STATE")

    async def test_two_removals_at_once_leave_a_taker(self, house: TestHouse) -> None:
        path = await self.split(house)
        other = await made(house, event_types=BOOKS)
        answers = await asyncio.gather(
            send(house, "DELETE", path), send(house, "PATCH", f"/{other['id']}", {"enabled": False})
        )
        assert sorted(each.status_code for each in answers) == [200, 409]

    async def test_a_removal_and_the_operators_change_at_once_leave_a_taker(self, house: TestHouse) -> None:
        new = await made(house, mode="live", event_types=BOOKS), await made(house, event_types=BOOKS)
        removal, change = await asyncio.gather(
            send(house, "DELETE", f"/{new[1]['id']}"), self.first_takes(house, REST), return_exceptions=True
        )
        assert isinstance(removal, httpx.Response)
        assert (removal.status_code == 200) is isinstance(change, Refusal)


class TestChanging:
    async def test_what_is_not_named_stays(self, house: TestHouse) -> None:
        new = await made(house, description="books", event_types=list(ALWAYS))
        changed = (await send(house, "PATCH", f"/{new['id']}", {"url": "https://new.example"})).json()
        assert (changed["url"], changed["description"]) == ("https://new.example", "books")
        assert changed["event_types"] == list(ALWAYS)
        cleared = (await send(house, "PATCH", f"/{new['id']}", {"description": "", "url": None})).json()
        assert (cleared["url"], cleared["description"]) == ("https://new.example", None)
        assert "secret" not in cleared
        said = refused(await send(house, "PATCH", f"/{new['id']}", {"url": "no"}), 400, "VALIDATION_ERROR")
        assert said.startswith("url: must be")

    async def test_another_address_closes_its_breaker_and_what_waits_leaves(self, house: TestHouse) -> None:
        new = await made(house)
        by_address(house, {URL: AWAY})
        for _ in range(4):
            await paid(house)
        await house.work(600)
        await send(house, "PATCH", f"/{new['id']}", {"url": "https://new.example"})
        shown = (await house.get(f"/webhook-endpoints/{new['id']}")).json()
        assert shown["breaker"]["state"] == "closed"
        await house.work(2)
        assert len(sent_to(house, "https://new.example")) == 4

    async def test_a_new_secret_signs_and_the_old_one_beside_it_for_a_day(self, house: TestHouse) -> None:
        new = await made(house)
        answer = (await send(house, "POST", f"/{new['id']}/rotate-secret")).json()
        assert answer["secret"] not in (None, new["secret"])
        assert answer["previous_secret_until"] is not None
        await paid(house)
        await house.work(5)
        [webhook] = sent_to(house, URL)
        sent = int(webhook.headers["X-Webhook-Timestamp"])
        assert verify_signature(webhook.headers, webhook.body, [new["secret"]], sent)
        assert len(webhook.headers["webhook-signature"].split(" v1,")) >= 2
        await house.work(25 * 3600)
        await paid(house)
        await house.work(5)
        webhook = sent_to(house, URL)[-1]
        sent = int(webhook.headers["X-Webhook-Timestamp"])
        assert verify_signature(webhook.headers, webhook.body, [answer["secret"]], sent)
        with pytest.raises(NotVerified):
            verify_signature(webhook.headers, webhook.body, [new["secret"]], sent)

    async def test_of_two_changes_within_a_day_the_oldest_secret_still_signs(self, house: TestHouse) -> None:
        new = await made(house)
        await send(house, "POST", f"/{new['id']}/rotate-secret")
        await send(house, "POST", f"/{new['id']}/rotate-secret")
        await paid(house)
        await house.work(5)
        [webhook] = sent_to(house, URL)
        sent = int(webhook.headers["X-Webhook-Timestamp"])
        assert verify_signature(webhook.headers, webhook.body, [new["secret"]], sent)

    async def test_a_test_webhook_goes_there_alone(self, house: TestHouse) -> None:
        new = await made(house)
        report = (await send(house, "POST", f"/{new['id']}/test")).json()
        assert report["delivered"] is True
        [webhook] = house.postman.webhooks
        assert (webhook.url, webhook.headers["X-Webhook-Event"]) == (URL, "webhook.test")
        assert webhook.open_network is True, "an address of this machine will do in test mode, by the first one's rule"
        live = (await make(house, mode="live")).json()
        await send(house, "POST", f"/{live['id']}/test", mode="live")
        assert house.postman.webhooks[-1].open_network is False


class TestDeleting:
    async def test_nothing_goes_there_any_more_and_nothing_is_left(self, house: TestHouse) -> None:
        new = await made(house)
        by_address(house, {URL: AWAY})
        for _ in range(4):
            await paid(house)
        await house.work(600)
        answer = await send(house, "DELETE", f"/{new['id']}")
        assert (answer.status_code, answer.json()) == (200, {"id": new["id"], "deleted": True})
        refused(await send(house, "DELETE", f"/{new['id']}"), 404, "WEBHOOK_ENDPOINT_NOT_FOUND")
        before = len(sent_to(house, URL))
        await paid(house)
        await house.work(5000)
        assert len(sent_to(house, URL)) == before
        assert await everything(house.ports, EndpointDelivery) == []
        assert [each.endpoint_id for each in await everything(house.ports, Attempt) if each.endpoint_id] == []
        assert [each.id for each in await everything(house.ports, Breaker) if "/" in each.id] == []
        assert [each.id for each in await everything(house.ports, Job) if new["id"] in each.id] == []
        [account] = await everything(house.ports, Account)
        assert account.endpoints is None

    async def test_an_event_that_was_written_meanwhile_is_put_away(self, house: TestHouse) -> None:
        """Its unit read the account before the endpoint was gone."""
        new = await made(house)
        payment = (await house.created())["id"]
        storage = house.ports.storage
        await house.simulate(payment, outcome="paid")
        await house.work(5)
        [kept] = await everything(house.ports, EndpointDelivery)
        await send(house, "DELETE", f"/{new['id']}")
        await house.work(5)
        await _write_late(storage, kept, house)
        await house.work(5)
        assert await everything(house.ports, EndpointDelivery) == []


async def _write_late(storage: Storage, kept: EndpointDelivery, house: TestHouse) -> None:
    async with storage.unit() as unit:
        event = await unit[Event].get(kept.event_id)
        assert event is not None
        unit[EndpointDelivery].add(further_delivery(event, kept.endpoint_id))
        ask_to_deliver(house.ports, unit, event.account_id, event.mode, kept.endpoint_id)
        await unit.commit()


class TestKeeping:
    async def test_test_data_is_forgotten_and_the_endpoint_stays(self, house: TestHouse) -> None:
        new = await made(house)
        await paid(house)
        await house.work(5)
        assert await everything(house.ports, EndpointDelivery)
        assert (await house.http.delete("/api/v1/sandbox/data", headers=house.headers())).status_code == 200
        for kind in (Event, Delivery, EndpointDelivery, Attempt, Breaker):
            assert await everything(house.ports, kind) == []
        assert (await house.get(f"/webhook-endpoints/{new['id']}")).status_code == 200

    async def test_after_30_days_an_event_is_deleted_with_what_went_everywhere(self, house: TestHouse) -> None:
        await made(house)
        await paid(house)
        await house.work(5)
        await house.clock.advance((KEPT + LIFETIME).total_seconds())
        job = first_retention(house.clock.now())
        async with house.ports.storage.unit() as unit:
            unit[Job].add(job)
            await unit.commit()
        await house.work(1)
        for kind in (Event, Delivery, EndpointDelivery, Attempt):
            assert await everything(house.ports, kind) == []

    async def test_settings_of_the_operator_leave_further_ones_alone(self, house: TestHouse) -> None:
        new = await made(house)
        await set_settings(house.ports, house.account.account_id, {"webhook_url": "", "acceptance": "true"})
        await paid(house)
        await house.work(5)
        assert len(sent_to(house, URL)) == 1
        assert (await house.get(f"/webhook-endpoints/{new['id']}")).json()["url"] == URL

    async def test_an_advance_of_the_test_clock_ends_beside_a_dead_endpoint(self, house: TestHouse) -> None:
        await made(house)
        by_address(house, {URL: AWAY})
        await paid(house)
        answer = await house.http.post("/api/v1/sandbox/clock/advance", json={"seconds": 3600}, headers=house.headers())
        assert answer.status_code in (200, 202), answer.text
        await house.work(60)
        assert len(sent_to(house, WEBHOOK_URL)) == 1
