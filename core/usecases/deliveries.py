"""Sending events to merchants' receivers (SPEC "Events", 1-3; DECISIONS 7).

Every receiver (an account's, in one mode) has one job that stands while something is due there. Whoever holds its
lease serves that receiver alone, so its deliveries never compete for its breaker; several letters are under way at a
time, and a slow or dead receiver holds up nobody but itself. What comes next is decided in domain/delivery.py and
domain/breaker.py, and entered in receipts.py.
"""

import asyncio
from collections import deque
from datetime import timedelta

import msgspec

from ...ports.bundle import Ports
from ...ports.faults import Stale
from ...ports.jobs import Job
from ...ports.storage import AtLeast, AtMost, OneOf
from ..domain.accounts import Account
from ..domain.breaker import Breaker, after_letter, lane_of, new_breaker, room
from ..domain.delivery import AT_ONCE, Outcome, is_too_old, next_number
from ..domain.events import Delivery, Event
from .letters import Signers, signed_letter
from .receipts import Lane, Sent, enter, hold, leave, park

BATCH = 128
"""Deliveries read at once."""
_LOW = 16
"""Deliveries in hand below which more are read, while the letters of these are under way."""
_ENOUGH = 32
"""Outcomes that are worth a commit while further letters are under way: a receiver that answers at once would else
cost one for each few. So many letters at most, and those under way, a kill -9 makes go out again."""
_ACCOUNT_SECONDS = 1.0
"""How old what is known of the account may be, its address and its secrets among it (DESIGN 3: two seconds)."""


class Ready(msgspec.Struct, frozen=True):
    """A delivery whose turn comes, with what it delivers."""

    delivery: Delivery
    event: Event


