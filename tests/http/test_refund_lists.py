"""GET /refunds: filters, order, pages (docs/refunds.md "Finding refunds")."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from cambist.core.usecases.accounts import accounts, shops
from tests.refund_app import RefundApp, open_refund_app, told

NOWHERE = "pay_00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def listed(refunds: RefundApp, query: str) -> list[str]:
    response = await refunds.app.get(f"/refunds?{query}")
    assert response.status_code == 200, response.text
    return [each["id"] for each in response.json()["data"]]


async def test_lists_by_filters_the_newest_first(refunds: RefundApp) -> None:
    shop = await shops.create_shop(refunds.ports, refunds.app.account.account_id, "Second", "0.01")
    one, two = await refunds.paid(), await refunds.paid(shop_id=shop.id)
    made = []
    for payment_id, external_id in ((one, "a"), (one, "b"), (two, "a")):
        made.append(await refunds.apply(payment_id, "10.00", external_id=external_id))
        await refunds.app.clock.advance(0.1)
    await refunds.action(f"/refunds/{made[0]}/cancel")
    first, second, third = made
    default = refunds.app.account.default_shop_id
    for query, expected in (
        ("", [third, second, first]),
        (f"payment_id={one}", [second, first]),
        (f"payment_id={NOWHERE}", []),
        ("status=cancelled", [first]),
        ("status=PENDING", [third, second]),
        (f"shop_id={shop.id}", [third]),
        (f"shop_id={default}&status=pending", [second]),
        ("external_id=a", [third, first]),
        (f"external_id=a&payment_id={two}", [third]),
        ("unknown=1", [third, second, first]),
        ("per_page=2", [third, second]),
        ("per_page=2&page=2", [first]),
        ("page=9", []),
    ):
        assert await listed(refunds, query) == expected, query
    page = (await refunds.app.get("/refunds?per_page=2")).json()["pagination"]
    assert page == {"page": 1, "per_page": 2, "total": 3, "total_pages": 2}


@pytest.mark.parametrize(
    ("query", "code", "part"),
    [
        (
            "status=garbage",
            "VALIDATION_ERROR",
            "pending, processing, completed, reversed, rejected, cancelled, failed",
        ),
        ("shop_id=garbage", "VALIDATION_ERROR", "shop_id"),
        (f"shop_id={UUID(int=7)}", "SHOP_NOT_FOUND", ""),
        ("payment_id=garbage", "VALIDATION_ERROR", "payment_id"),
        ("external_id=" + "x" * 257, "VALIDATION_ERROR", "external_id"),
        ("external_id=%00", "VALIDATION_ERROR", "external_id"),
        ("page=0", "VALIDATION_ERROR", "page"),
        ("per_page=101", "VALIDATION_ERROR", "per_page"),
    ],
)
async def test_a_bad_filter_is_refused(refunds: RefundApp, query: str, code: str, part: str) -> None:
    response = await refunds.app.get(f"/refunds?{query}")
    assert told(response) == (400, code)
    assert part in response.json()["error"]["message"]


async def test_a_shop_of_another_account_is_no_shop_of_ours(refunds: RefundApp) -> None:
    other = await accounts.create_account(refunds.ports, "Another")
    assert told(await refunds.app.get(f"/refunds?shop_id={other.default_shop_id}")) == (400, "SHOP_NOT_FOUND")
