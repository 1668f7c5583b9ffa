"""Every sentence of docs/concepts.md "Shops" about payments. usecases/accounts/test_shops.py covers the operator's
side."""

from uuid import uuid4

import pytest

from cambist.core.domain.accounts.shops import Shop
from cambist.core.usecases.accounts import accounts, shops
from tests.apps import TestApp


@pytest.fixture
async def shop(app: TestApp) -> Shop:
    """A second shop of the merchant that takes payments."""
    return await shops.create_shop(app.ports, app.account.account_id, "Tea", "0.05")


async def ids_of(app: TestApp, shop_id: str) -> list[str]:
    page = (await app.get(f"/payments?shop_id={shop_id}")).json()
    assert page["pagination"]["total"] == len(page["data"])
    return [payment["id"] for payment in page["data"]]


async def test_a_payment_belongs_to_the_shop_it_names_else_to_the_default_one(app: TestApp, shop: Shop) -> None:
    named = await app.created({"shop_id": shop.id.upper()})
    unnamed = await app.created()
    default = app.account.default_shop_id
    assert (named["shop_id"], unnamed["shop_id"]) == (shop.id, default)
    assert (await ids_of(app, shop.id), await ids_of(app, default)) == ([named["id"]], [unnamed["id"]])
    assert await ids_of(app, shop.id.upper()) == [named["id"]]


async def test_events_carry_the_shops_id_and_its_name_of_the_moment(app: TestApp, shop: Shop) -> None:
    """The name is returned in webhooks as `shop_name`; the id never changes."""
    payment = await app.created({"shop_id": shop.id})
    await app.simulate(payment["id"], outcome="processing")
    await shops.rename_shop(app.ports, shop.id, "Coffee")
    await app.simulate(payment["id"], outcome="paid")
    events = await app.events(payment["id"])
    assert [(event["shop_id"], event["shop_name"]) for event in events] == [(shop.id, "Tea"), (shop.id, "Coffee")]


async def test_key_secret_and_webhook_address_are_shared_across_shops(app: TestApp, shop: Shop) -> None:
    for body in ({}, {"shop_id": shop.id}):
        payment = await app.created(body)
        await app.simulate(payment["id"], outcome="paid")
    await app.work()
    assert len(app.postman.webhooks) == 2
    assert len({webhook.url for webhook in app.postman.webhooks}) == 1
    app.check_signatures()


async def test_shops_are_the_same_in_both_modes(app: TestApp, shop: Shop) -> None:
    for mode in ("live", "test"):
        response = await app.create({"shop_id": shop.id}, mode=mode)
        assert (response.status_code, response.json()["shop_id"]) == (201, shop.id)


async def test_a_disabled_shop_refuses_new_payments_and_the_default_one_goes_on(app: TestApp, shop: Shop) -> None:
    await shops.disable_shop(app.ports, shop.id)
    for mode in ("live", "test"):
        refused = await app.create({"shop_id": shop.id}, mode=mode)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "SHOP_DISABLED")
    assert (await app.created())["shop_id"] == app.account.default_shop_id
    await shops.enable_shop(app.ports, shop.id)
    assert (await app.create({"shop_id": shop.id})).status_code == 201


async def test_existing_payments_of_a_disabled_shop_history_and_filter_go_on(app: TestApp, shop: Shop) -> None:
    key = str(uuid4())
    first = (await app.create({"shop_id": shop.id}, key=key)).json()
    second = await app.created({"shop_id": shop.id})
    await shops.disable_shop(app.ports, shop.id)
    paid = await app.simulate(first["id"], outcome="paid")
    assert (paid.json()["status"], paid.json()["shop_id"]) == ("paid", shop.id)
    assert [event["shop_name"] for event in await app.events(first["id"])] == ["Tea"]
    assert await ids_of(app, shop.id) == [second["id"], first["id"]]
    assert (await app.get(f"/payments?status=paid&shop_id={shop.id}")).json()["pagination"]["total"] == 1
    again = await app.create({"shop_id": shop.id}, key=key)
    assert (again.status_code, again.json()["id"]) == (200, first["id"])
    await app.work(15 * 60)
    assert (await app.get(f"/payments/{second['id']}")).json()["status"] == "expired"


async def test_shop_without_markup_takes_no_payment_and_locks_no_key(app: TestApp) -> None:
    plain, key = await shops.create_shop(app.ports, app.account.account_id, "Plain"), str(uuid4())
    refused = await app.create({"shop_id": plain.id}, key=key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "SHOP_MARKUP_NOT_SET")
    await shops.set_shop(app.ports, plain.id, {"markup": "0.01"})
    assert (await app.create({"shop_id": plain.id}, key=key)).status_code == 201


async def test_an_unknown_shop_and_another_accounts_are_not_found(app: TestApp) -> None:
    theirs = (await accounts.create_account(app.ports, "Other")).default_shop_id
    for shop_id in (str(uuid4()), theirs):
        refused = await app.create({"shop_id": shop_id})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "SHOP_NOT_FOUND")
        filtered = await app.get(f"/payments?shop_id={shop_id}")
        assert (filtered.status_code, filtered.json()["error"]["code"]) == (400, "SHOP_NOT_FOUND")


async def test_api_cannot_list_or_make_shops(app: TestApp) -> None:
    for method in ("GET", "POST"):
        response = await app.http.request(method, "/api/v1/shops", headers=app.headers())
        assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")
