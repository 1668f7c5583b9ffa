"""A client without a key cannot use up a process's connections by opening them (docs/limits.md "Sizes")."""

import asyncio
import sysconfig
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp

from tests.stories.processes import Service, installation

FILES = 300
SLOW = 320
HALF = b"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\nX-Api-Key: "


@asynccontextmanager
async def slow(port: int, address: str) -> AsyncIterator["asyncio.Task[bytes]"]:
    """A connection from there with half a request; done when the service has closed it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(HALF)
    ended = asyncio.create_task(reader.read())
    try:
        yield ended
    finally:
        ended.cancel()
        await asyncio.wait([ended])
        writer.close()


async def test_slow_connections_from_one_address_leave_the_others_served(tmp_path: Path) -> None:
    """More of them than the process may have files open; others create and read payments on new connections."""
    program = tmp_path / "cambist"
    program.write_text(f'#!/bin/sh\nulimit -n {FILES}\nexec {sysconfig.get_path("scripts")}/cambist "$@"\n', "utf-8")
    program.chmod(0o755)
    with installation(tmp_path, log_level="warning") as place:
        await place.migrate()
        account = await place.account()
        headers = {"X-Api-Key": account.test.api_key, "X-Api-Secret": account.test.api_secret}
        service = Service(("serve",), place.folder, place.environ, len(place.started), program)
        place.started.append(service)
        base = await asyncio.to_thread(service.ready)
        async with AsyncExitStack() as held:
            attack = [
                await held.enter_async_context(slow(int(base.rpartition(":")[2]), "127.0.0.2")) for _ in range(SLOW)
            ]
            for number in range(20):
                key = {"Idempotency-Key": f"00000000-0000-4000-8000-{number:012d}"}
                async with aiohttp.ClientSession(base) as client:  # a new connection each
                    made = await client.post("/api/v1/payments", json={"amount_rub": "100.00"}, headers=headers | key)
                    assert made.status == 201
                    read = await client.get(f"/api/v1/payments/{(await made.json())['id']}", headers=headers)
                    assert read.status == 200
                    assert (await client.get("/readyz")).status == 200
            assert SLOW - sum(each.done() for each in attack) <= FILES // 4
        assert service.terminate() == 0
        assert "Traceback" not in service.err
        assert service.err.count("connections were refused") == 1
