"""Operator actions that wait for a second operator, who confirms or rejects them here."""

from typing import Any

import msgspec

from ....core.domain.operators.pending_actions import ActionStatus, Line, PendingAction, status_at
from ....core.usecases.actions.audit import list_audit
from ....core.usecases.browse.actions import browse_actions
from ....core.usecases.browse.search import kind_of_id
from ....core.usecases.browse.timeline import Moment
from ....core.usecases.operators.pending_actions import confirm_action, reject_action
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .kinds import Change, ConsoleAction, Doing, Filter, Kind, Once, Wish, by_id
from .stakes import whose

_BESIDE = 40
_ROWS = 100
"""Newest audit entries about the object that are read."""


def _seen(ports: Ports, action: PendingAction) -> PendingAction:
    """Return the action with its status at the current time: it may have expired."""
    return msgspec.structs.replace(action, status=status_at(action, ports.clock.now()))


async def _read(ports: Ports, wish: Wish, after: PendingAction | None, limit: int) -> list[PendingAction]:
    status = wish.of("status")
    wanted = None if status is None else ActionStatus(status)
    found = await browse_actions(ports, wanted, after, limit, newest_first=wish.order != "oldest")
    return [_seen(ports, each) for each in found]


async def _get(ports: Ports, action_id: str) -> PendingAction | None:
    found = await by_id(PendingAction)(ports, action_id)
    return None if found is None else _seen(ports, found)


def _facts(action: PendingAction) -> list[tuple[str, Any]]:
    return [
        ("status", action.status),
        ("asked by", action.operator),
        ("action", action.action),
        *(fact for line in action.shown for fact in _told(line)),
        ("reason", action.reason or None),
        ("object", action.object_id),
        ("mode", action.mode or "both"),
        ("account", action.account_id),
        ("asked", action.created_at),
        ("waits until", action.expires_at),
        ("decided by", action.decided_by),
        ("decided", action.decided_at),
    ]


def _told(line: Line) -> list[tuple[str, Any]]:
    """Return the lines of a change, one value on each."""
    return [(line.field, line.before)] + ([] if line.before == line.after else [("→", line.after)])


async def _timeline(ports: Ports, action: PendingAction) -> list[Moment]:
    """Return a link to the object and the audit entries about this action."""
    rows = await list_audit(ports, object_id=action.object_id, limit=_ROWS)
    said = [
        Moment(at=row.at, source="operator", text=f"{row.operator}: {row.action}", detail=row.reason)
        for row in rows
        if f"action={action.id}" in row.after
    ]
    text, kind = "what it is done to", kind_of_id(action.object_id)
    of = Moment(
        at=action.created_at, source="object", text=text, detail=action.object_id, of=kind, object_id=action.object_id
    )
    return sorted([of, *said], key=lambda moment: moment.at)


def _waits(action: PendingAction) -> bool:
    return action.status is ActionStatus.WAITING


async def _confirm(doing: Doing) -> str | Once:
    done = await confirm_action(doing.ports, doing.record.id)
    text = f"Done: {done.action.action}, as {done.action.operator} asked."
    return Once(text=text, secrets=tuple(done.secrets.items())) if done.secrets else text


async def _reject(doing: Doing) -> str:
    return f"It is {(await reject_action(doing.ports, doing.record.id)).status}: nothing was done."


def _change(line: Line) -> list[Change]:
    """Return the change in one line, or in two if both values are long: addresses must be readable in full."""
    if line.before == line.after or len(line.before) + len(line.after) <= _BESIDE:
        return [Change(line.field, line.before, line.after)]
    return [Change(line.field, "is", line.before), Change(line.field, "becomes", line.after)]


def _first(action: PendingAction) -> str | None:
    """Return the first change in short form."""
    changed = next((line for line in action.shown if line.before != line.after), None)
    return None if changed is None else f"{changed.field}: {changed.after}"


ACTIONS = Kind(
    name="action",
    title="Second operator",
    key="W",
    columns=(
        when("asked", lambda each: each.created_at),
        Column(title="status", cell=lambda each: each.status, width=9),
        Column(title="by", cell=lambda each: each.operator, width=7, broad=12),
        Column(title="action", cell=lambda each: each.action, width=14, broad=16),
        merchant(9, 16),
        Column(title="object", cell=lambda each: each.object_id, width=12, broad=20, ends=True),
        Column(title="changes", cell=_first, width=50, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(Filter(name="status", choices=tuple(each for each in ActionStatus if each is not ActionStatus.EXPIRED)),),
    timeline=_timeline,
    actions=(
        ConsoleAction(
            name="action.confirm",
            title="Confirm",
            key="c",
            allowed=_waits,
            changes=lambda each: [
                Change("asked by", each.operator, each.action),
                *(change for line in each.shown for change in _change(line)),
            ],
            run=_confirm,
            tells=lambda ports, each, _: whose(ports, each.account_id, each.mode),
            reason_needed=False,
            guarded=False,
        ),
        ConsoleAction(
            name="action.reject",
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


def _left(action: PendingAction) -> list[Change]:
    return [Change(line.field, line.before, line.before) for line in action.shown if line.before != line.after]
