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
from tests.houses import WEBHOOK_SECRET, WEBHOOK_URL, TestHouse, open_test_house
from tests.tables import table

BAD = DeliveryResult(answer=Answer.RESPONDED, status=500, note="", took_ms=7)
SILENT = DeliveryResult(answer=Answer.TIMEOUT, note="no whole answer within 10 s", took_ms=10_000)


async def paid(house: TestHouse, **body: Any) -> str:
    """A payment that was paid, and so has one event; its id."""
    payment = await house.created(body)
    await house.simulate(payment["id"], outcome="paid")
    found: str = payment["id"]
    return found


async def post(house: TestHouse, path: str, body: Any = None, *, mode: str = "test") -> httpx.Response:
    """Without an Idempotency-Key: none of these calls makes a resource."""
    return await house.http.post(f"/api/v1{path}", json=body, headers=house.headers(mode))


async def events(house: TestHouse, query: str = "", *, mode: str = "test") -> list[dict[str, Any]]:
    response = await house.get(f"/events{query}", mode=mode)
    assert response.status_code == 200, response.text
    data: list[dict[str, Any]] = response.json()["data"]
    return data


def iso(house: TestHouse, seconds: float = 0) -> str:
    return (house.clock.now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def refused(response: httpx.Response, status: int, code: str) -> None:
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


class TestList:
    async def test_an_event_has_these_fields_and_no_others(self, house: TestHouse) -> None:
        payment = await paid(house)
        created, before = iso(house), await events(house)
        await house.work()
        [event] = await events(house)
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

    async def test_pages_are_newest_first_and_counted(self, house: TestHouse) -> None:
        payments = []
        for _ in range(5):
            payments.append(await paid(house))
            await house.work(1)
        page = (await house.get("/events?per_page=2&page=2")).json()
        assert [event["object_id"] for event in page["data"]] == payments[::-1][2:4]
        assert page["pagination"] == {"page": 2, "per_page": 2, "total": 5, "total_pages": 3}
        beyond = (await house.get("/events?page=9")).json()
        assert (beyond["data"], beyond["pagination"]["total"]) == ([], 5)

    async def test_every_filter_and_all_together(self, house: TestHouse) -> None:
        house.postman.answers.append(BAD)
        first = await paid(house)
        await house.work()
        async with house.ports.storage.unit() as unit:
            unit[Delivery].save(given_up((await unit[Delivery].find())[0]))
            await unit.commit()
        await house.clock.advance(600)
        middle = iso(house)
        second = await paid(house)
        await house.work(5)

        async def found(query: str) -> list[str]:
            return [event["object_id"] for event in await events(house, query)]

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
        whole = f"from={iso(house, -9999)}&to={iso(house, 9999)}&type=payment.status_changed"
        assert await found(f"?{whole}&delivery_status=failed&object_id={first}") == [first]
        assert await found(f"?{whole}&delivery_status=failed") == [first]
        assert await found(f"?{whole}&delivery_status=delivered&object_id={first}") == []
        for status in ("failed", "delivered"):
            page = (await house.get(f"/events?delivery_status={status}&per_page=1&page=1")).json()
            assert page["pagination"]["total"] == 1

    async def test_several_events_of_one_object_are_newest_first(self, house: TestHouse) -> None:
        payment = await house.created()
        await house.simulate(payment["id"], outcome="processing")
        await house.clock.advance(1)
        await house.simulate(payment["id"], outcome="paid")
        found = await events(house, f"?object_id={payment['id']}")
        assert [event["sequence"] for event in found] == [2, 1]
        assert [event["sequence"] for event in await events(house)] == [2, 1]
        paged = (await house.get(f"/events?object_id={payment['id']}&per_page=1&page=2")).json()
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
    async def test_a_bad_value_of_a_known_filter_is_400(self, house: TestHouse, query: str) -> None:
        """Unknown query values are ignored (docs/concepts.md "Requests in general"); a bad value of a known one is
        400."""
        refused(await house.get(f"/events{query}"), 400, "VALIDATION_ERROR")

    async def test_unknown_filters_are_ignored(self, house: TestHouse) -> None:
        await paid(house)
        assert len(await events(house, "?colour=red")) == 1

    async def test_modes_and_accounts_do_not_see_each_other(self, house: TestHouse) -> None:
        await paid(house)
        [event] = await events(house)
        assert await events(house, mode="live") == []
        other = await create_account(house.ports, "Other")
        pair = {"X-Api-Key": other.test.api_key, "X-Api-Secret": other.test.api_secret}
        for method, path in (("GET", event["id"]), ("POST", f"{event['id']}/resend")):
            answers = [
                await house.http.request(method, f"/api/v1/events/{path}", headers=pair),
                await house.http.request(method, f"/api/v1/events/{path}", headers=house.headers("live")),
            ]
            for answer in answers:
                refused(answer, 404, "EVENT_NOT_FOUND")
        foreign = await house.http.get(f"/api/v1/events?object_id={event['object_id']}", headers=pair)
        assert foreign.json()["data"] == []


class TestOne:
    async def test_it_shows_what_was_sent_and_every_letter(self, house: TestHouse) -> None:
        house.postman.answers.extend([BAD, SILENT])
        await paid(house, metadata={"a": [1, None]})
        start = iso(house)
        await house.work(10)
        [listed] = await events(house)
        event = (await house.get(f"/events/{listed['id']}")).json()
        assert {name: event[name] for name in listed} == listed
        assert event["payload"] == msgspec.json.decode(house.postman.webhooks[0].body)
        times = [start, iso(house, -9), iso(house, -7)]
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

    async def test_while_it_is_retried_it_says_when(self, house: TestHouse) -> None:
        house.postman.answers.extend([BAD] * 5)
        await paid(house)
        await house.work(2)
        [event] = await events(house)
        assert (event["delivery_status"], event["attempt_count"], event["last_status"]) == ("pending", 2, 500)
        assert event["next_attempt_at"] == iso(house, 1)

    @pytest.mark.parametrize(
        "event_id", ["evt_1", f"pay_{UUID(int=1)}", f"evt_{UUID(int=1)}", "%00", "evt_" + "0" * 500]
    )
    async def test_what_is_none_is_404(self, house: TestHouse, event_id: str) -> None:
        refused(await house.get(f"/events/{event_id}"), 404, "EVENT_NOT_FOUND")

    async def test_a_payload_is_shown_as_it_was_when_it_was_made(self, house: TestHouse) -> None:
        payment = await paid(house)
        [event] = await events(house)
        assert (await house.get(f"/events/{event['id']}")).json()["payload"]["status"] == "paid"
        assert payment == event["object_id"]


class TestResend:
    async def test_it_answers_200_with_the_event_which_then_goes_out_again(self, house: TestHouse) -> None:
        await paid(house)
        await house.work()
        [event] = await events(house)
        response = await post(house, f"/events/{event['id']}/resend")
        assert response.status_code == 200
        assert response.json() == {**event, "delivery_status": "pending"}
        await house.work()
        first, second = house.postman.webhooks
        assert first.headers["X-Webhook-Id"] == second.headers["X-Webhook-Id"] == event["id"]
        assert (first.body, second.headers["X-Webhook-Attempt"]) == (second.body, "2")
        house.check_signatures()
        assert [each["attempt_count"] for each in await events(house)] == [2]

    async def test_a_range_answers_how_many(self, house: TestHouse) -> None:
        for _ in range(3):
            await paid(house)
        await house.work()
        body = {"from": iso(house, -60), "to": iso(house, 60)}
        response = await post(house, "/events/resend", body)
        assert (response.status_code, response.json()) == (200, {"events": 3})
        await house.work()
        assert len(house.postman.webhooks) == 6
        none = await post(house, "/events/resend", {**body, "type": "refund.failed", "delivery_status": "delivered"})
        assert none.json() == {"events": 0}
        live = await post(house, "/events/resend", body, mode="live")
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
    async def test_a_body_that_names_no_range_is_400(self, house: TestHouse, body: Any) -> None:
        refused(await post(house, "/events/resend", body), 400, "VALIDATION_ERROR")


class TestEndpoint:
    async def test_it_tells_address_breaker_backlog_and_last_letters(self, house: TestHouse) -> None:
        state = (await house.get("/webhook-endpoint")).json()
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
        await paid(house)
        await house.work()
        assert (await house.get("/webhook-endpoint")).json() == {**state, "last_success_at": iso(house)}
        live = (await house.get("/webhook-endpoint", mode="live")).json()
        assert live == {name: value for name, value in state.items() if name != "sandbox"}

    async def test_an_open_breaker_and_its_next_probe(self, house: TestHouse) -> None:
        house.postman.answers.extend([SILENT] * 20)
        for _ in range(5):
            await paid(house)
        await house.work(20)
        state = (await house.get("/webhook-endpoint")).json()
        assert (state["breaker"]["state"], state["breaker"]["failures"]) == ("open", 10)
        assert (state["breaker"]["opened_at"], state["breaker"]["next_probe_at"]) == (iso(house, -19), iso(house, 11))
        assert state["backlog"] == {"held": 0, "pending": 5, "failed": 0}
        failure = state["last_failure"]
        assert (failure["at"], failure["answer"], failure["status"]) == (iso(house, -19), "timeout", None)
        assert failure["note"] == SILENT.note
        assert failure["event_id"] in {event["id"] for event in await events(house)}

    async def test_without_a_receiver(self) -> None:
        async with open_test_house(receiver=False) as house:
            await paid(house)
            state = (await house.get("/webhook-endpoint")).json()
            assert (state["url"], state["secret_set"]) == (None, False)
            assert state["backlog"] == {"held": 1, "pending": 0, "failed": 0}
            refused(await post(house, "/webhook-endpoint/test"), 409, "INVALID_STATE")

    async def test_a_replaced_secret_says_until_when_it_signs(self, house: TestHouse) -> None:
        wish = {"webhook_secret": "another-webhook-secret"}
        await set_settings(house.ports, house.account.account_id, wish)
        state = (await house.get("/webhook-endpoint")).json()
        assert state["previous_secret_until"] == iso(house, 86_400)
        assert "secret" not in str(state).replace("secret_set", "").replace("previous_secret_until", "")


class TestTestLetter:
    @pytest.mark.parametrize("mode", Mode)
    async def test_it_is_a_signed_letter_of_its_own_kind_sent_now(self, house: TestHouse, mode: Mode) -> None:
        response = await post(house, "/webhook-endpoint/test", mode=mode)
        assert response.status_code == 200
        report = response.json()
        [webhook] = house.postman.webhooks
        assert report == {
            "event_id": webhook.headers["X-Webhook-Id"],
            "delivered": True,
            "sent_at": iso(house),
            "answer": "responded",
            "status": 200,
            "note": "",
            "took_ms": 0,
        }
        assert verify_signature(webhook.headers, webhook.body, [WEBHOOK_SECRET], house.clock.now().timestamp())
        assert webhook.headers["X-Webhook-Event"] == "webhook.test"
        sandbox = {"sandbox": True} if mode is Mode.TEST else {}
        assert msgspec.json.decode(webhook.body) == {"event": "webhook.test", "timestamp": iso(house), **sandbox}
        assert (webhook.url, webhook.open_network) == (WEBHOOK_URL, mode is Mode.TEST)
        assert await events(house, mode=mode) == [], "it is no event"

    @pytest.mark.parametrize("result", [BAD, SILENT, DeliveryResult(answer=Answer.BLOCKED, note="https only")])
    async def test_a_failure_is_reported_and_counts_for_nothing(self, house: TestHouse, result: DeliveryResult) -> None:
        report: dict[str, Any] = {}
        for _ in range(12):
            house.postman.answers.append(result)
            report = (await post(house, "/webhook-endpoint/test")).json()
        assert (report["delivered"], report["answer"], report["status"]) == (False, result.answer, result.status)
        assert (report["note"], report["took_ms"]) == (result.note, result.took_ms)
        state = (await house.get("/webhook-endpoint")).json()
        assert (state["breaker"]["state"], state["last_failure"]) == ("closed", None)
        await house.work(600)
        assert len(house.postman.webhooks) == 12, "it is not retried"

    async def test_a_good_answer_closes_the_breaker_and_all_that_waits_leaves(self, house: TestHouse) -> None:
        house.postman.answers.extend([BAD] * 10)
        for _ in range(5):
            await paid(house)
        await house.work(15)
        assert (await house.get("/webhook-endpoint")).json()["breaker"]["state"] == "open"
        await post(house, "/webhook-endpoint/test")
        await house.work()
        state = (await house.get("/webhook-endpoint")).json()
        assert (state["breaker"]["state"], state["backlog"]["pending"]) == ("closed", 0)
        assert {event["delivery_status"] for event in await events(house)} == {"delivered"}


CALLS = [
    ("GET", "/events"),
    ("GET", "/events/evt_1"),
    ("POST", "/events/evt_1/resend"),
    ("POST", "/events/resend"),
    ("GET", "/webhook-endpoint"),
    ("POST", "/webhook-endpoint/test"),
]


class TestDoor:
    @pytest.mark.parametrize(("method", "path"), CALLS)
    async def test_they_count_in_the_general_bucket(self, house: TestHouse, method: str, path: str) -> None:
        """It is not one of the four money calls (docs/limits.md "Requests")."""
        answer = await house.http.request(method, f"/api/v1{path}", headers=house.headers(), json={})
        assert answer.headers["X-RateLimit-Limit"] == "60"

    @pytest.mark.parametrize(("method", "path"), CALLS)
    async def test_they_need_a_key(self, house: TestHouse, method: str, path: str) -> None:
        refused(await house.http.request(method, f"/api/v1{path}", json={}), 401, "Unauthorized")

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
    async def test_another_method_is_405(self, house: TestHouse, method: str, path: str, allow: str) -> None:
        answer = await house.http.request(method, f"/api/v1{path}", headers=house.headers())
        refused(answer, 405, "METHOD_NOT_ALLOWED")
        assert allow in answer.headers["Allow"]
