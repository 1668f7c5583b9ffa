"""Pages that say when something new has happened (docs/dashboard.md "Live pages")."""

from collections.abc import Awaitable

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.kyc.clients import Client
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts.request_log import Noted, RequestLog
from cambist.core.usecases.overview.changes import Watched, latest_change
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined
from tests.invariants import everything

LIVE = {
    "/payments": "",
    "/clients": "clients",
    "/payouts": "settlements",
    "/developers/events": "events",
    "/developers/requests": "requests",
}


async def test_each_live_page_follows_what_it_shows(app: TestApp) -> None:
    """Its value changes with what the page lists, and with nothing else of these."""
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for path, about in LIVE.items():
        await owner.open(path)
        stream = next(given["data-stream"] for _, given in owner.page.tags if "data-stream" in given)
        assert stream == f"/stream{f'?about={about}' if about else ''}", path
    account = await app.ports.storage.get(Account, app.account.account_id)
    assert account is not None
    caller = Caller(account=account, mode=Mode.TEST, key_id="")

    async def read() -> dict[Watched, tuple[str, ...]]:
        return {each: await latest_change(app.ports, caller, each) for each in Watched}

    async def changed_by(step: Awaitable[object]) -> set[Watched]:
        before = await read()
        await step
        after = await read()
        return {each for each in Watched if before[each] != after[each]}

    payment = (await app.created())["id"]
    assert await changed_by(app.created()) == {Watched.TRADE}
    everywhere = {Watched.TRADE, Watched.CLIENTS, Watched.SETTLEMENTS, Watched.EVENTS}
    assert await changed_by(app.simulate(payment, outcome="paid")) == everywhere
    body = {"phone": "+79001234567", "kyc_status": "verified"}
    made = app.http.post("/api/v1/sandbox/exchange-clients", json=body, headers=app.headers())
    assert Watched.CLIENTS in await changed_by(made)
    assert len(await everything(app.ports, Client)) == 1
    settled = app.http.post("/api/v1/sandbox/settlements", headers=app.headers())
    assert Watched.SETTLEMENTS in await changed_by(settled)
    log, now = RequestLog(), app.clock.monotonic()
    log.note(Noted(account.id, Mode.TEST, "key", "GET", "/api/v1/balance", (), 200, None, now, now, "r1"))
    assert await changed_by(log.flush(app.ports)) == {Watched.REQUESTS}
