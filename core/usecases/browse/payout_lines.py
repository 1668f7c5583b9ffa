"""Lists of the lines of a payout, for operators (docs/settlement.md "What a payout is made of")."""

import msgspec

from ....ports.bundle import Ports
from ...domain import ids
from ...domain.errors import Refusal
from ..settlement.payout_items import PayoutItem, payout_items_of

_PLACES = 12
"""More digits than any line number has."""


class PayoutLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line and its number in the payout, from 0."""

    withdrawal_id: str
    place: int
    item: PayoutItem
    version: int = 0

    @property
    def id(self) -> str:
        return f"{self.withdrawal_id}:{self.place}"


async def list_payout_lines(ports: Ports, withdrawal_id: str, after: PayoutLine | None, limit: int) -> list[PayoutLine]:
    """Return the lines that follow `after`, in the order of time. Empty for an unknown payout."""
    return await _lines(ports, withdrawal_id, 0 if after is None else after.place + 1, limit)


async def get_payout_line(ports: Ports, line_id: str) -> PayoutLine | None:
    """Return the payout line with this id."""
    withdrawal_id, _, place = line_id.partition(":")
    if not (place.isascii() and place.isdecimal() and len(place) < _PLACES):
        return None
    return next(iter(await _lines(ports, withdrawal_id, int(place), 1)), None)


async def _lines(ports: Ports, withdrawal_id: str, offset: int, limit: int) -> list[PayoutLine]:
    if not ids.is_prefixed(ids.WITHDRAWAL, withdrawal_id):
        return []
    try:
        found = await payout_items_of(ports, withdrawal_id, limit, offset=offset)
    except Refusal as refusal:
        if refusal.code == "WITHDRAWAL_NOT_FOUND":
            return []
        raise
    return [PayoutLine(withdrawal_id=withdrawal_id, place=offset + n, item=each) for n, each in enumerate(found)]
