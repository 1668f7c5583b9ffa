"""LNbits as a peer: a payment service in Python with a fake wallet. Creating an invoice is entirely its own work, as a
payment at the simulated bank is ours.

Its request limit is disabled, and its wallet has no currency; otherwise every invoice would wait for an exchange rate
from the network. About a fifth of its work is encoding the invoice, which has no counterpart in our service.
"""

import asyncio
import os
import secrets
import signal
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from benchmarks.peers.environments import NotToBeHad, environment
from cambist.frontends.server.server import listen

# LNbits is incompatible with later versions of bitstring.
REQUIREMENTS = ("lnbits==1.6.2", "bitstring<5")
START_SECONDS = 180.0
INVOICE = b'{"out":false,"amount":100,"memo":"order 1234"}'


class Running:
    """A running LNbits and the key of its only wallet."""

    def __init__(self, base: str, pid: int, key: str) -> None:
        self.base = base
        self.pid = pid
        self.key = key

    def invoice(self) -> bytes:
        """Encode the request that creates an invoice."""
        return (
            f"POST /api/v1/payments HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(INVOICE)}\r\n\r\n"
        ).encode() + INVOICE


@contextmanager
def lnbits(folder: Path, database_url: str | None = None) -> Iterator[Running]:
    """Run LNbits on SQLite in `folder`, or on Postgres. Raises: NotToBeHad."""
    python = environment("lnbits", REQUIREMENTS)
    data = folder / "data"
    data.mkdir()
    with closing(listen("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "LNBITS_DATA_FOLDER": str(data),
        "LNBITS_BACKEND_WALLET_CLASS": "FakeWallet",
        "FAKE_WALLET_SECRET": secrets.token_hex(16),
        "LNBITS_ADMIN_UI": "false",
        "LNBITS_ALLOW_NEW_ACCOUNTS": "true",
        "LNBITS_RATE_LIMIT_NO": "1000000000",
        "LNBITS_EXTENSIONS_DEFAULT_INSTALL": "",
    }
    if database_url is not None:
        settings["LNBITS_DATABASE_URL"] = database_url.replace("postgresql://", "postgres://")
    [packages] = (python.parent.parent / "lib").glob("python*/site-packages")
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [python.parent / "lnbits", "--host", "127.0.0.1", "--port", str(port)],
            cwd=packages,  # it searches its files below the current folder
            env={**os.environ, **settings},
            stdout=output,
            stderr=output,
            start_new_session=True,  # it works in a child process
        )
    try:
        base = f"http://127.0.0.1:{port}"
        wallet = _first_wallet(base, process)
        _count_in_no_currency(data, database_url)
        yield Running(base, process.pid, wallet["inkey"])
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _first_wallet(base: str, process: "subprocess.Popen[bytes]") -> Any:
    deadline = time.monotonic() + START_SECONDS
    asking = urllib.request.Request(
        f"{base}/api/v1/account", data=b'{"name":"bench"}', headers={"Content-Type": "application/json"}
    )
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(asking, timeout=10) as answer:
                return msgspec.json.decode(answer.read())
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise NotToBeHad("LNbits does not start here")


def _count_in_no_currency(data: Path, database_url: str | None) -> None:
    statement = "UPDATE wallets SET currency = NULL"

    async def on_postgres(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(statement)
        await connection.close()

    if database_url is not None:
        asyncio.run(on_postgres(database_url))
        return
    with closing(sqlite3.connect(data / "database.sqlite3", timeout=30)) as database:
        database.execute(statement)
        database.commit()
