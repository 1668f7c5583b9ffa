"""GET /payments over HTTP: filters, pages and refusals (docs/concepts.md "Lists"; docs/payments.md "Finding
payments")."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest

from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop, disable_shop
from tests.apps import TestApp
from tests.subscription_app import bindings, bound
from tests.tables import table


async def listed(app: TestApp, **query: Any) -> dict[str, Any]:
    response = await app.get(f"/payments?{urlencode(query)}")
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    assert set(body) == {"data", "pagination"}
    return body


async def ids(app: TestApp, **query: Any) -> list[str]:
    body = await listed(app, **query)
    assert body["pagination"]["total"] == len(body["data"])
    return [payment["id"] for payment in body["data"]]


async def test_newest_first_and_of_one_moment_the_later_id_first(app: TestApp) -> None:
    made = []
    for number in range(6):
        made.append((await app.created())["id"])
        if number % 2:
            await app.clock.advance(1)
    assert await ids(app) == made[::-1]


async def test_pages_say_what_there_is(app: TestApp) -> None:
    """`page`, `per_page`, `total`, `total_pages`; defaults 1 and 20 (docs/concepts.md "Lists")."""
    made = [(await app.created())["id"] for _ in range(5)]
    assert (await listed(app))["pagination"] == {"page": 1, "per_page": 20, "total": 5, "total_pages": 1}
    second = await listed(app, page=2, per_page=2)
    assert second["pagination"] == {"page": 2, "per_page": 2, "total": 5, "total_pages": 3}
    assert [payment["id"] for payment in second["data"]] == [made[2], made[1]]
    past = await listed(app, page=250_000, per_page=100)
    assert past == {"data": [], "pagination": {"page": 250_000, "per_page": 100, "total": 5, "total_pages": 1}}
    empty = await listed(app, status="refunded")
    assert empty == {"data": [], "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0}}


async def test_each_filter_finds_its_payments_and_they_narrow_one_another(app: TestApp) -> None:
    shop = await create_shop(app.ports, app.account.account_id, "Second", "0.03")
    plain = (await app.created())["id"]
    named = (await app.created({"external_id": "order 1/ё"}))["id"]
    await app.clock.advance(60)
    there = (await app.created({"shop_id": shop.id, "external_id": "order 1/ё"}))["id"]
    await app.simulate(there, outcome="paid")
    assert await ids(app, external_id="order 1/ё") == [there, named]
    assert await ids(app, external_id="order 1/ё", status="PAID") == [there]
    assert await ids(app, external_id="order") == []
    assert await ids(app, shop_id=shop.id.upper()) == [there]
    assert await ids(app, payment_method="sbp") == [there, named, plain]
    assert await ids(app, payment_method="recurring") == []
    assert await ids(app, shop_id=shop.id, status="pending") == []
    await disable_shop(app.ports, shop.id)
    assert await ids(app, shop_id=shop.id) == [there]


async def test_the_default_shop_has_the_payments_that_name_none(app: TestApp) -> None:
    """Every payment has a shop (docs/concepts.md "Shops"); a payment without one belongs to the default shop."""
    shop = await create_shop(app.ports, app.account.account_id, "Second", "0.03")
    default = app.account.default_shop_id
    unnamed = (await app.created())["id"]
    there = (await app.created({"shop_id": shop.id}))["id"]
    named = (await app.created({"shop_id": default}))["id"]
    assert await ids(app, shop_id=default) == [named, unnamed]
    assert await ids(app) == [named, there, unnamed]


async def test_created_from_is_inclusive_and_created_to_exclusive(app: TestApp) -> None:
    """`created_from` is with it, `created_to` without it (docs/payments.md "Finding payments"), in whatever zone they
    are written."""
    made = []
    for _ in range(3):
        made.append((await app.created())["id"])
        await app.clock.advance(3600)
    noon = "2026-01-01T01:00:00"
    assert await ids(app, created_from=f"{noon}Z") == [made[2], made[1]]
    assert await ids(app, created_to=f"{noon}Z") == [made[0]]
    assert await ids(app, created_from=f"{noon}Z", created_to=f"{noon}.000001Z") == [made[1]]
    in_moscow = {"created_from": "2026-01-01T04:00:00+03:00", "created_to": "2026-01-01T05:00:00+03:00"}
    assert await ids(app, **in_moscow) == [made[1]]
    assert await ids(app, created_from=f"{noon}Z", created_to=f"{noon}Z") == []
    assert await ids(app, created_from="2026-01-02T00:00:00Z") == []


async def test_subscription_and_period_are_shown_only_where_there_are_any(app: TestApp) -> None:
    """`subscription_id` and `period_ref` only of a subscription's payments (docs/payments.md "What you get"); also in
    the webhook."""
    subscription = (await bound(app))["id"]
    [binding], plain = await bindings(app, subscription), (await app.created())["id"]
    assert await ids(app, subscription_id=subscription) == [binding.id]
    assert await ids(app, subscription_id=f"sub_{uuid4()}") == []
    shown = (await app.get(f"/payments/{binding.id}")).json()
    assert (shown["subscription_id"], shown["period_ref"]) == (subscription, "a20260101-month1")
    assert not {"subscription_id", "period_ref"} & set((await app.get(f"/payments/{plain}")).json())
    await app.simulate(plain, outcome="paid")
    [of_binding], [of_plain] = await app.events(binding.id), await app.events(plain)
    assert (of_binding["subscription_id"], of_binding["period_ref"]) == (subscription, "a20260101-month1")
    assert not {"subscription_id", "period_ref"} & set(of_plain)


BAD = [
    ("status", "unknown"),
    ("status", ""),
    ("shop_id", "shop"),
    ("shop_id", ""),
    ("payment_method", "card"),
    ("payment_method", "SBP"),
    ("payment_method", ""),
    ("external_id", "x" * 257),
    ("external_id", "a\0b"),
    ("subscription_id", "sub_1"),
    ("subscription_id", str(UUID(int=5))),
    ("subscription_id", ""),
    ("created_from", "2026-01-01"),
    ("created_from", "2026-01-01T00:00:00"),
    ("created_from", "yesterday"),
    ("created_from", ""),
    ("created_to", "2026-13-01T00:00:00Z"),
    ("created_to", "2026-01-01T00:00:00 03:00"),
    ("created_from", "0001-01-01T00:00:00+05:00"),
    ("created_to", "9999-12-31T23:59:59-05:00"),
    ("created_to", "٢026-01-01T00:00:00Z"),
    ("page", "0"),
    ("page", "250001"),
    ("per_page", "101"),
]


@table(("name", "value"), BAD)
async def test_a_bad_value_of_a_known_query_key_is_400(app: TestApp, name: str, value: str) -> None:
    """A bad value of a filter is refused (docs/concepts.md "Lists")."""
    response = await app.get(f"/payments?{urlencode({name: value})}")
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert (error["code"], [detail["path"] for detail in error["details"]]) == ("VALIDATION_ERROR", [name])


async def test_an_unknown_status_is_answered_with_the_allowed_ones(app: TestApp) -> None:
    response = await app.get("/payments?status=done")
    for status in ("pending", "processing", "paid", "settled", "failed", "cancelled", "expired", "amount_mismatch"):
        assert status in response.json()["error"]["message"]


async def test_unknown_query_keys_are_ignored(app: TestApp) -> None:
    """A bad value of a filter is refused (docs/concepts.md "Lists")."""
    made = (await app.created())["id"]
    assert await ids(app, garbage="1", mode="live", account_id="acc_1", order="amount") == [made]


@pytest.mark.parametrize("whose", ["nobodys", "anothers"])
async def test_a_shop_that_is_not_the_accounts_is_not_found(app: TestApp, whose: str) -> None:
    """400 SHOP_NOT_FOUND (docs/payments.md "Finding payments")."""
    other = await create_account(app.ports, "Other")
    shop_id = other.default_shop_id if whose == "anothers" else str(uuid4())
    response = await app.get(f"/payments?shop_id={shop_id}")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "SHOP_NOT_FOUND")


async def test_lists_obey_modes(app: TestApp) -> None:
    """Objects of the other mode are not there (docs/concepts.md "Accounts, keys, modes")."""
    live = (await app.create(mode="live")).json()["id"]
    test = (await app.created())["id"]
    assert await ids(app) == [test]
    response = await app.get("/payments", mode="live")
    assert [payment["id"] for payment in response.json()["data"]] == [live]
