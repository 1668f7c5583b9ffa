"""Heads of days and proofs of registers (docs/reports.md "Proof")."""

from datetime import date, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Unavailable
from ....ports.jobs import Job
from ....ports.storage import AtLeast, Between
from ...domain.accounts.accounts import Caller
from ...domain.days import moscow_start
from ...domain.errors import Refusal
from ...domain.reports.proofs import DayHead, head_text, leaf_of, path_of
from ...domain.reports.reports import Report, ReportKind, moscow_today
from ..common.paging import Page
from ..common.schedule import reschedule_at
from ..recurring_jobs import next_daily_heads
from .reports import get_report
from .writing import CLOSE_DAYS

_DAYS = 31
_AT_ONCE = 1000
_PAUSE = timedelta(minutes=5)
_PATIENCE = timedelta(days=2)
"""From the beginning of a day until its head is signed at the latest."""


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Proof of a day's register: together with the CSV a stranger can check it."""

    account: str
    mode: str
    day: str
    number: int
    """Number of the last movement up to the end of the day; 0: none."""
    before: str
    """Link before the first row, in hex."""
    link: str
    """Link after the last row."""
    salt: str
    index: int
    path: list[str]
    head: str
    signature: str
    key: str


def _salt(ports: Ports, report: Report) -> bytes:
    return ports.vault.fingerprint(f"report leaf {report.account_id} {report.mode} {report.first_day}")


def _leaf(ports: Ports, report: Report) -> bytes:
    return leaf_of(_salt(ports, report), report.account_id, report.mode, report.high - 1, bytes.fromhex(report.link))


async def make_heads(ports: Ports, job: Job) -> None:
    """Sign the heads of the days that are over and have none. Wait while registers of the day are being written."""
    try:
        for _ in range(_DAYS):
            if not await _make_head(ports):
                await reschedule_at(ports, job, next_daily_heads(max(ports.clock.now(), job.due)), anew=True)
                return
    except Unavailable:
        await reschedule_at(ports, job, ports.clock.now() + _PAUSE, anew=True)
    else:
        await reschedule_at(ports, job, ports.clock.now(), anew=True)


async def _make_head(ports: Ports) -> bool:
    async with ports.storage.unit() as unit:
        heads = await unit[DayHead].find(order="-id", limit=1)
        firsts = await unit[Report].find(kind=ReportKind.DAY, order="first_day", limit=1)
    if heads:
        day = (date.fromisoformat(heads[0].id) + timedelta(days=1)).isoformat()
    elif firsts:
        day = firsts[0].first_day
    else:
        return False
    if day >= moscow_today(ports.clock.real()).isoformat():
        return False
    # An account that cannot be closed holds up the others for a day; then its proof is missing.
    is_late = ports.clock.real() >= moscow_start(date.fromisoformat(day)) + _PATIENCE
    async with ports.storage.unit() as unit:
        low = CLOSE_DAYS.id_of("")
        if not is_late and await unit[Job].find(id=Between(low, f"{low};"), limit=1):
            raise Unavailable(f"days up to {day} are being closed")
    leaves: list[bytes] = []
    batch: list[Report] = []
    while not leaves or len(batch) == _AT_ONCE:
        after = AtLeast(f"{batch[-1].id}!" if batch else "")
        async with ports.storage.unit() as unit:
            batch = await unit[Report].find(kind=ReportKind.DAY, first_day=day, id=after, limit=_AT_ONCE)
        if not is_late and any(each.ready_at is None for each in batch):
            raise Unavailable(f"registers of {day} are being written")
        leaves += [_leaf(ports, each) for each in batch if each.ready_at is not None]
        if not batch:
            break
    # Filling leaves hide the number of merchants, and keep the tree in one shape.
    size = 1 << len(leaves).bit_length()
    leaves += [ports.vault.fingerprint(f"report filling {day} {number}") for number in range(size - len(leaves))]
    leaves.sort()
    text = head_text(ports.urls.base_url, leaves, day, heads[0].text if heads else None)
    signature = ports.head_signer.sign(text.encode())
    key = ports.head_signer.public_key.hex()
    head = DayHead(id=day, text=text, signature=signature.hex(), key=key, leaves=b"".join(leaves))

    async with ports.storage.unit() as unit:
        unit[DayHead].add(head)
        await unit.commit()
    return True


async def prove_report(ports: Ports, caller: Caller, report_id: str) -> Proof:
    """Return the proof of a day's register.

    Raises: Refusal REPORT_NOT_FOUND; REPORT_NOT_READY until the head of the day is signed, and for other kinds.
    """
    found = await get_report(ports, caller, report_id)
    head = await ports.storage.get(DayHead, found.first_day)
    leaf = None if found.ready_at is None else _leaf(ports, found)
    if found.kind is not ReportKind.DAY or head is None or leaf not in head.hashes:
        raise Refusal("REPORT_NOT_READY", "The head of this day is not signed yet, or the report is not that of a day")
    index = head.hashes.index(leaf)
    return Proof(
        account=found.account_id,
        mode=found.mode.value,
        day=found.first_day,
        number=found.high - 1,
        before=found.before,
        link=found.link,
        salt=_salt(ports, found).hex(),
        index=index,
        path=[each.hex() for each in path_of(head.hashes, index)],
        head=head.text,
        signature=head.signature,
        key=head.key,
    )


async def list_heads(ports: Ports, number: int, size: int) -> Page[DayHead]:
    """Return a page of published heads, newest first."""
    async with ports.storage.unit() as unit:
        total = await unit[DayHead].total()
        return Page(await unit[DayHead].page(number, size), number, size, total)
