"""Load from a process of its own: payments are asked for at a rate, whether those before are answered or not (an open
loop), or as quickly as so many connections are answered (a closed one).

`python -m tests.drills.open_loop` reads a `Plan` from standard input and writes what came of it, a `Report`. Raw
sockets and httptools, so that most of a small machine is left to the service.
"""

import asyncio
import random
import subprocess
import sys
from tempfile import TemporaryFile
from time import perf_counter, process_time
from typing import cast
from uuid import UUID

import httptools
import msgspec
import uvloop

LATEST = 40.0
"""Seconds after which an answer is not waited for any more."""

BATCH = 0.005
"""Seconds between two turns of sending."""


class Plan(msgspec.Struct, kw_only=True):
    """Requests to send."""

    port: int
    pairs: list[tuple[str, str]]
    """Keys and secrets. Merchants are many, each at an address of its own, so that no limit holds."""
    seconds: float
    rate: float = 0.0
    """Requests per second; 0: a closed loop."""
    connections: int
    """At most, or of a closed loop, always."""


class Report(msgspec.Struct, kw_only=True):
    """Results of a run."""

    sent: int
    unsent: int
    """Due while all connections waited for an answer."""
    statuses: dict[str, int]
    accepted: list[float]
    """Seconds from when each was due to its answer 201, ascending."""
    refused: list[float]
    """The same of 503."""
    seconds: float
    """From the first to the last of the sending."""
    cpu: float
    """CPU seconds of the generator. A figure near the run's seconds means that the generator was too slow."""

    def p(self, share: float) -> float:
        """The seconds within which this share of the accepted came."""
        return self.accepted[min(int(len(self.accepted) * share), len(self.accepted) - 1)]

    def refused_p(self, share: float) -> float:
        return self.refused[min(int(len(self.refused) * share), len(self.refused) - 1)] if self.refused else 0.0


class _Line(asyncio.Protocol):
    def __init__(self, load: "_Load") -> None:
        self._load = load
        self._due = 0.0
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)

    def send(self, due: float) -> None:
        self._due, self._busy = due, True
        self._load.sent += 1
        self._transport.write(self._load.request())

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._busy = False
        keeps = self._parser.should_keep_alive()
        self._load.answered(self, self._parser.get_status_code(), perf_counter() - self._due, keeps)

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.lost(self, busy=self._busy)

    def close(self) -> None:
        self._transport.close()


class _Load:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._free: list[_Line] = []
        self._open = 0
        self._chance = random.Random()
        self._until = 0.0
        self._heads = [
            f"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nX-Api-Secret: {secret}\r\n"
            f"X-Forwarded-For: 10.0.{number >> 8}.{number & 255}\r\n"
            "Content-Type: application/json\r\nContent-Length: 23\r\n".encode()
            for number, (key, secret) in enumerate(plan.pairs)
        ]
        self.sent = self.unsent = self.pending = 0
        self.statuses: dict[str, int] = {}
        self.accepted: list[float] = []
        self.refused: list[float] = []

    def request(self) -> bytes:
        chance = self._chance
        key = UUID(int=chance.getrandbits(128), version=4)
        more = f"Idempotency-Key: {key}\r\n\r\n".encode()
        return chance.choice(self._heads) + more + b'{"amount_rub":"100.00"}'

    def answered(self, line: _Line, status: int, took: float, keeps: bool) -> None:
        self.pending -= 1
        self._count(str(status))
        if status == 201:
            self.accepted.append(took)
        elif status == 503:
            self.refused.append(took)
        if not keeps:
            return
        if self._plan.rate or perf_counter() >= self._until:
            self._free.append(line)
        else:
            self.pending += 1
            line.send(perf_counter())

    def lost(self, line: _Line, *, busy: bool) -> None:
        self._open -= 1
        if busy:
            self.pending -= 1
            self._count("lost")
        elif line in self._free:
            self._free.remove(line)

    def _count(self, what: str) -> None:
        self.statuses[what] = self.statuses.get(what, 0) + 1

    async def run(self) -> Report:
        started = perf_counter()
        self._until = started + self._plan.seconds
        if self._plan.rate:
            await self._open_loop(started)
        else:
            for _ in range(self._plan.connections):
                self._open += 1
                self.pending += 1
                await self._send_on_new(perf_counter())
            await asyncio.sleep(self._until - perf_counter())
        seconds = perf_counter() - started
        cpu = process_time()
        while self.pending and perf_counter() < self._until + LATEST:
            await asyncio.sleep(0.01)
        for line in self._free:
            line.close()
        if self.pending:
            self.statuses["unanswered"] = self.pending
        return Report(
            sent=self.sent,
            unsent=self.unsent,
            statuses=self.statuses,
            accepted=sorted(self.accepted),
            refused=sorted(self.refused),
            seconds=seconds,
            cpu=cpu,
        )

    async def _open_loop(self, started: float) -> None:
        count = 0
        async with asyncio.TaskGroup() as group:
            while (now := perf_counter()) < self._until:
                while (due := started + count / self._plan.rate) <= now:
                    count += 1
                    if self._free:
                        self.pending += 1
                        self._free.pop().send(due)
                    elif self._open < self._plan.connections:
                        self._open += 1
                        self.pending += 1
                        group.create_task(self._send_on_new(due))
                    else:
                        self.unsent += 1
                await asyncio.sleep(BATCH)

    async def _send_on_new(self, due: float) -> None:
        """Send on a connection that is counted already."""
        try:
            _, line = await asyncio.get_running_loop().create_connection(
                lambda: _Line(self), "127.0.0.1", self._plan.port
            )
        except OSError:
            self._open -= 1
            self.pending -= 1
            self._count("no connection")
            return
        line.send(due)


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(_Load(plan).run())))
    sys.stdout.flush()


def load(plan: Plan) -> Report:
    """Let a process of its own carry out the plan."""
    command = [sys.executable, "-m", "tests.drills.open_loop"]
    with TemporaryFile() as out:  # kernels of sandboxes have cut megabytes short that went through a pipe
        subprocess.run(command, input=msgspec.json.encode(plan), stdout=out, check=True)
        out.seek(0)
        return msgspec.json.decode(out.read(), type=Report)


if __name__ == "__main__":
    main()
