"""One run over a receiver's due deliveries: reading what is due, sending, entering what was answered.

One coroutine reads and enters; webhooks have tasks of their own, a few at a time. Nothing is read for each webhook, and
several are entered in one unit, because a commit costs more than a webhook.
"""

import asyncio

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ...domain.accounts.accounts import Account
from ...domain.webhooks.breaker import Breaker, endpoint_of
from ...domain.webhooks.delivery import Outcome, next_number
from ...domain.webhooks.events import Delivery, Event
from ...domain.webhooks.limiter import Permit, SendLimiter, host_of
from ...domain.webhooks.limiter_pool import Trust
from ..test_clock import test_clock_of
from .due import DueQueue, Ready
from .in_flight import InFlightBreaker
from .lease import Lease
from .results import EndpointKey, Sent, enter, hold, leave, park, put_off
from .signing import Signers, signed_webhook

_LOW = 16
"""Deliveries in hand below which more are read, while the webhooks of these are under way."""
_ENOUGH = 64
"""How many results are worth a commit while further webhooks are under way: a receiver that answers at once would else
cost a commit for every few. After a kill -9 at most so many webhooks, and those under way, are sent again."""
_ACCOUNT_SECONDS = 1.0
"""How old what is known of the account may be, its address and its secrets among it (docs/decisions.md "Storage": two
seconds)."""


class Shared(msgspec.Struct):
    """What the endpoint workers of a process have in common."""

    ports: Ports
    signers: Signers
    limiter: SendLimiter
    stopping: bool = False
    """No further webhook is to be begun."""


