"""Which banks a provider can send money to, as it lists them (ports/members.py): read about once a day while somebody
wants to know, and kept. A list that could not be read refuses nobody (docs/exchanges.md "Making one")."""

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
from ..schedule import FollowUp, pause_after, reschedule_at
from ..units import retrying
from .watch import watched

READ_MEMBERS = FollowUp("bank.members")
"""The job that reads a bank's list; it goes once that is done."""

FRESH = timedelta(days=1)
"""An older list is read anew, by who next wants to know."""
BELIEVED = timedelta(days=7)
"""An older one refuses nobody."""
_TRIES = 5
_MOST = 5000
"""Banks of one list; SBP has some hundred."""
_ID = re.compile(r"bank[0-9]{1,20}\Z")


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """A list as it was read."""

    read_at: datetime
    banks: tuple[MemberBank, ...]


async def members_of(ports: Ports, bank: Bank) -> Members | None:
    """The banks that this one sends money to; None where it lists none, or was not heard of late. A list that is old
    is read anew, after this."""
    if not isinstance(bank, BankListing):
        return None
    found, now = await kept_members(ports, bank.name), ports.clock.now()
    if found is None or now - found.read_at >= FRESH:
        await _have_read(ports, bank.name, now)
    return None if found is None or now - found.read_at >= BELIEVED else found


async def kept_members(ports: Ports, name: str) -> Members | None:
    """A bank's list as it was last read, however long ago; None where it never was."""
    note = await ports.storage.get(ProviderNote, _note_id(name))
    try:
        return None if note is None else msgspec.json.decode(note.body, type=Members)
    except msgspec.MsgspecError:
        # Not as it was written: it is read anew, and refuses nobody.
        return None


async def known_members(ports: Ports, mode: Mode) -> frozenset[str] | None:
    """The ids of all banks to which a mode can send money; None while that is not known of all its banks that do."""
    known: set[str] = set()
    for bank in ports.banks.of_mode(mode):
        if remits(bank):
            found = await members_of(ports, bank)
            if found is None:
                return None
            known.update(each.id for each in found.banks)
    return frozenset(known) or None


async def reaches(ports: Ports, bank: Bank, bank_id: str) -> bool:
    """Whether the bank sends money there, as far as is known."""
    found = await members_of(ports, bank)
    return found is None or any(each.id == bank_id for each in found.banks)


async def read_members(ports: Ports, job: Job) -> None:
    """The job: read a bank's list and keep it. After some tries it is left to who next wants to know."""
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
    """Those that a client could name, each once, in the order of their names."""
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


async def _have_read(ports: Ports, name: str, now: datetime) -> None:
    async def work(unit: Unit) -> None:
        await READ_MEMBERS.keep(unit, name, now, now)

    await retrying(ports.storage, work, again_on=("jobs_id",))
