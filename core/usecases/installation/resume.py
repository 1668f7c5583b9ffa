"""Letting go of a held installation: what was put off goes on (domain/installation.py, holding.py)."""

import contextlib

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.jobs import Job
from ....ports.marks import Beside, Nowhere
from ....ports.storage import Between
from ...domain.errors import Refusal
from ...domain.installation import Installation
from ..acts.audit import unaudited
from ..acts.four_eyes import gated
from ..exchanges.return_steps import RETURN_EXCHANGE
from ..exchanges.steps import WATCH_EXCHANGE
from ..holding import read_hold, require_readable
from ..refunds.executed import book_all_executed
from ..refunds.steps import CARRY_OUT
from ..refunds.suspense_progress import RETURN
from ..refunds.suspense_takeover import FORMER_RETURN
from ..settlement.withdrawal_progress import EXECUTE
from ..subscriptions.charge_progress import WATCH_CHARGE
from .bringing_in import bring_in
from .comparison import Comparison, Decisions, compare, decided
from .marking import mark_anew

SENDING = (EXECUTE, CARRY_OUT, RETURN, FORMER_RETURN, WATCH_EXCHANGE, RETURN_EXCHANGE, WATCH_CHARGE)
"""Jobs that may send money. What the hold put off would else wait for the next step of a ladder, hours perhaps."""


async def resume_compared(ports: Ports, found: Comparison, beside: Beside | None = None) -> Installation:
    """Bring in the transfers and refunds of a comparison, then let go; return the row as it was while held. Refunds
    come before payouts, so that no payout takes the money of an executed refund.

    A run that is cut off can be repeated: its rows are known then.
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
    """Let go as a second operator confirms it: providers are asked once more, because a transfer may have got into a
    block since. `not_ours`: the operations that the first operator left out of the books, by spaces.

    Raises: as `resume_compared`; Refusal VALIDATION_ERROR.
    """
    before = await read_hold(ports)
    if before is not None:
        found = await compare(unaudited(ports), before.as_of)
        left_out = frozenset((not_ours or "").split()) & {each.operation for each in found.lacking}
        found = await decided(unaudited(ports), found, Decisions(not_ours=left_out))
        more = ", ".join(each.operation for each in found.lacking if each.is_ours)
        if more:
            raise Refusal("INVALID_STATE", f"Providers sent more meanwhile: {more}. Run `cambist resume`")
    return await resume(ports, beside, not_ours=not_ours)


def _require_owners(found: Comparison) -> None:
    if found.open:
        listed = "; ".join(f"{each.kind} {each.operation}, {each.amount}: {each.advice}" for each in found.open)
        raise Refusal(
            "INVALID_STATE",
            f"Nothing was let go, because providers sent what nobody has attributed ({len(found.open)}). {listed}",
            details={"open": [each.operation for each in found.open]},
        )


async def resume(ports: Ports, beside: Beside | None = None, *, not_ours: str | None = None) -> Installation:
    """Let go, and mark the database as the one that is in use from now on; the row as it was while it was held. Every
    process sees it at its next call to a provider.

    `beside`: the database, where anything is kept there. `not_ours`: operations left out of the books, for the second
    operator.
    Raises: Refusal INVALID_STATE when it is not held, or its row cannot be read; Waits where it needs two operators;
    Unavailable.
    """
    before = await read_hold(ports)
    if before is None:
        raise Refusal("INVALID_STATE", "The installation is not held")
    require_readable(before)
    ports = gated(ports, "resume", before.id, not_ours=not_ours)
    await mark_anew(ports.storage, beside or Nowhere(), ports.clock, ports.ids, resuming=True)
    await _bring_forward(ports)
    return before


async def _bring_forward(ports: Ports) -> None:
    """Have what may have been put off done now. A test account's time is its own: its jobs are left alone."""
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
        with contextlib.suppress(Stale):  # it is being done, or was done
            await unit.commit()
