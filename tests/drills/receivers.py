"""Many merchants' receivers behind one listening socket, some of which hang."""

import asyncio
import time
from collections import defaultdict
from contextlib import suppress
from typing import Self

import msgspec


class Receivers:
    """Listens on all of the machine's own addresses while it is entered. The path names the merchant."""

    def __init__(self) -> None:
        self.hangs: set[str] = set()
        """Merchants whose receivers take a webhook and say nothing."""
        self.arrived: dict[str, dict[str, float]] = defaultdict(dict)
        """By merchant: payments whose webhook arrived, and when first, by the machine's monotonic clock."""
        self.webhooks: dict[str, int] = defaultdict(int)
        """By merchant: webhooks that came, again and again included."""
        self.open = 0
        self.most_open = 0
        """Connections at one time."""
        self._closing = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "0.0.0.0", 0, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._server is not None
        self._server.close()
        self._closing.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def own(self, number: int) -> str:
        """The address of a merchant with a host of its own."""
        return f"http://127.1.{number // 250}.{number % 250 + 1}:{self.port}/{number}"

    def shared(self, number: int) -> str:
        """The address of a merchant on the host that many share."""
        return f"http://127.0.0.1:{self.port}/{number}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._answer(reader, writer):
                    pass
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.strip().split("\r\n")
        merchant = line.split(" ")[1].removeprefix("/")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.webhooks[merchant] += 1
        self.arrived[merchant].setdefault(msgspec.json.decode(body)["payment_id"], time.monotonic())
        if merchant in self.hangs:
            # Until the service gives it up.
            await reader.read(1)
            return False
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        return True
