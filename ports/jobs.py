"""Durable work: the record of a job. Lives in the storage, written in the unit that causes the work."""

from datetime import datetime

import msgspec


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Work to be done at `due`. At least once: a worker that dies lets the lease end, and another takes the job.

    The id is chosen by whoever writes the job, and begins with the kind and a colon (`payment.watch:pay_…`), so that
    the same work is never queued twice and the use case that makes it needless can find it. Done work is removed in
    the unit that holds its effect.
    """

    id: str
    kind: str
    argument: str
    due: datetime
    created_at: datetime
    leased_until: datetime | None = None
    attempts: int = 0
    """How many times a worker has claimed it."""
    asked: int = 0
    """How often it was asked for again while it stood. A sum (`Shelf.accrue`): asking for work that many units ask for
    writes the job or counts here, and never fails; whoever removes the job goes stale when one asked meanwhile."""
    world: str | None = None
    """The account in whose time it is due (ports/clock.py: TestClock). Set and read by the storage, in test time
    itself."""
    moment: datetime | None = None
    """When it is due in that time; `due` is what that is by the storage's clock. In test time `due` is the moment,
    and nobody looks here."""
    version: int = 0
