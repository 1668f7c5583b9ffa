"""Payments and refunds as one file (docs/payments.md "As a file")."""

import csv
import io
from typing import Any
from uuid import uuid4

import pytest

from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.common import paging
from cambist.core.usecases.exports.rows import guarded
from tests.apps import TestApp
from tests.tables import table


async def rows_of(app: TestApp, path: str) -> list[dict[str, Any]]:
    answer = await app.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))


async def paid(app: TestApp, **order: Any) -> dict[str, Any]:
    made: dict[str, Any] = await app.created({"amount_rub": "500.00", **order})
    await app.simulate(made["id"], outcome="paid")
    return made


@table(
    "text, cell",
    [
        (None, None),
        ("order-1", "order-1"),
        ("=1+1", "'=1+1"),
        ("+7", "'+7"),
        ("-2", "'-2"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        (' "=1"', '\' "=1"'),
        ("a; =1", "a;' =1"),
        ("a\n-1", "a\n'-1"),
        ("＝1", "'＝1"),
        ("1=1", "1=1"),
        ("a,-b; c", "a,-b; c"),
    ],
)
def test_guard_adds_an_apostrophe_to_formulas_only(text: str | None, cell: str | None) -> None:
    assert guarded(text) == cell


async def test_file_has_every_payment_of_the_filter(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "WALKED_AT_ONCE", 2)
    shop = await create_shop(app.ports, app.account.account_id, "=Shop", "0.03")
    for number in range(5):
        await app.created({"external_id": f"a-{number}"})
    mine = [await paid(app, external_id=f"=b-{number}", shop_id=shop.id) for number in range(3)]
    everything = await rows_of(app, "/payments?format=csv")
    listed = (await app.get("/payments")).json()["data"]
    assert [row["id"] for row in everything] == [each["id"] for each in listed]
    found = await rows_of(app, f"/payments?format=csv&shop_id={shop.id}&status=paid&payment_method=sbp")
    assert [row["id"] for row in found] == [each["id"] for each in reversed(mine)]
    assert (found[0]["external_id"], found[0]["shop_name"]) == ("'=b-2", "'=Shop")
    assert (found[0]["amount_rub"], found[0]["created_at"]) == ("500.00", listed[0]["created_at"])


async def test_payments_of_one_moment_are_all_in_the_file(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "WALKED_AT_ONCE", 2)
    made = [await app.created() for _ in range(5)]
    async with app.ports.storage.unit() as unit:
        found = await unit[Payment].find(limit=10)
    assert len({each.created_at for each in found}) < 5, "the virtual clock stands"
    assert [row["id"] for row in await rows_of(app, "/payments?format=csv")] == [each["id"] for each in reversed(made)]


async def test_settled_payment_has_rate_fee_and_credit(app: TestApp) -> None:
    payment = await paid(app)
    await app.http.post("/api/v1/sandbox/settlements", headers=app.headers())
    settlement = (await app.get("/settlements")).json()["data"][0]
    line = (await app.get(f"/settlements/{settlement['id']}/items")).json()["data"][0]
    row = (await rows_of(app, "/payments?format=csv"))[0]
    assert (row["id"], row["settlement_id"]) == (payment["id"], settlement["id"])
    for name in ("rate_merchant", "fee_usdt", "credit_usdt"):
        assert row[name] == line[name]


async def test_refunds_file_names_the_order(app: TestApp) -> None:
    await set_settings(app.ports, app.account.account_id, {"refunds": "true"})
    payment = await paid(app, external_id="order-7")
    body = {"payment_id": payment["id"], "amount_rub": "100.00", "reason": "-broken"}
    made = (
        await app.http.post("/api/v1/refunds", json=body, headers=app.headers() | {"Idempotency-Key": str(uuid4())})
    ).json()
    row = (await rows_of(app, f"/refunds?format=csv&payment_id={payment['id']}"))[0]
    assert (row["id"], row["payment_external_id"], row["reason"]) == (made["id"], "order-7", "'-broken")
    assert await rows_of(app, "/refunds?format=csv&status=failed") == []


@table(
    "path",
    [
        "/payments?format=xml",
        "/payments?format=csv&per_page=101",
        "/payments?format=csv&status=none",
        "/payments?format=csv&created_from=yesterday",
        "/refunds?format=xml",
        "/refunds?format=csv&page=0",
        "/refunds?format=csv&payment_id=7",
    ],
)
async def test_bad_filter_is_refused_before_the_file_begins(app: TestApp, path: str) -> None:
    await set_settings(app.ports, app.account.account_id, {"refunds": "true"})
    answer = await app.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR")


async def test_file_of_refunds_needs_the_refund_api(app: TestApp) -> None:
    for query in ("format=csv", "format=xml", "format=csv&page=0"):
        answer = await app.get(f"/refunds?{query}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")
