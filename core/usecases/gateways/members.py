"""Banks to which a provider can send money, from its own list (ports/members.py).

A list is read about once a day, on demand, and stored. An unreadable list leads to no refusals (docs/exchanges.md
"Making one").
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from ....ports.bank import Bank
from ....ports.bundle import Ports
from ....ports.faults import Fault
from ....ports.jobs import Job
from ....ports.members import BankListing, MemberBank
from ....ports.notes import ProviderNote
from ....ports.remittances import remits
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ..common.schedule import FollowUp, pause_after, reschedule_at
from ..common.units import retrying, unit_of_work
from .watch import watched

READ_MEMBERS = FollowUp("bank.members")
"""The job that reads a bank's list; it ends once the list is stored."""

FRESH = timedelta(days=1)
"""Age from which a list is read again on the next demand."""
BELIEVED = timedelta(days=7)
"""Age from which a list leads to no refusals."""
_TRIES = 5
_MOST = 5000
"""Most banks of one list; SBP has some hundred."""
_ID = re.compile(r"bank[0-9]{1,20}\Z")


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """A list as it was read."""

    read_at: datetime
    banks: tuple[MemberBank, ...]


async def members_of(ports: Ports, bank: Bank) -> Members | None:
    """Return the banks to which this one sends money; None if it gives no list, or the list is too old. An old list is
    returned and read again afterwards.
    """
    if not isinstance(bank, BankListing):
        return None
    found, now = await kept_members(ports, bank.name), ports.clock.now()
    if found is None or now - found.read_at >= FRESH:
        await _have_read(ports, bank.name, now)
    return None if found is None or now - found.read_at >= BELIEVED else found


async def kept_members(ports: Ports, name: str) -> Members | None:
    """Return a bank's stored list, however old; None if it was never read."""
    note = await ports.storage.get(ProviderNote, _note_id(name))
    try:
        return None if note is None else msgspec.json.decode(note.body, type=Members)
    except msgspec.MsgspecError:
        # The stored list is damaged. It is read again, and leads to no refusals.
        return None


async def known_members(ports: Ports, mode: Mode) -> frozenset[str] | None:
    """Return the ids of all banks to which a mode can send money; None unless the lists of all its sending banks are
    known.
    """
    known: set[str] = set()
    for bank in ports.banks.of_mode(mode):
        if remits(bank):
            found = await members_of(ports, bank)
            if found is None:
                return None
            known.update(each.id for each in found.banks)
    return frozenset(known) or None


async def reaches(ports: Ports, bank: Bank, bank_id: str) -> bool:
    """Return whether the bank sends money there, as far as is known."""
    found = await members_of(ports, bank)
    return found is None or any(each.id == bank_id for each in found.banks)


async def read_members(ports: Ports, job: Job) -> None:
    """Read a bank's list and store it (a job). After some failures it is left to the next demand."""
    bank = ports.banks.banks.get(job.argument)
    mode = next((mode for mode in Mode if job.argument in ports.banks.order.get(mode, ())), None)
    due = None
    if isinstance(bank, BankListing) and mode is not None:
        try:
            async with watched(ports, mode, job.argument):
                banks = _usable(await bank.banks())
            await _keep(ports, job.argument, Members(read_at=ports.clock.now(), banks=banks))
        except Fault:
            due = None if job.attempts >= _TRIES else ports.clock.now() + pause_after(job.attempts)
    await reschedule_at(ports, job, due)


def _usable(banks: Iterable[MemberBank]) -> tuple[MemberBank, ...]:
    """Return the banks with a valid id, without duplicates, sorted by name."""
    named = {each.id: each for each in banks if _ID.match(each.id)}
    return tuple(sorted(named.values(), key=lambda each: (each.name, each.id))[:_MOST])


def _note_id(name: str) -> str:
    return f"{name}:members"


async def _keep(ports: Ports, name: str, members: Members) -> None:
    body = msgspec.json.encode(members)

    async def work(unit: Unit) -> None:
        note = await unit[ProviderNote].get(_note_id(name))
        if note is None:
            unit[ProviderNote].add(
                ProviderNote(id=_note_id(name), provider=name, body=body, created_at=members.read_at)
            )
        else:
            unit[ProviderNote].save(msgspec.structs.replace(note, body=body))

    await retrying(ports.storage, work, again_on=("provider_notes_id",))


@unit_of_work(again_on=("jobs_id",))
async def _have_read(_: Ports, unit: Unit, name: str, now: datetime) -> None:
    await READ_MEMBERS.keep(unit, name, now, now)
