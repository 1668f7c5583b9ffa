"""POST and GET /payments/{id}/delivery-proof over HTTP: shapes, refusals and their order
(docs/payments.md "Delivery proofs")."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.core.domain.payments.payments import PaymentStatus
from tests.proof_kit import HASH, OTHER_HASH, Exchange, exchange_terminal, open_exchange
from tests.tables import table

ORDER = {"network": "TRC20", "tx_hash": HASH}
PENDING = "pay_00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def exchange() -> AsyncIterator[Exchange]:
    async with open_exchange() as opened:
        yield opened


async def refusal(exchange: Exchange, payment_id: str, body: Any = None, **more: Any) -> tuple[int, str]:
    response = await exchange.post(payment_id, ORDER if body is None else body, **more)
    return response.status_code, response.json()["error"]["code"]


async def test_proof_waits_with_null_fields_before_any_submission(exchange: Exchange) -> None:
    for payment_id in (await exchange.paid(), await exchange.created()):
        response = await exchange.read(payment_id)
        assert (response.status_code, response.json()) == (
            200,
            {"network": None, "tx_hash": None, "status": "waiting"},
        )


@pytest.mark.parametrize("network", ["TRC20", "ERC20", "BEP20"])
async def test_the_first_submission_is_accepted_without_an_idempotency_key(exchange: Exchange, network: str) -> None:
    payment_id = await exchange.paid()
    response = await exchange.post(payment_id, {"network": network, "tx_hash": f" 0x{HASH.upper()} "})
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.json() == {"network": network, "tx_hash": f"0x{HASH}", "status": "accepted"}
    assert (await exchange.read(payment_id)).json() == response.json()


async def test_a_rejected_one_says_why_and_any_other_has_no_reason(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.submit(payment_id, "garbage")
    await exchange.app.work()
    assert (await exchange.read(payment_id)).json() == {
        "network": "TRC20",
        "tx_hash": "garbage",
        "status": "rejected",
        "reason": "invalid",
    }
    assert "reason" not in await exchange.submit(payment_id, HASH)


BAD_BODIES: list[Any] = [
    {},
    {"network": "TRC20"},
    {"tx_hash": HASH},
    {**ORDER, "network": "trc20"},
    {**ORDER, "network": "SOL"},
    {**ORDER, "network": None},
    {**ORDER, "network": 20},
    {**ORDER, "tx_hash": None},
    {**ORDER, "tx_hash": 1},
    {**ORDER, "tx_hash": ""},
    {**ORDER, "tx_hash": " \n"},
    {**ORDER, "tx_hash": "x" * 201},
    {**ORDER, "tx_hash": "a b"},
    {**ORDER, "tx_hash": "хэш"},
    {**ORDER, "tx_hash": "a\u0000"},
    {**ORDER, "comment": "x"},
    [ORDER],
    "text",
]


@table("body", BAD_BODIES, ids=repr)
async def test_a_bad_body_is_a_validation_error_and_leaves_nothing(exchange: Exchange, body: Any) -> None:
    payment_id = await exchange.paid()
    response = await exchange.post(payment_id, body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert all(set(detail) == {"path", "message"} for detail in response.json()["error"]["details"])
    assert (await exchange.status(payment_id))[0] == "waiting"


async def test_body_is_not_read_without_its_content_type(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    response = await exchange.app.http.post(
        f"/api/v1/payments/{payment_id}/delivery-proof",
        content=b'{"network":"TRC20","tx_hash":"a"}',
        headers=exchange.merchant.headers(),
    )
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR")


async def test_foreign_other_mode_and_unknown_payments_are_not_found(exchange: Exchange) -> None:
    payment_id, another = await exchange.paid(), await exchange.another_merchant()
    cases: list[tuple[str, dict[str, Any]]] = [
        (payment_id, {"merchant": another}),
        (payment_id, {"mode": "test"}),
        (PENDING, {}),
        ("pay_garbage", {}),
    ]
    for unknown, more in cases:
        assert await refusal(exchange, unknown, **more) == (404, "PAYMENT_NOT_FOUND")
        assert (await exchange.read(unknown, **more)).json()["error"]["code"] == "PAYMENT_NOT_FOUND"


@pytest.mark.parametrize("case", ["test mode", "ordinary terminal", "no terminal"])
async def test_a_payment_where_no_hash_is_accepted(exchange: Exchange, case: str) -> None:
    mode = "test" if case == "test mode" else "live"
    if case == "ordinary terminal":
        ordinary = await exchange_terminal(exchange.app, exchange.app.account.account_id, "ordinary")
        payment_id = await exchange.created(method_id=ordinary)
    elif case == "test mode":
        payment_id = await exchange.created(mode="test")
    else:
        await exchange.set(terminals="false")
        payment_id = await exchange.created(method_id=None)
    await exchange.change(payment_id, status=PaymentStatus.PAID)
    assert await refusal(exchange, payment_id, mode=mode) == (400, "FEATURE_NOT_ENABLED")
    read = await exchange.read(payment_id, mode=mode)
    assert (read.status_code, read.json()["error"]["code"]) == (400, "FEATURE_NOT_ENABLED")


@pytest.mark.parametrize("status", PaymentStatus)
async def test_a_hash_is_taken_in_paid_and_settled_only(exchange: Exchange, status: PaymentStatus) -> None:
    payment_id = await exchange.created()
    await exchange.change(payment_id, status=status)
    if status in (PaymentStatus.PAID, PaymentStatus.SETTLED):
        assert (await exchange.submit(payment_id))["status"] == "accepted"
    else:
        assert await refusal(exchange, payment_id) == (409, "INVALID_STATUS")
    assert (await exchange.read(payment_id)).status_code == 200


async def test_disabled_terminals_still_take_proofs_of_their_payments(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.set(terminals="false")
    assert (await exchange.submit(payment_id))["status"] == "accepted"


async def test_each_refusal_beats_those_below_it(exchange: Exchange) -> None:
    """Authorization, payment, feature, status, body, lock: each request breaks its rule and all that follow."""
    bad: dict[str, str] = {}
    locked = await exchange.settled()
    await exchange.mined()
    await exchange.submit(locked)
    await exchange.app.work()
    unpaid, ordinary = await exchange.created(), await exchange.created(mode="test")
    keyless = await exchange.app.http.post(f"/api/v1/payments/{PENDING}/delivery-proof", json=bad)
    assert (keyless.status_code, keyless.json()["error"]["code"]) == (401, "Unauthorized")
    assert [
        await refusal(exchange, PENDING, bad),
        await refusal(exchange, ordinary, bad, mode="test"),
        await refusal(exchange, unpaid, bad),
        await refusal(exchange, locked, bad),
        await refusal(exchange, locked, {**ORDER, "tx_hash": OTHER_HASH}),
    ] == [
        (404, "PAYMENT_NOT_FOUND"),
        (400, "FEATURE_NOT_ENABLED"),
        (409, "INVALID_STATUS"),
        (400, "VALIDATION_ERROR"),
        (409, "DELIVERY_PROOF_LOCKED"),
    ]


@pytest.mark.parametrize("usdt", [100, 50])
async def test_confirmed_hash_may_be_repeated_and_not_replaced(exchange: Exchange, usdt: float) -> None:
    payment_id = await exchange.settled()
    await exchange.mined(usdt=usdt)
    await exchange.submit(payment_id)
    await exchange.app.work()
    before = (await exchange.read(payment_id)).json()
    assert before["status"] == ("confirmed" if usdt == 100 else "confirmed_amount_differs")
    assert await refusal(exchange, payment_id, {**ORDER, "tx_hash": OTHER_HASH}) == (409, "DELIVERY_PROOF_LOCKED")
    repeated = await exchange.post(payment_id, {**ORDER, "tx_hash": HASH})
    assert (repeated.status_code, repeated.json()) == (200, before)
    assert (await exchange.read(payment_id)).json() == before


async def test_proof_counts_in_the_general_bucket_and_knows_its_methods(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    response = await exchange.post(payment_id, ORDER)
    assert response.headers["X-RateLimit-Limit"] == "60"
    wrong = await exchange.app.http.delete(
        f"/api/v1/payments/{payment_id}/delivery-proof", headers=exchange.merchant.headers()
    )
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert {"GET", "POST"} <= {name.strip() for name in wrong.headers["Allow"].split(",")}
