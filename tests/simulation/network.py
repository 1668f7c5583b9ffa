"""The connections of one world: between processes, database, providers, merchants and their receivers. Messages arrive
late, twice or never, as the plan's weather decides. The trace records all of them."""

import asyncio
import types
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from cambist.adapters.ids import _uuid7
from cambist.ports.clock import Alarm
from cambist.ports.faults import Fault, OutcomeUnknown, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from tests.simulation.loop import SimLoop
from tests.simulation.plan import BEGINS_HOUR, FAULTS_END, Plan
from tests.simulation.storage import FULL, LOST
from tests.simulation.strands import present_strand
from tests.simulation.weather import FINE, KINDS, Chance, Weather

T = TypeVar("T")

BEGINNING = datetime(2026, 3, 2, BEGINS_HOUR, tzinfo=UTC)
_WEBHOOK_LIMIT = 10.0
_HANGS = 60.0
"""Seconds after which a silent connection breaks; callers give up before."""


class Trace:
    """Events of a world, a line each: the same for the same seed, byte for byte."""

    def __init__(self, loop: SimLoop, *, keeps: bool) -> None:
        self._loop = loop
        self._keeps = keeps
        self._digest = sha256()
        self.lines: list[str] = []
        self.told = 0
        """Lines so far."""

    def tell(self, what: str) -> None:
        """Write a line."""
        line = f"{self._loop.time():13.6f} {present_strand().name:8} {what}"
        self._digest.update(line.encode() + b"\n")
        self.told += 1
        if self._keeps:
            self.lines.append(line)

    @property
    def digest(self) -> str:
        """Digest of all lines and all steps of the loop."""
        return f"{self._digest.hexdigest()[:16]}-{self._loop.trace:08x}-{self._loop.steps}"


class ProcessClock:
    """A process's clock: the world's, off by some seconds."""

    def __init__(self, loop: SimLoop, skew: float) -> None:
        self._loop = loop
        self.skew = skew
        self._booted = loop.time()
        self._seconds, self._moment = 0.0, BEGINNING

    def now(self) -> datetime:
        seconds = self._loop.time() + self.skew
        if seconds != self._seconds:  # most ask again within one moment
            self._seconds, self._moment = seconds, BEGINNING + timedelta(microseconds=round(seconds * 1_000_000))
        return self._moment

    def monotonic(self) -> float:
        return self._loop.time() - self._booted

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], object], /) -> Alarm:
        return self._loop.call_later(seconds, call)


class ProcessIds:
    """Id generator of a process: version 7 by its own clock, random bits by the seed."""

    def __init__(self, clock: ProcessClock, chance: Any) -> None:
        self._clock = clock
        self._chance = chance
        self._last = 0

    def uuid(self) -> str:
        self._last = max(self._last + 1, int(self._clock.now().timestamp() * 1000))
        return _uuid7(self._last, self._chance.getrandbits(74))

    def secret(self, size: int) -> str:
        return str(self._chance.randbytes(size).hex())


@types.coroutine
def a_step() -> Generator[None]:
    """Let the other tasks run, as `asyncio.sleep(0)` does."""
    yield


class Network:
    """Faults and delays of all connections."""

    def __init__(self, loop: SimLoop, plan: Plan, chance: Chance, trace: Trace) -> None:
        self.loop = loop
        self.chance = chance
        self.trace = trace
        self._weather = plan.weather
        self._likely = {kind: likely for kind in KINDS if (likely := getattr(plan.weather, kind))}
        self.cut: set[str] = set()
        """Processes that reach neither database nor providers."""
        self.away: set[str] = set()
        """Banks, merchants' receivers (by number), or `storage`, that nobody reaches; a `disk` that takes nothing."""
        self.apart: set[str] = set()
        """Processes that neither requests nor hints reach."""
        self.hanging: set[str] = set()
        """Parties that accept connections and never answer."""
        self.garbled: set[str] = set()
        """Processes whose next claim returns an unexpected value."""
        self.signing_stops: list[float] = []
        """For each of the next signing processes, the seconds for which it freezes."""

    @property
    def weather(self) -> Weather:
        """Faults in force now."""
        return self._weather if self.loop.time() < FAULTS_END else FINE

    def strikes(self, kind: str) -> bool:
        """Whether a fault of this kind happens now. From FAULTS_END on none does."""
        likely = self._likely.get(kind)
        if likely is None or self.loop.time() >= FAULTS_END or self.chance.of(kind).random() >= likely:
            return False
        self.trace.tell(f"  fault: {kind}")
        return True

    def soon(self, seconds: float, call: Callable[[], object]) -> None:
        """Schedule the call in the world, after so long."""
        self.loop.outside(seconds, call)

    def stop_here(self, seconds: float) -> None:
        """Freeze the running process from its next step on."""
        strand = present_strand()
        self.loop.stop_strand(strand)
        self.soon(seconds, lambda: self.loop.go_on(strand))

    def pause(self, mean: float = 0.01) -> float:
        """Return a random delay of a message, in seconds."""
        return self.chance.of("pauses").expovariate(1 / mean)

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller."""
        await asyncio.sleep(seconds)


class StorageLine:
    """A process's way to the database."""

    def __init__(self, network: Network, process: str) -> None:
        self._network = network
        self._process = process
        self._chance = network.chance.of("line")

    async def go(self, *, writes: bool = False) -> None:
        network = self._network
        # A timer for each of some ten thousand calls would cost more than all that they do.
        if self._chance.random() < 0.1:
            await network.sleep(network.pause(0.008))
        else:
            await a_step()
        if self._process in network.cut or "storage" in network.away:
            await network.sleep(network.pause(0.5))
            raise Unavailable(LOST)
        if writes and "disk" in network.away:
            raise Unavailable(FULL)
        if network.strikes("storage_lost"):
            raise Unavailable(LOST)

    async def come(self, *, wrote: bool) -> None:
        network = self._network
        if network.strikes("storage_late"):
            await network.sleep(network.chance.of("storage_late").uniform(0.1, 6.0))
        if wrote and (self._process in network.cut or network.strikes("storage_unanswered")):
            raise Unavailable(LOST)

    def claimed(self) -> None:
        network = self._network
        if self._process in network.garbled:
            network.garbled.discard(self._process)
            raise OverflowError("date value out of range")


