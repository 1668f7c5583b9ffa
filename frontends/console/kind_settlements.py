"""Settlement batches: one run over a mode's payments each, and the operator's settlement with its progress."""

from datetime import timedelta
from typing import Any

from ...core.domain.accounts import Mode
from ...core.domain.settlement import Settlement, SettlementBatch
from ...core.usecases.settlement import settle_now
from ...core.usecases.timeline import Moment, read_timeline
from ...ports.bundle import Ports
from ...ports.storage import Below
from .kinds import MODE, Change, Column, ConsoleAct, Doing, Entry, Kind, Wish

_STATEMENTS = 1000


async def _read(ports: Ports, wish: Wish, after: SettlementBatch | None, limit: int) -> list[SettlementBatch]:
    """By id: mode, then moment. There are two a day."""
    mode = wish.of("mode")
    criteria: dict[str, Any] = {} if mode is None else {"mode": Mode(mode)}
    if after is not None:
        criteria["id"] = Below(after.id)
    async with ports.storage.unit() as unit:
        return await unit[SettlementBatch].find(order="-id", limit=limit, **criteria)


async def _get(ports: Ports, batch_id: str) -> SettlementBatch | None:
    async with ports.storage.unit() as unit:
        return await unit[SettlementBatch].get(batch_id)


def _facts(batch: SettlementBatch) -> list[tuple[str, Any]]:
    return [
        ("batch", batch.id),
        ("mode", batch.mode),
        ("of account", batch.account_id or "all"),
        ("paid before", batch.cutoff),
        ("market rate", batch.rate_market),
        ("payments", batch.payments),
        ("amount", f"{batch.amount} RUB"),
        ("fee", f"{batch.fee} USDT"),
        ("credit", f"{batch.credit} USDT"),
        ("started", batch.started_at),
        ("completed", batch.completed_at),
    ]


async def _timeline(ports: Ports, batch: SettlementBatch) -> list[Moment]:
    """The batch's own moments, and each merchant's statement."""
    async with ports.storage.unit() as unit:
        statements = await unit[Settlement].find(batch_id=batch.id, order="id", limit=_STATEMENTS)
    told = [
        Moment(
            at=each.completed_at or each.started_at,
            source="statement",
            text=f"{each.payments} payments, {each.amount} RUB, {each.credit} USDT",
            detail=each.account_id,
        )
        for each in statements
    ]
    return sorted([*await read_timeline(ports, batch), *told], key=lambda moment: moment.at)


async def _settle(doing: Doing) -> str:
    mode = Mode(doing.given["mode"])
    # What was paid at this very moment was paid before it ends.
    now = doing.ports.clock.now() + timedelta(microseconds=1)
    cutoff = now if doing.given["what"] == "all paid by now" else None
    batch = await settle_now(
        doing.ports, mode, cutoff=cutoff, progress=lambda at: doing.tell(f"{at.payments} payments, {at.amount} RUB")
    )
    return f"{batch.id}: {batch.payments} payments, {batch.amount} RUB at {batch.rate_market}: {batch.credit} USDT."


SETTLEMENTS = Kind(
    name="batch",
    title="Settlements",
    key="4",
    columns=(
        Column(title="started", cell=lambda each: each.started_at, width=19),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="payments", cell=lambda each: each.payments, width=8, right=True),
        Column(title="amount RUB", cell=lambda each: each.amount, width=14, right=True),
        Column(title="credit USDT", cell=lambda each: each.credit, width=18, right=True),
        Column(title="completed", cell=lambda each: each.completed_at, width=19, wide=True),
        Column(title="rate", cell=lambda each: each.rate_market, width=10, wide=True),
        Column(title="batch", cell=lambda each: each.id, width=36, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE,),
    orders=("newest",),
    timeline=_timeline,
    list_acts=(
        ConsoleAct(
            name="settle",
            title="Settle now",
            key="s",
            entries=(
                Entry(name="mode", label="Mode", choices=("test", "live"), default="test"),
                Entry(
                    name="what",
                    label="What",
                    choices=("what was due at the last 09:00 UTC", "all paid by now"),
                    default="what was due at the last 09:00 UTC",
                ),
            ),
            changes=lambda _: [
                Change("payments", "paid", "settled, at one market rate"),
                Change("payout", "-", "follows"),
            ],
            run=_settle,
            guarded=False,
        ),
    ),
)
