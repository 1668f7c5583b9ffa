"""nginx with the deployed configuration, before a service: it stops floods, passes clients within cambist's limits, and
answers errors in a form that clients understand (docs/operations.md "Deployment")."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.fronts import Front, fronted
from tests.nginx import Nginx, own_nginx
from tests.patience import HANGS
from tests.servers import _free_port

BURST = 1200
"""Requests that one address may make at once (deploy/nginx/cambist.conf)."""
AT_ONCE = 512
"""Its connections with a request under way."""


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front[Nginx]]:
    async with fronted(tmp_path, own_nginx) as opened:
        yield opened


async def test_nginx_passes_what_the_limits_allow_and_stops_a_flood(front: Front[Nginx]) -> None:
    within = await front.flood(1000)
    assert within.statuses == {404: 1000}, "a minute's requests at once are the service's business"
    flooded = await front.flood(5000)
    assert set(flooded.statuses) == {404, 429}
    assert flooded.statuses[429] > BURST
    head, _, body = flooded.last[429].partition("\r\n\r\n")
    assert msgspec.json.decode(body)["error"]["code"] == "RATE_LIMIT_EXCEEDED"
    assert {"Content-Type: application/json", "Retry-After: 10"} <= set(head.split("\r\n"))
    assert "Strict-Transport-Security" in head
    async with front.client("127.0.0.3") as other:
        assert (await other.get("/api/v1/rates")).status_code == 200
    assert not [line for line in front.proxy.errors if "[error]" in line], "a flood is no flood of lines"


async def test_no_address_of_notifications_stands_in_its_log(front: Front[Nginx]) -> None:
    """Nor by another spelling of its path."""
    secret = "5" * 64
    async with front.client() as provider:
        for path in (
            f"/api/v1/notices/bank/{secret}",
            f"/api//v1//notices/bank/{secret}?a=b",
            f"/api/v1/notices/%62/{secret}",
        ):
            assert (await provider.post(path)).status_code == 404
        await provider.get("/api/v1/gateways")
    lines = "\n".join(front.proxy.accesses)
    assert lines.count("POST /api/v1/notices/*** 404") == 3
    assert "/api/v1/gateways 200" in lines
    assert secret not in lines


async def test_flood_of_pages_is_answered_by_a_page(front: Front[Nginx]) -> None:
    flooded = await front.flood(5000, "/p/pay_1")
    head, _, body = flooded.last[429].partition("\r\n\r\n")
    assert {"Content-Type: text/html; charset=utf-8", "Retry-After: 10", "Cache-Control: no-store"} <= set(
        head.split("\r\n")
    )
    assert "Слишком много запросов" in body
    assert 'http-equiv="refresh"' in body


async def test_an_open_page_follows_its_payment_while_its_network_floods(front: Front[Nginx]) -> None:
    payment = await front.payment()
    async with front.client() as payer, front.client("127.0.0.9") as merchant, AsyncExitStack() as held:
        stream = await held.enter_async_context(payer.stream("GET", f"/p/{payment}/events"))
        heard = stream.aiter_text()
        assert "waiting" in await anext(heard)
        assert (await front.flood(5000)).statuses[429]
        body = {"outcome": "paid"}
        assert (await merchant.post(f"/api/v1/sandbox/payments/{payment}/simulate", json=body)).status_code == 200
        async with asyncio.timeout(HANGS):
            assert '"face":"paid"' in await anext(heard)
        await heard.aclose()  # type: ignore[attr-defined]  # it is a generator


async def test_nginx_answers_too_large_requests_as_the_service_does(front: Front[Nginx]) -> None:
    async with front.client() as one:
        assert (await one.get("/api/v1/rates", headers={"X-Much": "x" * 20_000})).status_code == 200
        for head in ({"X-Much": "x" * 40_000}, {f"X-{n}": "x" * 9_000 for n in range(4)}):
            much = await one.get("/api/v1/rates", headers=head)
            assert (much.status_code, much.json()["error"]["code"]) == (431, "HEADERS_TOO_LARGE")
        long = await one.get(f"/api/v1/{'x' * 40_000}")
        assert (long.status_code, long.json()["error"]["code"]) == (431, "HEADERS_TOO_LARGE")
        for size, message in ((110_000, "100 KB"), (2_000_000, "100 KB")):
            body = await one.post("/api/v1/payments", content=b"x" * size)
            assert (body.status_code, body.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
            assert message in body.json()["error"]["message"]
        page = await one.post("/p/pay_1/simulate", content=b"x" * 200_000)
        assert page.status_code == 413
        file = await one.put(f"/uploads/{'0' * 64}", content=b"x" * (10 * 1024 * 1024 + 1))
        assert (file.status_code, file.json()["error"]["message"]) == (413, "The file is over 10485760 bytes")


async def test_connections_of_one_address_are_bounded_and_others_are_served(front: Front[Nginx]) -> None:
    head = b"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n"
    async with AsyncExitStack() as held:
        readers = []
        for _ in range(AT_ONCE + 8):
            reader, writer = await asyncio.open_connection("127.0.0.1", front.port, local_addr=("127.0.0.2", 0))
            held.callback(writer.close)
            writer.write(head)
            await writer.drain()
            readers.append(reader)
        answers = [asyncio.create_task(reader.readuntil(b"\r\n")) for reader in readers]
        async with asyncio.timeout(HANGS):
            while sum(each.done() for each in answers) < 8:
                await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
                answers = [each for each in answers if not each.done() or each.result().startswith(b"HTTP/1.1 503")]
        async with front.client() as one, front.client("127.0.0.3") as other:
            refused = await one.get("/api/v1/rates")
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "PROVIDER_UNAVAILABLE")
            assert refused.headers["retry-after"] == "5"
            assert (await other.get("/api/v1/rates")).status_code == 200
        for each in answers:
            each.cancel()


async def test_unavailable_service_is_reported_in_its_own_form(tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{_free_port()}"
    with own_nginx(tmp_path / "nginx", [nobody, nobody]) as nginx:
        async with httpx.AsyncClient(base_url=nginx.base) as one:
            away = await one.post("/api/v1/payments", json={})
            assert (away.status_code, away.json()["error"]["code"]) == (503, "PROVIDER_UNAVAILABLE")
            assert away.headers["retry-after"] == "5"
            page = await one.get("/p/pay_1?lang=en")
            assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
            assert "Temporarily unavailable" in page.text
