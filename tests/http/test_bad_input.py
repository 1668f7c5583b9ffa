"""Bad input gets the documented envelope, never a 500 (docs/concepts.md "Requests in general")."""

from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.core.domain.errors import FieldFault, Refusal
from cambist.frontends.http.edge.bodies import read_body
from tests.apps import TestApp, open_test_app
from tests.tables import table

SHAPE = [
    "1e3", "1E3", "NaN", "nan", "Infinity", "-Infinity", "inf", "+5", "+100.00", " 100", "100 ", "100.", ".5", "1_000",
    "1,000.00", "100,00", "0x64", "100.001", "100.000", "12345678901", "99999999999.99", "٣٠٠", "１００", "¹⁰⁰", "",
    " ", "-", "--1", "1.2.3", "abc", "100.00\n", "\n100", "100\t", "null", "true", "100RUB", "1/2", "1e-2",
    "00000000001",
    "100.0a", "−100", "$100", "9" * 5000, "Ⅷ", "1e300000",
]  # fmt: skip
OUT_OF_RANGE = ["0", "0.0", "0.00", "-1", "-0.01", "-100.00", "0000000000", "-0", "9999999999.99", "1000000.01"]
BELOW_MINIMUM = ["0.01", "1", "29.99", "29.9"]


@table("amount", SHAPE)
async def test_a_malformed_amount_is_a_validation_error(app: TestApp, amount: str) -> None:
    response = await app.create({"amount_rub": amount})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert [detail["path"] for detail in response.json()["error"]["details"]] == ["amount_rub"]


@table("amount", OUT_OF_RANGE)
async def test_a_well_formed_amount_out_of_range_is_an_invalid_amount(app: TestApp, amount: str) -> None:
    response = await app.create({"amount_rub": amount})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_AMOUNT")


@table("amount", BELOW_MINIMUM)
async def test_below_30_rub_names_the_exact_minimum(app: TestApp, amount: str) -> None:
    response = await app.create({"amount_rub": amount})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "AMOUNT_BELOW_MINIMUM")
    assert "30.00" in response.json()["error"]["message"]


@table("amount", ["30", "30.0", "30.00", "0030.00", "1000000.00"])
async def test_amounts_at_the_bounds_are_taken_and_printed_with_two_decimals(app: TestApp, amount: str) -> None:
    response = await app.create({"amount_rub": amount})
    assert response.status_code == 201
    assert response.json()["amount_rub"] in ("30.00", "1000000.00")


async def post(app: TestApp, content: bytes, content_type: str | None = "application/json") -> httpx.Response:
    headers = app.headers(Idempotency_Key=str(uuid4()))
    if content_type is not None:
        headers["Content-Type"] = content_type
    return await app.http.post("/api/v1/payments", content=content, headers=headers)


GOOD = b'{"amount_rub":"100.00"}'

BODIES = [
    b"", b"{", b"null", b"[]", b"1", b'"text"', b"{}", b"[" * 90_000, b"{" * 90_000, b'{"a":' * 15_000,
    b'{"amount_rub":"100.00"', GOOD + b"x", b"\xff\xfe" + GOOD, b"\xef\xbb\xbf" + GOOD,
    b'{"amount_rub":"100.00","description":"\xff"}', b'{"amount_rub":"100.00","description":"\xc3("}',
    b'{"amount_rub":"100.00","description":"\\ud800"}', b'{"amount_rub":"100.00","description":"a\\u0000b"}',
    b'{"amount_rub":"100.00","metadata":{"a\\u0000":1}}', b'{"amount_rub":"100.00","description":"\x00"}',
    b'{"amount_rub":"100.00","metadata":' + b'{"a":' * 20 + b"1" + b"}" * 20 + b"}",
    b'{"amount_rub":"100.00","metadata":{"a":' + b"[" * 19 + b"]" * 19 + b"}}",
    b'{"amount_rub":100}', b'{"amount_rub":100.00}', b'{"amount_rub":null}', b'{"amount_rub":["100"]}',
    b'{"amount_rub":true}', b'{"amount_rub":NaN}', b'{"amount_rub":Infinity}', b"{'amount_rub':'100.00'}",
    b'{"amount_rub":"100.00","metadata":{"a":1e999}}', b'{"amount_rub":"100.00",}',
    b'{"amount_rub":"100.00","unknown":1}', b'{"AMOUNT_RUB":"100.00"}',
    b'{"amount_rub":"100.00","cap_amount_rub":"100.00"}',
]  # fmt: skip


