"""Intake of providers' notifications. A notification is stored before it is answered, and a job polls the state of its
operation. notifications.py finds the operation's handler (docs/adapters.md "Notifications")."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ...ports.bank import Notification
from ...ports.bundle import Ports
from ...ports.clock import TestClock
from ...ports.faults import NO_ANSWER, NotSupported
from ...ports.jobs import Job
from ...ports.notifications import InboundNotification, Notifications, Received
from ...ports.storage import Unit
from ..domain.notifications import NotificationAddress, believed
from .common.account_time import find_test_clock
from .common.schedule import FollowUp, pause_after, reschedule_at
from .common.units import retrying
from .notification_addresses import RECENT
from .notifications import on_notification, owner_of

HEAR = FollowUp("notification.heard")
"""Job that polls an operation after a notification. There is one per operation, however many notifications arrive."""

TRIED_FOR = timedelta(hours=24)
"""Maximum time for polling a provider that does not answer after a notification. Its regular polls continue."""

_ADVANCING = timedelta(seconds=5)
"""Pause while the test clock of the job's object is being advanced."""

_RACES = ("jobs_id",)

log = logging.getLogger("cambist.notifications")


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A stored notification."""

    answer: Received
    named: int
    """Number of operations to poll."""
    ignored: int
    """Number of operations that cannot be ours, or exceed the limit."""


async def take_notification(ports: Ports, adapter: str, notification: InboundNotification) -> Taken:
    """Parse a notification with its adapter and store its operations in one unit. After the answer, the provider need
    not repeat it. No state is polled here.

    Raises: exceptions of `Notifications.receive`; NotSupported for an unknown adapter; Unavailable when it cannot be
    stored.
    """
    answer = await _handler(ports, adapter).receive(notification)
    operations, ignored = believed(each.operation for each in answer.notifications)
    await _keep(ports, adapter, operations)
    return Taken(answer=answer, named=len(operations), ignored=ignored)


def _handler(ports: Ports, adapter: str) -> Notifications:
    for each in (ports.banks.banks.get(adapter), ports.kyc, ports.former_kyc.get(adapter), ports.register):
        if isinstance(each, Notifications) and each.name == adapter:
            return each
    raise NotSupported(f"no adapter {adapter} receives notifications")


async def _keep(ports: Ports, adapter: str, operations: Sequence[str]) -> None:
    now = ports.clock.now()
    address = await ports.storage.recent(NotificationAddress, adapter, within=RECENT)
    is_to_be_noted = address is not None and address.is_to_be_noted(now)
    if not operations and not is_to_be_noted:
        return

    async def work(unit: Unit) -> None:
        for operation in operations:
            await HEAR.plan(unit, operation, now, now, anew=True)
        present = await unit[NotificationAddress].get(adapter) if is_to_be_noted else None
        if present is not None and present.is_to_be_noted(now):
            unit[NotificationAddress].change(present, received_at=now)

    await retrying(ports.storage, work, again_on=_RACES)


async def follow_notification(ports: Ports, job: Job) -> None:
    """Run the job: poll the operation of a notification, and retry while its provider does not answer. It runs in the
    time of the operation's object."""
    test_clock = await _test_clock_of(ports, job.argument)
    if test_clock is not None and test_clock.is_advancing:
        await reschedule_at(ports, job, ports.clock.now() + _ADVANCING)
        return
    due: datetime | None = None
    try:
        with ports.clock.entered(test_clock):
            await on_notification(ports, Notification(operation=job.argument))
    except NO_ANSWER as fault:
        now = ports.clock.now()
        due = now + pause_after(job.attempts) if now < job.created_at + TRIED_FOR else None
        log.info("%s: a notification came, and the provider does not say how it stands: %s", job.argument, fault)
    await reschedule_at(ports, job, due)


async def hear_now(ports: Ports, operation: str) -> None:
    """Poll an operation at once after a notification, in the time of its object. Raises: exceptions of the provider's
    port."""
    with ports.clock.entered(await _test_clock_of(ports, operation)):
        await on_notification(ports, Notification(operation=operation))


async def _test_clock_of(ports: Ports, operation: str) -> TestClock | None:
    async with ports.storage.unit() as unit:
        found = await owner_of(unit, operation)
        return None if found is None else await find_test_clock(unit, found.account_id, found.mode)
