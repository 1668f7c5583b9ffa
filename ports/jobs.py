"""The record of a durable job. It is stored in the unit of work that causes the job."""

from datetime import datetime

import msgspec


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job to be run at `due`, at least once: when a worker dies, its lease expires and another worker claims the job.

    The writer chooses the id, which begins with the kind and a colon (`payment.watch:pay_…`). So the same work is never
    queued twice, and a use case that makes the work obsolete can find it. The unit that stores the effect of the work
    also removes the job.
    """

    id: str
    kind: str
    argument: str
    due: datetime
    created_at: datetime
    leased_until: datetime | None = None
    attempts: int = 0
    """Number of times that workers have claimed it."""
    asked: int = 0
    """Number of further requests for this job while it existed. A sum (`Repository.accrue`): a unit that needs the work
    writes the job or increments this count, and never fails; the unit that removes the job goes stale when the count
    changed meanwhile."""
    world: str | None = None
    """Account whose test clock the job follows (ports/clock.py: TestClock). Only the storage's layer for test time sets
    and reads it."""
    moment: datetime | None = None
    """Due time by that test clock; `due` is the same moment by the storage's clock. In test time `due` itself is the
    test clock's moment, and nothing reads this field."""
    version: int = 0
