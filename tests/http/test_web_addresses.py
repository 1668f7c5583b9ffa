"""Orders take and refuse the same addresses as settings do (docs/limits.md "Addresses")."""

import httpx
import pytest

from cambist.core.usecases.accounts.accounts import set_settings
from tests.apps import TestApp
from tests.domain.test_web_addresses import REFUSED, TAKEN
from tests.subscription_app import subscribe


async def ordered(app: TestApp, field: str, address: str) -> httpx.Response:
    if field == "webhook_url":
        return await app.create({field: address})
    return await subscribe(app, **{field: address})


@pytest.mark.parametrize("field", ["webhook_url", "success_url"])
async def test_orders_take_and_refuse_the_same_addresses(app: TestApp, field: str) -> None:
    await set_settings(app.ports, app.account.account_id, {"recurring": "true"})
    for address in TAKEN:
        assert (await ordered(app, field, address)).status_code == 201, address
    for address in REFUSED:
        error = (await ordered(app, field, address)).json()["error"]
        # A NUL is refused wherever it is.
        named = "$" if "\0" in address else field
        assert (error["code"], [each["path"] for each in error["details"]]) == ("VALIDATION_ERROR", [named]), address
