"""Calls of the test account's clock, and helpers that read its results."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from cambist.adapters.clock import VirtualClock
from cambist.core.domain.accounts.accounts import Account
from cambist.core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from tests.apps import WEBHOOK_SECRET, WEBHOOK_URL, TestApp

DAY = timedelta(days=1)
YEAR = timedelta(days=365)


async def advance(app: TestApp, by: timedelta | None = None, **body: Any) -> dict[str, Any]:
    """POST /sandbox/clock/advance, answered 200."""
    response = await ask(app, by, **body)
    assert response.status_code == 200, response.text
    standing: dict[str, Any] = response.json()
    return standing


async def ask(app: TestApp, by: timedelta | None = None, **body: Any) -> httpx.Response:
    """POST /sandbox/clock/advance."""
    wish = body if by is None else {"seconds": round(by.total_seconds()), **body}
    return await app.http.post("/api/v1/sandbox/clock/advance", json=wish, headers=app.headers())


async def standing(app: TestApp) -> dict[str, Any]:
    """GET /sandbox/clock."""
    response = await app.get("/sandbox/clock")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


async def second_merchant(app: TestApp) -> TestApp:
    """Another merchant in the same app, with calls of its own."""
    account: NewAccount = await create_account(app.ports, "Neighbour")
    await set_settings(app.ports, account.account_id, {"webhook_url": WEBHOOK_URL, "webhook_secret": WEBHOOK_SECRET})
    clock: VirtualClock = app.clock
    return TestApp(app.ports, clock, app.postman, app.script, app.http, account)


async def record(app: TestApp) -> Account:
    """Return the stored account."""
    async with app.ports.storage.unit() as unit:
        found = await unit[Account].get(app.account.account_id)
    assert found is not None
    return found
