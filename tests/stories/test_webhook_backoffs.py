"""Backoffs and breaker against a receiver on a real socket that fails in every way, and kill -9 in mid-delivery
(docs/webhooks.md "When you do not answer").

The webhooks are real; the pauses between them pass on a virtual clock, so that 41 hours take a moment.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import accumulate

import pytest

from cambist.adapters.clock import SystemClock, VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.notifier.http import HttpNotifier
from cambist.core.domain.webhooks.breaker import PAUSES
from cambist.core.domain.webhooks.delivery import FAST_BACKOFF, SLOW_BACKOFF
from cambist.core.domain.webhooks.events import Attempt, Delivery, DeliveryStatus
from cambist.core.domain.webhooks.signing import verify_signature
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.jobs import run_due
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from tests.event_factory import happen
from tests.patience import HANGS
from tests.receivers import Receiver, Request, Script, drip, half, raw, redirect, reply, reset, silence
from tests.stories.processes import WEBHOOK_SECRET, Installation, eventually
from tests.stories.test_kill import end_leases

PASSES = 20
"""Passes of the event loop in which written bytes reach the other side of a loopback connection."""

FAST = [timedelta(0), *accumulate(FAST_BACKOFF)]
PROBED = [*FAST, *(FAST[-1] + pause for pause in accumulate(PAUSES[:6]))]
"""Within an hour: the fast backoff, then the probes of the breaker that it opened."""
REFUSED = [*FAST, *SLOW_BACKOFF]


class Shop:
    """A merchant with a receiver at `url`, in an app under a virtual clock whose webhooks are real."""

    def __init__(self, ports: Ports, clock: VirtualClock, notifier: HttpNotifier, account_id: str) -> None:
        self.ports = ports
        self.clock = clock
        self.notifier = notifier
        self.account_id = account_id

    async def happen(self, count: int = 1) -> list[str]:
        return await happen(self.ports, self.account_id, count)

    async def work(self, seconds: float) -> None:
        """Let the time pass, and do every job at its time."""
        end = self.clock.now() + timedelta(seconds=seconds)
        while True:
            await run_due(self.ports)
            due = await self.ports.storage.next_due()
            if due is None or due > end:
                break
            await self.clock.advance_to(max(due, self.clock.now()))
        await self.clock.advance_to(max(end, self.clock.now()))

    def until_late(self, script: Script) -> Script:
        """Give the endless answer, and end the webhook's time once a part has arrived. By the machine's clock the
        webhook might be late before it was sent."""

        async def answer(receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
            given = asyncio.ensure_future(script(receiver, writer))
            for _ in range(PASSES):
                await asyncio.sleep(0)
            deadlines = self.notifier._deadlines
            assert deadlines is not None
            [late] = deadlines.running
            del deadlines.running[late]
            late.end()
            return await given

        return answer

    async def attempts(self) -> list[Attempt]:
        async with self.ports.storage.unit() as unit:
            return await unit[Attempt].find(order="sent_at")

    async def statuses(self) -> Counter[DeliveryStatus]:
        async with self.ports.storage.unit() as unit:
            return Counter(each.status for each in await unit[Delivery].find())


@asynccontextmanager
async def shop(url: str) -> AsyncIterator[Shop]:
    clock = VirtualClock()
    notifier = HttpNotifier(SystemClock(), loopback=True, limit=HANGS)
    settings = Settings(database_url="memory://", base_url="https://pay.example", allow_live_simulators=True)
    async with open_app(settings, clock=clock, ids=SeededIds(), notifier=notifier) as app:
        try:
            account = await create_account(app.ports, "Merchant")
            wish = {"webhook_url": url, "webhook_secret": WEBHOOK_SECRET}
            await set_settings(app.ports, account.account_id, wish)
            await run_due(app.ports)
            yield Shop(app.ports, clock, notifier, account.account_id)
        finally:
            await notifier.close()


def sent_at(requests: list[Request]) -> list[timedelta]:
    """Return the sending times of the arrived webhooks, by their own headers, relative to the first."""
    times = [int(request.headers["x-webhook-timestamp"]) for request in requests]
    return [timedelta(seconds=time - times[0]) for time in times]


FAILURES: list[tuple[str, Script, str, int | None, list[timedelta]]] = [
    ("500", reply(500), "responded", 500, PROBED),
    ("503 with a body", reply(503, b"later"), "responded", 503, PROBED),
    ("302", redirect("/elsewhere"), "responded", 302, PROBED),
    ("silence", silence(), "timeout", None, PROBED),
    ("half a body", half(500), "responded", 500, PROBED),
    ("half a head", raw(b"HTTP/1.1 200 OK\r\nContent-"), "connection", None, PROBED),
    ("a head that never ends", drip(b"HTTP/1.1 200 OK\r\n"), "timeout", None, PROBED),
    ("a reset", reset(), "connection", None, PROBED),
    ("no HTTP", raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "connection", None, PROBED),
    ("400", reply(400), "responded", 400, REFUSED),
    ("429", reply(429), "responded", 429, PROBED),
]


@pytest.mark.parametrize(
    ("script", "answer", "status", "moments"), [each[1:] for each in FAILURES], ids=[each[0] for each in FAILURES]
)
async def test_each_backoff_is_walked_exactly_whatever_way_the_receiver_fails(
    script: Script, answer: str, status: int | None, moments: list[timedelta]
) -> None:
    """The whole backoff (docs/webhooks.md "When you do not answer"). Nothing is followed, nothing is sent twice, every
    webhook is signed anew."""
    async with Receiver() as receiver, shop(receiver.url) as merchant:
        receiver.answer_with(merchant.until_late(script) if answer == "timeout" else script)
        [event] = await merchant.happen()
        probed = moments is PROBED
        await merchant.work(3600 if probed else 8 * 86_400)
        webhooks = receiver.requests
        assert sent_at(webhooks) == moments
        numbers = [*range(1, 11), *([11] * (len(moments) - 10) if probed else range(11, 15))]
        assert [int(each.headers["x-webhook-attempt"]) for each in webhooks] == numbers
        assert {each.target for each in webhooks} == {"/hook"}
        assert len({each.body for each in webhooks}) == 1
        for each in webhooks:
            assert (
                verify_signature(each.headers, each.body, [WEBHOOK_SECRET], int(each.headers["x-webhook-timestamp"]))
                == event
            )
        attempts = await merchant.attempts()
        probes = [probed and number == 11 for number in numbers]
        assert [(each.answer, each.status, each.probe) for each in attempts] == [
            (answer, status, probe) for probe in probes
        ]
        assert await merchant.statuses() == {DeliveryStatus.PENDING if probed else DeliveryStatus.FAILED: 1}


async def test_closed_port_takes_the_same_backoff() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with shop(f"http://127.0.0.1:{port}/hook") as merchant:
        await merchant.happen()
        await merchant.work(520)
        attempts = await merchant.attempts()
        assert [each.sent_at - attempts[0].sent_at for each in attempts] == FAST
        assert {(each.answer, each.status) for each in attempts} == {("connection", None)}


async def test_an_address_that_is_never_posted_to_is_blocked() -> None:
    async with shop("http://192.168.0.1/hook") as merchant:
        await merchant.happen()
        await merchant.work(600)
        assert {each.answer for each in await merchant.attempts()} == {"blocked"}


async def test_breaker_probes_a_dead_receiver_on_time_and_drains_on_recovery() -> None:
    async with Receiver() as receiver, shop(receiver.url) as merchant:
        receiver.answer_with(reset())
        ids = await merchant.happen(5)
        await merchant.work(86_400)
        webhooks = receiver.requests
        assert len({each.headers["x-webhook-id"] for each in webhooks[:10]}) == 5
        pauses = [
            later - earlier for earlier, later in zip(sent_at(webhooks)[9:], sent_at(webhooks)[10:], strict=False)
        ]
        assert pauses[: len(PAUSES)] == list(PAUSES)
        assert set(pauses[len(PAUSES) :]) == {PAUSES[-1]}
        assert max(int(each.headers["x-webhook-attempt"]) for each in webhooks) == 3, "probes are no attempts"
        dead = len(webhooks)
        receiver.answer_with(200)
        await merchant.work(3600)
        back = [each.headers["x-webhook-id"] for each in receiver.requests[dead:]]
        assert sorted(back) == sorted(ids)
        assert back[1:] == sorted(back[1:]), "after the probe, oldest first"
        assert await merchant.statuses() == {DeliveryStatus.DELIVERED: 5}


def kept_back(release: asyncio.Event) -> Script:
    """An answer that comes only once it may."""

    async def script(receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        await release.wait()
        return await reply(200)(receiver, writer)

    return script


@pytest.mark.drill
async def test_kill_9_in_mid_delivery_loses_none(sqlite_location: Installation) -> None:
    """Twenty events, a receiver that keeps its answers back; the service is killed with eight webhooks under way, and
    once more while it drains. All twenty arrive, the same ones, and are delivered."""
    release = asyncio.Event()
    async with Receiver() as receiver:
        receiver.answer_with(kept_back(release))
        account = await sqlite_location.account(receiver.url)
        async with sqlite_location.app() as ports:
            ids = await happen(ports, account.account_id, 20)
        service, _ = sqlite_location.serve()
        await receiver.arrived(8)
        service.kill()
        assert len(receiver.requests) == 8, "eight at a time"
        release.set()
        await end_leases(sqlite_location)
        service, _ = sqlite_location.serve()
        await receiver.arrived(12)
        service.kill()
        await end_leases(sqlite_location)
        service, _ = sqlite_location.serve()

        async def all_delivered() -> bool:
            async with sqlite_location.app() as ports, ports.storage.unit() as unit:
                found = await unit[Delivery].find(account_id=account.account_id)
            return [each.status for each in found] == [DeliveryStatus.DELIVERED] * 20

        await eventually(all_delivered)
        assert {each.headers["x-webhook-id"] for each in receiver.requests} == set(ids)
        assert service.terminate() == 0
