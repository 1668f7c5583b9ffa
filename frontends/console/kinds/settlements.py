"""Settlement batches, each a run over the payments of a mode, and settling by hand with progress."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ....core.domain.accounts.accounts import Mode
from ....core.domain.errors import Refusal
from ....core.domain.settlement.settlement import Settlement, SettlementBatch
from ....core.usecases.browse.browse import merged
from ....core.usecases.browse.leaves import Way
from ....core.usecases.browse.timeline import Moment, read_timeline
from ....core.usecases.operators.settlement import Pace, settle_asked
from ....ports.bundle import Ports
from ..columns import Column, when
from ..texts import many
from .kinds import MODE, Change, ConsoleAction, Doing, Entry, Kind, Part, Told, Wish, by_id
from .stakes import of_settlement
from .statements import TOTALS, totals

_STATEMENTS = 1000
_BOTH = "both"
_DUE, _ALL = "what was due at the last 09:00 UTC", "all paid by now"


async def _read(ports: Ports, wish: Wish, after: SettlementBatch | None, limit: int) -> list[SettlementBatch]:
    """Read batches by start time, because ids of test accounts on a test clock do not follow it."""
    mode = wish.of("mode")
    way = Way(SettlementBatch, {} if mode is None else {"mode": Mode(mode)})
    async with ports.storage.unit() as unit:
        return await merged(unit, [way], after, limit, by="started_at", newest_first=wish.order != "oldest")


_get = by_id(SettlementBatch)


def _facts(batch: SettlementBatch) -> list[tuple[str, Any]]:
    return [
        ("batch", batch.id),
        ("mode", batch.mode),
        ("of account", batch.account_id or "all"),
        *totals(batch),
    ]


async def _timeline(ports: Ports, batch: SettlementBatch) -> list[Moment]:
    """Return the batch's own events and the statement of each merchant."""
    async with ports.storage.unit() as unit:
        statements = await unit[Settlement].find(batch_id=batch.id, order="id", limit=_STATEMENTS)
    told = [
        Moment(
            at=each.completed_at or each.started_at,
            source="statement",
            text=f"{many(each.payments, 'payment')}, {each.amount} RUB, {each.credit} USDT",
            detail=each.account_id,
            of="settlement",
            object_id=each.id,
        )
        for each in statements
    ]
    return sorted([*await read_timeline(ports, batch), *told], key=lambda moment: moment.at)


def _modes(given: Mapping[str, str]) -> tuple[Mode, ...]:
    return tuple(Mode) if given["mode"] == _BOTH else (Mode(given["mode"]),)


async def _due(ports: Ports, _none: None, given: Mapping[str, str]) -> Told:
    return await of_settlement(ports, _modes(given), whole=given["what"] == _ALL)


async def _settle(doing: Doing) -> str:
    # One microsecond later, so that payments of this very moment are included.
    now = doing.ports.clock.now() + timedelta(microseconds=1)
    cutoff = now if doing.given["what"] == _ALL else None
    modes = _modes(doing.given)
    done: list[SettlementBatch] = []
    refused: list[Refusal] = []
    for mode in modes:
        try:
            done += await settle_asked(doing.ports, mode, cutoff, lambda pace: doing.tell(_pace(pace)))
        except Refusal as refusal:
            # A refusal in one mode does not stop the other.
            refused.append(Refusal(refusal.code, f"{mode}: {refusal.message}"))
    told = [
        f"{each.id}: {many(each.payments, 'payment')}, {each.amount} RUB at {each.rate_market}: {each.credit} USDT."
        for each in done
    ]
    if refused:
        raise Refusal(refused[0].code, "\n".join([refused[0].message, *told]))
    return "\n".join(told)


def _pace(pace: Pace) -> str:
    return f"{pace.batch.id}{', left open before' if pace.is_taken_up else ''}: {pace}"


SETTLEMENTS = Kind(
    name="batch",
    title="Settlements",
    key="4",
    columns=(
        *TOTALS,
        when("completed", lambda each: each.completed_at, wide=True),
        Column(title="rate", cell=lambda each: each.rate_market, width=10, wide=True),
        Column(title="batch", cell=lambda each: each.id, width=30, ends=True, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE,),
    timeline=_timeline,
    parts=(Part(title="Statements", key="t", of="settlement", by="batch"),),
    list_actions=(
        ConsoleAction(
            name="settle",
            title="Settle now",
            key="s",
            entries=(
                Entry(name="mode", label="Mode", choices=(*Mode, _BOTH), default=Mode.TEST),
                Entry(name="what", label="What", choices=(_DUE, _ALL), default=_DUE),
            ),
            changes=lambda _: [
                Change("payments", "paid", "settled, at one market rate"),
                Change("payout", "-", "follows"),
            ],
            run=_settle,
            tells=_due,
            guarded=False,
        ),
    ),
)
