"""Gateways as operators see them: their health, and what their banks answered recently."""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.notes import ProviderNote
from ....ports.storage import OneOf
from ...domain.accounts.accounts import Mode
from ...domain.gateways.gateways import Gateway
from ...domain.gateways.health import Seen
from ...domain.operators.audit import ABSENT
from ..gateways.members import Members, kept_members
from ..gateways.watch import health_id
from ..notification_addresses import last_received


class KnownGateway(msgspec.Struct, frozen=True, kw_only=True):
    """One gateway. `rank`: its position in the order in which payments of its mode try gateways, from 1."""

    id: str
    version: int
    """Version of the record. ABSENT while nobody has configured the gateway."""
    mode: Mode
    rank: int
    gateway: Gateway
    health: Seen
    last_notification: datetime | None = None
    """When the bank's last notification arrived. None for a bank that sends none."""
    members: Members | None = None
    """The banks that the gateway sends money to, from its last list. None when it has never sent one."""


async def known_gateways(ports: Ports, mode: Mode | None = None) -> list[KnownGateway]:
    """Return all gateways, in the order in which payments try them."""
    modes = tuple(Mode) if mode is None else (mode,)
    ranks = [(each, *pair) for each in modes for pair in enumerate(ports.banks.order.get(each, ()), 1)]
    names = tuple(name for _, _, name in ranks)
    async with ports.storage.unit() as unit:
        records = await unit[Gateway].find(id=OneOf(names), limit=len(names), readable=True)
        notes = await unit[ProviderNote].find(id=OneOf(tuple(map(health_id, names))), limit=len(names), readable=True)
    heard = await last_received(ports)
    present, health = {each.id: each for each in records}, {each.id: each for each in notes}
    found = []
    for of, rank, name in ranks:
        record, note = present.get(name), health.get(health_id(name))
        found.append(
            KnownGateway(
                id=name,
                version=ABSENT if record is None else record.version,
                mode=of,
                rank=rank,
                gateway=record or Gateway(id=name),
                health=() if note is None else msgspec.json.decode(note.body, type=Seen),
                last_notification=heard.get(name),
                members=await kept_members(ports, name),
            )
        )
    return found
