"""Events and the receiver over HTTP (docs/webhooks.md "Looking, and sending again"): GET /events, GET /events/{id},
POST /events/{id}/resend, POST /events/resend, GET /webhook-endpoint, POST /webhook-endpoint/test."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.delivery import given_up
from cambist.core.domain.webhooks.events import Delivery
from cambist.core.domain.webhooks.signing import verify_signature
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.ports.notifier import Answer, DeliveryResult
from tests.apps import WEBHOOK_SECRET, WEBHOOK_URL, TestApp, open_test_app
from tests.tables import table

BAD = DeliveryResult(answer=Answer.RESPONDED, status=500, note="", took_ms=7)
SILENT = DeliveryResult(answer=Answer.TIMEOUT, note="no whole answer within 10 s", took_ms=10_000)


async def paid(app: TestApp, **body: Any) -> str:
    """A payment that was paid, and so has one event; its id."""
    payment = await app.created(body)
    await app.simulate(payment["id"], outcome="paid")
    found: str = payment["id"]
    return found


async def post(app: TestApp, path: str, body: Any = None, *, mode: str = "test") -> httpx.Response:
    """Post without an Idempotency-Key: none of these calls creates a resource."""
    return await app.http.post(f"/api/v1{path}", json=body, headers=app.headers(mode))


async def events(app: TestApp, query: str = "", *, mode: str = "test") -> list[dict[str, Any]]:
    response = await app.get(f"/events{query}", mode=mode)
    assert response.status_code == 200, response.text
    data: list[dict[str, Any]] = response.json()["data"]
    return data


def iso(app: TestApp, seconds: float = 0) -> str:
    return (app.clock.now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def refused(response: httpx.Response, status: int, code: str) -> None:
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


class TestList:
    async def test_an_event_has_these_fields_and_no_others(self, app: TestApp) -> None:
        payment = await paid(app)
        created, before = iso(app), await events(app)
        await app.work()
        [event] = await events(app)
        assert event == {
            "id": event["id"],
            "type": "payment.status_changed",
            "object_id": payment,
            "sequence": 1,
            "endpoint_id": None,
            "delivery_status": "delivered",
            "attempt_count": 1,
            "next_attempt_at": None,
            "last_attempt_at": created,
            "last_answer": "responded",
            "last_status": 200,
            "delivered_at": created,
            "created_at": created,
            "sandbox": True,
        }
        [pending] = before
        assert (pending["delivery_status"], pending["attempt_count"]) == ("pending", 0)
        assert pending["last_attempt_at"] is None
        assert pending["next_attempt_at"] is None, "it only waits for its turn"

    async def test_pages_are_newest_first_and_counted(self, app: TestApp) -> None:
        payments = []
        for _ in range(5):
            payments.append(await paid(app))
            await app.work(1)
        page = (await app.get("/events?per_page=2&page=2")).json()
        assert [event["object_id"] for event in page["data"]] == payments[::-1][2:4]
        assert page["pagination"] == {"page": 2, "per_page": 2, "total": 5, "total_pages": 3}
        beyond = (await app.get("/events?page=9")).json()
        assert (beyond["data"], beyond["pagination"]["total"]) == ([], 5)

    async def test_every_filter_and_all_together(self, app: TestApp) -> None:
        app.postman.answers.append(BAD)
        first = await paid(app)
        await app.work()
        async with app.ports.storage.unit() as unit:
            unit[Delivery].save(given_up((await unit[Delivery].find())[0]))
            await unit.commit()
        await app.clock.advance(600)
        middle = iso(app)
        second = await paid(app)
        await app.work(5)

        async def found(query: str) -> list[str]:
            return [event["object_id"] for event in await events(app, query)]

        assert await found("") == [second, first]
        assert await found("?type=payment.status_changed") == [second, first]
        assert await found("?type=refund.completed") == []
        assert await found(f"?object_id={first}") == [first]
        assert await found("?object_id=pay_unknown") == []
        assert await found("?delivery_status=failed") == [first]
        assert await found("?delivery_status=DELIVERED") == [second]
        assert await found("?delivery_status=pending") == []
        assert await found(f"?from={middle}") == [second]
        assert await found(f"?to={middle}") == [first]
        whole = f"from={iso(app, -9999)}&to={iso(app, 9999)}&type=payment.status_changed"
        assert await found(f"?{whole}&delivery_status=failed&object_id={first}") == [first]
        assert await found(f"?{whole}&delivery_status=failed") == [first]
        assert await found(f"?{whole}&delivery_status=delivered&object_id={first}") == []
        for status in ("failed", "delivered"):
            page = (await app.get(f"/events?delivery_status={status}&per_page=1&page=1")).json()
            assert page["pagination"]["total"] == 1

    async def test_several_events_of_one_object_are_newest_first(self, app: TestApp) -> None:
        payment = await app.created()
        await app.simulate(payment["id"], outcome="processing")
        await app.clock.advance(1)
        await app.simulate(payment["id"], outcome="paid")
        found = await events(app, f"?object_id={payment['id']}")
        assert [event["sequence"] for event in found] == [2, 1]
        assert [event["sequence"] for event in await events(app)] == [2, 1]
        paged = (await app.get(f"/events?object_id={payment['id']}&per_page=1&page=2")).json()
        assert ([event["sequence"] for event in paged["data"]], paged["pagination"]["total"]) == ([1], 2)

    @table(
        "query",
        [
            "?type=payment",
            "?type=",
            "?delivery_status=lost",
            "?from=yesterday",
            "?from=2026-01-01",
            "?from=2026-01-01T00:00:00",
            "?to=2026-13-01T00:00:00Z",
            "?page=0",
            "?per_page=101",
        ],
    )
    async def test_a_bad_value_of_a_known_filter_is_400(self, app: TestApp, query: str) -> None:
        """Unknown query values are ignored (docs/concepts.md "Requests in general"); a bad value of a known one is
        400."""
        refused(await app.get(f"/events{query}"), 400, "VALIDATION_ERROR")

    async def test_unknown_filters_are_ignored(self, app: TestApp) -> None:
        await paid(app)
        assert len(await events(app, "?colour=red")) == 1

    async def test_modes_and_accounts_do_not_see_each_other(self, app: TestApp) -> None:
        await paid(app)
        [event] = await events(app)
        assert await events(app, mode="live") == []
        other = await create_account(app.ports, "Other")
        pair = {"X-Api-Key": other.test.api_key, "X-Api-Secret": other.test.api_secret}
        for method, path in (("GET", event["id"]), ("POST", f"{event['id']}/resend")):
            answers = [
                await app.http.request(method, f"/api/v1/events/{path}", headers=pair),
                await app.http.request(method, f"/api/v1/events/{path}", headers=app.headers("live")),
            ]
            for answer in answers:
                refused(answer, 404, "EVENT_NOT_FOUND")
        foreign = await app.http.get(f"/api/v1/events?object_id={event['object_id']}", headers=pair)
        assert foreign.json()["data"] == []


class TestOne:
    async def test_event_shows_its_body_and_every_attempt(self, app: TestApp) -> None:
        app.postman.answers.extend([BAD, SILENT])
        await paid(app, metadata={"a": [1, None]})
        start = iso(app)
        await app.work(10)
        [listed] = await events(app)
        event = (await app.get(f"/events/{listed['id']}")).json()
        assert {name: event[name] for name in listed} == listed
        assert event["payload"] == msgspec.json.decode(app.postman.webhooks[0].body)
        times = [start, iso(app, -9), iso(app, -7)]
        assert event["attempts"] == [
            {
                "endpoint_id": None,
                "number": 1,
                "probe": False,
                "sent_at": times[0],
                "answer": "responded",
                "status": 500,
                "note": "",
                "took_ms": 7,
            },
            {
                "endpoint_id": None,
                "number": 2,
                "probe": False,
                "sent_at": times[1],
                "answer": "timeout",
                "status": None,
                "note": SILENT.note,
                "took_ms": 10_000,
            },
            {
                "endpoint_id": None,
                "number": 3,
                "probe": False,
                "sent_at": times[2],
                "answer": "responded",
                "status": 200,
                "note": "",
                "took_ms": 0,
            },
        ]

    async def test_event_that_is_retried_says_when(self, app: TestApp) -> None:
        app.postman.answers.extend([BAD] * 5)
        await paid(app)
        await app.work(2)
        [event] = await events(app)
        assert (event["delivery_status"], event["attempt_count"], event["last_status"]) == ("pending", 2, 500)
        assert event["next_attempt_at"] == iso(app, 1)

    @pytest.mark.parametrize(
        "event_id", ["evt_1", f"pay_{UUID(int=1)}", f"evt_{UUID(int=1)}", "%00", "evt_" + "0" * 500]
    )
    async def test_unknown_event_is_404(self, app: TestApp, event_id: str) -> None:
        refused(await app.get(f"/events/{event_id}"), 404, "EVENT_NOT_FOUND")

    async def test_a_payload_is_shown_as_it_was_when_it_was_made(self, app: TestApp) -> None:
        payment = await paid(app)
        [event] = await events(app)
        assert (await app.get(f"/events/{event['id']}")).json()["payload"]["status"] == "paid"
        assert payment == event["object_id"]


class TestResend:
    async def test_resend_answers_200_with_the_event_and_sends_it_again(self, app: TestApp) -> None:
        await paid(app)
        await app.work()
        [event] = await events(app)
        response = await post(app, f"/events/{event['id']}/resend")
        assert response.status_code == 200
        assert response.json() == {**event, "delivery_status": "pending"}
        await app.work()
        first, second = app.postman.webhooks
        assert first.headers["X-Webhook-Id"] == second.headers["X-Webhook-Id"] == event["id"]
        assert (first.body, second.headers["X-Webhook-Attempt"]) == (second.body, "2")
        app.check_signatures()
        assert [each["attempt_count"] for each in await events(app)] == [2]

    async def test_a_range_answers_how_many(self, app: TestApp) -> None:
        for _ in range(3):
            await paid(app)
        await app.work()
        body = {"from": iso(app, -60), "to": iso(app, 60)}
        response = await post(app, "/events/resend", body)
        assert (response.status_code, response.json()) == (200, {"events": 3})
        await app.work()
        assert len(app.postman.webhooks) == 6
        none = await post(app, "/events/resend", {**body, "type": "refund.failed", "delivery_status": "delivered"})
        assert none.json() == {"events": 0}
        live = await post(app, "/events/resend", body, mode="live")
        assert live.json() == {"events": 0}

    @table(
        "body",
        [
            None,
            {},
            [],
            {"from": "2026-01-01T00:00:00Z"},
            {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
            {"from": 1, "to": 2},
            {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "object_id": "pay_1"},
            {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "type": "payment"},
            {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "delivery_status": "lost"},
        ],
    )
    async def test_a_body_that_names_no_range_is_400(self, app: TestApp, body: Any) -> None:
        refused(await post(app, "/events/resend", body), 400, "VALIDATION_ERROR")


class TestEndpoint:
    async def test_endpoint_shows_address_breaker_backlog_and_last_attempts(self, app: TestApp) -> None:
        state = (await app.get("/webhook-endpoint")).json()
        assert state == {
            "url": WEBHOOK_URL,
            "secret_set": True,
            "event_types": None,
            "header_names": [],
            "previous_secret_until": None,
            "breaker": {"state": "closed", "failures": 0, "opened_at": None, "next_probe_at": None},
            "backlog": {"held": 0, "pending": 0, "failed": 0},
            "last_success_at": None,
            "last_failure": None,
            "sandbox": True,
        }
        await paid(app)
        await app.work()
        assert (await app.get("/webhook-endpoint")).json() == {**state, "last_success_at": iso(app)}
        live = (await app.get("/webhook-endpoint", mode="live")).json()
        assert live == {name: value for name, value in state.items() if name != "sandbox"}

    async def test_an_open_breaker_and_its_next_probe(self, app: TestApp) -> None:
        app.postman.answers.extend([SILENT] * 20)
        for _ in range(5):
            await paid(app)
        await app.work(20)
        state = (await app.get("/webhook-endpoint")).json()
        assert (state["breaker"]["state"], state["breaker"]["failures"]) == ("open", 10)
        assert (state["breaker"]["opened_at"], state["breaker"]["next_probe_at"]) == (iso(app, -19), iso(app, 11))
        assert state["backlog"] == {"held": 0, "pending": 5, "failed": 0}
        failure = state["last_failure"]
        assert (failure["at"], failure["answer"], failure["status"]) == (iso(app, -19), "timeout", None)
        assert failure["note"] == SILENT.note
        assert failure["event_id"] in {event["id"] for event in await events(app)}

    async def test_endpoint_without_a_receiver_holds_events_and_refuses_tests(self) -> None:
        async with open_test_app(receiver=False) as app:
            await paid(app)
            state = (await app.get("/webhook-endpoint")).json()
            assert (state["url"], state["secret_set"]) == (None, False)
            assert state["backlog"] == {"held": 1, "pending": 0, "failed": 0}
            refused(await post(app, "/webhook-endpoint/test"), 409, "INVALID_STATE")

    async def test_a_replaced_secret_says_until_when_it_signs(self, app: TestApp) -> None:
        wish = {"webhook_secret": "another-webhook-secret"}
        await set_settings(app.ports, app.account.account_id, wish)
        state = (await app.get("/webhook-endpoint")).json()
        assert state["previous_secret_until"] == iso(app, 86_400)
        assert "secret" not in str(state).replace("secret_set", "").replace("previous_secret_until", "")


class TestTestLetter:
    @pytest.mark.parametrize("mode", Mode)
    async def test_test_webhook_is_signed_of_its_own_type_and_sent_now(self, app: TestApp, mode: Mode) -> None:
        response = await post(app, "/webhook-endpoint/test", mode=mode)
        assert response.status_code == 200
        report = response.json()
        [webhook] = app.postman.webhooks
        assert report == {
            "event_id": webhook.headers["X-Webhook-Id"],
            "delivered": True,
            "sent_at": iso(app),
            "answer": "responded",
            "status": 200,
            "note": "",
            "took_ms": 0,
        }
        assert verify_signature(webhook.headers, webhook.body, [WEBHOOK_SECRET], app.clock.now().timestamp())
        assert webhook.headers["X-Webhook-Event"] == "webhook.test"
        sandbox = {"sandbox": True} if mode is Mode.TEST else {}
        assert msgspec.json.decode(webhook.body) == {"event": "webhook.test", "timestamp": iso(app), **sandbox}
        assert (webhook.url, webhook.open_network) == (WEBHOOK_URL, mode is Mode.TEST)
        assert await events(app, mode=mode) == [], "it is no event"

    @pytest.mark.parametrize("result", [BAD, SILENT, DeliveryResult(answer=Answer.BLOCKED, note="https only")])
    async def test_a_failure_is_reported_and_counts_for_nothing(self, app: TestApp, result: DeliveryResult) -> None:
        report: dict[str, Any] = {}
        for _ in range(12):
            app.postman.answers.append(result)
            report = (await post(app, "/webhook-endpoint/test")).json()
        assert (report["delivered"], report["answer"], report["status"]) == (False, result.answer, result.status)
        assert (report["note"], report["took_ms"]) == (result.note, result.took_ms)
        state = (await app.get("/webhook-endpoint")).json()
        assert (state["breaker"]["state"], state["last_failure"]) == ("closed", None)
        await app.work(600)
        assert len(app.postman.webhooks) == 12, "it is not retried"

    async def test_a_good_answer_closes_the_breaker_and_all_that_waits_leaves(self, app: TestApp) -> None:
        app.postman.answers.extend([BAD] * 10)
        for _ in range(5):
            await paid(app)
        await app.work(15)
        assert (await app.get("/webhook-endpoint")).json()["breaker"]["state"] == "open"
        await post(app, "/webhook-endpoint/test")
        await app.work()
        state = (await app.get("/webhook-endpoint")).json()
        assert (state["breaker"]["state"], state["backlog"]["pending"]) == ("closed", 0)
        assert {event["delivery_status"] for event in await events(app)} == {"delivered"}


CALLS = [
    ("GET", "/events"),
    ("GET", "/events/evt_1"),
    ("POST", "/events/evt_1/resend"),
    ("POST", "/events/resend"),
    ("GET", "/webhook-endpoint"),
    ("POST", "/webhook-endpoint/test"),
]


class TestEdge:
    @pytest.mark.parametrize(("method", "path"), CALLS)
    async def test_they_count_in_the_general_bucket(self, app: TestApp, method: str, path: str) -> None:
        """It is not one of the four money calls (docs/limits.md "Requests")."""
        answer = await app.http.request(method, f"/api/v1{path}", headers=app.headers(), json={})
        assert answer.headers["X-RateLimit-Limit"] == "60"

    @pytest.mark.parametrize(("method", "path"), CALLS)
    async def test_they_need_a_key(self, app: TestApp, method: str, path: str) -> None:
        refused(await app.http.request(method, f"/api/v1{path}", json={}), 401, "Unauthorized")

    @pytest.mark.parametrize(
        ("method", "path", "allow"),
        [
            ("DELETE", "/events", "GET"),
            ("PUT", "/events/evt_1", "GET"),
            ("GET", "/events/evt_1/resend", "POST"),
            ("POST", "/webhook-endpoint", "GET"),
            ("GET", "/webhook-endpoint/test", "POST"),
        ],
    )
    async def test_another_method_is_405(self, app: TestApp, method: str, path: str, allow: str) -> None:
        answer = await app.http.request(method, f"/api/v1{path}", headers=app.headers())
        refused(answer, 405, "METHOD_NOT_ALLOWED")
        assert allow in answer.headers["Allow"]
