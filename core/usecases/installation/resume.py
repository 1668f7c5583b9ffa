"""End of a database's quarantine: work that was postponed continues (domain/installation.py, quarantine.py)."""

import contextlib

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.fingerprints import Beside, Nowhere
from ....ports.jobs import Job
from ....ports.storage import Between
from ...domain.errors import Refusal
from ...domain.installation import Installation
from ..actions.audit import unaudited
from ..actions.four_eyes import gated
from ..common.quarantine import read_hold, require_readable
from ..exchanges.return_steps import RETURN_EXCHANGE
from ..exchanges.steps import WATCH_EXCHANGE
from ..refunds.executed import book_all_executed
from ..refunds.steps import CARRY_OUT
from ..refunds.suspense_progress import RETURN
from ..settlement.withdrawal_progress import EXECUTE
from ..subscriptions.charge_progress import WATCH_CHARGE
from .bringing_in import bring_in
from .comparison import Comparison, Decisions, compare, decided
from .marking import mark_anew

SENDING = (EXECUTE, CARRY_OUT, RETURN, WATCH_EXCHANGE, RETURN_EXCHANGE, WATCH_CHARGE)
"""Jobs that may send money. Without this, jobs that the quarantine postponed would wait for the next step of their
backoff schedule, perhaps for hours."""


async def resume_compared(ports: Ports, found: Comparison, beside: Beside | None = None) -> Installation:
    """Record the transfers and refunds of a comparison, then end the quarantine. Return the row as it was during the
    quarantine. Refunds come before payouts, so that no payout takes the money of an executed refund.

    An interrupted run can be repeated: rows that it wrote are then known.
    Raises: Refusal INVALID_STATE while an entry of the comparison is open, and as `resume`; Unavailable.
    """
    before = await read_hold(ports)
    if before is None:
        raise Refusal("INVALID_STATE", "The installation is not held")
    require_readable(before)
    _require_owners(found)
    await book_all_executed(ports)
    await bring_in(ports, found)
    left_out = sorted(each.operation for each in found.lacking if not each.is_ours)
    return await resume(ports, beside, not_ours=" ".join(left_out) or None)


async def resume_confirmed(ports: Ports, beside: Beside | None, not_ours: str | None) -> Installation:
    """End the quarantine when a second operator confirms it. This queries the providers once more, because another
    transfer may have been confirmed since. `not_ours`: operations that the first operator left out of the books,
    separated by spaces.

    Raises: as `resume_compared`; Refusal VALIDATION_ERROR.
    """
    before = await read_hold(ports)
    if before is not None:
        found = await compare(unaudited(ports), before.as_of)
        left_out = frozenset((not_ours or "").split()) & {each.operation for each in found.lacking}
        found = await decided(unaudited(ports), found, Decisions(not_ours=left_out))
        more = ", ".join(each.operation for each in found.lacking if each.is_ours)
        if more:
            raise Refusal(
                "INVALID_STATE", f"Providers have sent more since the comparison: {more}. Run `cambist resume`"
            )
    return await resume(ports, beside, not_ours=not_ours)


def _require_owners(found: Comparison) -> None:
    if found.open:
        listed = "; ".join(f"{each.kind} {each.operation}, {each.amount}: {each.advice}" for each in found.open)
        raise Refusal(
            "INVALID_STATE",
            f"The hold continues, because providers sent unattributed money ({len(found.open)}). {listed}",
            details={"open": [each.operation for each in found.open]},
        )


async def resume(ports: Ports, beside: Beside | None = None, *, not_ours: str | None = None) -> Installation:
    """End the quarantine and mark the database as the one in use. Return the row as it was during the quarantine. Every
    process notifications it at its next call to a provider.

    `beside`: the files beside the database, if there are any. `not_ours`: operations left out of the books, for the
    second operator.
    Raises: Refusal INVALID_STATE when it is not quarantined, or its row cannot be read; Waits when a second operator
    has to confirm; Unavailable.
    """
    before = await read_hold(ports)
    if before is None:
        raise Refusal("INVALID_STATE", "The installation is not held")
    require_readable(before)
    ports = gated(ports, "resume", before.id, not_ours=not_ours)
    await mark_anew(ports.storage, ports.vault, beside or Nowhere(), ports.clock, ports.ids, resuming=True)
    await bring_forward(ports)
    return before


async def bring_forward(ports: Ports) -> None:
    """Make jobs due now that the quarantine may have postponed. Jobs with a test clock keep their own time."""
    now = ports.clock.now()
    for kind in (sending.kind for sending in SENDING):
        # `;` is the character that follows the colon.
        async for batch in ports.storage.scan(Job, id=Between(f"{kind}:", f"{kind};")):
            for job in batch:
                if job.due > now and job.leased_until is None and job.world is None:
                    await _bring(ports, job)


async def _bring(ports: Ports, job: Job) -> None:
    async with ports.storage.unit() as unit:
        unit[Job].save(msgspec.structs.replace(job, due=ports.clock.now()))
        with contextlib.suppress(Stale):  # A worker is running the job, or has finished it.
            await unit.commit()
