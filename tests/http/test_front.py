"""GET /: the first page at the service's address (docs/operations.md "The first page")."""

import re
from typing import Any

import httpx
import msgspec
import pytest

import cambist
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.frontends.server.app import create_app
from tests.apps import TestApp
from tests.tables import table

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}
_LINK = re.compile(r'(?:href|src)="([^"]+)"')


def visitor(asgi: Any) -> httpx.AsyncClient:
    """A browser at an application."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url="http://x", headers=BROWSER)


async def test_a_browser_sees_that_it_runs_and_every_link_works(app: TestApp) -> None:
    response = await app.http.get("/", headers=BROWSER)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    await start_recurring_jobs(app.ports)  # the health check needs these jobs
    links = set(_LINK.findall(response.text))
    assert {"/docs", "/openapi.json", "/health"} <= links
    for path in links:
        assert (await app.http.get(path)).status_code == 200, path
    assert "cambist account create" in response.text
    assert f"curl {app.ports.urls.base_url}/api/v1/payments" in response.text


async def test_nothing_of_it_runs_or_comes_from_elsewhere_and_it_is_kept_shortly(app: TestApp) -> None:
    response = await app.http.get("/", headers=BROWSER)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script" not in response.text
    assert " style=" not in response.text
    assert response.headers["cache-control"] == "public, max-age=60"
    assert response.headers["vary"] == "Accept"
    assert response.headers["x-frame-options"] == "DENY"


async def test_head_is_answered_without_a_body(app: TestApp) -> None:
    response = await app.http.head("/", headers=BROWSER)
    assert (response.status_code, response.content) == (200, b"")


@table(
    "accept",
    [
        None, "", "*/*", "application/json", "application/json, text/html", "application/json;q=0.9, text/html;q=0.8",
        "text/*", "*/*, text/html;q=0.5", "text/html;q=inf", "text/html;q=0", "text/html-x", "image/png", ",;=q",
        "text/html;q", "text/html, application/json",
    ],
)  # fmt: skip
async def test_programs_get_the_envelope_of_an_unknown_path(app: TestApp, accept: str | None) -> None:
    async with visitor(create_app(app.ports)) as http:
        http.headers.pop("Accept")
        response = await http.get("/", headers={} if accept is None else {"Accept": accept})
    assert response.status_code == 404
    assert response.json() == {"error": {"code": "NOT_FOUND", "message": "Endpoint not found"}}


@pytest.mark.parametrize(
    "accept", ["text/html", "text/html, */*", "application/json;q=0.1, text/html", "a/b,text/html ; q=0.3 ,c/d"]
)
async def test_client_that_prefers_html_gets_it(app: TestApp, accept: str) -> None:
    assert (await app.http.get("/", headers={"Accept": accept})).status_code == 200


async def test_front_page_shows_each_modes_banks_and_nothing_of_merchants(app: TestApp) -> None:
    ports = app.ports
    bankless = msgspec.structs.replace(ports.banks, order={"test": ports.banks.order["test"]})
    shown = {}
    for name, of in (("as it is", ports), ("bankless", msgspec.structs.replace(ports, banks=bankless))):
        async with visitor(create_app(of)) as http:
            page = (await http.get("/")).text
        shown[name] = re.findall(r"<dt>(\w+) mode</dt><dd[^>]*>([^<]*)<", page)
        assert not re.findall("acc_|svc_|simulator-|Merchant", page)
    simulated = "Works, on simulators"
    assert shown["as it is"] == [("Test", simulated), ("Live", simulated)]
    assert shown["bankless"] == [("Test", simulated), ("Live", "No bank is connected yet")]


async def test_front_page_counts_as_a_page_and_reloads_over_the_limit(app: TestApp) -> None:
    async with visitor(create_app(app.ports, pages_per_minute=1)) as http:
        assert (await http.get("/")).status_code == 200
        response = await http.get("/")
    assert response.status_code == 429
    assert f'http-equiv="refresh" content="{response.headers["retry-after"]}"' in response.text
    assert response.headers["cache-control"] == "no-store"


async def test_below_a_path_of_a_proxy_links_go_there(app: TestApp) -> None:
    urls = msgspec.structs.replace(app.ports.urls, base_url="https://shop.example/pay")
    async with visitor(create_app(msgspec.structs.replace(app.ports, urls=urls))) as http:
        links = _LINK.findall((await http.get("/")).text)
    assert links
    assert all(link.startswith("/pay/") or link.endswith("/login") for link in links)


async def test_a_program_that_mounts_the_service_keeps_its_own_front() -> None:
    """docs/embedding.md: the face brings nothing to `/`."""
    async with cambist.open("memory://") as service, visitor(service.asgi()) as http:
        response = await http.get("/")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")
