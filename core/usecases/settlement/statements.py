"""Settlements as merchants read them (docs/settlement.md "Reconciling"): statements and their lines."""

from collections.abc import AsyncIterator, Sequence

from ....ports.bundle import Ports
from ....ports.storage import Between
from ...domain import ids
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal
from ...domain.settlement.settlement import Settlement, SettlementItem, item_ids
from ..common.keyset import Cursor, KeysetPage, Listed, Listing, keyset_page, read_listing
from ..common.paging import MomentFilter, Page, list_newest


async def list_settlements(
    ports: Ports, caller: Caller, asked: MomentFilter, number: int, size: int
) -> Page[Settlement]:
    """Return the caller's statements, including unfinished ones, by start time, newest first. Raises: Refusal
    VALIDATION_ERROR."""
    owner = {"account_id": caller.account_id, "mode": caller.mode}
    return await list_newest(ports, Settlement, number, size, order="-started_at", started_at=asked.made(), **owner)


async def browse_settlements(
    ports: Ports, caller: Caller, asked: MomentFilter, cursor: Cursor | None, size: int
) -> Listed[Settlement]:
    """Return a page of the statements of `list_settlements` by cursor. Raises: Refusal VALIDATION_ERROR."""
    owner = {"account_id": caller.account_id, "mode": caller.mode}
    wanted = Listing(kind=Settlement, criteria=owner, made=asked.made(), moment="started_at")
    return await read_listing(ports, wanted, cursor, size)


async def get_settlement(ports: Ports, caller: Caller, settlement_id: str) -> Settlement:
    """Return one statement. Raises: Refusal SETTLEMENT_NOT_FOUND, also for one of another account or mode."""
    settlement = None
    if ids.is_prefixed(ids.SETTLEMENT, settlement_id):
        settlement = await ports.storage.get(Settlement, settlement_id)
    if settlement is None or (settlement.account_id, settlement.mode) != (caller.account_id, caller.mode):
        raise Refusal("SETTLEMENT_NOT_FOUND", "No settlement of this id")
    return settlement


async def list_items(
    ports: Ports, caller: Caller, settlement_id: str, number: int, size: int
) -> tuple[Settlement, Page[SettlementItem]]:
    """Return a statement and a page of its lines, in the order of payments. Raises: Refusal SETTLEMENT_NOT_FOUND."""
    settlement = await get_settlement(ports, caller, settlement_id)
    items: list[SettlementItem] = []
    if (number - 1) * size < settlement.items:
        async with ports.storage.unit() as unit:
            span = Between(*item_ids(settlement.id))
            items = await unit[SettlementItem].page(number, size, order="id", id=span)
    return settlement, Page(items, number, size, settlement.items)


async def browse_items(
    ports: Ports, caller: Caller, settlement_id: str, cursor: Cursor | None, size: int
) -> tuple[Settlement, KeysetPage[SettlementItem]]:
    """Return a statement and a page of its lines by cursor, those of the newest payments first. Raises: Refusal
    SETTLEMENT_NOT_FOUND."""
    settlement = await get_settlement(ports, caller, settlement_id)
    wanted = Listing(kind=SettlementItem, criteria={}, ids=Between(*item_ids(settlement.id)), is_by_id=True)
    async with ports.storage.snapshot() as seen:
        return settlement, await keyset_page(seen, wanted, cursor, size)


async def all_items(
    ports: Ports, caller: Caller, settlement_id: str
) -> tuple[Settlement, AsyncIterator[Sequence[SettlementItem]]]:
    """Return a statement and all its lines in batches, so that memory use does not grow with the statement. Raises:
    Refusal SETTLEMENT_NOT_FOUND."""
    settlement = await get_settlement(ports, caller, settlement_id)
    return settlement, ports.storage.scan(SettlementItem, id=Between(*item_ids(settlement.id)))
