"""The audit log of operator actions, which nobody can change."""

from typing import Any

from ....core.domain.operators.audit import AuditEntry
from ....core.usecases.browse.ledger import AuditWish, browse_audit
from ....core.usecases.browse.search import kind_of_id
from ....core.usecases.browse.timeline import Moment
from ....ports.bundle import Ports
from ..columns import Column, when
from .kinds import Filter, Kind, Wish, by_id
from .wishes import DATES, moment_from, moment_to


async def _read(ports: Ports, wish: Wish, after: AuditEntry | None, limit: int) -> list[AuditEntry]:
    asked = AuditWish(
        operator=wish.of("operator"),
        action=wish.of("action"),
        object_id=wish.of("object"),
        since=moment_from(wish),
        until=moment_to(wish),
        newest_first=wish.order != "oldest",
    )
    return await browse_audit(ports, asked, after, limit)


_get = by_id(AuditEntry)


def _facts(entry: AuditEntry) -> list[tuple[str, Any]]:
    return [
        ("when", entry.at),
        ("operator", entry.operator),
        ("action", entry.action),
        ("object", entry.object_id),
        ("account", entry.account_id),
        ("reason", entry.reason or None),
        ("before", entry.before or None),
        ("after", entry.after or None),
    ]


async def _timeline(_ports: Ports, entry: AuditEntry) -> list[Moment]:
    """Return one line that opens the object of the entry."""
    text = f"{entry.operator}: {entry.action}"
    if entry.object_id is None:
        return [Moment(at=entry.at, source="operator", text=text, detail=entry.reason)]
    of = kind_of_id(entry.object_id) or _BY_ACTION.get(entry.action.partition(".")[0], "")
    return [Moment(at=entry.at, source="operator", text=text, detail=entry.object_id, of=of, object_id=entry.object_id)]


_BY_ACTION = {each: each for each in ("shop", "terminal", "client", "gateway")} | {"settle": "batch"}
"""Kinds of objects whose ids do not name their kind."""

AUDIT = Kind(
    name="audit",
    title="Audit log",
    key="9",
    columns=(
        when("when", lambda each: each.at),
        Column(title="operator", cell=lambda each: each.operator, width=9, broad=12),
        Column(title="action", cell=lambda each: each.action, width=16, broad=24),
        Column(title="reason", cell=lambda each: each.reason or None, width=16, broad=28),
        Column(title="object", cell=lambda each: each.object_id, width=12, broad=40, ends=True),
        Column(title="after", cell=lambda each: each.after or None, width=24, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(
        Filter(name="operator", hint="a name"),
        Filter(name="action", hint="such as refund.approve"),
        Filter(name="object", hint="an object's id"),
        *DATES,
    ),
    timeline=_timeline,
)