class ProviderWay:
    """A process's way to providers and receivers (links.py: Way)."""

    def __init__(
        self, network: Network, process: str, deliver: Callable[[WebhookRequest], tuple[int, str]], number: Any
    ) -> None:
        """`deliver` hands a webhook to its receiver and returns the answer; `number` is the receiver's number."""
        self._network = network
        self._process = process
        self._deliver = deliver
        self._number = number

    async def ask(self, whom: str, what: str, call: Callable[[], T], *, writes: bool) -> T:
        network = self._network
        await network.sleep(network.pause(0.03))
        if self._process in network.cut or whom in network.away or network.strikes("provider_refused"):
            raise Unavailable(f"{whom} cannot be reached")
        if whom in network.hanging:
            await network.sleep(_HANGS)
            raise self._lost(whom, writes=writes)
        if network.strikes("provider_lost"):
            await network.sleep(network.chance.of("provider_lost").choice((1.0, 5.0, 30.0)))
            raise self._lost(whom, writes=writes)
        if writes and network.strikes("provider_late"):
            network.soon(network.chance.of("provider_late").uniform(1.0, 200.0), lambda: self._carry_out(what, call))
            await network.sleep(5.0)
            raise self._lost(whom, writes=writes)
        if writes and network.strikes("provider_doubled"):
            network.soon(network.chance.of("provider_doubled").uniform(0.0, 60.0), lambda: self._carry_out(what, call))
        network.trace.tell(f"{whom} {what}")
        try:
            answer = call()
        finally:
            pause = network.pause(0.03)
        if what == "sign" and network.signing_stops:
            network.stop_here(network.signing_stops.pop())
        await network.sleep(pause)
        if self._process in network.cut or network.strikes("provider_unanswered"):
            raise self._lost(whom, writes=writes)
        return answer

    def _carry_out(self, what: str, call: Callable[[], object]) -> None:
        self._network.trace.tell(f"{what} after all")
        with suppress(Fault):
            call()

    def _lost(self, whom: str, *, writes: bool) -> Fault:
        return OutcomeUnknown(f"{whom} did not answer") if writes else Unavailable(f"{whom} did not answer")

    async def post(self, webhook: WebhookRequest) -> DeliveryResult:
        network, number = self._network, self._number(webhook)
        await network.sleep(network.pause(0.02))
        if self._process in network.cut or f"receiver {number}" in network.away or network.strikes("webhook_lost"):
            return DeliveryResult(answer=Answer.CONNECTION, note="refused")
        if f"receiver {number}" in network.hanging:
            await network.sleep(_WEBHOOK_LIMIT)
            return DeliveryResult(answer=Answer.TIMEOUT, took_ms=int(_WEBHOOK_LIMIT * 1000))
        took = network.chance.of("webhook_late").uniform(1, 12) if network.strikes("webhook_late") else 0.0
        if network.strikes("webhook_refused"):
            return DeliveryResult(answer=Answer.RESPONDED, status=500, took_ms=int(took * 1000))
        status, _ = self._deliver(webhook)
        await network.sleep(min(took, _WEBHOOK_LIMIT) + network.pause(0.02))
        if took > _WEBHOOK_LIMIT or network.strikes("webhook_unanswered"):
            return DeliveryResult(answer=Answer.TIMEOUT, took_ms=int(took * 1000))
        return DeliveryResult(answer=Answer.RESPONDED, status=status, took_ms=int(took * 1000))


class HttpAnswer(msgspec.Struct, frozen=True):
    """An answer as a merchant reads it."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def code(self) -> str | None:
        """Return the error code of a refusal."""
        found = self.json
        return found["error"]["code"] if isinstance(found, dict) and "error" in found else None


class NoAnswer(Exception):
    """The outcome of a request is unknown."""


async def through_asgi(app: Any, method: str, path: str, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> Any:
    """Send one request to an application, and return its answer."""
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"pay.example"), *headers, (b"content-length", b"%d" % len(body))],
        "client": ("203.0.113.7", 40000),
        "server": ("pay.example", 443),
        "state": {},
    }
    status, parts = 0, []
    asked = False

    async def receive() -> Any:
        nonlocal asked
        if asked:
            await asyncio.get_running_loop().create_future()  # the connection never closes
        asked = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            parts.append(bytes(message.get("body", b"")))

    await app(scope, receive, send)
    return HttpAnswer(status, b"".join(parts))


def key_of(*parts: object) -> str:
    """Derive an Idempotency-Key from its purpose."""
    return str(UUID(bytes=sha256("/".join(map(str, parts)).encode()).digest()[:16], version=4))


def woken_up(jobs: Sequence[Job]) -> str:
    """Jobs, for the trace."""
    return " ".join(job.id for job in jobs)
