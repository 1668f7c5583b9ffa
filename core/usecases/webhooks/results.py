"""Record the results of webhook attempts. One unit saves the deliveries, one row per attempt, the breaker, and the next
wake-up (docs/webhooks.md "When you do not answer").

A receiver's job (outbox.py: `ask_to_deliver`) exists while something is due. The receiver's timer remembers what is due
later: one job, due no later than the first of them, which asks for the receiver's job when its time comes.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import AtLeast, Between, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.webhooks.breaker import Breaker, after_delivery, closed, endpoint_id, endpoint_of, new_breaker
from ...domain.webhooks.delivery import AT_ONCE, Outcome, attempt_of, given_up, held
from ...domain.webhooks.events import Attempt, Delivery, DeliveryStatus
from ..schedule import is_ours
from ..test_clock import test_clock_of
from ..units import retrying
from .lease import is_unchanged
from .outbox import ask_to_deliver, deliver_id

TIMER = "webhook.timer"

_BATCH = 200
_PUT_OFF = timedelta(hours=1)
_JUST_AFTER = timedelta(microseconds=1)
_NEW = ("attempts_id", "breakers_id", "jobs_id")


class Sent(msgspec.Struct, frozen=True, gc=False):
    """The result of one webhook, answered or not: the delivery as it was before, and the outcome."""

    delivery: Delivery
    outcome: Outcome


class Entered(msgspec.Struct, frozen=True):
    """What the storage has now. `left` says that the receiver's job is gone, because nothing more is due."""

    breaker: Breaker | None
    left: bool


class EndpointKey(msgspec.Struct, frozen=True):
    """One receiver: an account's, in one mode."""

    account_id: str
    mode: Mode

    @property
    def id(self) -> str:
        return endpoint_id(self.account_id, self.mode)

    def pending(self, **due: Any) -> dict[str, Any]:
        """Criteria for its pending deliveries."""
        return {"account_id": self.account_id, "mode": self.mode, "status": DeliveryStatus.PENDING, **due}


async def enter(
    ports: Ports,
    endpoint: EndpointKey,
    breaker: Breaker | None,
    sent: Sequence[Sent],
    too_old: Sequence[Delivery],
    *,
    leave: Job | None,
) -> Entered:
    """Commit results in the order in which they came. `breaker` is the stored one. `leave` is the receiver's job as it
    was before the last look: the last results remove it, unless somebody asked for more meanwhile."""
    again = False

    async def work(unit: Unit) -> Entered:
        nonlocal again
        # What was read is nearly always still so; only a unit that lost reads it anew.
        first, again = not again, True
        known = breaker if first else await unit[Breaker].get(endpoint.id)
        moved = known or new_breaker(endpoint.account_id, endpoint.mode)
        later: list[datetime] = []
        deliveries = unit[Delivery]
        rows: list[Attempt] = []
        for each in sent:
            delivery = each.delivery if first else await deliveries.get(each.delivery.id)
            if delivery is None:
                continue
            rows.append(attempt_of(delivery, each.outcome))
            moved, after = after_delivery(moved, delivery, each.outcome)
            deliveries.save(after)
            if after.due is not None and after.due > each.outcome.ended_at:
                later.append(after.due)
        # One after the other, a storage writes rows of one table together.
        attempts = unit[Attempt]
        for row in rows:
            attempts.add(row)
        await _give_up(unit, too_old)
        if moved.next_probe_at is not None:
            later.append(moved.next_probe_at)
        if later:
            await set_timer(ports, unit, endpoint, min(later))
        if sent:
            known = unit[Breaker].add(moved) if known is None else unit[Breaker].save(moved)
        left = leave is not None and (first or is_unchanged(await unit[Job].get(leave.id), leave))
        if leave is not None and left:
            unit[Job].remove(leave)
        return Entered(known, left)

    return await retrying(ports.storage, work, again_on=_NEW)


async def _give_up(unit: Unit, too_old: Sequence[Delivery]) -> None:
    for each in too_old:
        delivery = await unit[Delivery].get(each.id)
        # One that was sent anew meanwhile has another end.
        if delivery is not None and delivery.due is not None and delivery.give_up_at == each.give_up_at:
            unit[Delivery].save(given_up(delivery))


async def leave(ports: Ports, endpoint: EndpointKey, breaker: Breaker | None, job: Job, *, unsure: bool) -> bool:
    """Remove the receiver's job, and set a timer for what is due later. Returns False when somebody asked for more
    since `job` was read. With `unsure` the storage is asked what is due when, because nothing was found due."""
    probe_at = None if breaker is None else breaker.next_probe_at

    async def work(unit: Unit) -> bool:
        if not is_unchanged(await unit[Job].get(job.id), job):
            return False
        if probe_at is not None and probe_at > await ports.storage.now():
            await set_timer(ports, unit, endpoint, probe_at)
        elif unsure or probe_at is not None:  # with nothing there that could be sent as a probe
            for first in await unit[Delivery].find(
                **endpoint.pending(due=AtLeast(AT_ONCE)), order="due", limit=1, readable=True
            ):
                await set_timer(ports, unit, endpoint, first.due or AT_ONCE)
        unit[Job].remove(job)
        return True

    return await retrying(ports.storage, work, again_on=_NEW)


