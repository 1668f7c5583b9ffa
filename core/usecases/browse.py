"""How operators leaf through what there is, over all accounts and both modes: from one record to those after it, so
that the thousandth page costs what the first does. Nothing is counted, and nothing is skipped."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

import msgspec

from ...ports.bundle import Ports
from ...ports.storage import AtLeast, Below, Unit
from ..domain.accounts import Mode
from ..domain.payments import Payment, PaymentStatus
from ..domain.tallies import EVER, Tally

_NEXT = timedelta(microseconds=1)


class Dated(Protocol):
    """What can be leafed through: ids rise with time."""

    @property
    def id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def created_at(self) -> datetime: ...


D = TypeVar("D", bound=Dated)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which records, in which order."""

    account_id: str | None = None
    mode: Mode | None = None
    status: str | None = None
    newest_first: bool = True


async def browse_payments(ports: Ports, wanted: Wanted, after: Payment | None, limit: int) -> list[Payment]:
    """The payments that follow `after`. Of a status over all accounts, tallies say whose to look at."""
    async with ports.storage.unit() as unit:
        status = None if wanted.status is None else PaymentStatus(wanted.status)
        if wanted.account_id is None and status is None:
            return await _by_id(unit, Payment, wanted, after, limit)
        accounts = [wanted.account_id] if wanted.account_id is not None else await _with(unit, status)
        owners = [{"account_id": account, "mode": mode} for account in accounts for mode in _modes(wanted)]
        kind = {} if status is None else {"status": status}
        return await _merged(unit, Payment, [{**owner, **kind} for owner in owners], wanted, after, limit)


async def browse(ports: Ports, kind: type[D], wanted: Wanted, after: D | None, limit: int, **criteria: Any) -> list[D]:
    """The records that follow `after`, of a kind with the indexes (account_id, mode, created_at, id) and, where a
    `status` in `criteria` is asked for over all accounts, (status, created_at, id)."""
    async with ports.storage.unit() as unit:
        if wanted.account_id is not None:
            owners = [{"account_id": wanted.account_id, "mode": mode} for mode in _modes(wanted)]
            return await _merged(unit, kind, [{**owner, **criteria} for owner in owners], wanted, after, limit)
        if not criteria:
            return await _by_id(unit, kind, wanted, after, limit)
        if wanted.mode is not None:
            criteria["mode"] = wanted.mode
        return await _walk(unit, kind, criteria, wanted, after, limit)


def _modes(wanted: Wanted) -> Sequence[Mode]:
    return tuple(Mode) if wanted.mode is None else (wanted.mode,)


async def _with(unit: Unit, status: PaymentStatus | None) -> list[str]:
    counts = await unit[Tally].sums("count", by="account_id", period=EVER, status=status)
    return [account_id for account_id, count in counts.items() if count > 0]


async def _by_id(unit: Unit, kind: type[D], wanted: Wanted, after: D | None, limit: int) -> list[D]:
    criteria: dict[str, Any] = {} if wanted.mode is None else {"mode": wanted.mode}
    if after is not None:
        # `!` is the character that nothing in an id precedes.
        criteria["id"] = Below(after.id) if wanted.newest_first else AtLeast(f"{after.id}!")
    return await unit[kind].find(order="-id" if wanted.newest_first else "id", limit=limit, **criteria)


async def _walk(
    unit: Unit, kind: type[D], criteria: dict[str, Any], wanted: Wanted, after: D | None, limit: int
) -> list[D]:
    """Along an index that ends with (created_at, id): first what is of the same moment, then what follows it."""
    sign = "-" if wanted.newest_first else ""
    if after is None:
        return await unit[kind].find(order=f"{sign}created_at", limit=limit, **criteria)
    beyond = Below(after.id) if wanted.newest_first else AtLeast(f"{after.id}!")
    later = Below(after.created_at) if wanted.newest_first else AtLeast(after.created_at + _NEXT)
    found = await unit[kind].find(order=f"{sign}id", limit=limit, created_at=after.created_at, id=beyond, **criteria)
    if len(found) < limit:
        left = limit - len(found)
        found += await unit[kind].find(order=f"{sign}created_at", limit=left, created_at=later, **criteria)
    return found


async def _merged(
    unit: Unit, kind: type[D], ways: Sequence[dict[str, Any]], wanted: Wanted, after: D | None, limit: int
) -> list[D]:
    found: list[D] = []
    for criteria in ways:
        found += await _walk(unit, kind, criteria, wanted, after, limit)
    found.sort(key=lambda record: (record.created_at, record.id), reverse=wanted.newest_first)
    return found[:limit]
