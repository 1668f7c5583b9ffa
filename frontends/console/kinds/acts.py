"""Operator actions that wait for a second operator, who confirms or rejects them here."""

from typing import Any

import msgspec

from ....core.domain.operators.pending_acts import ActStatus, Line, PendingAct, status_at
from ....core.usecases.acts.audit import list_audit
from ....core.usecases.browse.acts import browse_acts
from ....core.usecases.browse.search import kind_of_id
from ....core.usecases.browse.timeline import Moment
from ....core.usecases.operators.pending_acts import confirm_act, reject_act
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .kinds import Change, ConsoleAct, Doing, Filter, Kind, Once, Wish, by_id
from .stakes import whose

_BESIDE = 40
_ROWS = 100
"""Newest audit entries about the object that are read."""


def _seen(ports: Ports, act: PendingAct) -> PendingAct:
    """Return the act with its status at the current time: it may have expired."""
    return msgspec.structs.replace(act, status=status_at(act, ports.clock.now()))


async def _read(ports: Ports, wish: Wish, after: PendingAct | None, limit: int) -> list[PendingAct]:
    status = wish.of("status")
    wanted = None if status is None else ActStatus(status)
    found = await browse_acts(ports, wanted, after, limit, newest_first=wish.order != "oldest")
    return [_seen(ports, each) for each in found]


async def _get(ports: Ports, act_id: str) -> PendingAct | None:
    found = await by_id(PendingAct)(ports, act_id)
    return None if found is None else _seen(ports, found)


def _facts(act: PendingAct) -> list[tuple[str, Any]]:
    return [
        ("status", act.status),
        ("asked by", act.operator),
        ("act", act.act),
        *(fact for line in act.shown for fact in _told(line)),
        ("reason", act.reason or None),
        ("object", act.object_id),
        ("mode", act.mode or "both"),
        ("account", act.account_id),
        ("asked", act.created_at),
        ("waits until", act.expires_at),
        ("decided by", act.decided_by),
        ("decided", act.decided_at),
    ]


def _told(line: Line) -> list[tuple[str, Any]]:
    """Return the lines of a change, one value on each."""
    return [(line.field, line.before)] + ([] if line.before == line.after else [("→", line.after)])


async def _timeline(ports: Ports, act: PendingAct) -> list[Moment]:
    """Return a link to the object and the audit entries about this act."""
    rows = await list_audit(ports, object_id=act.object_id, limit=_ROWS)
    said = [
        Moment(at=row.at, source="operator", text=f"{row.operator}: {row.act}", detail=row.reason)
        for row in rows
        if f"act={act.id}" in row.after
    ]
    text, kind = "what it is done to", kind_of_id(act.object_id)
    of = Moment(at=act.created_at, source="object", text=text, detail=act.object_id, of=kind, object_id=act.object_id)
    return sorted([of, *said], key=lambda moment: moment.at)


def _waits(act: PendingAct) -> bool:
    return act.status is ActStatus.WAITING


async def _confirm(doing: Doing) -> str | Once:
    done = await confirm_act(doing.ports, doing.record.id)
    text = f"Done: {done.act.act}, as {done.act.operator} asked."
    return Once(text=text, secrets=tuple(done.secrets.items())) if done.secrets else text


async def _reject(doing: Doing) -> str:
    return f"It is {(await reject_act(doing.ports, doing.record.id)).status}: nothing was done."


def _change(line: Line) -> list[Change]:
    """Return the change in one line, or in two if both values are long: addresses must be readable in full."""
    if line.before == line.after or len(line.before) + len(line.after) <= _BESIDE:
        return [Change(line.field, line.before, line.after)]
    return [Change(line.field, "is", line.before), Change(line.field, "becomes", line.after)]


def _first(act: PendingAct) -> str | None:
    """Return the first change in short form."""
    changed = next((line for line in act.shown if line.before != line.after), None)
    return None if changed is None else f"{changed.field}: {changed.after}"


ACTS = Kind(
    name="act",
    title="Second operator",
    key="W",
    columns=(
        when("asked", lambda each: each.created_at),
        Column(title="status", cell=lambda each: each.status, width=9),
        Column(title="by", cell=lambda each: each.operator, width=7, broad=12),
        Column(title="act", cell=lambda each: each.act, width=14, broad=16),
        merchant(9, 16),
        Column(title="object", cell=lambda each: each.object_id, width=12, broad=20, ends=True),
        Column(title="changes", cell=_first, width=50, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(Filter(name="status", choices=tuple(each for each in ActStatus if each is not ActStatus.EXPIRED)),),
    timeline=_timeline,
    acts=(
        ConsoleAct(
            name="act.confirm",
            title="Confirm",
            key="c",
            allowed=_waits,
            changes=lambda each: [
                Change("asked by", each.operator, each.act),
                *(change for line in each.shown for change in _change(line)),
            ],
            run=_confirm,
            tells=lambda ports, each, _: whose(ports, each.account_id, each.mode),
            reason_needed=False,
            guarded=False,
        ),
        ConsoleAct(
            name="act.reject",
            title="Reject",
            key="j",
            ends=True,
            allowed=_waits,
            changes=lambda each: [Change("status", each.status, "rejected; by who asked: withdrawn"), *_left(each)],
            run=_reject,
            guarded=False,
        ),
    ),
)


def _left(act: PendingAct) -> list[Change]:
    return [Change(line.field, line.before, line.before) for line in act.shown if line.before != line.after]
