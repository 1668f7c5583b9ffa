"""HAProxy with the deployed configuration, before a service: it keeps the rules that nginx keeps (test_nginx.py), and
answers errors in a form that clients understand (docs/operations.md "Deployment")."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.fronts import Front, fronted
from tests.haproxy import DEPLOYED, HAProxy, own_haproxy
from tests.nginx import DEPLOYED as NGINX
from tests.patience import HANGS
from tests.servers import _free_port
from tests.stories.processes import eventually

BURST = 1200
"""Requests that one address may make in 40 seconds (deploy/haproxy/haproxy.cfg)."""
AT_ONCE = 512
"""Its requests under way."""


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front[HAProxy]]:
    async with fronted(tmp_path, own_haproxy) as opened:
        yield opened


def test_haproxy_takes_the_configuration_whole_without_a_warning(tmp_path: Path) -> None:
    """With its certificate and the names of its servers, which are addresses here."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        pytest.skip("no HAProxy is installed")
    certificate = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    made = [*certificate, "-subj", "/CN=pay.example", "-keyout", "key.pem", "-out", "chain.pem"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    whole = (tmp_path / "chain.pem").read_text() + (tmp_path / "key.pem").read_text()
    (tmp_path / "cambist.pem").write_text(whole)
    for path in DEPLOYED.iterdir():
        text = path.read_text("utf-8").replace("/etc/haproxy/", f"{tmp_path}/")
        (tmp_path / path.name).write_text(re.sub(r" api-[12]:8080", " 127.0.0.1:8080", text), "utf-8")
    done = subprocess.run([program, "-c", "-f", tmp_path / "haproxy.cfg"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "valid" in done.stdout


def test_haproxy_shows_payers_the_pages_that_nginx_shows() -> None:
    nginx = NGINX.read_text("utf-8")
    for name in ("too-many.html", "away-page.http"):
        assert (DEPLOYED / name).read_text("utf-8").rpartition("\n\n")[2].strip() in nginx


async def test_haproxy_passes_what_the_limits_allow_and_stops_a_flood(front: Front[HAProxy]) -> None:
    within = await front.flood(1000)
    assert within.statuses == {404: 1000}, "a minute's requests at once are the service's business"
    flooded = await front.flood(5000)
    assert set(flooded.statuses) == {404, 429}
    assert flooded.statuses[429] > BURST
    head, _, body = flooded.last[429].partition("\r\n\r\n")
    assert msgspec.json.decode(body)["error"]["code"] == "RATE_LIMIT_EXCEEDED"
    assert "retry-after: 10" in head.lower()
    assert "strict-transport-security" in head.lower()
    async with front.client("127.0.0.3") as other:
        assert (await other.get("/api/v1/rates")).status_code == 200
    assert not [line for line in front.proxy.accesses if " 429 " in line], "a flood is no flood of lines"


async def test_haproxy_log_has_no_query_and_no_address_of_notifications(front: Front[HAProxy]) -> None:
    """Nor by another spelling of its path."""
    secret = "5" * 64
    async with front.client() as provider:
        for path in (
            f"/api/v1/notices/bank/{secret}",
            f"/api//v1//notices/bank/{secret}?a=b",
            f"/api/v1/notices/%62/{secret}",
            f"/api/v1/%6eotices/bank/{secret}",
        ):
            assert (await provider.post(path)).status_code == 404
        known = await provider.get("/api/v1/gateways", params={"token": secret})
    lines = "\n".join(front.proxy.accesses)
    assert lines.count("POST /api/v1/notices/*** 404") == 4
    assert re.search(rf"GET /api/v1/gateways 200 .*{known.headers['x-request-id']}", lines)
    assert secret not in lines


async def test_flood_of_pages_at_haproxy_is_answered_by_a_page(front: Front[HAProxy]) -> None:
    flooded = await front.flood(5000, "/p/pay_1")
    head, _, body = flooded.last[429].partition("\r\n\r\n")
    assert "content-type: text/html; charset=utf-8" in head.lower()
    assert "Слишком много запросов" in body
    assert 'http-equiv="refresh"' in body


async def test_open_page_behind_haproxy_follows_its_payment_in_a_flood(front: Front[HAProxy]) -> None:
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


async def test_haproxy_answers_too_large_requests_in_the_service_s_form(front: Front[HAProxy]) -> None:
    async with front.client() as one:
        assert (await one.get("/api/v1/rates", headers={"X-Much": "x" * 20_000})).status_code == 200
        much = await one.get("/api/v1/rates", headers={"X-Much": "x" * 40_000})
        assert (much.status_code, much.json()["error"]["code"]) == (431, "HEADERS_TOO_LARGE")
        assert (await one.get("/api/v1/rates", headers={"X-Much": "x" * 60_000})).status_code == 400
        for size in (110_000, 500_000):
            body = await one.post("/api/v1/payments", content=b"x" * size)
            assert (body.status_code, body.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
            assert "100 KB" in body.json()["error"]["message"]


async def test_haproxy_hides_probes(front: Front[HAProxy]) -> None:
    async with front.client() as one:
        for path in ("/livez", "//readyz", "/%6civez", "/readyz/"):
            assert (await one.get(path)).status_code == 404, path


async def test_haproxy_replaces_the_address_that_a_client_claims(tmp_path: Path) -> None:
    heads: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        upstream = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with own_haproxy(tmp_path / "proxy", [upstream, upstream]) as proxy:
            async with httpx.AsyncClient(base_url=proxy.base) as one:
                claimed = [("X-Forwarded-For", "203.0.113.7"), ("X-Forwarded-For", "203.0.113.8")]
                assert (await one.get("/openapi.json", headers=claimed)).status_code == 200
    [head] = [each for each in heads if "/openapi.json" in each]
    assert re.findall(r"^x-forwarded-for: (.+)\r$", head, re.MULTILINE | re.IGNORECASE) == ["127.0.0.1"]


async def test_haproxy_asks_a_process_that_is_not_ready_when_no_other_is(tmp_path: Path) -> None:
    """A process that leaves still serves, while the one that replaces the other is not known to be back."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        status = b"503 Service Unavailable" if b" /readyz " in head else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        upstream = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with own_haproxy(tmp_path / "proxy", [upstream, upstream]) as proxy:

            async def both_are_down() -> bool:
                return sum("Server api/" in line and "is DOWN" in line for line in proxy.errors) == 2

            await eventually(both_are_down)
            async with httpx.AsyncClient(base_url=proxy.base) as one:
                for path in ("/openapi.json", "/p/pay_1", "/p/pay_1/events"):
                    assert (await one.get(path)).status_code == 200, path


async def test_service_away_behind_haproxy_is_reported_in_its_form(tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{_free_port()}"
    with own_haproxy(tmp_path / "proxy", [nobody, nobody]) as proxy:
        async with httpx.AsyncClient(base_url=proxy.base) as one:
            away = await one.post("/api/v1/payments", json={})
            assert (away.status_code, away.json()["error"]["code"]) == (503, "PROVIDER_UNAVAILABLE")
            assert away.headers["retry-after"] == "5"
            page = await one.get("/p/pay_1?lang=en")
            assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
            assert "Temporarily unavailable" in page.text
