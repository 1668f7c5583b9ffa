"""The audit log: what operators did. Nobody changes it."""

from typing import Any

from ...core.domain.audit import AuditEntry
from ...core.usecases.audit import list_audit
from ...core.usecases.timeline import Moment
from ...ports.bundle import Ports
from .kinds import Column, Kind, Wish


async def _read(ports: Ports, _wish: Wish, after: AuditEntry | None, limit: int) -> list[AuditEntry]:
    return await list_audit(ports, before=None if after is None else after.id, limit=limit)


async def _get(ports: Ports, entry_id: str) -> AuditEntry | None:
    async with ports.storage.unit() as unit:
        return await unit[AuditEntry].get(entry_id)


def _facts(entry: AuditEntry) -> list[tuple[str, Any]]:
    return [
        ("when", entry.at),
        ("operator", entry.operator),
        ("act", entry.act),
        ("object", entry.object_id),
        ("account", entry.account_id),
        ("reason", entry.reason or None),
        ("before", entry.before or None),
        ("after", entry.after or None),
    ]


async def _no_timeline(_ports: Ports, entry: AuditEntry) -> list[Moment]:
    return [Moment(at=entry.at, source="operator", text=f"{entry.operator}: {entry.act}", detail=entry.reason)]


AUDIT = Kind(
    name="audit",
    title="Audit log",
    key="9",
    columns=(
        Column(title="when", cell=lambda each: each.at, width=19),
        Column(title="operator", cell=lambda each: each.operator, width=12),
        Column(title="act", cell=lambda each: each.act, width=18),
        Column(title="reason", cell=lambda each: each.reason or None, width=22),
        Column(title="object", cell=lambda each: each.object_id, width=40, wide=True),
        Column(title="after", cell=lambda each: each.after or None, width=60, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(),
    orders=("newest",),
    timeline=_no_timeline,
)
