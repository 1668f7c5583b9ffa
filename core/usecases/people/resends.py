"""Resends of a span of webhooks, in the background, started by a person (docs/dashboard.md "For developers")."""

from datetime import datetime

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal
from ...domain.people.roles import PersonRight
from ...domain.webhooks.events import EVENT_KEPT
from ...domain.webhooks.resends import RESEND_RUN, RUNS_KEPT, ResendRun, check_span, new_run, stopped
from ..common.units import retrying
from ..webhooks.events import EventQuery
from ..webhooks.resends import add_range, count_range, read_range
from .sessions import Actor, by_person, require

_BUSY = "resend_runs_slot"


async def begin_resend(
    ports: Ports, actor: Actor, asked: EventQuery, endpoint_id: str | None = None, *, key: str = ""
) -> ResendRun:
    """Start a resend of the account's events of a span, once per key; a job works through it. Without a UUID as key,
    each call starts one.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, VALIDATION_ERROR, WEBHOOK_ENDPOINT_NOT_FOUND,
    RESEND_TOO_LARGE; RESEND_BUSY while another one is running; IDEMPOTENCY_KEY_REUSED for a key of another account or
    mode.
    """
    require(actor, PersonRight.WEBHOOKS)
    owner = actor.account.id, actor.mode
    now = ports.clock.now()
    wanted = read_range(*owner, asked, endpoint_id, now)
    low, high = wanted.low or now, wanted.high or now
    check_span(low, high, EVENT_KEPT, now)
    run_id = ids.prefixed(RESEND_RUN, ids.canonical_uuid(key) or ports.ids.uuid())
    ports = by_person(ports, actor, "webhook.resend_range", run_id)

    async def work(unit: Unit) -> ResendRun:
        known = await unit[ResendRun].get(run_id)
        if known is not None and (known.account_id, known.mode) != owner:
            raise Refusal("IDEMPOTENCY_KEY_REUSED", "This form belongs to another account or mode: open the page again")
        if known is not None:
            return known
        run = new_run(
            ResendRun(
                id=run_id,
                account_id=actor.account.id,
                mode=actor.mode,
                person=actor.user.id,
                low=low,
                high=high,
                total=await count_range(unit, wanted),
                created_at=now,
                endpoint_id=endpoint_id,
                type=wanted.type,
                status=wanted.status,
            )
        )
        if run.slot is not None and await unit[ResendRun].find(slot=run.slot, limit=1):
            raise Refusal("RESEND_BUSY", "Another resend is running: wait for its end, or stop it")
        await _forget_old(unit, actor.caller)
        unit[ResendRun].add(run)
        if run.slot is not None:
            add_range(ports, unit, wanted, now, run_id=run_id)
        return run

    return await retrying(ports.storage, work, again_on=(_BUSY, "resend_runs_id"))


async def _forget_old(unit: Unit, caller: Caller) -> None:
    found = await _newest(unit, caller, 2 * RUNS_KEPT)
    for each in found[RUNS_KEPT - 1 :]:
        unit[ResendRun].remove(each)


async def _newest(unit: Unit, caller: Caller, limit: int) -> list[ResendRun]:
    return await unit[ResendRun].find(account_id=caller.account_id, mode=caller.mode, order="-created_at", limit=limit)


async def list_resends(ports: Ports, actor: Actor) -> list[ResendRun]:
    """Return the newest resends of the account and mode. Raises: Refusal PERSON_RIGHT_MISSING."""
    require(actor, PersonRight.LOGS)
    async with ports.storage.unit() as unit:
        return await _newest(unit, actor.caller, RUNS_KEPT)


async def stop_resend(ports: Ports, actor: Actor, run_id: str) -> ResendRun:
    """Stop a running resend. Events already scheduled are still sent.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, RESEND_NOT_FOUND; INVALID_STATE when it has ended.
    """
    require(actor, PersonRight.WEBHOOKS)
    now: datetime = ports.clock.now()
    ports = by_person(ports, actor, "webhook.resend_stop", run_id)

    async def work(unit: Unit) -> ResendRun:
        found = await unit[ResendRun].get(run_id) if ids.is_prefixed(RESEND_RUN, run_id) else None
        if found is None or (found.account_id, found.mode) != (actor.account.id, actor.mode):
            raise Refusal("RESEND_NOT_FOUND", "There is no resend of this id")
        return unit[ResendRun].save(stopped(found, now))

    return await retrying(ports.storage, work)
