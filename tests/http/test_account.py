"""`GET /account` (docs/concepts.md "Your account")."""

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.accounts.keys import create_key
from tests.apps import TestApp


async def test_account_shows_options_limits_and_key(app: TestApp) -> None:
    account_id = app.account.account_id
    await set_settings(app.ports, account_id, {"exchange": "true", "amount_rub_max": "5000", "ttl_minutes_max": "90"})
    found = (await app.get("/account")).json()
    assert (found["id"], found["name"], found["sandbox"]) == (account_id, "Merchant", True)
    assert found["default_shop_id"] == app.account.default_shop_id
    assert found["options"]["exchange"] is True
    assert found["limits"] == {"amount_rub_max": "5000.00", "ttl_minutes_max": 90, "metadata_kb_max": 16}
    assert found["key"] == {"api_key": app.account.test.api_key, "rights": None, "addresses": None}


async def test_refund_approval_differs_by_mode(app: TestApp) -> None:
    shown = [(await app.get("/account", mode=mode)).json()["options"]["refund_approval"] for mode in ("test", "live")]
    assert shown == ["auto", "manual"]


async def test_account_shows_the_rights_of_a_limited_key(app: TestApp) -> None:
    made = await create_key(app.ports, app.account.account_id, Mode.TEST, "books", rights=["read"])
    headers = {"X-Api-Key": made.pair.api_key, "X-Api-Secret": made.pair.api_secret}
    answer = await app.http.get("/api/v1/account", headers=headers)
    assert answer.json()["key"]["rights"] == ["read"]
