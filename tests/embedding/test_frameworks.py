"""The shops of docs/frameworks.md: run as they are printed, tested as they say, served, and stopped with a payer's
window open."""

import asyncio
import http.client
import signal
import sys
import types
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_blocks import Block, blocks_of
from tests.embedding.test_mount import STOPPED_WITHIN, serving, until_it_answers
from tests.tables import table

ROOT = Path(__file__).parents[2]
PAGE = "frameworks.md"
MOST = 35
"""Lines of a shop."""


def section(name: str) -> list[Block]:
    """The Python blocks of a framework: its shop, and its test."""
    text = (ROOT / "docs" / PAGE).read_text("utf-8").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    return [block for block in blocks_of(ROOT / "docs" / PAGE) if block.language == "python" and block.text in text]


def written_test(name: str) -> str:
    return section("Flask" if name == "Flask" else "FastAPI")[1].text


FRAMEWORKS = ("FastAPI", "Litestar", "Flask")


@table("name", FRAMEWORKS)
def test_shop_has_at_most_35_lines_of_its_own(name: str) -> None:
    lines = [line for line in section(name)[0].text.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(lines) <= MOST, len(lines)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_shop_passes_the_test_of_its_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("logging.config.dictConfig", lambda _: None)  # Litestar's would stay for all later tests
    shop = types.ModuleType("documented_shop")
    monkeypatch.setitem(sys.modules, shop.__name__, shop)
    for text in (section(name)[0].text, written_test(name)):
        exec(compile(text, PAGE, "exec"), vars(shop))
    ran: Any = shop.test_order_is_paid()
    if asyncio.iscoroutine(ran):
        asyncio.run(ran)
    assert not list(tmp_path.iterdir()), "a test leaves the shop's database alone"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
@pytest.mark.parametrize(
    ("name", "server", "app"),
    [
        ("FastAPI", "uvicorn", "app"),
        ("Flask", "gunicorn-threads", "application"),
        ("Flask", "gunicorn-preload", "application"),
    ],
)
def test_shop_is_served_and_stops_with_a_window_open(name: str, server: str, app: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(section(name)[0].text)
    with serving(server, f"shop:{app}", tmp_path) as (process, address):
        until_it_answers(lambda: str(urllib.request.urlopen(f"{address}/pay/openapi.json", timeout=30).status))
        page = ordered(address)
        with urllib.request.urlopen(page, timeout=30) as window:
            assert "490,00" in window.read().decode()
        with urllib.request.urlopen(f"{page}/events", timeout=30) as window:
            assert window.readline() == b"retry: 3000\n"
            process.send_signal(signal.SIGTERM)
            process.wait(STOPPED_WITHIN)
        assert process.stdout is not None
        told = process.stdout.read()
        assert b"Traceback" not in told, told.decode()


def ordered(address: str) -> str:
    """Order from the shop, and return the payer's page, at the address of the server."""
    server = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)
    server.request("POST", "/orders/order-1")
    with server.getresponse() as answer:
        assert answer.status == 303
        return str(answer.getheader("location")).replace("http://127.0.0.1:8000", address)
