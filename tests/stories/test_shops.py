"""The shops of examples/ in three languages, each against a served cambist: an order is shipped once."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.stories.merchant import merchant
from tests.stories.processes import WEBHOOK_SECRET, Installation, eventually
from tests.stories.test_examples import EXAMPLES

SHOPS = {
    "shop.py": [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "shop:app", "--port", "{port}"],
    "shop.mjs": ["node", str(EXAMPLES / "shop.mjs")],
    "shop.php": ["php", "-S", "127.0.0.1:{port}", str(EXAMPLES / "shop.php")],
}


def free_port() -> int:
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        port: int = finder.getsockname()[1]
        return port


@contextmanager
def open_shop(name: str, folder: Path, port: int, environ: dict[str, str]) -> Iterator[Path]:
    """A running shop; the file of its output."""
    command = [word.format(port=port) for word in SHOPS[name]]
    if shutil.which(command[0]) is None:
        assert not os.environ.get("CI"), f"CI is to have {command[0]}"
        pytest.skip(f"{command[0]} is not installed")
    output = folder / "shop.out"
    environ = {**os.environ, **environ, "PORT": str(port), "WEBHOOK_SECRET": WEBHOOK_SECRET}
    with output.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield output
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", SHOPS)
async def test_shop_ships_a_paid_order_once_however_often_its_webhook_comes(
    name: str, sqlite_location: Installation
) -> None:
    place, port = sqlite_location, free_port()
    _, base = place.serve()
    account = await place.account(f"http://127.0.0.1:{port}/hooks")
    keys = account.test
    environ = {"CAMBIST_URL": base, "CAMBIST_API_KEY": keys.api_key, "CAMBIST_API_SECRET": keys.api_secret}
    with open_shop(name, place.folder, port, environ) as output:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as buyer, merchant(base, keys) as own:

            async def page() -> str | None:
                try:
                    return (await buyer.get("/")).text
                except httpx.TransportError:
                    return None

            order = re.findall(r'action="(/orders/[0-9a-f-]{36})"', await eventually(page))[0]
            bought = [await buyer.post(order) for _ in range(2)]
            assert [each.status_code for each in bought] == [303, 303], output.read_text("utf-8")
            [payment_url] = {each.headers["location"] for each in bought}
            payment = payment_url.rpartition("/")[2]
            assert (await buyer.get(order)).text == "unpaid"
            body = f'{{"event":"payment.status_changed","status":"paid","external_id":"{order[8:]}"}}'
            forged = {"X-Webhook-Id": "evt_1", "X-Webhook-Timestamp": "1", "X-Webhook-Signature": "sha256=00"}
            assert (await buyer.post("/hooks", content=body, headers=forged)).status_code == 400
            assert (await buyer.get(order)).text == "unpaid"

            await own.ask("POST", f"/sandbox/payments/{payment}/simulate", body={"outcome": "paid"})

            async def is_shipped() -> bool:
                return (await buyer.get(order)).text == "shipped"

            await eventually(is_shipped)
            [event] = (await own.ask("GET", f"/events?object_id={payment}")).json["data"]

            async def attempts() -> int:
                seen = (await own.ask("GET", f"/events/{event['id']}")).json["attempts"]
                return sum(each["status"] == 200 for each in seen)

            async def is_delivered() -> bool:
                return await attempts() == 1

            async def is_delivered_again() -> bool:
                return await attempts() == 2

            await eventually(is_delivered)
            await own.ask("POST", f"/events/{event['id']}/resend")
            await eventually(is_delivered_again)
            assert output.read_text("utf-8").count(f"shipped {order[8:]}") == 1
            assert (await buyer.post(order)).headers["location"] == payment_url
            assert (await buyer.get(order)).text == "shipped", "buying again does not forget that it was shipped"


@pytest.mark.parametrize("name", ["shop.py", "shop.mjs"])
def test_shop_without_its_variables_says_so(name: str, tmp_path: Path) -> None:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("CAMBIST_")}
    command = [word.format(port=0) for word in SHOPS[name]]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert re.search(r"set (CAMBIST_URL|the variables above)", done.stderr + done.stdout)
