"""Existing exchanges for merchants and operators: read, cancel, switch a direction off or on (docs/exchanges.md
"Rules"). Creation is in creation.py, progress in progress.py.
"""

from collections.abc import Collection
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller, Mode
from ...domain.errors import Refusal, read_choice
from ...domain.exchanges.exchanges import (
    CANCELLABLE,
    Direction,
    DirectionSwitch,
    Exchange,
    ExchangeStatus,
    ExchangeTrigger,
)
from ...domain.exchanges.orders import (
    EXTERNAL_ID_LONGEST,
)
from ..accounts.accounts import find_account
from ..common.account_time import in_test_time
from ..common.keyset import Cursor, Listed, listing_of, read_listing
from ..common.long_lists import LongList, long_page
from ..common.paging import ListFilter, Page, list_newest
from ..common.units import retrying, unit_of_work
from .progress import seen_funds, take_funds
from .steps import WATCH_EXCHANGE, move, read_exchange

_S = ExchangeStatus
_NEWEST_FIRST = "-created_at"
_MERCHANT_CANCELS = (_S.PENDING, _S.AWAITING_USDT)


async def get_exchange(ports: Ports, caller: Caller, exchange_id: str) -> Exchange:
    """Return an exchange of the caller's account and mode. Raises: Refusal EXCHANGE_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        return await _own(unit, caller, exchange_id)


async def _own(unit: Unit, caller: Caller, exchange_id: str) -> Exchange:
    exchange = await unit[Exchange].get(exchange_id) if ids.is_prefixed(ids.EXCHANGE, exchange_id) else None
    if exchange is None or (exchange.account_id, exchange.mode) != (caller.account_id, caller.mode):
        raise _not_found()
    return exchange


class ExchangeFilter(ListFilter, frozen=True, kw_only=True):
    """Raw query values of GET /exchanges; None when absent."""

    status: str | None = None


async def browse_exchanges(
    ports: Ports, caller: Caller, asked: ExchangeFilter, cursor: Cursor | None, size: int
) -> Listed[Exchange]:
    """Return a page of the caller's exchanges by cursor, newest first. Raises: Refusal VALIDATION_ERROR."""
    wanted = listing_of(Exchange, _read(caller, asked), ("external_id", "status"))
    return await read_listing(ports, wanted, cursor, size)


def _read(caller: Caller, asked: ExchangeFilter) -> dict[str, Any]:
    """Return the criteria of the filter. Raises: Refusal VALIDATION_ERROR."""
    criteria = {"account_id": caller.account_id, "mode": caller.mode, **asked.criteria(EXTERNAL_ID_LONGEST)}
    if asked.status is not None:
        criteria["status"] = read_choice("status", asked.status, ExchangeStatus)
    return criteria


async def list_exchanges(ports: Ports, caller: Caller, asked: ExchangeFilter, number: int, size: int) -> Page[Exchange]:
    """Return a page of the caller's exchanges in both directions, newest first, as of one moment. Raises: Refusal
    VALIDATION_ERROR.
    """
    criteria = _read(caller, asked)
    if asked.status is None and asked.external_id is None:
        long = LongList(kind=Exchange, caller=caller, name="exchanges", made=asked.made())
        return await long_page(ports, long, number, size)
    return await list_newest(ports, Exchange, number, size, **criteria)


async def every_exchange(ports: Ports, account_id: str, mode: Mode | None = None, limit: int = 1000) -> list[Exchange]:
    """Return exchanges of an account for operators, newest first; phone numbers stay encrypted. Raises: Refusal
    ACCOUNT_NOT_FOUND.
    """
    async with ports.storage.unit() as unit:
        await find_account(unit, account_id)
        found: list[Exchange] = []
        for each in Mode if mode is None else (mode,):
            found += await unit[Exchange].find(
                account_id=account_id, mode=each, order=_NEWEST_FIRST, limit=limit, readable=True
            )
    return sorted(found, key=lambda exchange: (exchange.created_at, exchange.id), reverse=True)[:limit]


async def cancel_exchange(ports: Ports, caller: Caller, exchange_id: str) -> Exchange:
    """Cancel an exchange before its client has sent money. The chain is read first, because transfers on their way
    count.

    Raises: Refusal EXCHANGE_NOT_FOUND; INVALID_STATE once USDT were seen or the exchange is over; PROVIDER_UNAVAILABLE
    while the chain or the bank does not answer.
    """
    return await _cancel(ports, await get_exchange(ports, caller, exchange_id), _MERCHANT_CANCELS)


@in_test_time(Exchange)
async def cancel_any_exchange(ports: Ports, exchange_id: str) -> Exchange:
    """Cancel an exchange as an operator, even if it awaits RUB. Raises: as `cancel_exchange`."""
    exchange = await ports.storage.get(Exchange, exchange_id) if ids.is_prefixed(ids.EXCHANGE, exchange_id) else None
    if exchange is None:
        raise _not_found()
    return await _cancel(ports, exchange, CANCELLABLE)


async def _cancel(ports: Ports, exchange: Exchange, allowed: Collection[ExchangeStatus]) -> Exchange:
    _require_cancellable(exchange, allowed)
    try:
        seen = await seen_funds(ports, exchange)
    except NO_ANSWER:
        raise Refusal(
            "PROVIDER_UNAVAILABLE",
            "The service cannot find out at the moment whether money was sent; try again",
            retry_after=30,
        ) from None
    _require_cancellable(await take_funds(ports, exchange, seen), allowed)
    if any(not incoming.is_final for incoming in seen):
        raise Refusal("INVALID_STATE", "USDT are on their way to the exchange's address")

    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange.id)
        _require_cancellable(present, allowed)
        await WATCH_EXCHANGE.hurry(unit, present.id, ports.clock.now())
        return await move(ports, unit, present, ExchangeTrigger.CALLED_OFF)

    return await retrying(ports.storage, work)


def _require_cancellable(exchange: Exchange, allowed: Collection[ExchangeStatus]) -> None:
    if exchange.status not in allowed:
        raise Refusal(
            "INVALID_STATE", f"The exchange is {exchange.status}; it can only be cancelled before money arrives"
        )


def _not_found() -> Refusal:
    return Refusal("EXCHANGE_NOT_FOUND", "No exchange of this id")


@unit_of_work(again_on=("direction_switches_id",))
async def set_direction(ports: Ports, unit: Unit, direction: Direction, *, is_on: bool) -> DirectionSwitch:
    """Switch a direction off or on for all merchants (operators only). Exchanges under way continue."""
    present = await unit[DirectionSwitch].get(direction)
    wanted = DirectionSwitch(id=direction.value, is_on=is_on, since=ports.clock.now())
    if present is None:
        return unit[DirectionSwitch].add(wanted)
    if present.is_on is is_on:
        return present
    return unit[DirectionSwitch].save(msgspec.structs.replace(wanted, version=present.version))
