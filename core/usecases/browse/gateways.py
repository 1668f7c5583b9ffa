"""The gateways as operators see them: how each is, and what its bank answered of late."""

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
from ..notice_addresses import last_heard


class KnownGateway(msgspec.Struct, frozen=True, kw_only=True):
    """One gateway. `place`: when payments of its mode try it, from 1."""

    id: str
    version: int
    """Of the record; ABSENT while it was never set."""
    mode: Mode
    rank: int
    gateway: Gateway
    health: Seen
    last_notice: datetime | None = None
    """When its bank was last heard, of one that posts notices."""
    members: Members | None = None
    """The banks that it sends money to, as it last listed them; None: it never did."""


async def known_gateways(ports: Ports, mode: Mode | None = None) -> list[KnownGateway]:
    """All, in the order in which payments try them."""
    modes = tuple(Mode) if mode is None else (mode,)
    ranks = [(each, *pair) for each in modes for pair in enumerate(ports.banks.order.get(each, ()), 1)]
    names = tuple(name for _, _, name in ranks)
    async with ports.storage.unit() as unit:
        records = await unit[Gateway].find(id=OneOf(names), limit=len(names), readable=True)
        notes = await unit[ProviderNote].find(id=OneOf(tuple(map(health_id, names))), limit=len(names), readable=True)
    heard = await last_heard(ports)
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
                last_notice=heard.get(name),
                members=await kept_members(ports, name),
            )
        )
    return found
