"""Events of which an account's people may be notified, each written in the unit that makes it true.

The event is a job: people/notifying.py runs it, and finds the members who want a notification. So a unit of payments or
refunds reads no members, and an event without readers costs one job.
"""

from datetime import datetime, timedelta

from ...ports.bundle import Ports
from ...ports.jobs import Job
from ...ports.storage import Unit
from ..domain.people.notifications import NotificationKind
from .common.schedule import FollowUp

SPREAD = FollowUp("person.event")

ENDPOINT_DEAD_AFTER = timedelta(minutes=15)
"""How long an endpoint must fail before people are notified, so that a short outage notifies nobody."""

DELAYS = {NotificationKind.ENDPOINT_DEAD: ENDPOINT_DEAD_AFTER}


def is_notifying(ports: Ports) -> bool:
    """Return whether the installation can reach people at all."""
    return ports.mailer is not None or ports.messenger is not None


def note_for_people(ports: Ports, unit: Unit, kind: NotificationKind, object_id: str) -> None:
    """Notify people of an event of this object, after the unit commits. It writes one job, and needs no reading. People
    live in real time, so the job does as well, even if the object follows a test clock."""
    if not is_notifying(ports):
        return
    with ports.clock.entered(None):
        now = ports.clock.now()
        unit[Job].accrue(spread_job(kind, object_id, now + DELAYS.get(kind, timedelta(0)), now))


def spread_job(kind: NotificationKind, object_id: str, due: datetime, now: datetime) -> Job:
    """Return the job of an event."""
    argument = f"{kind}/{object_id}"
    return Job(id=SPREAD.id_of(argument), kind=SPREAD.kind, argument=argument, due=due, created_at=now, asked=1)