class EndpointWorker:
    """Serves one receiver under the lease of its job."""

    def __init__(self, shared: Shared, job: Job) -> None:
        self._shared = shared
        self._ports = shared.ports
        self._limiter = shared.limiter
        self._endpoint = EndpointKey(*endpoint_of(job.argument))
        self._lease = Lease(shared.ports, job)
        self._looked = False
        self._account: Account | None = None
        self._receives = False
        self._receiver = ""
        """This endpoint at its present address: another one is another receiver."""
        self._host = ""
        self._test_clock = shared.ports.clock.test_clock
        self._moved = False
        self._in_flight = InFlightBreaker(self._endpoint, shared.limiter.per_receiver)
        self._due_queue = DueQueue(self._endpoint)
        self._queue = self._due_queue.queue
        self._sent: list[Sent] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._fault: Exception | None = None
        self._probing = False
        self._detour: float | None = None
        """Seconds for which it leaves, because too many wait for a permit."""
        self._read_at = self._ports.clock.monotonic()
        self._stirred = asyncio.Event()
        self._urgent = False
        """What was answered is to be entered however little it is."""

    @property
    def is_slow(self) -> bool:
        """Whether its receiver's last webhook was late."""
        return self._limiter.is_slow(self._receiver)

    def stir(self) -> None:
        """Something happened that it should look at."""
        self._stirred.set()

    def look_around(self) -> None:
        """Some time has passed."""
        self._urgent = True
        self.stir()

    async def run(self) -> None:
        """Serve until the job is let go, or is another worker's."""
        await self._lease.begin()
        try:
            while not await self._pass():
                pass
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pass(self) -> bool:
        """True when this run is over; else somebody asked for more on the way."""
        await self._read()
        if not self._receives:
            await hold(self._ports, self._endpoint)
            return await self._leave()
        self._detour = self._limiter.turned_away(self._trust())
        if self._detour is not None:
            return await self._leave()
        probe_at = self._in_flight.expected.next_probe_at
        if probe_at is not None:
            if await self._ports.storage.now() >= probe_at:
                await self._probe()
            if self._in_flight.expected.is_open:
                await park(self._ports, self._endpoint)
                return await self._leave()
        if await self._drain():
            return True
        # The address may have been taken away meanwhile: another pass then holds what is left.
        return self._account is not None and self._account.receives and await self._leave()

    async def _read(self) -> None:
        async with self._ports.storage.unit() as unit:
            self._know(await unit[Account].get(self._endpoint.account_id))
            self._in_flight.take(await unit[Breaker].get(self._endpoint.id))
        self._read_at = self._ports.clock.monotonic()

    def _know(self, account: Account | None) -> None:
        self._account = account
        self._receives = account is not None and account.receives
        url = None if account is None else account.settings.webhook_url
        receiver = f"{self._endpoint.id} {url}"
        if receiver != self._receiver:
            self._receiver = receiver
            self._host = host_of(url or "")
        # Whoever advances the clock of a test account serves its receiver, too.
        if self._test_clock is not None and account is not None:
            self._moved = test_clock_of(account, self._endpoint.mode) != self._test_clock

    @property
    def _halted(self) -> bool:
        """No further webhook may be begun."""
        return (
            self._shared.stopping
            or self._moved
            or self._lease.lost
            or self._fault is not None
            or self._detour is not None
            or not self._receives
            or (self._in_flight.expected.is_open and not self._probing)
        )

    async def _drain(self) -> bool:
        """Send what is due, the oldest first, until nothing more is due or may be sent, and commit every result.
        Returns True when the last commit also let the job go."""
        self._due_queue.complete = False
        while True:
            await self._keep_up()
            if await self._wants_more():
                await self._look()
            self._start()
            idle = not self._tasks and not self._queue
            ended = idle and (self._due_queue.complete or self._halted)
            if self._has_enough():
                if await self._enter(leave=ended and not self._halted and not self._probing):
                    return True
            elif ended:
                return False
            else:
                await self._stirred.wait()
                self._stirred.clear()

    def _has_enough(self) -> bool:
        """Whether to enter what there is. A failure is entered at once: it sets timers and moves the breaker."""
        answered = bool(self._sent) and (len(self._sent) >= _ENOUGH or self._urgent or not self._tasks)
        return answered or bool(self._due_queue.too_old)

    async def _probe(self) -> None:
        """Send one delivery to a receiver that may be back. It is the oldest, or the one after the last that failed, so
        that one bad event does not hold up all others."""
        await self._look()
        after = self._in_flight.expected.probed or ""
        later = [each for each in self._queue if each.delivery.id > after]
        self._due_queue.keep_only(next(iter(later or self._queue), None))
        self._probing = True
        await self._drain()
        self._probing = False

    async def _wants_more(self) -> bool:
        if self._halted or len(self._queue) >= _LOW:
            return False
        if self._probing:
            self._due_queue.complete = True
            return False
        if not self._due_queue.complete:
            return True
        # With nothing under way the run is about to end, and hears then whether it was asked for more.
        return bool(self._tasks) and await self._lease.was_asked()

    async def _look(self) -> None:
        """Read what is due, and the job with it. Whatever is asked for after that is a new request."""
        async with self._ports.storage.unit() as unit:
            if self._looked and not self._lease.is_ours(await unit[Job].get(self._lease.job.id)):
                return
            self._looked = True
            await self._due_queue.look(unit, await self._ports.storage.now())
        unreadable, self._due_queue.unreadable = self._due_queue.unreadable, []
        if unreadable:
            await put_off(self._ports, unreadable)
            self._due_queue.entered(unreadable)

    def _start(self) -> None:
        """Begin as many webhooks as there is room for."""
        if self._halted:
            self._due_queue.keep_only(None)
        limiter, trust = self._limiter, self._trust()
        for _ in range(len(self._queue)):
            under_way = len(self._tasks)
            if under_way >= min(self._room(), limiter.share(self._host, trust, under_way)):
                break
            permit = limiter.take(self, self._receiver, self._host, trust)
            if permit is None:
                if not self._tasks:
                    self._detour = limiter.sent_off(self)
                if self._detour is not None:
                    self._due_queue.keep_only(None)
                return
            self._tasks.add(asyncio.create_task(self._serve(permit)))
        limiter.decline(self)

    def _trust(self) -> Trust:
        return self._in_flight.trust(slow=self.is_slow)

    def _room(self) -> int:
        return 1 if self._probing else self._in_flight.room

    async def _serve(self, permit: Permit) -> None:
        """Send webhooks, one after the other, while there are any, on one permit."""
        try:
            ready = self._next()
            while ready is not None:
                await self._send(ready.delivery, ready.event)
                # Where others wait for it the permit goes back, and this endpoint asks again.
                ready = self._next() if self._limiter.goes_on(permit) else None
        except Exception as fault:  # noqa: BLE001 - raised by the run itself, once the others are entered
            self._fault = fault
        finally:
            task = asyncio.current_task()
            if task is not None:
                self._tasks.discard(task)
            self._limiter.give(permit)
            self.stir()

    def _next(self) -> Ready | None:
        """The next webhook for a task that has a permit."""
        if not self._queue or self._halted or len(self._tasks) > self._room():
            return None
        return self._queue.popleft()

    async def _send(self, delivery: Delivery, event: Event) -> None:
        if self._account is None:
            return
        clock, ahead = self._ports.clock, self._lease.ahead
        sent_at = clock.now() + ahead
        webhook = signed_webhook(
            self._shared.signers,
            self._account,
            delivery.mode,
            event_id=event.id,
            event=event.type,
            sequence=event.sequence,
            attempt=next_number(delivery),
            body=event.body,
            now=clock.real() + ahead,
        )
        result = await self._ports.notifier.send(webhook)
        outcome = Outcome(
            answer=str(result.answer),
            status=result.status,
            note=result.note,
            sent_at=sent_at,
            ended_at=clock.now() + ahead,
            took_ms=result.took_ms,
            probe=self._probing,
        )
        self._sent.append(Sent(delivery, outcome))
        self._urgent = self._urgent or not outcome.good
        self._in_flight.note(delivery, outcome)
        # The run is woken only for what it would do.
        if self._has_enough() or (not self._due_queue.complete and len(self._queue) < _LOW):
            self.stir()

    async def _enter(self, *, leave: bool) -> bool:
        sent, self._sent = self._sent, []
        too_old, self._due_queue.too_old = self._due_queue.too_old, []
        self._urgent = False
        job = self._lease.job if leave else None
        entered = await enter(self._ports, self._endpoint, self._in_flight.stored, sent, too_old, leave=job)
        self._due_queue.entered(each.delivery for each in sent)
        self._due_queue.entered(too_old)
        self._in_flight.take(entered.breaker, self._sent)
        if job is not None and not entered.left:
            self._due_queue.complete = False
        return entered.left

    async def _leave(self) -> bool:
        """Let the job go. False when more was asked for meanwhile."""
        lease = self._lease
        if self._fault is not None:
            raise self._fault
        if lease.lost:
            return True
        if self._shared.stopping or self._moved:
            await lease.release()
            return True
        if self._detour is not None:
            await lease.release(pause=self._detour)
            return True
        if await leave(self._ports, self._endpoint, self._in_flight.stored, lease.job, unsure=self._due_queue.empty):
            return True
        return not await lease.read()

    async def _keep_up(self) -> None:
        """Watch for another address or secret, and for the loss of the job, while the context lasts."""
        now = self._ports.clock.monotonic()
        if now - self._read_at > _ACCOUNT_SECONDS:
            self._read_at = now
            before = self._receiver
            async with self._ports.storage.unit() as unit:
                self._know(await unit[Account].get(self._endpoint.account_id))
                present = await unit[Job].get(self._lease.job.id)
                if self._receiver != before:
                    self._in_flight.take(await unit[Breaker].get(self._endpoint.id), self._sent)
            if present is None or present.version != self._lease.job.version:
                self._lease.lost = True
