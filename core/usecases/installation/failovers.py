"""Failovers of the database server: whether a promoted server has everything that was confirmed (ports/witnesses.py).

Each process looks once a second. Until one of them knows that nothing is missing, the installation counts as
quarantined. If something is missing, or nobody can know, it is quarantined as a restored copy is.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum

import msgspec

from ....ports.bundle import Ports
from ....ports.fingerprints import Beside
from ....ports.storage import Unit
from ....ports.witnesses import Witness, Witnessed
from ...domain.installation import INSTALLATION, Because, Installation
from ...domain.operators.audit import OperatorAction, checked
from ..actions.audit import add_row
from ..common.quarantine import RACES, read_installation
from ..common.units import unit_of_work
from .marking import quarantine_copy
from .resume import bring_forward

LOOKS_EVERY = 1.0
"""Seconds between two marks of a process."""
GONE_AFTER = timedelta(seconds=15)
"""A process that did not mark itself for so long before the failover had died."""
OVERDUE_AFTER = 30.0
"""Seconds for which a promoted server waits for the marks of the other processes."""

log = logging.getLogger("cambist.hold")


class Proof(StrEnum):
    """Result of the comparison."""

    COMPLETE = "complete"
    """The server has every commit that was confirmed to anybody."""
    OPEN = "open"
    """A process that may have lived through the failover has not marked itself yet."""
    NONE = "none"
    """A confirmed commit is missing, or nobody can know."""


def proof(
    process: str, present: str, found: Iterable[Witness], known: Mapping[str, Witness], *, is_overdue: bool
) -> Proof:
    """Return whether the server that was promoted to the location `present` lacks nothing. `process` asks. `found` are
    the marks on that server, `known` the newest mark of each process that we saw before. `is_overdue`: everybody had
    time to mark itself there."""
    found = tuple(found)
    marks = {mark.process: mark for mark in found if not mark.is_accepted}
    # Step 1: a mark that was seen before is missing or older now, so a confirmed commit is missing.
    accepted = {mark.process for mark in found if mark.is_accepted}
    for name, seen in known.items():
        if name not in accepted and (name not in marks or marks[name].number < seen.number):
            return Proof.NONE
    # Step 2: a process found a gap among its own commits.
    if not all(mark.is_whole for mark in marks.values()):
        return Proof.NONE
    # Step 3: only a process that lived through the failover knows what was confirmed before it.
    own = marks.get(process)
    if own is None or own.since == present or own.place != present or process not in known:
        return Proof.NONE if is_overdue else Proof.OPEN
    # Step 4: our last mark before the failover covers what anybody confirmed before that mark. Each process that
    # may have confirmed something since then must have found all of its own commits, too.
    newest = max(mark.marked_at for mark in known.values())
    missing = [
        mark
        for mark in marks.values()
        if not mark.has_left and present not in (mark.since, mark.place) and mark.marked_at > newest - GONE_AFTER
    ]
    if not missing:
        return Proof.COMPLETE
    if not is_overdue:
        return Proof.OPEN
    # Step 5: the others died with the server. The synchronous standby has what they confirmed, if there was one.
    return Proof.COMPLETE if all(mark.is_synchronous for mark in (known[process], *missing)) else Proof.NONE


class FailoverWatch:
    """The part of one process in finding out whether a promoted server is complete."""

    def __init__(self, ports: Ports, witnessed: Witnessed, beside: Beside) -> None:
        self._ports = ports
        self._witnessed = witnessed
        self._beside = beside
        self._known: Mapping[str, Witness] = {}
        self._began: float | None = None
        """When this process first saw the promoted server, by the monotonic clock."""

    async def look(self) -> None:
        """Mark this process, and decide about a promoted server as far as that is possible now. Raises: Unavailable."""
        if self._witnessed.location() is None:
            # The server hides its location, or is a replica.
            return
        marks = await self._witnessed.mark()
        own = next((mark for mark in marks if mark.process == self._witnessed.process), None)
        installation = await read_installation(self._ports.storage, self._ports.vault)
        if own is None or installation is None or None in (own.place, installation.place):
            return
        is_gap = not all(mark.is_whole or mark.is_accepted for mark in marks)
        if is_gap:
            await self._hold(installation)
        if not own.is_whole or own.is_accepted:
            # Our commits are lost, so we continue as a process that confirmed nothing.
            self._witnessed.begin_anew()
            self._known = {}
        elif not is_gap:
            await self._compare(installation, own.place or "", marks)

    async def _compare(self, installation: Installation, place: str, marks: Sequence[Witness]) -> None:
        if installation.is_held:
            return
        if installation.place == place:
            self._known, self._began = {mark.process: mark for mark in marks}, None
        elif self._witnessed.follows(installation.place or "", place):
            await self._decide(installation, place, marks)

    async def _decide(self, installation: Installation, place: str, marks: Iterable[Witness]) -> None:
        now = self._ports.clock.monotonic()
        self._began = now if self._began is None else self._began
        # A process that started later leaves the decision to those that lived through the failover, if any did.
        patience = OVERDUE_AFTER if self._witnessed.process in self._known else 2 * OVERDUE_AFTER
        is_overdue = now - self._began > patience
        result = proof(self._witnessed.process, place, marks, self._known, is_overdue=is_overdue)
        if result is Proof.NONE:
            await self._hold(installation)
        elif result is Proof.COMPLETE and await _accept(self._ports, installation.place, place):
            log.warning("the database was promoted to %s: no confirmed commit is missing, so work continues", place)
            await bring_forward(self._ports)

    async def _hold(self, installation: Installation) -> None:
        if not installation.is_held:
            log.error("a promoted database lacks confirmed commits, or nothing proves that it has all of them")
            ports = self._ports
            await quarantine_copy(ports.storage, ports.vault, self._beside, Because.INCOMPLETE, ports.clock, ports.ids)


@unit_of_work(again_on=RACES)
async def _accept(ports: Ports, unit: Unit, former: str | None, place: str) -> bool:
    """Record the promoted server as the one in use. Return False if another process decided first."""
    present = await unit[Installation].get(INSTALLATION)
    if present is None or present.is_held or present.place != former:
        return False
    unit[Installation].save(msgspec.structs.replace(present, place=place))
    reason = "Every process that lived through the failover found all of its confirmed commits"
    action = OperatorAction(operator="cambist", name="failover.accept", object_id=INSTALLATION, reason=reason)
    add_row(ports, unit, checked(action), account_id=None, after=f"place={place}")
    return True
