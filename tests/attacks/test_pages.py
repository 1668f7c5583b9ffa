"""One client can neither block the hosted pages for others, nor use up merchants' limits (docs/limits.md "Pages")."""

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest
from litestar.routes import HTTPRoute

from cambist.adapters.counters.redis import RedisCounters
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.accounts.limit_hits import HitCounter
from cambist.core.usecases.payments.opening import WATCH
from cambist.frontends.app.own_adapters import Adapters
from cambist.frontends.http.edge.streams import WindowStreams
from cambist.frontends.http.framework import framework
from cambist.frontends.server.app import create_app
from cambist.frontends.telemetry.requests import RequestWatch
from cambist.ports.bundle import Ports
from tests.apps import TestApp, open_test_app
from tests.invariants import everything
from tests.redis_servers import redis_server
from tests.subscription_app import subscribed
from tests.usecases.payments.test_polling import TellsNothing
from tests.windows import Page

FEW = 60
Client = Callable[..., httpx.AsyncClient]


def clients(ports: Ports, hits: HitCounter | None = None, **given: Any) -> Client:
    """Makes clients of one process by their addresses."""
    asgi = create_app(ports, watch=RequestWatch(ports.clock, hits=hits), **given)

    def client(address: str = "192.0.2.1", **headers: str) -> httpx.AsyncClient:
        transport: Any = httpx.ASGITransport(asgi, client=(address, 1))  # type: ignore[arg-type]  # as in other tests
        return httpx.AsyncClient(transport=transport, base_url="https://pay.example", headers=headers)

    return client


