"""Serve one endpoint: read, send and commit as its planner decides (domain/webhooks/endpoint_state.py).

One coroutine reads and commits. Webhooks run in their own tasks, a few at a time. One read serves many webhooks, and
one unit commits several, because a commit costs more than a webhook.
"""

import asyncio
from datetime import datetime, timedelta

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import AtLeast, AtMost, OneOf
from ...domain.accounts.accounts import Account
from ...domain.webhooks.breaker import Breaker
from ...domain.webhooks.delivery import AT_ONCE, Outcome, next_number
from ...domain.webhooks.endpoint_state import EndpointState
from ...domain.webhooks.endpoints import EndpointKey, own_receiver
from ...domain.webhooks.events import Event
from ...domain.webhooks.limiter import SendLimiter
from ...domain.webhooks.steps import Commit, Leave, ReadDue, ReadEndpoint, ReadJob, Send, Step, Wait, Webhook
from ..common.account_time import test_clock_of
from ..common.schedule import is_ours, reschedule_at
from .receivers import receiver_of
from .results import commit, set_aside
from .signing import Signers, opened, receipt_statuses, signed_webhook


class EndpointWorker:
    """Serves one endpoint under the lease of its job."""

    def __init__(self, ports: Ports, signers: Signers, limiter: SendLimiter, job: Job) -> None:
        self._ports = ports
        self._signers = signers
        self._endpoint = EndpointKey.of(job.argument)
        self._job = job
        """The job as last read, so that later requests are noticed."""
        self._as_claimed = True
        """The job is unchanged since it was claimed, and no due deliveries have been read since."""
        self._ahead = timedelta(0)
        """Difference between the storage's clock, which decides about leases and due times, and ours."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._stirred = asyncio.Event()
        self.state = EndpointState(self._endpoint, limiter, self)

    def stir(self) -> None:
        """Wake the worker: the planner has a new step."""
        self._stirred.set()

    async def run(self) -> None:
        """Serve until the worker releases its job or loses it.

        Raises: an exception of a webhook (VaultError), after the others are committed; exceptions of the storage.
        """
        try:
            while not await self._perform(self.state.next(self._ports.clock.monotonic())):
                pass
        finally:
            for task in self._tasks:
                task.cancel()
            ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        for fault in ended:
            if isinstance(fault, Exception):
                raise fault

    async def _perform(self, step: Step) -> bool:
        """Carry out one step. Return True after the last one."""
        match step:
            case Send():
                task = asyncio.create_task(self._serve())
                self._tasks.add(task)
                task.add_done_callback(self._forget)
            case Wait():
                await self._stirred.wait()
                self._stirred.clear()
            case Commit():
                return await self._commit(step)
            case ReadDue():
                await self._read_due(step)
            case ReadJob():
                self._hear(await self._ports.storage.get(Job, self._job.id))
            case ReadEndpoint():
                await self._read_endpoint(step)
            case Leave():
                await self._leave(step)
                return True
        return False

    async def _storage_now(self) -> datetime:
        now = await self._ports.storage.now()
        self._ahead = now - self._ports.clock.now()
        return now

    def _hear(self, present: Job | None) -> bool:
        """Store the job as just read. Return False if another worker has it, or it was removed."""
        if present is None or not is_ours(present, self._job):
            self.state.lose()
            return False
        self.state.job_read(asked=present.asked != self._job.asked)
        self._job = present
        return True

    async def _read_endpoint(self, step: ReadEndpoint) -> None:
        clock, key = self._ports.clock, self._endpoint
        async with self._ports.storage.unit() as unit:
            account = await unit[Account].get(key.account_id)
            receiver = own_receiver(account) if key.further is None else await receiver_of(unit, key)
            breaker = await unit[Breaker].get(key.id)
            if not self._as_claimed and not self._hear(await unit[Job].get(self._job.id)):
                return
        at = await self._storage_now() if step.begins else None
        self.state.endpoint_read(receiver, breaker, clock.monotonic(), at)
        # Advancing the clock of a test account also serves its endpoints.
        test_clock = clock.test_clock
        if test_clock is not None and account is not None and test_clock_of(account, key.mode) != test_clock:
            self.state.release()

    async def _read_due(self, page: ReadDue) -> None:
        """Read the job, then the due deliveries. So every request after this job read counts as new."""
        async with self._ports.storage.unit() as unit:
            if not self._as_claimed and not self._hear(await unit[Job].get(self._job.id)):
                return
            self._as_claimed = False
            now = await self._storage_now()
            due = {"due": AtMost(now)} if page.after is None else {"due": AT_ONCE, "id": AtLeast(f"{page.after}!")}
            found = await unit[self._endpoint.deliveries].find(
                order="due", limit=page.limit, quick=True, readable=True, **self._endpoint.pending(**due)
            )
            ids = tuple(delivery.event_id for delivery in self.state.due.fresh(found))
            events = await unit[Event].find(id=OneOf(ids), limit=len(ids), quick=True, readable=True)
            receipts = await receipt_statuses(unit, events)
        readable = {event.id: event for event in opened(self._ports.vault, events, receipts)}
        self.state.due_read(page, found, readable, now)

    async def _commit(self, step: Commit) -> bool:
        """Commit a step. Return whether the job was removed."""
        if step.aside is not None:
            await set_aside(self._ports, self._endpoint, step.aside)
        breaker, left = await commit(self._ports, self._endpoint, self.state.stored, step, self._job)
        asked = step.leaves and not left
        # Read again what the new request is about before the job is released. Behind an open breaker no due deliveries
        # are read.
        self._as_claimed = self._as_claimed and not asked
        self.state.committed(step, breaker, asked=asked)
        return left

    async def _leave(self, step: Leave) -> None:
        if step.release:
            after = timedelta(seconds=step.pause)
            due = await self._ports.storage.now() + after if after else self._job.due
            # Nothing failed, so the backoff schedule starts over.
            await reschedule_at(self._ports, self._job, due, anew=True)

    async def _serve(self) -> None:
        """Send webhooks in sequence while the planner has more for this permit."""
        permit, webhook = self.state.begun()
        try:
            while webhook is not None:
                webhook = self.state.answered(permit, webhook, await self._send(webhook))
        finally:
            self.state.ended(permit, broke=webhook is not None)

    def _forget(self, task: asyncio.Task[None]) -> None:
        """Forget a finished task. A task that raised is kept until the end of the run."""
        if not task.cancelled() and task.exception() is None:
            self._tasks.discard(task)

    async def _send(self, webhook: Webhook) -> Outcome:
        clock, ahead, delivery, event = self._ports.clock, self._ahead, webhook.delivery, webhook.event
        sent_at = clock.now() + ahead
        request = signed_webhook(
            self._signers,
            webhook.receiver,
            delivery.mode,
            event_id=event.id,
            event=event.type,
            sequence=event.sequence,
            attempt=next_number(delivery),
            body=event.body,
            retry_of=event.retry_of,
            now=clock.real() + ahead,
            receipt_status=event.receipt_status,
        )
        result = await self._ports.notifier.send(request)
        return Outcome(
            answer=str(result.answer),
            status=result.status,
            note=result.note,
            retry_after=result.retry_after,
            sent_at=sent_at,
            ended_at=clock.now() + ahead,
            took_ms=result.took_ms,
            probe=webhook.probe,
        )
