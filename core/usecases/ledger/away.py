"""Accounts whose entries are in this cell, although the account is in another one (docs/cells.md "The books")."""

from collections.abc import Mapping

from ....ports.storage import OneOf, Snapshot, Unit
from ...domain.accounts.accounts import Account
from ...domain.cells import AccountMove, Stage

_MOST = 10_000

Away = Mapping[str, Stage]
"""Their ids, and how far their moves are. Entries stay while objects come or go, so the two need not agree."""


async def away_from(seen: Snapshot | Unit) -> Away:
    """Return the accounts that left, or that are still arriving."""
    moves = await seen[AccountMove].find(limit=_MOST)
    ids = tuple(move.id for move in moves)
    here = {row.id for row in await seen[Account].find(id=OneOf(ids), limit=len(ids), readable=True)} if ids else set()
    return {move.id: move.stage for move in moves if move.id not in here}
