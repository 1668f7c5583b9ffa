"""Refunds over HTTP: shapes, refusals and their order, idempotency, lists, the sandbox
(docs/refunds.md "Asking for one", "Rules")."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.usecases.accounts import accounts, terminals
from cambist.frontends.http.openapi.openapi import openapi_document
from tests.http.documents import Document
from tests.invariants import everything
from tests.refund_app import RefundApp, open_refund_app, told
from tests.tables import table

NOWHERE = "pay_00000000-0000-4000-8000-000000000000"
NO_REFUND = "ref_00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def test_the_answer_has_exactly_these_fields(refunds: RefundApp) -> None:
    """The refund object (docs/refunds.md "Asking for one"); `sandbox` in test mode only."""
    for mode in ("test", "live"):
        payment_id = await refunds.paid(mode=mode)
        body = {
            "payment_id": payment_id,
            "amount_rub": "40.5",
            "external_id": "order-1",
            "reason": "size",
            "metadata": {"a": 1},
        }
        response = await refunds.post(body, mode=mode)
        shown = response.json()
        payment = await refunds.payment(payment_id)
        assert (response.status_code, shown) == (
            201,
            {
                "id": shown["refund_id"],
                "refund_id": shown["id"],
                "payment_id": payment_id,
                "amount_rub": "40.50",
                "amount_usdt": None,
                "rate_market": None,
                "status": "pending",
                "pending_reason": None if mode == "test" else "awaiting_approval",
                "external_id": "order-1",
                "reason": "size",
                "failure_reason": None,
                "metadata": {"a": 1},
                "shop_id": payment.shop_id,
                "created_at": refunds.app.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
                "completed_at": None,
                **({"sandbox": True} if mode == "test" else {}),
            },
        )
        assert shown["id"].startswith("ref_")
        assert (await refunds.app.get(f"/refunds/{shown['id']}", mode=mode)).json() == shown


async def test_refund_without_an_amount_is_of_the_remainder(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    await refunds.apply(payment_id, "30.01")
    response = await refunds.post({"payment_id": payment_id, "amount_rub": None})
    assert (response.status_code, response.json()["amount_rub"]) == (201, "69.99")
    assert told(await refunds.post({"payment_id": payment_id})) == (400, "OVER_REMAINING")


# --- the switch, modes and accounts


CALLS = [
    ("POST", "/refunds"),
    ("GET", "/refunds?status=garbage&page=0"),
    ("GET", f"/refunds/{NO_REFUND}"),
    ("POST", f"/refunds/{NO_REFUND}/cancel"),
    ("POST", f"/sandbox/refunds/{NO_REFUND}/simulate"),
]


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_refund_paths_are_404_until_refunds_are_enabled(refunds: RefundApp, method: str, path: str) -> None:
    """Until it is switched on it is 404, before the Idempotency-Key and the body
    (docs/concepts.md "What is refused first")."""
    await refunds.set(refunds="false")
    response = await refunds.app.http.request(method, f"/api/v1{path}", headers=refunds.app.headers())
    assert (told(response), response.json()["error"]["message"]) == (
        (404, "NOT_FOUND"),
        "Endpoint not found: refunds are not on for this account",
    )


async def another(refunds: RefundApp) -> dict[str, str]:
    """Return the headers of another merchant who may refund, with test keys."""
    account = await accounts.create_account(refunds.ports, "Another")
    await accounts.set_settings(refunds.ports, account.account_id, {"refunds": "true"})
    return {"X-Api-Key": account.test.api_key, "X-Api-Secret": account.test.api_secret}


async def test_refunds_of_the_other_mode_and_of_others_are_not_found(refunds: RefundApp) -> None:
    refund_id = await refunds.apply(await refunds.paid())
    foreign = await another(refunds)
    for headers, unknown in (
        (refunds.app.headers("live"), refund_id),
        (foreign, refund_id),
        (refunds.app.headers(), NO_REFUND),
        (refunds.app.headers(), "ref_x"),
        (refunds.app.headers(), refund_id.upper()),
    ):
        for method, path in (("GET", ""), ("POST", "/cancel")):
            response = await refunds.app.http.request(method, f"/api/v1/refunds/{unknown}{path}", headers=headers)
            assert told(response) == (404, "REFUND_NOT_FOUND")
    assert told(await refunds.simulate(NO_REFUND, "completed")) == (404, "REFUND_NOT_FOUND")
    page = await refunds.app.http.get("/api/v1/refunds", headers=foreign)
    assert page.json()["data"] == []
    assert (await refunds.app.get("/refunds", mode="live")).json()["data"] == []


async def test_a_payment_of_the_other_mode_or_of_others_is_not_found(refunds: RefundApp) -> None:
    live, foreign = await refunds.paid(mode="live"), await another(refunds)
    mine = await refunds.paid()
    for payment_id, headers in ((live, refunds.app.headers()), (mine, foreign)):
        sent = {**headers, "Idempotency-Key": str(uuid4())}
        response = await refunds.app.http.post("/api/v1/refunds", json={"payment_id": payment_id}, headers=sent)
        assert told(response) == (404, "PAYMENT_NOT_FOUND")


# --- refusals


BAD_BODIES: list[Any] = [
    {},
    {"payment_id": None},
    {"payment_id": 1},
    {"amount_rub": 5},
    {"amount_rub": "1.001"},
    {"amount_rub": "+5"},
    {"amount_rub": ""},
    {"external_id": "x" * 257},
    {"external_id": "a\0"},
    {"reason": "x" * 256},
    {"metadata": []},
    {"metadata": "text"},
    {"comment": "unknown key"},
    [],
    "text",
]


@table("body", BAD_BODIES, ids=repr)
async def test_a_bad_body_is_a_validation_error_and_does_not_lock_the_key(refunds: RefundApp, body: Any) -> None:
    payment_id, key = await refunds.paid(), str(uuid4())
    good = {"payment_id": payment_id}
    response = await refunds.post({**good, **body} if body and isinstance(body, dict) else body, key=key)
    assert told(response) == (400, "VALIDATION_ERROR")
    assert all(set(detail) == {"path", "message"} for detail in response.json()["error"]["details"])
    assert (await refunds.post(good, key=key)).status_code == 201


@pytest.mark.parametrize("status", ["pending", "processing", "failed", "cancelled", "expired", "amount_mismatch"])
async def test_only_paid_and_settled_payments_are_refunded(refunds: RefundApp, status: str) -> None:
    payment = await refunds.app.created()
    if status != "pending":
        await refunds.app.simulate(payment["id"], outcome=status)
    assert told(await refunds.post({"payment_id": payment["id"]})) == (409, "INVALID_STATUS")


async def test_the_eleventh_application_ever_is_refused(refunds: RefundApp) -> None:
    """At most 10 applications a payment, whatever became of them; how many are open is not limited
    (docs/refunds.md "Rules")."""
    payment_id = await refunds.paid()
    for number in range(10):
        refund_id = await refunds.apply(payment_id, "1.00")
        if number < 5:
            await refunds.action(f"/refunds/{refund_id}/cancel")
    assert told(await refunds.post({"payment_id": payment_id, "amount_rub": "1.00"})) == (409, "LIMIT_PER_PAYMENT")
    await refunds.app.work(7)
    assert told(await refunds.post({"payment_id": payment_id})) == (409, "LIMIT_PER_PAYMENT")


async def test_partial_refund_waits_for_settlement_if_credit_follows_receipt(refunds: RefundApp) -> None:
    terminal = await terminals.create_terminal(
        refunds.ports, refunds.app.account.account_id, TerminalWish(label="Any", credit_follows_receipt=True)
    )
    await refunds.set(terminals="true", refund_overdraft_usdt="1")
    payment_id, whole = [await refunds.paid(method_id=terminal.id) for _ in range(2)]
    body = {"payment_id": payment_id, "amount_rub": "40.00"}
    assert told(await refunds.post(body)) == (400, "PARTIAL_BEFORE_SETTLEMENT")
    assert (await refunds.post({"payment_id": whole, "amount_rub": "100.00"})).status_code == 201
    await refunds.settle()
    assert (await refunds.post(body)).status_code == 201


# --- idempotency


async def test_a_repeat_with_the_same_key_answers_with_the_present_state(refunds: RefundApp) -> None:
    payment_id, key = await refunds.paid(), str(uuid4())
    first = await refunds.post({"payment_id": payment_id}, key=key)
    await refunds.app.work(7)
    again = await refunds.post({"garbage": True}, key=key.upper())
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert "Idempotent-Replayed" not in first.headers
    assert (again.json()["id"], again.json()["status"]) == (first.json()["id"], "completed")


@pytest.mark.parametrize("amount", [None, "10.00"])
async def test_the_same_key_at_once_makes_one_refund(refunds: RefundApp, amount: str | None) -> None:
    """This holds even when the first refund leaves nothing for a second: its own repeat is not refused."""
    payment_id, key = await refunds.paid(), str(uuid4())
    body = {"payment_id": payment_id, "amount_rub": amount}
    found = await asyncio.gather(*(refunds.post(body, key=key) for _ in range(8)))
    assert sorted(response.status_code for response in found) == [200] * 7 + [201]
    assert len({response.json()["id"] for response in found}) == 1
    assert len(await everything(refunds.ports, Refund)) == 1


async def test_a_key_is_one_over_kinds_and_two_over_modes(refunds: RefundApp) -> None:
    key = str(uuid4())
    payment = (await refunds.app.create(key=key)).json()["id"]
    assert told(await refunds.post({"payment_id": payment}, key=key)) == (409, "IDEMPOTENCY_KEY_REUSED")
    live = await refunds.paid(mode="live")
    assert (await refunds.post({"payment_id": live}, key=key, mode="live")).status_code == 201


# --- cancel


@pytest.mark.parametrize("status", ["processing", "completed", "reversed", "rejected", "cancelled", "failed"])
async def test_only_a_pending_application_is_cancelled(refunds: RefundApp, status: str) -> None:
    refund_id = await refunds.apply(await refunds.paid())
    if status == "cancelled":
        assert (await refunds.action(f"/refunds/{refund_id}/cancel")).status_code == 200
    elif status == "processing":
        await refunds.app.work(2)
    else:
        if status == "reversed":
            await refunds.simulate(refund_id, "completed")
        assert (await refunds.simulate(refund_id, status)).status_code == 200
    assert told(await refunds.action(f"/refunds/{refund_id}/cancel")) == (409, "INVALID_STATE")
    assert await refunds.status(refund_id) == status


async def test_a_cancelled_application_touches_nothing_and_sends_no_event(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id)
    response = await refunds.action(f"/refunds/{refund_id}/cancel")
    shown = response.json()
    assert (response.status_code, shown["status"], shown["pending_reason"]) == (200, "cancelled", None)
    assert (await refunds.payment(payment_id)).refund_pending is False
    await refunds.app.work(60)
    assert await refunds.said(refund_id) == []
    assert await refunds.left_at_bank(payment_id) == 100_00


# --- the frame


async def test_refund_counts_in_the_general_bucket(refunds: RefundApp) -> None:
    response = await refunds.post({"payment_id": await refunds.paid()})
    assert response.headers["X-RateLimit-Limit"] == "60"


async def test_answers_are_as_the_description_says(refunds: RefundApp) -> None:
    document = Document(openapi_document("https://pay.example"))
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id, "40.00", metadata={"a": 1})
    for body in ({"payment_id": payment_id}, {"payment_id": payment_id}, {"payment_id": NOWHERE}, {}):
        document.check(await refunds.post(body))
    document.check(await refunds.post({}, key="garbage"))
    for path in ("/refunds", "/refunds?page=0", f"/refunds/{refund_id}", f"/refunds/{NO_REFUND}"):
        document.check(await refunds.app.get(path))
    for outcome in ("reversed", "completed", "reversed", "garbage"):
        document.check(await refunds.simulate(refund_id, outcome))
    document.check(await refunds.action(f"/refunds/{refund_id}/cancel"))
    await refunds.set(refunds="false")
    for method, path in CALLS:
        document.check(await refunds.app.http.request(method, f"/api/v1{path}", headers=refunds.app.headers()))
