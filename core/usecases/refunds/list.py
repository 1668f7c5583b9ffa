"""Lists of refunds: a merchant's, with filters, and the operators', over all accounts (docs/refunds.md "Finding
refunds").
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from ....ports.bundle import Ports
from ...domain import ids
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.accounts.shops import Shop
from ...domain.errors import Refusal, read_choice, shape_error
from ...domain.ids import canonical_uuid
from ...domain.refunds.orders import EXTERNAL_ID_LONGEST
from ...domain.refunds.refunds import Refund, RefundStatus
from ..accounts.accounts import find_account
from ..common.keyset import Cursor, Listed, listing_of, read_listing
from ..common.long_lists import LongList, long_page
from ..common.paging import ListFilter, Page, Position, newest, walk_newest
from .refunds import require_refunds

_NEWEST_FIRST = "-created_at"
_INDEXED = ("external_id", "status")
"""Filters with an index of their own that gives the order of time."""


class RefundFilter(ListFilter, frozen=True, kw_only=True):
    """Raw query values of GET /refunds; None when absent."""

    payment_id: str | None = None
    status: str | None = None
    shop_id: str | None = None


async def list_refunds(
    ports: Ports, caller: Caller, asked: RefundFilter, read_page: Callable[[], tuple[int, int]]
) -> Page[Refund]:
    """Return a page of the caller's refunds, newest first, as of one moment. `read_page` returns its number and size;
    it is called once the endpoint is known to be enabled.

    Raises: Refusal NOT_FOUND, VALIDATION_ERROR, SHOP_NOT_FOUND.
    """
    require_refunds(caller)
    number, size = read_page()
    criteria = _read(caller, asked)
    caller.require_shop(criteria.get("shop_id"))
    if criteria.keys() == {"account_id", "mode", "created_at"}:
        long = LongList(kind=Refund, caller=caller, name="refunds", made=criteria["created_at"])
        return await long_page(ports, long, number, size)
    await _require_shop(ports, caller, criteria.get("shop_id"))
    async with ports.storage.snapshot() as seen:
        return await newest(seen, Refund, number, size, **criteria)


async def browse_refunds(
    ports: Ports, caller: Caller, asked: RefundFilter, cursor: Cursor | None, size: int
) -> Listed[Refund]:
    """Return a page of the caller's refunds by cursor, newest first.

    Raises: Refusal NOT_FOUND, VALIDATION_ERROR, SHOP_NOT_FOUND.
    """
    require_refunds(caller)
    criteria = _read(caller, asked)
    caller.require_shop(criteria.get("shop_id"))
    await _require_shop(ports, caller, criteria.get("shop_id"))
    return await read_listing(ports, listing_of(Refund, criteria, _INDEXED), cursor, size)


async def walk_refunds(
    ports: Ports, caller: Caller, asked: RefundFilter, after: Position | None = None
) -> AsyncIterator[tuple[list[Refund], Position]]:
    """Return all refunds of the filter in batches, newest first, each with the position behind it; `after`: only the
    refunds behind this position. The filter is checked before the first batch.

    Raises: Refusal NOT_FOUND, VALIDATION_ERROR, SHOP_NOT_FOUND.
    """
    require_refunds(caller)
    filters = _read(caller, asked)
    caller.require_shop(filters.get("shop_id"))
    await _require_shop(ports, caller, filters.get("shop_id"))
    made = filters.pop("created_at")
    owner = {name: filters.pop(name) for name in ("account_id", "mode")}
    indexed = next((name for name in _INDEXED if name in filters), None)
    criteria = {} if indexed is None else {indexed: filters.pop(indexed)}

    def fits(refund: Refund) -> bool:
        return all(getattr(refund, name) == value for name, value in filters.items())

    return walk_newest(ports, Refund, made, after, fits, **owner, **criteria)


async def _require_shop(ports: Ports, caller: Caller, shop_id: str | None) -> None:
    """Raise Refusal SHOP_NOT_FOUND for a shop of another account."""
    if shop_id is not None:
        shop = await ports.storage.get(Shop, shop_id)
        if shop is None or shop.account_id != caller.account_id:
            raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this shop_id")


def _read(caller: Caller, asked: RefundFilter) -> dict[str, Any]:
    """Validate the filter. Raises: Refusal VALIDATION_ERROR for a value that no refund can have."""
    criteria = {"account_id": caller.account_id, "mode": caller.mode, **asked.criteria(EXTERNAL_ID_LONGEST)}
    if asked.payment_id is not None:
        if not ids.is_prefixed(ids.PAYMENT, asked.payment_id):
            raise shape_error("payment_id", "must be the id of a payment")
        criteria["payment_id"] = asked.payment_id
    if asked.status is not None:
        criteria["status"] = read_choice("status", asked.status, RefundStatus)
    if asked.shop_id is not None:
        shop_id = canonical_uuid(asked.shop_id)
        if shop_id is None:
            raise shape_error("shop_id", "must be a UUID")
        criteria["shop_id"] = shop_id
    return criteria


async def list_all_refunds(
    ports: Ports, *, account_id: str | None = None, status: RefundStatus | None = None, limit: int = 1000
) -> list[Refund]:
    """Return refunds of one account or of all, in both modes, newest first, for operators. Raises: Refusal
    ACCOUNT_NOT_FOUND.
    """
    if account_id is not None:
        async with ports.storage.unit() as unit:
            accounts = [await find_account(unit, account_id)]
        found = await _of_accounts(ports, accounts, status, limit)
    else:
        found = []
        async for batch in ports.storage.scan(Account, readable=True):
            # Keep only the newest, so that memory does not grow with the number of accounts.
            found = _newest([*found, *await _of_accounts(ports, batch, status, limit)], limit)
    return _newest(found, limit)


async def _of_accounts(
    ports: Ports, accounts: Sequence[Account], status: RefundStatus | None, limit: int
) -> list[Refund]:
    named: dict[str, Any] = {} if status is None else {"status": status}
    found: list[Refund] = []
    for account in accounts:
        for mode in Mode:
            async with ports.storage.unit() as unit:
                found += await unit[Refund].find(
                    account_id=account.id, mode=mode, order=_NEWEST_FIRST, limit=limit, **named
                )
        found = _newest(found, limit)
    return found


def _newest(refunds: list[Refund], limit: int) -> list[Refund]:
    return sorted(refunds, key=lambda refund: (refund.created_at, refund.id), reverse=True)[:limit]
