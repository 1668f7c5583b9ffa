"""Static headers of webhook endpoints (docs/webhooks.md "Your own headers")."""

from typing import Any
from uuid import uuid4

import msgspec
from dirty_equals import IsPartialDict

from cambist.core.domain.accounts.accounts import Account
from cambist.core.domain.webhooks.endpoints import WebhookEndpoint
from cambist.core.usecases.webhooks.endpoint import set_own_headers
from tests.apps import WEBHOOK_URL, TestApp
from tests.tables import table

PATH = "/webhook-endpoints"
URL = "https://books.example/hooks"
TOKEN = {"Authorization": "Bearer 7f3a", "X-Tenant": "books"}
FIVE = {f"X-Own-{number}": "v" for number in range(5)}


async def created(app: TestApp, **body: Any) -> dict[str, Any]:
    headers = app.headers("test", Idempotency_Key=str(uuid4()))
    answer = await app.http.post(f"/api/v1{PATH}", json={"url": URL, **body}, headers=headers)
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def changed(app: TestApp, endpoint_id: str, **body: Any) -> Any:
    return await app.http.patch(f"/api/v1{PATH}/{endpoint_id}", json=body, headers=app.headers())


async def sent(app: TestApp, url: str) -> list[Any]:
    """Deliver the events of a paid payment, and return the headers that reached the address."""
    before = len(app.postman.webhooks)
    await app.simulate((await app.created())["id"], outcome="paid")
    await app.work(5)
    return [each.headers for each in app.postman.webhooks[before:] if each.url == url]


async def test_webhooks_carry_the_headers_of_their_endpoint_alone(app: TestApp) -> None:
    new = await created(app, headers=TOKEN)
    assert new["header_names"] == list(TOKEN)
    await app.simulate((await app.created())["id"], outcome="paid")
    await app.work(5)
    theirs = [each.headers for each in app.postman.webhooks if each.url == URL]
    own = [each.headers for each in app.postman.webhooks if each.url == WEBHOOK_URL]
    assert theirs == [IsPartialDict(TOKEN)]
    assert own
    assert not any("Authorization" in each for each in own)


async def test_test_webhook_carries_static_headers(app: TestApp) -> None:
    new = await created(app, headers=TOKEN)
    await app.http.post(f"/api/v1{PATH}/{new['id']}/test", headers=app.headers())
    assert app.postman.webhooks[-1].headers == IsPartialDict(TOKEN)


async def test_patch_replaces_or_removes_all_static_headers(app: TestApp) -> None:
    new = await created(app, headers=TOKEN)
    assert (await changed(app, new["id"], description="x")).json()["header_names"] == list(TOKEN)
    assert (await changed(app, new["id"], headers={"X-Other": "1"})).json()["header_names"] == ["X-Other"]
    assert (await changed(app, new["id"], headers={})).json()["header_names"] == []


async def test_header_values_are_neither_stored_nor_answered_in_clear(app: TestApp) -> None:
    new = await created(app, headers=TOKEN)
    stored = await app.ports.storage.get(WebhookEndpoint, new["id"])
    assert b"7f3a" not in msgspec.json.encode(stored)
    assert "7f3a" not in (await app.get(f"{PATH}/{new['id']}")).text


async def test_credentials_of_an_address_become_an_authorization_header(app: TestApp) -> None:
    new = await created(app, url="https://Aladdin:open%20sesame@books.example/hooks")
    assert (new["url"], new["header_names"]) == (URL, ["Authorization"])
    [headers] = await sent(app, URL)
    assert headers["Authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="  # RFC 7617, section 2


async def test_own_endpoint_sends_the_headers_that_were_set(app: TestApp) -> None:
    account = await set_own_headers(app.ports, app.account.account_id, TOKEN)
    assert b"7f3a" not in msgspec.json.encode(account)
    assert (await app.get("/webhook-endpoint")).json()["header_names"] == list(TOKEN)
    assert await sent(app, WEBHOOK_URL) == [IsPartialDict(TOKEN)]
    await set_own_headers(app.ports, app.account.account_id, {})
    stored = await app.ports.storage.get(Account, app.account.account_id)
    assert stored is not None
    assert stored.webhook_headers is None


@table(
    ("headers", "fault"),
    [
        (FIVE | {f"X-More-{number}": "v" for number in range(6)}, "has at most 10 headers"),
        ({"X Token": "v"}, "a name has 1 to 64 letters"),
        ({"": "v"}, "a name has 1 to 64 letters"),
        ({"X-" + "a" * 63: "v"}, "a name has 1 to 64 letters"),
        ({"X-Webhook-Signature": "v"}, "is set by the service"),
        ({"WEBHOOK-ID": "v"}, "is set by the service"),
        ({"Content-Length": "v"}, "is set by the service"),
        ({"Host": "v"}, "is set by the service"),
        ({"Transfer-Encoding": "v"}, "is set by the service"),
        ({"User-Agent": "v"}, "is set by the service"),
        ({"X-A": "v", "x-a": "w"}, "occurs twice"),
        ({"X-A": ""}, "must be one line"),
        ({"X-A": "a\r\nX-B: b"}, "must be one line"),
        ({"X-A": " v"}, "must be one line"),
        ({"X-A": "имя"}, "must be one line"),
        ({"X-A": "v" * 2049}, "must be one line"),
    ],
)
async def test_unsuitable_static_headers_are_refused(app: TestApp, headers: dict[str, str], fault: str) -> None:
    key = app.headers("test", Idempotency_Key=str(uuid4()))
    answer = await app.http.post(f"/api/v1{PATH}", json={"url": URL, "headers": headers}, headers=key)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert fault in answer.json()["error"]["message"]