class Slots:
    """How many letters may be under way: in all, and to one receiver. Who finds none free gets one in turn."""

    def __init__(self, total: int, per_receiver: int) -> None:
        self.per_receiver = per_receiver
        self._free = total
        self._waiting: dict[_Service, None] = {}
        self._granted: set[_Service] = set()
        """Their turn came, and they have not taken the slot yet."""

    @property
    def wanted(self) -> bool:
        """Somebody waits: a slot that becomes free goes round."""
        return bool(self._waiting)

    def share(self) -> int:
        """How many one receiver may take: the fewer are free, the fewer, so that some are left for the next one. Who
        has more keeps them."""
        return max(1, min(self.per_receiver, self._free // self.per_receiver))

    def take(self, service: "_Service") -> bool:
        """A slot, or a place in the queue for one."""
        if service in self._granted:
            self._granted.remove(service)
        elif self._free:
            self._free -= 1
        else:
            self._waiting[service] = None
            return False
        return True

    def give(self) -> None:
        """A slot is free again: the first who waits may take it."""
        if not self._waiting:
            self._free += 1
            return
        first = next(iter(self._waiting))
        del self._waiting[first]
        self._granted.add(first)
        first.stir()

    def decline(self, service: "_Service") -> None:
        """It wants no slot now; if its turn has come, the next one may."""
        self._waiting.pop(service, None)
        if service in self._granted:
            self._granted.remove(service)
            self.give()


class Dispatcher:
    """What a worker's services share. `at_once` and `per_receiver` bound the letters under way."""

    def __init__(self, ports: Ports, *, at_once: int = 256, per_receiver: int = 8) -> None:
        self.ports = ports
        self.signers = Signers(ports.vault)
        self.slots = Slots(at_once, per_receiver)
        self.stopping = False
        self._services: set[_Service] = set()

    async def run(self, job: Job) -> None:
        """Serve the receiver of a claimed job until nothing more is due there. Raises: VaultError and what a port
        raises; what was answered before is entered."""
        service = _Service(self, job)
        self._services.add(service)
        try:
            await service.run()
        finally:
            self._services.discard(service)
            self.slots.decline(service)

    def look(self) -> None:
        """To be called now and then while services run: they look for what became due meanwhile, and keep their
        leases."""
        for service in self._services:
            service.look_around()

    def stop(self) -> None:
        """Begin no further letter: services end when those under way are entered."""
        self.stopping = True
        self.look()


async def deliver(ports: Ports, job: Job) -> None:
    """Serve a receiver by itself, for whoever has no worker (`run_due`)."""
    await Dispatcher(ports).run(job)


class _Service:
    """One run over a receiver's due deliveries. One coroutine reads and enters; letters have tasks of their own."""

    def __init__(self, dispatcher: Dispatcher, job: Job) -> None:
        self._dispatcher = dispatcher
        self._ports = dispatcher.ports
        self._slots = dispatcher.slots
        self._lane = Lane(*lane_of(job.argument))
        self._job = job
        """As it was before the last look: whoever asks for more after that is not forgotten."""
        self._looked = False
        self._lost = False
        """Another worker has the job: our lease ended."""
        self._account: Account | None = None
        self._breaker: Breaker | None = None
        self._expected = new_breaker(*lane_of(job.argument))
        """The breaker with the outcomes that are not entered yet."""
        self._queue: deque[Ready] = deque()
        self._known: set[str] = set()
        """Deliveries in hand: in the queue, under way, not entered yet."""
        self._sent: list[Sent] = []
        self._too_old: list[Delivery] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._fault: Exception | None = None
        self._probing = False
        self._complete = False
        """The last look found all there was."""
        self._after: str | None = None
        """Where it ended when it did not."""
        self._empty = False
        self._ahead = timedelta(0)
        """How far the storage's clock, by which all is due, is ahead of ours."""
        self._lease = timedelta(0)
        """How long the job is ours at a time."""
        self._read_at = self._leased_at = self._ports.clock.monotonic()
        self._stirred = asyncio.Event()
        self._urgent = False
        """What was answered is to be entered however little it is."""

    def stir(self) -> None:
        """Something happened that it should look at."""
        self._stirred.set()

    def look_around(self) -> None:
        """Some time has passed."""
        self._urgent = True
        self.stir()

    async def run(self) -> None:
        """Serve until the job is let go, or is another worker's."""
        now = await self._ports.storage.now()
        self._ahead = now - self._ports.clock.now()
        self._lease = (self._job.leased_until or now) - now
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
            await hold(self._ports, self._lane)
            return await self._leave()
        if self._expected.next_probe_at is not None:
            if await self._ports.storage.now() >= self._expected.next_probe_at:
                await self._probe()
            if self._expected.is_open:
                await park(self._ports, self._lane)
                return await self._leave()
        if await self._drain():
            return True
        # The address may have been taken away meanwhile: another pass then holds what is left.
        receives = self._account is not None and self._account.receives
        return await self._leave() if receives else False

    @property
    def _receives(self) -> bool:
        return self._account is not None and self._account.receives

    async def _read(self) -> None:
        async with self._ports.storage.unit() as unit:
            self._account = await unit[Account].get(self._lane.account_id)
            self._breaker = await unit[Breaker].get(self._lane.id)
        self._expected = self._breaker or new_breaker(self._lane.account_id, self._lane.mode)
        self._read_at = self._ports.clock.monotonic()

    @property
    def _halted(self) -> bool:
        """No further letter may be begun."""
        return (
            self._dispatcher.stopping
            or self._lost
            or self._fault is not None
            or not self._receives
            or (self._expected.is_open and not self._probing)
        )

    async def _drain(self) -> bool:
        """Send what is due, the oldest first, until nothing more is or may be sent; all of it is entered then. True
        when the job was let go together with the last of it."""
        self._complete = False
        while True:
            await self._keep_up()
            if await self._wants_more():
                await self._look()
            self._start()
            idle = not self._tasks and not self._queue
            ended = idle and (self._complete or self._halted)
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
        if self._too_old:
            return True
        return bool(self._sent) and (len(self._sent) >= _ENOUGH or self._urgent or not self._tasks)

    async def _probe(self) -> None:
        """Send one delivery to a receiver that may be back: the oldest, or the next one after the last that was tried
        in vain, so that one bad event does not keep all others waiting."""
        await self._look()
        after = self._expected.probed or ""
        oldest = self._queue[0] if self._queue else None
        chosen = next((each for each in self._queue if each.delivery.id > after), oldest)
        self._forget_queue()
        if chosen is not None:
            self._queue.append(chosen)
            self._known.add(chosen.delivery.id)
        self._probing = True
        await self._drain()
        self._probing = False

    async def _wants_more(self) -> bool:
        if self._halted or len(self._queue) >= _LOW:
            return False
        if self._probing:
            self._complete = True
            return False
        if not self._complete:
            return True
        # With nothing under way the run is about to end, and hears then whether it was asked for more.
        return bool(self._tasks) and await self._was_asked()

    async def _was_asked(self) -> bool:
        async with self._ports.storage.unit() as unit:
            job = await unit[Job].get(self._job.id)
        return job != self._job

    async def _look(self) -> None:
        """Take what is due into the queue."""
        after = self._after
        async with self._ports.storage.unit() as unit:
            if self._looked and not self._still_ours(await unit[Job].get(self._job.id)):
                return
            self._looked = True
            now = await self._ports.storage.now()
            if after is None:
                limit, where = BATCH + len(self._known), self._lane.pending(due=AtMost(now))
            else:
                limit, where = BATCH, self._lane.pending(due=AT_ONCE, id=AtLeast(f"{after}!"))
            found = await unit[Delivery].find(order="due", limit=limit, quick=True, **where)
            fresh = [delivery for delivery in found if delivery.id not in self._known]
            events = await unit[Event].find(
                id=OneOf(tuple(delivery.id for delivery in fresh)), limit=len(fresh), quick=True
            )
        # In a long row of what is due at once, the next look goes on where this one ended; what is behind that is for
        # the last one, which sees all.
        whole = len(found) < limit
        self._complete = whole and after is None
        self._after = found[-1].id if not whole and found[-1].due == AT_ONCE else None
        self._empty = not fresh
        self._known.update(delivery.id for delivery in fresh)
        self._too_old += [delivery for delivery in fresh if is_too_old(delivery, now)]
        event_of = {event.id: event for event in events}
        self._queue += [
            Ready(delivery, event_of[delivery.id])
            for delivery in fresh
            if delivery.id in event_of and not is_too_old(delivery, now)
        ]

    def _still_ours(self, job: Job | None) -> bool:
        if job is None or job.version != self._job.version:
            self._lost = True
            return False
        self._job = job
        return True

    def _forget_queue(self) -> None:
        self._known.difference_update(each.delivery.id for each in self._queue)
        self._queue.clear()
        self._after = None

    def _start(self) -> None:
        """Begin as many letters as there is room for."""
        if self._halted:
            self._forget_queue()
        for _ in range(len(self._queue)):
            if len(self._tasks) >= min(self._room(), self._slots.share()):
                break
            if not self._slots.take(self):
                return
            self._tasks.add(asyncio.create_task(self._serve()))
        self._slots.decline(self)

    def _room(self) -> int:
        return 1 if self._probing else room(self._expected, self._slots.per_receiver)

    async def _serve(self) -> None:
        """Send letters, one after the other, while there are any, on one slot."""
        try:
            ready = self._next()
            while ready is not None:
                await self._send(ready.delivery, ready.event)
                # When slots are short it goes back, and waits its turn.
                ready = None if self._slots.wanted else self._next()
        except Exception as fault:  # noqa: BLE001 - raised by the run itself, once the others are entered
            self._fault = fault
        finally:
            task = asyncio.current_task()
            if task is not None:
                self._tasks.discard(task)
            self._slots.give()
            self.stir()

    def _next(self) -> Ready | None:
        """The next letter for a task that has a slot."""
        if not self._queue or self._halted or len(self._tasks) > self._room():
            return None
        return self._queue.popleft()

    async def _send(self, delivery: Delivery, event: Event) -> None:
        if self._account is None:
            return
        sent_at = self._ports.clock.now() + self._ahead
        letter = signed_letter(
            self._dispatcher.signers,
            self._account,
            delivery.mode,
            event_id=event.id,
            event=str(event.type),
            sequence=event.sequence,
            attempt=next_number(delivery),
            body=event.body,
            now=sent_at,
        )
        receipt = await self._ports.notifier.post(letter)
        outcome = Outcome(
            answer=str(receipt.answer),
            status=receipt.status,
            note=receipt.note,
            sent_at=sent_at,
            ended_at=self._ports.clock.now() + self._ahead,
            took_ms=receipt.took_ms,
            probe=self._probing,
        )
        self._sent.append(Sent(delivery, outcome))
        self._urgent = self._urgent or not outcome.good
        if not outcome.good or self._expected.failures:
            self._expected = after_letter(self._expected, delivery.id, outcome)
        # The run is woken only for what it would do.
        if self._has_enough() or (not self._complete and len(self._queue) < _LOW):
            self.stir()

    async def _enter(self, *, leave: bool) -> bool:
        sent, self._sent = self._sent, []
        too_old, self._too_old = self._too_old, []
        self._urgent = False
        job = self._job if leave else None
        entered = await enter(self._ports, self._lane, self._breaker, sent, too_old, leave=job)
        self._known.difference_update(each.delivery.id for each in sent)
        self._known.difference_update(each.id for each in too_old)
        self._breaker = entered.breaker
        self._expected = entered.breaker or self._expected
        for each in self._sent:
            self._expected = after_letter(self._expected, each.delivery.id, each.outcome)
        if job is not None and not entered.left:
            self._complete = False
        return entered.left

    async def _leave(self) -> bool:
        """Let the job go. False when more was asked for meanwhile."""
        if self._fault is not None:
            raise self._fault
        if self._lost:
            return True
        if self._dispatcher.stopping:
            return await self._hand_over()
        if await leave(self._ports, self._lane, self._breaker, self._job, unsure=self._empty):
            return True
        async with self._ports.storage.unit() as unit:
            return not self._still_ours(await unit[Job].get(self._job.id))

    async def _hand_over(self) -> bool:
        """Leave the job to the next worker, at once."""
        await self._save_job(msgspec.structs.replace(self._job, leased_until=None))
        return True

    async def _keep_up(self) -> None:
        """While it lasts: keep the lease, and hear of another address or secret."""
        now = self._ports.clock.monotonic()
        if now - self._read_at > _ACCOUNT_SECONDS:
            self._read_at = now
            async with self._ports.storage.unit() as unit:
                self._account = await unit[Account].get(self._lane.account_id)
        if self._lease and now - self._leased_at > self._lease.total_seconds() / 3:
            self._leased_at = now
            until = await self._ports.storage.now() + self._lease
            await self._save_job(msgspec.structs.replace(self._job, leased_until=until))

    async def _save_job(self, job: Job) -> None:
        async with self._ports.storage.unit() as unit:
            saved = unit[Job].save(job)
            try:
                await unit.commit()
            except Stale:
                self._lost = True
            else:
                self._job = saved
