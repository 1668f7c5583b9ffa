"""GET /rates (docs/settlement.md "The rate")."""

from decimal import Decimal
from typing import Any

import pytest

from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop, set_shop
from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.ports.rates import RateSimulation, RateSimulator
from tests.apps import TestApp
from tests.http.documents import Document

DOCUMENT = Document(openapi_document("https://pay.example"))


async def simulate(app: TestApp, rate: str, *, mode: str = "test", silent: bool = False) -> None:
    [source] = app.ports.rates.of_mode(mode)
    assert isinstance(source, RateSimulator)
    await source.simulate(RateSimulation(rate=Decimal(rate), silent=silent))


async def rates(app: TestApp, query: str = "", *, mode: str = "test") -> dict[str, Any]:
    response = await app.get(f"/rates{query}", mode=mode)
    assert response.status_code == 200, response.text
    DOCUMENT.check(response)
    body: dict[str, Any] = response.json()
    return body


async def refusal(app: TestApp, query: str = "") -> tuple[int, str]:
    response = await app.get(f"/rates{query}")
    DOCUMENT.check(response)
    return response.status_code, response.json()["error"]["code"]


async def test_the_rate_object_has_these_fields_and_no_other(app: TestApp) -> None:
    body = await rates(app)
    note = body.pop("note")
    assert body == {
        "pair": "RUB/USDT",
        "rate_market": "92.50",
        "rate_merchant": "95.36",
        "updated_at": "2026-01-01T00:00:00.000Z",
    }
    assert note.startswith("Informational")
    assert "full precision" in note
    assert note.count(".") == 1


@pytest.mark.parametrize(
    ("market", "markup", "shown"),
    [
        ("92.505", "0", ("92.51", "92.51")),
        ("92.5049999999999", "0", ("92.50", "92.50")),
        ("100", "0.5", ("100.00", "200.00")),
        ("92.123456789012345678", "0.000001", ("92.12", "92.12")),
        ("80.5", "0.999999", ("80.50", "80500000.00")),
    ],
)
async def test_rates_have_two_decimals_and_the_merchant_s_has_the_markup(
    app: TestApp, market: str, markup: str, shown: tuple[str, str]
) -> None:
    """The merchant rate is market rate / (1 - markup) (docs/settlement.md "How much"), of the full market rate and then
    rounded."""
    await simulate(app, market)
    await set_shop(app.ports, app.account.default_shop_id, {"markup": markup})
    body = await rates(app)
    assert (body["rate_market"], body["rate_merchant"]) == shown


async def test_a_shop_has_its_own_rate(app: TestApp) -> None:
    shop = await create_shop(app.ports, app.account.account_id, "Tea", "0.075")
    assert (await rates(app, f"?shop_id={shop.id}"))["rate_merchant"] == "100.00"
    assert (await rates(app))["rate_merchant"] == "95.36"


async def test_the_mode_is_that_of_the_key(app: TestApp) -> None:
    await simulate(app, "50", mode="live")
    assert (await rates(app, mode="live"))["rate_market"] == "50.00"
    assert (await rates(app))["rate_market"] == "92.50"


async def test_shops_are_refused_as_elsewhere(app: TestApp) -> None:
    other = await create_account(app.ports, "Other")
    plain = await create_shop(app.ports, app.account.account_id, "Tea")
    assert await refusal(app, "?shop_id=x") == (400, "VALIDATION_ERROR")
    assert await refusal(app, "?shop_id=") == (400, "VALIDATION_ERROR")
    assert await refusal(app, "?shop_id=01890000-0000-7000-8000-000000000000") == (400, "SHOP_NOT_FOUND")
    assert await refusal(app, f"?shop_id={other.default_shop_id}") == (400, "SHOP_NOT_FOUND")
    assert await refusal(app, f"?shop_id={plain.id}") == (422, "SHOP_MARKUP_NOT_SET")


async def test_a_silent_source_is_rate_unavailable_with_a_wait(app: TestApp) -> None:
    """`503 RATE_UNAVAILABLE` while no source gives one (docs/settlement.md "The rate")."""
    await simulate(app, "1", silent=True)
    response = await app.get("/rates")
    DOCUMENT.check(response)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "RATE_UNAVAILABLE"
    assert 30 <= int(response.headers["retry-after"]) <= 60
    await simulate(app, "93")
    assert (await rates(app))["rate_market"] == "93.00"


async def test_rates_need_a_key(app: TestApp) -> None:
    assert (await app.http.get("/api/v1/rates")).status_code == 401
