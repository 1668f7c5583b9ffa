"""Scope of a comparison, and reads of our records in it (docs/reconciliation.md "What is compared")."""

from collections.abc import AsyncIterator, Collection
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.reporting import BookedList
from ....ports.storage import Between, OneOf, Record, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.accounts.shops import Shop
from ...domain.accounts.terminals import Terminal
from ...domain.payments.payments import Payment
from ..accounts.accounts import storable

K = TypeVar("K", bound=Record)

_BATCH = 1000


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The bank and the owner of credentials whose list is compared."""

    bank: BookedList
    owner: str
    account_id: str | None
    """The merchant that owns the credentials; None if no merchant is known."""

    def has(self, bank: str | None, mode: Mode, reference: str | None) -> bool:
        """Return whether one of our objects belongs in the list."""
        return mode is Mode.LIVE and bank == self.bank.name and self.owner == self.owner_of(reference)

    def owner_of(self, reference: str | None) -> str:
        return "" if reference is None else self.bank.owner_of(reference)


async def scope_of(ports: Ports, bank: BookedList, owner: str) -> Scope:
    """Return the scope of an owner of credentials: an account, or a shop or terminal of one."""
    account_id = None
    if owner and storable(owner):
        async with ports.storage.unit() as unit:
            found = await unit[Shop].get(owner) or await unit[Terminal].get(owner)
            if found is not None:
                account_id = found.account_id
            elif await unit[Account].get(owner) is not None:
                account_id = owner
    return Scope(bank=bank, owner=owner, account_id=account_id)


def live(scope: Scope) -> dict[str, Any]:
    return {"mode": Mode.LIVE} if scope.account_id is None else {"mode": Mode.LIVE, "account_id": scope.account_id}


async def with_payments(ports: Ports, found: list[Any]) -> list[tuple[Any, Payment]]:
    """Pair each record with its payment."""
    paired = []
    async with ports.storage.unit() as unit:
        for start in range(0, len(found), _BATCH):
            part = found[start : start + _BATCH]
            payments = await by_id(unit, Payment, {each.payment_id for each in part})
            paired += [(each, payments[each.payment_id]) for each in part if each.payment_id in payments]
    return paired


async def by_id(unit: Unit, kind: type[K], wanted: Collection[str]) -> dict[str, K]:
    if not wanted:
        return {}
    found = await unit[kind].find(id=OneOf(tuple(sorted(wanted))), limit=len(wanted))
    return {each.id: each for each in found}


async def paged(
    ports: Ports, kind: type[K], by: str, begin: datetime, end: datetime | None, **criteria: Any
) -> AsyncIterator[K]:
    """Iterate in batches over the records whose time `by` lies in this span, in the order of an index on `by`. Records
    that stop matching in the meantime do not shift the pages.
    """
    seen: set[str] = set()
    size = _BATCH
    while True:
        async with ports.storage.unit() as unit:
            found = await unit[kind].find(order=by, limit=size, **{**criteria, by: Between(begin, end)})
        fresh = [each for each in found if each.id not in seen]
        for each in fresh:
            yield each
        if len(found) < size:
            return
        begin = getattr(found[-1], by)
        seen = {each.id for each in found if getattr(each, by) == begin}
        if not fresh:
            # All of the batch has the same time, so read a larger one.
            size *= 2
