"""Record the results of webhook attempts. One unit saves the deliveries, one row for each attempt but a good first one,
the breaker, and the next wake-up (docs/webhooks.md "When you do not answer").

A receiver's job (outbox.py: `ask_to_deliver`) exists while something is due. The receiver's timer covers later
deliveries: one job, due no later than the first of them, which then requests the receiver's job.
"""

from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import AtLeast, Between, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.errors import Refusal
from ...domain.people.notifications import NotificationKind
from ...domain.webhooks.breaker import Breaker, after_delivery, asked_at, closed, new_breaker, outage_id
from ...domain.webhooks.delivery import AT_ONCE, attempt_of, held, is_first_success
from ...domain.webhooks.endpoints import EndpointKey, WebhookEndpoint
from ...domain.webhooks.events import Attempt, Delivery, DeliveryStatus
from ...domain.webhooks.steps import Aside, Commit
from ..common.account_time import find_test_clock, living_with, test_clock_of
from ..common.schedule import is_ours
from ..common.units import retrying, unit_of_work
from ..person_events import note_for_people
from .outbox import ask_to_deliver, deliver_id, release, release_to
from .receivers import receiver_of, remove_rest

TIMER = "webhook.timer"

_BATCH = 200
_JUST_AFTER = timedelta(microseconds=1)
_NEW = ("attempts_id", "breakers_id", "jobs_id")


async def commit(
    ports: Ports, endpoint: EndpointKey, breaker: Breaker | None, planned: Commit, job: Job
) -> tuple[Breaker | None, bool]:
    """Save the planner's results. `breaker` is the stored one. `job` is the endpoint's job as last read. Return the
    breaker as it is now stored, and whether the job was removed. It is not removed after a newer request for it."""
    again = False

    async def work(unit: Unit) -> tuple[Breaker | None, bool]:
        nonlocal again
        # The data that was read is nearly always current. Read it again only after a failed commit.
        first, again = not again, True
        known = breaker if first else await unit[Breaker].get(endpoint.id)
        moved = known or new_breaker(endpoint.account_id, endpoint.mode, endpoint.further)
        later: list[datetime] = []
        deliveries = unit[endpoint.deliveries]
        rows: list[Attempt] = []
        for each in planned.sent:
            delivery = each.delivery if first else await deliveries.get(each.delivery.id)
            if delivery is None:
                continue
            if not is_first_success(delivery, each.outcome):
                rows.append(attempt_of(delivery, each.outcome))
            moved, after = after_delivery(moved, delivery, each.outcome)
            deliveries.save(after)
            if after.due is not None and after.due > each.outcome.ended_at:
                later.append(after.due)
        # Add the rows in sequence, so that a storage writes rows of one table together.
        attempts = unit[Attempt]
        for row in rows:
            attempts.add(row)
        for unsent in planned.unsent:
            delivery = await deliveries.get(unsent.id)
            # If the delivery changed meanwhile, the other change wins.
            if delivery is not None and delivery.version == unsent.version:
                delivery = deliveries.save(unsent)
            if delivery is not None and delivery.due is not None:
                later.append(delivery.due)
        fresh = first and bool(planned.sent)
        left = planned.leaves and (fresh or is_unchanged(await unit[Job].get(job.id), job))
        if planned.unsure and left:
            pending = endpoint.pending(due=AtLeast(AT_ONCE))
            found = await deliveries.find(**pending, order="due", limit=1, readable=True)
            later += [each.due or AT_ONCE for each in found]
        elif moved.next_probe_at is not None and not planned.unsure:
            later.append(moved.next_probe_at)
        if later:
            await set_timer(ports, unit, endpoint, min(later))
        if planned.sent:
            if moved.is_open and (known is None or not known.is_open):
                note_for_people(ports, unit, NotificationKind.ENDPOINT_DEAD, outage_id(moved))
            known = unit[Breaker].add(moved) if known is None else unit[Breaker].save(moved)
        if left:
            unit[Job].remove(job)
        return known, left

    return await retrying(ports.storage, work, again_on=_NEW)


def is_unchanged(present: Job | None, job: Job) -> bool:
    """Return whether nobody claimed or requested the job since it was read. A renewed lease is not a change."""
    return present is not None and is_ours(present, job) and present.asked == job.asked


@unit_of_work(again_on=_NEW)
async def rest(ports: Ports, unit: Unit, job: Job, due: datetime) -> None:
    """Replace the job of a receiver that keeps failing by its timer, due at `due`. A request meanwhile makes the
    receiver due at once. Raises: Stale when the job changed."""
    present = await unit[Job].get(job.id)
    if present is not None and is_ours(present, job):
        await set_timer(ports, unit, EndpointKey.of(job.argument), due)
        unit[Job].remove(present)


async def set_timer(ports: Ports, unit: Unit, endpoint: EndpointKey, due: datetime) -> None:
    """Set the receiver's timer to `due`, unless it is set to an earlier time.

    The timer is written even if its time is right: this makes a running timer job stale, so it reads the due deliveries
    again.
    """
    timer_id = f"{TIMER}:{endpoint.id}"
    timer = await unit[Job].get(timer_id)
    if timer is None:
        now = ports.clock.now()
        unit[Job].add(Job(id=timer_id, kind=TIMER, argument=endpoint.id, due=due, created_at=now))
    else:
        unit[Job].save(msgspec.structs.replace(timer, due=min(timer.due, due), leased_until=None, attempts=0))


