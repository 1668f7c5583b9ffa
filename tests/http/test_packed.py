"""Documents that are the same for every caller are sent compressed to clients that accept it (docs/versioning.md "The
API")."""

import gzip
from typing import Any

import httpx
import pytest
from litestar import Litestar, Request, Response, get
from litestar.params import FromPath

from cambist.frontends.http.packed import asset, pack
from tests.apps import TestApp
from tests.tables import table
from tests.windows import Page, page_of

IDENTITY = {"Accept-Encoding": "identity"}


@table(
    ("accepted", "is_small"),
    [
        ("gzip", True),
        ("gzip, deflate, br, zstd", True),
        ("br, GZIP", True),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", True),
        ("*", True),
        ("gzip;q=0.001", True),
        ("", False),
        ("identity", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000, br", False),
        ("x-gzip", False),
        ("gzipped", False),
        ("*;q=0", False),
    ],
)
async def test_answer_is_compressed_for_clients_that_accept_gzip(app: TestApp, accepted: str, is_small: bool) -> None:
    plain = await app.http.get("/openapi.json", headers=IDENTITY)
    answer = await app.http.get("/openapi.json", headers={"Accept-Encoding": accepted})
    assert answer.content == plain.content
    assert answer.headers.get("content-encoding") == ("gzip" if is_small else None)
    assert answer.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert answer.headers["etag"] == plain.headers["etag"]


@pytest.mark.parametrize(
    ("path", "most"),
    [("/docs", 60_000), ("/docs/webhooks", 16_000), ("/docs/search/en", 76_000), ("/openapi.json", 50_000)],
)
async def test_the_documentation_is_light_on_the_wire(app: TestApp, path: str, most: int) -> None:
    head = await app.http.head(path, headers={"Accept-Encoding": "gzip"})
    assert head.headers["content-encoding"] == "gzip"
    assert int(head.headers["content-length"]) < most
    whole = await app.http.get(path, headers=IDENTITY)
    assert "content-encoding" not in whole.headers
    assert len(whole.content) > 3 * int(head.headers["content-length"])


async def test_payer_page_files_are_compressed_and_pages_are_not(app: TestApp) -> None:
    """A page contains its payer's data, so it is never compressed together with input from outside."""
    answer = await page_of(app, await app.created())
    assert "content-encoding" not in answer.headers
    page = Page(answer.text)
    for link in [tag["src"] or "" for tag in page.all("script")] + [tag["href"] or "" for tag in page.all("link")]:
        assert (await app.http.get(link)).headers["content-encoding"] == "gzip", link


async def test_file_that_does_not_compress_is_sent_as_it_is() -> None:
    picture = pack(bytes(range(256)), "image/png")
    text = pack(b"word " * 100, "text/css")
    assert picture.small is None
    assert gzip.decompress(text.small or b"") == text.body

    @get("/{name:str}")
    async def show(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
        return asset(request, {"picture": picture, "text": text}.get(name))

    asgi: Any = Litestar([show], openapi_config=None, logging_config=None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url="https://pay.example") as http:
        for name, packed in (("picture", picture), ("text", text)):
            answer = await http.get(f"/{name}?v={packed.tag}")
            assert answer.content == packed.body
            assert "immutable" in answer.headers["cache-control"]
            assert (answer.headers.get("content-encoding") is None) is (packed.small is None)
        assert (await http.get("/nothing")).status_code == 404
