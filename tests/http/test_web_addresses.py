"""Orders take and refuse the same addresses as settings do (docs/limits.md "Addresses")."""

import httpx
import pytest

from cambist.core.usecases.accounts.accounts import set_settings
from tests.domain.test_web_addresses import REFUSED, TAKEN
from tests.houses import TestHouse
from tests.subscription_house import subscribe


async def ordered(house: TestHouse, field: str, address: str) -> httpx.Response:
    if field == "webhook_url":
        return await house.create({field: address})
    return await subscribe(house, **{field: address})


@pytest.mark.parametrize("field", ["webhook_url", "success_url"])
async def test_orders_take_and_refuse_the_same_addresses(house: TestHouse, field: str) -> None:
    await set_settings(house.ports, house.account.account_id, {"recurring": "true"})
    for address in TAKEN:
        assert (await ordered(house, field, address)).status_code == 201, address
    for address in REFUSED:
        error = (await ordered(house, field, address)).json()["error"]
        # A NUL is refused wherever it is.
        named = "$" if "\0" in address else field
        assert (error["code"], [each["path"] for each in error["details"]]) == ("VALIDATION_ERROR", [named]), address