async def resume_delivery(ports: Ports, unit: Unit, delivery: Delivery) -> None:
    """Resume a delivery that was skipped because its row was unreadable. The receiver's job, its timer and the release
    of held events ended without it. Call it in the unit that restores the row. Raises: Conflict, Stale when another
    unit writes the same job."""
    endpoint = EndpointKey.to(delivery)
    with ports.clock.entered(await find_test_clock(unit, endpoint.account_id, endpoint.mode)):
        if delivery.due is not None:
            await set_timer(ports, unit, endpoint, delivery.due)
        elif delivery.status is DeliveryStatus.HELD and endpoint.further is None:
            await release(ports, unit, endpoint.account_id)
        elif delivery.status is DeliveryStatus.HELD:
            await release_to(ports, unit, endpoint)


async def ring(ports: Ports, job: Job) -> None:
    """Run the timer's job: request delivery of everything due, and set the timer to the next due time."""
    endpoint = EndpointKey.of(job.argument)

    async def work(unit: Unit) -> None:
        timer = await unit[Job].get(job.id)
        if timer is None:
            return
        after = AtLeast(await ports.storage.now() + _JUST_AFTER)
        ask_to_deliver(ports, unit, endpoint.account_id, endpoint.mode, endpoint.further)
        next_due = await unit[endpoint.deliveries].find(
            **endpoint.pending(due=after), order="due", limit=1, readable=True
        )
        if next_due:
            due = next_due[0].due or timer.due
            unit[Job].save(msgspec.structs.replace(timer, due=due, leased_until=None, attempts=0))
        else:
            unit[Job].remove(timer)

    await retrying(ports.storage, work)


async def set_aside(ports: Ports, endpoint: EndpointKey, aside: Aside) -> None:
    """Postpone pending deliveries that may not be sent now, in batches."""

    async def one_batch(unit: Unit) -> int:
        due: Between | AtLeast = AtLeast(AT_ONCE)
        if aside is Aside.BREAKER:
            due = Between(AT_ONCE + _JUST_AFTER, await ports.storage.now() + _JUST_AFTER)
        elif await receiver_of(unit, endpoint) is not None:
            return 0
        elif endpoint.further is not None and await unit[WebhookEndpoint].get(endpoint.further) is None:
            return await remove_rest(unit, endpoint, _BATCH)
        deliveries = unit[endpoint.deliveries]
        found = await deliveries.find(**endpoint.pending(due=due), order="due", limit=_BATCH, readable=True)
        for each in found:
            deliveries.save(held(each) if aside is Aside.RECEIVER else msgspec.structs.replace(each, due=AT_ONCE))
        return len(found)

    while await retrying(ports.storage, one_batch) == _BATCH:
        pass


async def close_breakers(ports: Ports, unit: Unit, account_id: str, *, moved: bool) -> None:
    """Close the breakers of the account's receiver after a change of its address (`moved`) or secret. Call it in the
    unit that saves the change."""
    account = await unit[Account].get(account_id)
    for mode in Mode:
        with ports.clock.entered(None if account is None else test_clock_of(account, mode)):
            await close_breaker(ports, unit, EndpointKey(account_id, mode), moved=moved)


async def close_breaker(ports: Ports, unit: Unit, endpoint: EndpointKey, *, moved: bool) -> None:
    """Close the breaker of an endpoint after a change of its address (`moved`) or secret, or a switch on or off. A
    healthy breaker is kept unless the address changed. Call it in the unit that saves the change, in the endpoint's
    test time."""
    now = ports.clock.now()
    breaker = await unit[Breaker].get(endpoint.id)
    if breaker is not None and (moved or breaker.failures):
        unit[Breaker].save(closed(breaker, by_hand_at=now))
    if breaker is not None and breaker.is_open:
        ask_to_deliver(ports, unit, endpoint.account_id, endpoint.mode, endpoint.further)
    # A job that failed because a secret did not decrypt would wait for its next attempt.
    job = await unit[Job].get(deliver_id(endpoint.id))
    if job is not None and job.leased_until is None and job.due > now:
        unit[Job].save(msgspec.structs.replace(job, due=now))


async def ask_now(ports: Ports, endpoint: EndpointKey) -> None:
    """Probe a receiver behind an open breaker now instead of after its pause, because an operator learnt that it is
    back. It is an ordinary probe with a waiting event. If it fails, the next pause is as long as usual.

    Raises: Refusal INVALID_STATE when its breaker is not open, or no event waits.
    """

    async def work(unit: Unit) -> None:
        breaker = await unit[Breaker].get(endpoint.id)
        if breaker is None or not breaker.is_open:
            raise Refusal("INVALID_STATE", "The receiver is not waiting for a probe (any more)")
        waits = endpoint.pending(due=AtLeast(AT_ONCE))
        if not await unit[endpoint.deliveries].find(**waits, order="due", limit=1, readable=True):
            raise Refusal("INVALID_STATE", "No webhook waits for the receiver, so there is none to probe it with")
        unit[Breaker].save(asked_at(breaker, await ports.storage.now()))
        ask_to_deliver(ports, unit, endpoint.account_id, endpoint.mode, endpoint.further)

    async with living_with(ports, endpoint.account_id, endpoint.mode):
        await retrying(ports.storage, work)
