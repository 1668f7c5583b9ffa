"""GET /shops/turnover (docs/settlement.md "Turnover")."""

from typing import Any
from urllib.parse import urlencode

import pytest

from cambist.core.usecases.accounts.shops import create_shop, disable_shop, rename_shop
from cambist.core.usecases.operators.review import resolve_mismatch
from tests.apps import TestApp
from tests.tables import table

DAY = 24 * 3600.0


async def turnover(app: TestApp, *, mode: str = "test", **query: str) -> dict[str, Any]:
    response = await app.get(f"/shops/turnover?{urlencode(query)}", mode=mode)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    assert set(body) == {"data", "total"}
    return body


async def paid(app: TestApp, amount: str = "100.00", **order: Any) -> str:
    payment_id: str = (await app.created({"amount_rub": amount, **order}))["id"]
    assert (await app.simulate(payment_id, outcome="paid")).status_code == 200
    return payment_id


async def test_shops_add_up_per_utc_day_and_in_all(app: TestApp) -> None:
    shop = await create_shop(app.ports, app.account.account_id, "Вторая", "0.03")
    default = app.account.default_shop_id
    await paid(app, "100.00")
    await paid(app, "50.50")
    await paid(app, "1000.00", shop_id=shop.id)
    await app.created()
    await app.clock.advance(DAY)
    await paid(app, "30.00", shop_id=shop.id)
    body = await turnover(app, **{"from": "2026-01-01", "to": "2026-01-02"})
    first = {
        default: {"payments": 2, "amount_rub": "150.50", "shop_name": "Default"},
        shop.id: {"payments": 1, "amount_rub": "1000.00", "shop_name": "Вторая"},
    }
    assert body["data"] == [
        *({"date": "2026-01-01", "shop_id": shop_id, **first[shop_id]} for shop_id in sorted(first)),
        {"date": "2026-01-02", "shop_id": shop.id, "shop_name": "Вторая", "payments": 1, "amount_rub": "30.00"},
    ]
    assert body["total"] == {"payments": 4, "amount_rub": "1180.50"}


async def test_a_day_is_a_calendar_day_in_utc(app: TestApp) -> None:
    await app.clock.advance(DAY - 1)
    await paid(app)
    await app.clock.advance(1)
    await paid(app)
    dates = [row["date"] for row in (await turnover(app))["data"]]
    assert dates == ["2026-01-01", "2026-01-02"]
    only = await turnover(app, **{"from": "2026-01-02", "to": "2026-01-02"})
    assert only["total"] == {"payments": 1, "amount_rub": "100.00"}


async def test_turnover_without_days_is_the_last_30_with_today(app: TestApp) -> None:
    await paid(app)
    await app.clock.advance(29 * DAY)
    await paid(app)
    assert (await turnover(app))["total"]["payments"] == 2
    assert (await turnover(app, **{"from": "2026-01-30"}))["total"]["payments"] == 1
    assert (await turnover(app, to="2026-01-29"))["total"]["payments"] == 1
    await app.clock.advance(DAY)
    assert (await turnover(app))["total"] == {"payments": 1, "amount_rub": "100.00"}


async def test_nothing_taken_is_an_empty_report(app: TestApp) -> None:
    assert await turnover(app) == {"data": [], "total": {"payments": 0, "amount_rub": "0.00"}}


async def test_a_mismatch_counts_once_it_is_resolved_as_paid_with_what_came(app: TestApp) -> None:
    """The credit is the received amount (docs/payments.md "How it ends")."""
    accepted, rejected = [(await app.created())["id"] for _ in range(2)]
    for payment_id in (accepted, rejected):
        await app.simulate(payment_id, outcome="amount_mismatch", actual_amount_rub="77.00")
    assert (await turnover(app))["total"]["payments"] == 0
    await resolve_mismatch(app.ports, accepted, "paid")
    await resolve_mismatch(app.ports, rejected, "failed")
    assert (await turnover(app))["total"] == {"payments": 1, "amount_rub": "77.00"}


async def test_a_renamed_or_disabled_shop_keeps_its_turnover(app: TestApp) -> None:
    """A disabled shop keeps its history and turnover (docs/concepts.md "Shops")."""
    shop = await create_shop(app.ports, app.account.account_id, "Old", "0.03")
    await paid(app, shop_id=shop.id)
    await rename_shop(app.ports, shop.id, "New")
    await disable_shop(app.ports, shop.id)
    [row] = (await turnover(app))["data"]
    assert (row["shop_id"], row["shop_name"], row["payments"]) == (shop.id, "New", 1)


async def test_turnover_obeys_modes_and_needs_a_key(app: TestApp) -> None:
    await paid(app)
    assert (await turnover(app, mode="live"))["data"] == []
    assert (await app.http.get("/api/v1/shops/turnover")).status_code == 401


async def test_turnover_counts_in_the_general_bucket(app: TestApp) -> None:
    """It is not one of the four money calls (docs/limits.md "Requests")."""
    response = await app.get("/shops/turnover")
    assert response.headers["X-RateLimit-Limit"] == "60"


@table(
    ("query", "path"),
    [
        ({"from": "2026-1-1"}, "from"),
        ({"from": "20260101"}, "from"),
        ({"from": "2026-W01-1"}, "from"),
        ({"from": "2026-02-30"}, "from"),
        ({"from": ""}, "from"),
        ({"to": "2026-01-01T00:00:00Z"}, "to"),
        ({"to": "today"}, "to"),
        ({"to": "٢026-01-01"}, "to"),
        ({"from": "2026-01-02", "to": "2026-01-01"}, "from"),
        ({"from": "2027-01-01"}, "from"),
        ({"from": "2025-01-01", "to": "2026-01-02"}, "from"),
    ],
)
async def test_a_bad_period_is_400(app: TestApp, query: dict[str, str], path: str) -> None:
    response = await app.get(f"/shops/turnover?{urlencode(query)}")
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert (error["code"], [detail["path"] for detail in error["details"]]) == ("VALIDATION_ERROR", [path])


@pytest.mark.parametrize(
    "query",
    [
        {"from": "2025-01-01", "to": "2026-01-01"},
        {"from": "2024-01-01", "to": "2024-12-31"},
        {"from": "0001-01-01", "to": "0001-01-01"},
        {"to": "0001-01-01"},
        {"to": "9999-12-31"},
        {"from": "9999-12-31", "to": "9999-12-31"},
    ],
)
async def test_366_days_and_the_ends_of_the_calendar_are_allowed(app: TestApp, query: dict[str, str]) -> None:
    assert (await turnover(app, **query))["data"] == []
