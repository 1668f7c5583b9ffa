"""The edge: checks that every request meets before an endpoint's own rules (docs/concepts.md "What is refused first";
docs/limits.md "Requests")."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cambist.adapters.script import Twist
from cambist.core.domain.accounts.rate_limit import WINDOW
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from tests.apps import TestApp
from tests.tables import table

SEVEN = (
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit-Policy",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
)


def code(response: httpx.Response) -> str:
    body = response.json()
    assert set(body) == {"error"}
    assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "details"}
    found: str = body["error"]["code"]
    return found


ANSWERS: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("GET", "/api/v1/nothing", {}, 404, "NOT_FOUND"),
    ("GET", "/api/v1", {}, 404, "NOT_FOUND"),
    ("DELETE", "/api/v1/payments", {}, 405, "METHOD_NOT_ALLOWED"),
    ("POST", "/api/v1/payments", {"content": b"x" * 102_401}, 413, "PAYLOAD_TOO_LARGE"),
    ("POST", "/api/v1/nothing", {"content": b"x" * 102_401}, 413, "PAYLOAD_TOO_LARGE"),
    ("POST", "/api/v1/payments", {"json": {}}, 401, "Unauthorized"),
    ("GET", "/api/v1/payments/pay_1", {}, 401, "Unauthorized"),
    ("POST", "/api/v1/withdrawals", {}, 401, "Unauthorized"),
]


@pytest.mark.parametrize(("method", "path", "more", "status", "expected"), ANSWERS)
async def test_every_answer_has_the_envelope_the_seven_headers_and_a_request_id(
    app: TestApp, method: str, path: str, more: dict[str, Any], status: int, expected: str
) -> None:
    response = await app.http.request(method, path, **more)
    assert (response.status_code, code(response)) == (status, expected)
    assert response.headers["content-type"] == "application/json"
    for name in SEVEN:
        assert name in response.headers
    assert "Retry-After" not in response.headers
    assert response.headers["X-Request-Id"]
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_the_unknown_path_says_endpoint_not_found(app: TestApp) -> None:
    response = await app.get("/nothing")
    assert response.json() == {"error": {"code": "NOT_FOUND", "message": "Endpoint not found"}}


async def test_405_names_the_allowed_methods(app: TestApp) -> None:
    response = await app.http.delete("/api/v1/payments", headers=app.headers())
    assert {"GET", "POST"} <= {name.strip() for name in response.headers["Allow"].split(",")}


async def test_413_comes_before_authorization_also_without_a_content_length(app: TestApp) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 10_000

    response = await app.http.post("/api/v1/payments", content=parts())
    assert (response.status_code, code(response)) == (413, "PAYLOAD_TOO_LARGE")


async def test_a_body_of_exactly_100_kb_is_read(app: TestApp) -> None:
    body = b'{"amount_rub":"100.00"}'.ljust(102_400)
    assert len(body) == 102_400
    headers = app.headers(Idempotency_Key=str(uuid4()), Content_Type="application/json")

    async def parts() -> AsyncIterator[bytes]:
        yield body[:50_000]
        yield body[50_000:]

    for content in (body, parts()):
        response = await app.http.post("/api/v1/payments", content=content, headers=headers)
        assert response.status_code in (200, 201)


@pytest.mark.parametrize("given", ["req-1", "A.b_c-9", "x" * 128])
async def test_a_request_id_of_the_documented_form_is_taken_over(app: TestApp, given: str) -> None:
    response = await app.http.get("/api/v1/payments", headers={"X-Request-Id": given})
    assert response.headers["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "ä".encode().decode("latin-1"), "a\tb"])
async def test_any_other_request_id_is_replaced(app: TestApp, given: str) -> None:
    response = await app.http.get("/api/v1/payments", headers=[(b"X-Request-Id", given.encode("latin-1"))])
    assert response.headers["X-Request-Id"] != given
    assert len(response.headers["X-Request-Id"]) == 36


async def test_a_wrong_key_prefixless_key_and_wrong_secret_get_one_message(app: TestApp) -> None:
    pair = app.headers()
    tries: list[dict[str, Any]] = [
        {**pair, "X-Api-Secret": "0" * 64},
        {**pair, "X-Api-Secret": "Ω".encode()},
        {**pair, "X-Api-Key": "no-prefix"},
        {**pair, "X-Api-Key": "svc_test_unknown"},
        {"X-Api-Key": app.headers("live")["X-Api-Key"], "X-Api-Secret": pair["X-Api-Secret"]},
    ]
    answers = [await app.http.get("/api/v1/payments", headers=headers) for headers in tries]
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.text for answer in answers} == {answers[0].text}
    assert code(answers[0]) == "Unauthorized"


KEY_FORM = "X-Api-Key (svc_test_... or svc_live_...)"
SECRET_FORM = "X-Api-Secret (its secret, 64 hex characters)"


@table(
    ("given", "told"),
    [
        ({}, f"send the header {KEY_FORM} and the header {SECRET_FORM}"),
        ({"X-Api-Key": "svc_test_1"}, f"send the header {SECRET_FORM}"),
        ({"X-Api-Secret": "0" * 64, "X-Api-Key": ""}, f"send the header {KEY_FORM}"),
        (
            {"Authorization": "Basic c2hvcDprZXk="},
            f"send the header {KEY_FORM} and the header {SECRET_FORM}; Authorization: Basic is not read",
        ),
        (
            {"Authorization": "bearer svc_test_1"},
            f"send the header {KEY_FORM} and the header {SECRET_FORM}; Authorization: Bearer is not read",
        ),
        ({"Authorization": "x"}, f"send the header {KEY_FORM} and the header {SECRET_FORM}"),
    ],
)
@table("path", ["/api/v1/payments", "/api/v1/payments/pay_1"])
async def test_message_names_the_headers_of_a_missing_key_pair(
    app: TestApp, path: str, given: dict[str, str], told: str
) -> None:
    """A client that sends HTTP Basic or Bearer learns where keys go. The answer repeats nothing of the request
    (docs/concepts.md "Accounts, keys, modes")."""
    response = await app.http.get(path, headers=given)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (401, "Unauthorized")
    assert error["message"] == f"The API key or secret is not given: {told}"


async def _spend(app: TestApp, number: int, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
    response = httpx.Response(500)
    for _ in range(number):
        response = await app.http.request(method, path, headers=headers)
    return response


async def test_general_key_limit_is_60_and_says_so(app: TestApp) -> None:
    last = await _spend(app, 60, "GET", "/api/v1/payments", app.headers())
    assert (last.status_code, last.headers["RateLimit-Remaining"]) == (200, "0")
    over = await app.get("/payments")
    assert (over.status_code, code(over)) == (429, "RATE_LIMIT_EXCEEDED")
    assert over.json()["error"]["message"] == "Too many requests. Limit: 60 per minute."
    assert int(over.headers["Retry-After"]) == int(over.headers["RateLimit-Reset"]) <= WINDOW
    await app.clock.advance(int(over.headers["Retry-After"]))
    assert (await app.get("/payments")).status_code == 200


async def test_general_ip_limit_is_300_counts_unauthorized_and_spares_the_key(app: TestApp) -> None:
    await _spend(app, 300, "GET", "/api/v1/nothing", {})
    over = await app.get("/payments")
    assert over.json()["error"]["message"] == "Too many requests for API. Limit: 300 per minute per IP."
    assert over.headers["X-RateLimit-Limit"] == "300"
    await app.clock.advance(WINDOW)
    fresh = await app.get("/payments")
    assert fresh.headers["X-RateLimit-Remaining"] == "59"


async def test_money_bucket_is_its_own_and_no_spelling_escapes_it(app: TestApp) -> None:
    paths = ["/api/v1/payments", "/api/v1/payments/", "https://pay.example//api/v1//payments", "/api/v1/%70ayments"]
    for turn in range(120):
        response = await app.http.post(paths[turn % 4], headers=app.headers())
        assert (response.status_code, code(response)) == (400, "MISSING_IDEMPOTENCY_KEY")
    over = await app.http.post("/api/v1/payments", headers=app.headers())
    assert over.json()["error"]["message"] == (
        "Too many payment requests from this IP. Limit: 120 per minute. Retry with the same Idempotency-Key."
    )
    assert (await app.get("/payments")).status_code == 200


async def test_health_needs_no_key_and_answers_at_both_paths(app: TestApp) -> None:
    await start_recurring_jobs(app.ports)
    for path in ("/health", "/api/v1/health"):
        response = await app.http.get(path)
        assert response.status_code == 200
        assert response.json() == {"status": "ok", "timestamp": response.json()["timestamp"], "core": "ok"}
    assert (await app.http.get("/livez")).status_code == 200
    assert (await app.http.get("/readyz")).status_code == 200


@pytest.mark.parametrize(("port", "named"), [("counters", "meter"), ("queue", "queue")])
async def test_health_names_what_is_degraded_and_the_process_stays_ready(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, port: str, named: str
) -> None:
    """The app takes payments without the server of its counters or queue, so it must stay in service."""

    await start_recurring_jobs(app.ports)

    async def away() -> bool:
        return False

    monkeypatch.setattr(getattr(app.ports, port), "works", away)
    response = await app.http.get("/health")
    assert response.status_code == 503
    said = response.json()
    assert (said["status"], said["core"], said["degraded"]) == ("degraded", "ok", [named])
    assert (await app.http.get("/readyz")).status_code == 200


async def test_manual_withdrawals_are_discontinued(app: TestApp) -> None:
    response = await app.http.post("/api/v1/withdrawals", headers=app.headers(), json={})
    assert (response.status_code, code(response)) == (410, "WITHDRAWAL_DISCONTINUED")


async def test_the_sandbox_is_not_there_for_live_keys(app: TestApp) -> None:
    response = await app.http.post(
        "/api/v1/sandbox/payments/pay_1/simulate", headers=app.headers("live"), json={"outcome": "paid"}
    )
    assert (response.status_code, code(response)) == (404, "NOT_FOUND")
    assert response.json()["error"]["message"] == "Endpoint not found: the sandbox takes test keys (svc_test_...) only"


async def test_an_error_of_ours_shows_nothing_and_has_the_envelope(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr("cambist.frontends.http.payments.payments_view", broken)
    response = await app.get("/payments")
    assert (response.status_code, code(response)) == (500, "INTERNAL_ERROR")
    assert "inside" not in response.text


KEY_ROWS = [
    (None, "MISSING_IDEMPOTENCY_KEY"),
    ("", "MISSING_IDEMPOTENCY_KEY"),
    ("1234", "VALIDATION_ERROR"),
    ("{123e4567-e89b-12d3-a456-426614174000}", "VALIDATION_ERROR"),
    ("123e4567e89b12d3a456426614174000", "VALIDATION_ERROR"),
    ("urn:uuid:123e4567-e89b-12d3-a456-426614174000", "VALIDATION_ERROR"),
    ("123e4567-e89b-12d3-a456-42661417400g", "VALIDATION_ERROR"),
]


@pytest.mark.parametrize(("key", "expected"), KEY_ROWS)
async def test_the_idempotency_key_is_checked_before_the_body(app: TestApp, key: str | None, expected: str) -> None:
    headers = app.headers() if key is None else app.headers(Idempotency_Key=key)
    response = await app.http.post("/api/v1/payments", content=b"{garbage", headers=headers)
    assert (response.status_code, code(response)) == (400, expected)
    if expected == "VALIDATION_ERROR":
        assert "must be a valid UUID" in response.json()["error"]["message"]


async def test_a_repeat_answers_200_with_the_original_whatever_its_body(app: TestApp) -> None:
    key = str(uuid4())
    first = await app.create(key=key)
    assert (first.status_code, "Idempotent-Replayed" in first.headers) == (201, False)
    for content in (b'{"amount_rub":"999.00"}', b"{garbage", b""):
        again = await app.http.post(
            "/api/v1/payments", content=content, headers=app.headers(Idempotency_Key=key.upper())
        )
        assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
        assert again.json() == first.json()


async def test_a_repeat_shows_the_present_state_and_a_key_never_expires(app: TestApp) -> None:
    key = str(uuid4())
    payment = (await app.create(key=key)).json()
    await app.simulate(payment["id"], outcome="paid")
    await app.work(5 * 365 * 86_400)
    again = await app.create(key=key)
    assert (again.status_code, again.json()["id"], again.json()["status"]) == (200, payment["id"], "paid")


async def test_one_key_in_two_modes_is_two_payments(app: TestApp) -> None:
    key = str(uuid4())
    test, live = await app.create(key=key), await app.create(key=key, mode="live")
    assert (test.status_code, live.status_code) == (201, 201)
    assert test.json()["id"] != live.json()["id"]
    assert (test.json()["sandbox"], "sandbox" in live.json()) == (True, False)


@pytest.mark.parametrize("body", [{"amount_rub": 5}, {"amount_rub": "100", "client_phone": "12"}, {"amount_rub": "1"}])
async def test_a_refused_body_does_not_lock_the_key(app: TestApp, body: dict[str, Any]) -> None:
    key = str(uuid4())
    assert (await app.create(body, key=key)).status_code in (400, 422)
    assert (await app.create(key=key)).status_code == 201


async def test_twenty_at_once_with_one_key_make_one_payment(app: TestApp) -> None:
    key = str(uuid4())
    app.script.create.append(Twist(silence=1.0))
    asking = [asyncio.create_task(app.create(key=key)) for _ in range(20)]
    for _ in range(100):
        await app.clock.advance(0.05)
    answers = await asyncio.gather(*asking)
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert (await app.get("/payments")).json()["pagination"]["total"] == 1


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/payments", "GET, OPTIONS, POST"),
        ("/subscriptions/sub_x", "GET, OPTIONS, PATCH"),
        ("/balance", "GET, OPTIONS"),
    ],
)
async def test_options_names_all_methods_of_a_path(app: TestApp, path: str, methods: str) -> None:
    response = await app.http.options(f"/api/v1{path}", headers=app.headers())
    assert (response.status_code, response.headers["Allow"], response.content) == (204, methods, b"")


async def test_authorized_one_of_two_keys_in_a_request_is_counted(app: TestApp) -> None:
    """Otherwise a client could evade the limit per key with a made-up second key in each request (docs/limits.md
    "Requests")."""
    pair = app.account.test
    for number in range(61):
        made_up = f"svc_test_{number:032}"
        response = await app.http.get(
            "/api/v1/balance",
            headers=[("X-Api-Key", pair.api_key), ("X-Api-Key", made_up), ("X-Api-Secret", pair.api_secret)],
        )
        assert response.status_code == (200 if number < 60 else 429)