async def test_page_beyond_six_hundred_a_minute_reads_nothing(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    payment, read = await app.created(), []
    hits = HitCounter()
    client = clients(app.ports, hits)
    recent = app.ports.storage.recent

    def counted(*args: Any) -> Any:
        read.append(args)
        return recent(*args)

    async with client() as one, client("192.0.2.2") as other:
        monkeypatch.setattr(app.ports.storage, "recent", counted)
        statuses = [(await one.get(f"/p/{payment['id']}/state")).status_code for _ in range(650)]
        assert statuses == [200] * 600 + [429] * 50
        looked = len(read)
        assert (await one.get(f"/p/{payment['id']}")).status_code == 429
        assert (await one.post(f"/p/{payment['id']}/simulate", data={"action": "pay"})).status_code == 429
        assert (await one.get("/s/sub_1")).status_code == 429
        assert (await one.get("/kyc?session=x")).status_code == 429
        assert (await one.post("/kyc/state", json={"session": "x"})).status_code == 429
        assert (await one.get(f"/p/{payment['id']}/events")).status_code == 429
        assert len(read) == looked
        assert (await other.get(f"/p/{payment['id']}")).status_code == 200
        asset = next(tag["href"] for tag in Page((await other.get("/p/none")).text).all("link") if "css" in str(tag))
        assert asset is not None
        assert (await one.get(asset)).status_code == 200, "files of pages are not counted"
        await app.clock.advance(60)
        assert (await one.get(f"/p/{payment['id']}")).status_code == 200
    assert hits.read() == [(("pages:ip",), 56)]


PAGES = {
    "/": "",
    "/p/{payment_id:str}": "",
    "/p/{payment_id:str}/state": "",
    "/p/{payment_id:str}/events": "",
    "/p/assets/{name:str}": "",
    "/p/colors/{name:str}": "",
    "/p/logos/{logo_id:str}": "",
    "/p/{payment_id:str}/confirmation/{key:str}": "",
    "/s/{subscription_id:str}": "",
    "/s/{subscription_id:str}/state": "",
    "/s/{subscription_id:str}/events": "",
    "/kyc": "?phone=%2B79001234567&site=shop.example",
    "/kyc/assets/{name:str}": "",
}
"""Every address of a page that answers GET, with a query that makes it do most."""


async def test_no_get_of_a_page_changes_a_row() -> None:
    """Previews, scanners, prefetching browsers and HEAD change no row. One exception: opening a payment's page may move
    the time of the next poll of its bank (docs/window.md "What it shows", "Subscriptions")."""
    bank = TellsNothing(sends_notifications=True)
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
        bank.clock = app.ports.clock
        payment = (await app.create(mode="live")).json()
        subscription = await subscribed(app)
        settings = {"kyc": "required", "return_url": "https://shop.example/"}
        await set_settings(app.ports, app.account.account_id, settings)
        await app.clock.advance(300)
        names = {"payment_id": payment["id"], "subscription_id": subscription["id"], "name": "window.css"}
        names |= {"logo_id": "logo_1", "key": "0" * 32}
        streams = WindowStreams()
        streams.end()
        asgi = framework(
            app.ports,
            trusted_proxies=(),
            streams=streams,
            watch=RequestWatch(app.ports.clock),
            pages_per_minute=10_000,
            notifications_per_minute=10_000,
            has_front=True,
        )
        read = {
            each.path
            for each in asgi.routes
            if isinstance(each, HTTPRoute)
            and "GET" in each.methods
            and each.path.split("/")[1] in ("", "p", "s", "kyc")
        }
        assert read == set(PAGES), "a page without a row"

        async def rows() -> dict[str, Any]:
            found = {}
            for table in CATALOGUE:
                for record in await everything(app.ports, table.kind):
                    found[f"{table.name}/{record.id}"] = record
            return found

        transport: Any = httpx.ASGITransport(asgi)  # type: ignore[arg-type]  # as in other tests
        async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
            before = await rows()
            for path, query in PAGES.items():
                address = re.sub(r"\{(\w+):str\}", lambda found: names[found[1]], path) + query
                for headers in ({"Accept": "text/html"}, {"Sec-Purpose": "prefetch"}, {"User-Agent": "TelegramBot"}):
                    for method in ("GET", "HEAD"):
                        answer = await client.request(method, address, headers=headers, follow_redirects=True)
                        assert answer.status_code in (200, 404, 405, 503), (address, answer.status_code)
            after = await rows()
        assert before.keys() == after.keys()
        moved = [name for name, record in after.items() if record != before[name]]
        assert moved == [f"jobs/{WATCH.id_of(payment['id'])}"]
        due = msgspec.structs.replace(after[moved[0]], due=before[moved[0]].due, version=before[moved[0]].version)
        assert due == before[moved[0]]
        assert bank.asked == []


async def test_pages_count_for_no_merchant(app: TestApp) -> None:
    client = clients(app.ports, pages_per_minute=FEW)
    async with client(**app.headers()) as one:
        for _ in range(FEW + 40):
            await one.get("/p/pay_1")
        answer = await one.get("/api/v1/rates")
        assert (answer.status_code, answer.headers["X-RateLimit-Remaining"]) == (200, "59")
        assert (await one.get("/p/pay_1")).status_code == 429


@pytest.mark.parametrize("kind", ["p", "s", "kyc"])
@pytest.mark.parametrize(("language", "said"), [("ru", "Слишком много запросов"), ("en", "Too many requests")])
async def test_a_payer_sees_a_page_that_opens_by_itself(app: TestApp, kind: str, language: str, said: str) -> None:
    path = {"p": "/p/pay_1", "s": "/s/sub_1", "kyc": "/kyc?session=x"}[kind]
    async with clients(app.ports, pages_per_minute=1)(**{"Accept-Language": language}) as one:
        await one.get(path)
        answer = await one.get(path)
    page = Page(answer.text)
    assert (answer.status_code, answer.headers["content-type"]) == (429, "text/html; charset=utf-8")
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert said in page.text
    refresh = [tag["content"] for tag in page.all("meta") if tag.get("http-equiv") == "refresh"]
    assert [str(each).partition(";")[0] for each in refresh] == [answer.headers["retry-after"]]
    assert answer.headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/p/pay_1/state"), ("GET", "/p/pay_1/events"), ("GET", "/s/sub_1/state"), ("GET", "/s/sub_1/events"),
     ("POST", "/kyc/state"), ("POST", "/kyc/upload-url"), ("POST", "/kyc/register")],
)  # fmt: skip
async def test_script_over_the_limit_gets_the_error_envelope(app: TestApp, method: str, path: str) -> None:
    async with clients(app.ports, pages_per_minute=1)() as one:
        await one.request(method, path)
        answer = await one.request(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "RATE_LIMIT_EXCEEDED")
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert answer.headers["cache-control"] == "no-store"


async def test_a_subscriptions_page_is_counted_with_a_payments(app: TestApp) -> None:
    await app.created()
    async with clients(app.ports, pages_per_minute=2)() as one:
        await one.get("/p/pay_1")
        await one.get("/s/sub_1/state")
        assert (await one.get("/kyc")).status_code == 429


async def test_processes_count_together_by_redis(app: TestApp) -> None:
    prefix = f"cambist:test:{uuid4()}"
    with redis_server() as url:
        all_counters = [RedisCounters(url, app.clock, prefix=prefix) for _ in range(2)]
        processes = [
            clients(msgspec.structs.replace(app.ports, counters=counters), pages_per_minute=FEW)
            for counters in all_counters
        ]
        statuses = []
        for number in range(FEW + 10):
            async with processes[number % 2]() as one:
                statuses.append((await one.get("/p/pay_1/state")).status_code)
        for counters in all_counters:
            await counters.close()
    assert statuses == [404] * FEW + [429] * 10