@table("body", BODIES, ids=lambda body: repr(body[:40]))
async def test_a_bad_body_is_a_validation_error_with_details(app: TestApp, body: bytes) -> None:
    response = await post(app, body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert all(set(detail) == {"path", "message"} for detail in response.json()["error"]["details"])


@table("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "json", "", "a/b;c"])
async def test_fields_look_absent_without_the_content_type(app: TestApp, content_type: str | None) -> None:
    response = await post(app, GOOD, content_type)
    assert response.status_code == 400
    assert response.json()["error"]["details"] == [
        {
            "path": "amount_rub",
            "message": "is required; the body was not read: send it with Content-Type: application/json",
        }
    ]


class Optional(msgspec.Struct):
    """A body without a required field."""

    enabled: bool | None = None


@table("content_type", [None, "", "text/plain"])
def test_unread_body_is_refused_where_every_field_is_optional(content_type: str | None) -> None:
    with pytest.raises(Refusal) as caught:
        read_body(b'{"enabled": false}', content_type, Optional)
    assert (caught.value.code, caught.value.details) == (
        "VALIDATION_ERROR",
        [FieldFault(path="$", message="the body was not read: send it with Content-Type: application/json")],
    )


@table("content_type", [None, "application/json", "text/plain"])
@table("body", [b"", b" ", b"\n"])
def test_empty_body_is_no_unread_body(body: bytes, content_type: str | None) -> None:
    assert read_body(body, content_type, Optional) == Optional()


async def test_patch_without_its_content_type_changes_nothing(app: TestApp) -> None:
    made = await app.http.post(
        "/api/v1/webhook-endpoints",
        json={"url": "https://books.example/hooks"},
        headers=app.headers(Idempotency_Key=str(uuid4())),
    )
    path = f"/api/v1/webhook-endpoints/{made.json()['id']}"
    refused = await app.http.patch(path, content=b'{"enabled": false}', headers=app.headers())
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert (await app.http.get(path, headers=app.headers())).json()["enabled"] is True


@table("content_type", ["application/json", "Application/JSON", "application/json; charset=utf-8"])
async def test_spellings_of_the_content_type(app: TestApp, content_type: str) -> None:
    assert (await post(app, GOOD, content_type)).status_code == 201


async def test_depth_20_is_allowed_and_of_duplicate_keys_the_last_counts(app: TestApp) -> None:
    deep = b'{"amount_rub":"1","metadata":' + b'{"a":' * 18 + b"[]" + b"}" * 18 + b',"amount_rub":"200.00"}'
    response = await post(app, deep)
    assert (response.status_code, response.json()["amount_rub"]) == (201, "200.00")


async def test_a_megabyte_is_413(app: TestApp) -> None:
    response = await post(app, b"[" * 1_000_000)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")


FIELDS: list[tuple[dict[str, Any], int, str]] = [
    ({"payment_method": "card"}, 400, "payment_method"),
    ({"payment_method": "recurring"}, 400, "payment_method"),
    ({"external_id": "x" * 257}, 400, "external_id"),
    ({"external_id": 5}, 400, "external_id"),
    ({"description": "x" * 256}, 400, "description"),
    ({"client_email": "x" * 255}, 400, "client_email"),
    ({"shop_id": "not-a-uuid"}, 400, "shop_id"),
    ({"method_id": "1"}, 400, "method_id"),
    ({"metadata": []}, 400, "metadata"),
    ({"metadata": "text"}, 400, "metadata"),
    ({"ttl_minutes": 0}, 400, "ttl_minutes"),
    ({"ttl_minutes": -1}, 400, "ttl_minutes"),
    ({"ttl_minutes": "5"}, 400, "ttl_minutes"),
    ({"ttl_minutes": 5.5}, 400, "ttl_minutes"),
    ({"ttl_minutes": 61}, 422, "ttl_minutes"),
    ({"ttl_minutes": 10**30}, 422, "ttl_minutes"),
    ({"auto_return": "yes"}, 400, "auto_return"),
    ({"auto_return": 1}, 400, "auto_return"),
    ({"client_info": []}, 400, "client_info"),
    ({"client_info": {"ip": "x" * 4096}}, 400, "client_info"),
    ({"webhook_url": "ftp://x"}, 400, "webhook_url"),
    ({"webhook_url": "javascript:alert(1)"}, 400, "webhook_url"),
    ({"client_phone": "79001234567"}, 422, "client_phone"),
    ({"client_phone": "+123456789"}, 422, "client_phone"),
    ({"client_phone": "+1234567890123456"}, 422, "client_phone"),
    ({"client_phone": "+7900123456٣"}, 422, "client_phone"),
    ({"client_phone": "+79001234567\n"}, 422, "client_phone"),
    ({"payer": []}, 400, "payer"),
    ({"payer": {}}, 400, "payer.full_name"),
    ({"payer": {"full_name": "A B"}}, 400, "payer.document_number"),
    ({"payer": {"full_name": "A B", "document_number": "12345", "x": 1}}, 400, "payer.x"),
    ({"payer": {"full_name": "A, B", "document_number": "12345"}}, 422, "payer.full_name"),
    ({"payer": {"full_name": "A 2", "document_number": "12345"}}, 422, "payer.full_name"),
    ({"payer": {"full_name": " ", "document_number": "12345"}}, 422, "payer.full_name"),
    ({"payer": {"full_name": "A B", "document_number": "1234"}}, 422, "payer.document_number"),
    ({"payer": {"full_name": "A B", "document_number": "1" * 33}}, 422, "payer.document_number"),
    ({"payer": {"full_name": "A B", "document_number": "12 345"}}, 422, "payer.document_number"),
    ({"payer": {"full_name": "A B", "document_number": "12345", "kyc_completed_at": "2020-01-01T00:00:00"}}, 422,
     "payer.kyc_completed_at"),
    ({"payer": {"full_name": "A B", "document_number": "12345", "kyc_completed_at": "2999-01-01T00:00:00Z"}}, 422,
     "payer.kyc_completed_at"),
    ({"payer": {"full_name": "A B", "document_number": "12345", "kyc_completed_at": "yesterday"}}, 422,
     "payer.kyc_completed_at"),
]  # fmt: skip


@table(("fields", "status", "path"), FIELDS)
async def test_a_field_out_of_its_rule_is_named(app: TestApp, fields: dict[str, Any], status: int, path: str) -> None:
    response = await app.create(fields)
    assert (response.status_code, response.json()["error"]["code"]) == (status, "VALIDATION_ERROR")
    assert [detail["path"] for detail in response.json()["error"]["details"]] == [path]


@table(
    "query",
    [
        "page=0", "page=-1", "page=250001", "page=x", "page=1e1", "page=", "page=1.0", "page=%00", "page=٣",
        "per_page=0", "per_page=101", "per_page=abc", "status=unknown", "status=", "status=%00", "shop_id=1",
        "shop_id=",
    ],
)  # fmt: skip
async def test_a_bad_query_value_is_a_validation_error(app: TestApp, query: str) -> None:
    response = await app.get(f"/payments?{query}")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR")


async def test_an_unknown_status_is_answered_with_the_allowed_ones(app: TestApp) -> None:
    message = (await app.get("/payments?status=gone")).json()["error"]["message"]
    for status in ("pending", "amount_mismatch", "refunded"):
        assert status in message


@table("path_id", ["x", "pay_", "pay_1", "pay_%00", "%00", "pay_" + "0" * 500, "ref_123", "%F0%9F%92%B8", "%FF"])
async def test_an_odd_id_is_not_found(app: TestApp, path_id: str) -> None:
    response = await app.get(f"/payments/{path_id}")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "PAYMENT_NOT_FOUND")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text() | st.integers(-(2**70), 2**70),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELD_NAMES = st.sampled_from(
    ["amount_rub", "payment_method", "external_id", "description", "payer", "metadata", "shop_id", "ttl_minutes",
     "client_info", "auto_return", "webhook_url", "client_phone", "client_email", "method_id", "other"]
)  # fmt: skip


async def test_any_input_gets_a_documented_answer() -> None:
    async with open_test_app() as app:

        @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
        @given(st.dictionaries(FIELD_NAMES, JSON, max_size=4) | JSON)
        def check(value: Any) -> None:
            body = msgspec.json.encode(value)
            bodies.append(body)

        bodies: list[bytes] = []
        check()
        for number, body in enumerate(bodies):
            if number % 100 == 0:
                await app.clock.advance(60)
            response = await post(app, body)
            assert response.status_code in (201, 400, 422), (body, response.text)
            if response.status_code != 201:
                assert set(response.json()) == {"error"}
