"""A service inside another ASGI application: docs/embedding.md "In a web application"."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import cambist

ROOT = Path(__file__).parents[2]

SERVERS = {
    "uvicorn": ("uvicorn", "--host=127.0.0.1", "--port={port}"),
    "granian": ("granian", "--interface=asgi", "--host=127.0.0.1", "--port={port}"),
    "gunicorn-threads": ("gunicorn", "--threads=8", "--bind=127.0.0.1:{port}"),
    "gunicorn-preload": ("gunicorn", "--preload", "--threads=8", "--bind=127.0.0.1:{port}"),
    "gunicorn": ("gunicorn", "--worker-class=uvicorn_worker.UvicornWorker", "--bind=127.0.0.1:{port}"),
}
STOPPED_WITHIN = 20.0
"""Seconds. Without our part the servers wait for the open window for ever, or for 30 s; alone they take 0.5 s."""


async def test_host_without_a_lifespan_opens_the_service_by_its_first_request() -> None:
    pay = cambist.Mount(base_url="http://shop.example/pay")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(pay), base_url="http://shop.example") as http:
        answers = await asyncio.gather(*(http.get("/openapi.json") for _ in range(3)))
    assert [answer.status_code for answer in answers] == [200] * 3
    assert await pay.service() is await pay.service()
    await pay.close()


async def test_mount_alone_follows_the_lifespan_of_its_server() -> None:
    pay, sent = cambist.Mount(), []
    messages = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, str]:
        return {"type": next(messages)}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await pay({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_start_fails_with_the_reason_when_the_service_does_not_open() -> None:
    pay, sent = cambist.Mount("postgresql://nobody@127.0.0.1:1/nothing"), []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(cambist.Fault):
        await pay({"type": "lifespan"}, receive, send)
    [failed] = sent
    assert failed["type"] == "lifespan.startup.failed"
    assert "127.0.0.1:1" in failed["message"]


async def test_jobs_run_in_the_background() -> None:
    heard = asyncio.Event()
    pay = cambist.Mount(on_event=lambda _: heard.set())
    async with pay.lifespan():
        service = await pay.service()
        merchant = await service.merchant(await service.account("Shop", create=True))
        await merchant.simulate((await merchant.create_payment("490.00")).id, "paid")
        await asyncio.wait_for(heard.wait(), 30)


async def test_run_due_waits_for_the_jobs_that_the_worker_runs() -> None:
    begun, ended = asyncio.Event(), []

    async def heard(_: cambist.Event) -> None:
        begun.set()
        await asyncio.sleep(0.05)
        ended.append(True)

    async with cambist.open(on_event=heard) as service, service.working():
        merchant = await service.merchant(await service.account("Shop", create=True))
        await merchant.simulate((await merchant.create_payment("490.00")).id, "paid")
        await begun.wait()
        await service.run_due()
        assert ended == [True]


@contextmanager
def serving(server: str, app: str, folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """Run an application by a server; yield the process and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    module, *options = SERVERS[server]
    arguments = [option.format(port=port) for option in options]
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments, app],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def ordered(address: str) -> str:
    """Order from the example, and return the payer's page."""
    asked = urllib.request.Request(f"{address}/orders/order-1", data=b"", method="POST")
    with urllib.request.urlopen(asked, timeout=30) as answer:
        page: str = json.load(answer)["pay_at"]
        return page.replace("http://127.0.0.1:8000", address)


def until_it_answers(ask: Callable[[], str]) -> str:
    """Ask a server that is starting."""
    until = time.monotonic() + 60
    while True:
        try:
            return ask()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
@pytest.mark.parametrize(
    ("server", "example"),
    [
        ("granian", "mount_starlette"),
        ("gunicorn", "mount_litestar"),
    ],
)
def test_server_stops_while_a_payer_window_is_open(server: str, example: str) -> None:
    with serving(server, f"examples.{example}:app", ROOT) as (process, address):
        page = until_it_answers(lambda: ordered(address))
        with urllib.request.urlopen(f"{page}/events", timeout=30) as window:
            assert window.readline() == b"retry: 3000\n"
            process.send_signal(signal.SIGTERM)
            process.wait(STOPPED_WITHIN)
        assert process.stdout is not None
        assert b"Traceback" not in process.stdout.read()