async def put_off(ports: Ports, unreadable: Sequence[Delivery]) -> None:
    """Postpone deliveries whose events cannot be read. A later version of the program may read them; until then they
    hold up no others."""

    async def work(unit: Unit) -> None:
        due = ports.clock.now() + _PUT_OFF
        for each in unreadable:
            delivery = await unit[Delivery].get(each.id)
            if delivery is not None and delivery.due is not None and delivery.due < due:
                unit[Delivery].save(msgspec.structs.replace(delivery, due=due))
        for each in unreadable[:1]:
            await set_timer(ports, unit, EndpointKey(each.account_id, each.mode), due)

    await retrying(ports.storage, work, again_on=_NEW)


async def rest(ports: Ports, job: Job, due: datetime) -> None:
    """Replace the job of a receiver that failed again and again by its timer, due at `due`. Whoever asks for the
    receiver meanwhile has it tried at once. Raises: Stale when the job moved since."""

    async def work(unit: Unit) -> None:
        present = await unit[Job].get(job.id)
        if present is not None and is_ours(present, job):
            await set_timer(ports, unit, EndpointKey(*endpoint_of(job.argument)), due)
            unit[Job].remove(present)

    await retrying(ports.storage, work, again_on=_NEW)


async def set_timer(ports: Ports, unit: Unit, endpoint: EndpointKey, due: datetime) -> None:
    """Set the receiver's timer to `due`, never later than it is set already.

    The timer is written even where its time is right: a timer job that runs now goes stale and reads anew what is due.
    """
    timer_id = f"{TIMER}:{endpoint.id}"
    timer = await unit[Job].get(timer_id)
    if timer is None:
        now = ports.clock.now()
        unit[Job].add(Job(id=timer_id, kind=TIMER, argument=endpoint.id, due=due, created_at=now))
    else:
        unit[Job].save(msgspec.structs.replace(timer, due=min(timer.due, due), leased_until=None, attempts=0))


async def ring(ports: Ports, job: Job) -> None:
    """The timer's job: it has what is due sent, and sets the timer to what is due next."""
    endpoint = EndpointKey(*endpoint_of(job.argument))

    async def work(unit: Unit) -> None:
        timer = await unit[Job].get(job.id)
        if timer is None:
            return
        after = AtLeast(await ports.storage.now() + _JUST_AFTER)
        ask_to_deliver(ports, unit, endpoint.account_id, endpoint.mode)
        next_due = await unit[Delivery].find(**endpoint.pending(due=after), order="due", limit=1, readable=True)
        if next_due:
            due = next_due[0].due or timer.due
            unit[Job].save(msgspec.structs.replace(timer, due=due, leased_until=None, attempts=0))
        else:
            unit[Job].remove(timer)

    await retrying(ports.storage, work)


async def park(ports: Ports, endpoint: EndpointKey) -> None:
    """Make deliveries due at once that come due behind an open breaker. They wait for the breaker alone, and then leave
    in the order of their age."""

    async def one_batch(unit: Unit) -> int:
        came_due = Between(AT_ONCE + _JUST_AFTER, await ports.storage.now() + _JUST_AFTER)
        found = await unit[Delivery].find(**endpoint.pending(due=came_due), order="due", limit=_BATCH, readable=True)
        for delivery in found:
            unit[Delivery].save(msgspec.structs.replace(delivery, due=AT_ONCE))
        return len(found)

    while await retrying(ports.storage, one_batch) == _BATCH:
        pass


async def hold(ports: Ports, endpoint: EndpointKey) -> None:
    """Hold pending deliveries when address or secret were removed, until both are set again."""

    async def one_batch(unit: Unit) -> int:
        account = await unit[Account].get(endpoint.account_id)
        if account is None or account.receives:
            return 0
        found = await unit[Delivery].find(
            **endpoint.pending(due=AtLeast(AT_ONCE)), order="due", limit=_BATCH, readable=True
        )
        for delivery in found:
            unit[Delivery].save(held(delivery))
        return len(found)

    while await retrying(ports.storage, one_batch) == _BATCH:
        pass


async def close_breakers(ports: Ports, unit: Unit, account_id: str) -> None:
    """Close the breakers of the account's receiver, because its address or secret changed. Call it in the unit that
    saves the change."""
    account = await unit[Account].get(account_id)
    for mode in Mode:
        with ports.clock.entered(None if account is None else test_clock_of(account, mode)):
            await _close_breaker(ports, unit, account_id, mode)


async def _close_breaker(ports: Ports, unit: Unit, account_id: str, mode: Mode) -> None:
    now = ports.clock.now()
    breaker = await unit[Breaker].get(endpoint_id(account_id, mode))
    if breaker is not None:
        unit[Breaker].save(closed(breaker, by_hand_at=now))
    if breaker is not None and breaker.is_open:
        ask_to_deliver(ports, unit, account_id, mode)
    # One that failed for want of a secret that opens would wait for its turn.
    job = await unit[Job].get(deliver_id(endpoint_id(account_id, mode)))
    if job is not None and job.leased_until is None and job.due > now:
        unit[Job].save(msgspec.structs.replace(job, due=now))
