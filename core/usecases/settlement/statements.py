"""What merchants read of their settlements (docs/settlement.md "Reconciling"): the statements, and each of their
lines."""

from collections.abc import AsyncIterator, Sequence

from ....ports.bundle import Ports
from ....ports.storage import Between
from ...domain import ids
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal
from ...domain.settlement.settlement import Settlement, SettlementItem, item_ids
from ..paging import MomentFilter, Page, list_newest


async def list_settlements(
    ports: Ports, caller: Caller, asked: MomentFilter, number: int, size: int
) -> Page[Settlement]:
    """The caller's statements by when they were started, newest first; one that is being made among them. Raises:
    Refusal VALIDATION_ERROR."""
    owner = {"account_id": caller.account_id, "mode": caller.mode}
    return await list_newest(ports, Settlement, number, size, order="-started_at", started_at=asked.made(), **owner)


async def get_settlement(ports: Ports, caller: Caller, settlement_id: str) -> Settlement:
    """One statement. Raises: Refusal SETTLEMENT_NOT_FOUND, also for one of another account or mode."""
    settlement = None
    if ids.is_prefixed(ids.SETTLEMENT, settlement_id):
        settlement = await ports.storage.get(Settlement, settlement_id)
    if settlement is None or (settlement.account_id, settlement.mode) != (caller.account_id, caller.mode):
        raise Refusal("SETTLEMENT_NOT_FOUND", "No settlement of this id")
    return settlement


async def list_items(
    ports: Ports, caller: Caller, settlement_id: str, number: int, size: int
) -> tuple[Settlement, Page[SettlementItem]]:
    """A statement and a page of its lines, in the order of payments. Raises: Refusal SETTLEMENT_NOT_FOUND."""
    settlement = await get_settlement(ports, caller, settlement_id)
    items: list[SettlementItem] = []
    if (number - 1) * size < settlement.items:
        async with ports.storage.unit() as unit:
            span = Between(*item_ids(settlement.id))
            items = await unit[SettlementItem].page(number, size, order="id", id=span)
    return settlement, Page(items, number, size, settlement.items)


async def all_items(
    ports: Ports, caller: Caller, settlement_id: str
) -> tuple[Settlement, AsyncIterator[Sequence[SettlementItem]]]:
    """Every line of a statement, a batch at a time: a statement of a million payments takes no more memory than a small
    one. Raises: Refusal SETTLEMENT_NOT_FOUND."""
    settlement = await get_settlement(ports, caller, settlement_id)
    return settlement, ports.storage.scan(SettlementItem, id=Between(*item_ids(settlement.id)))
