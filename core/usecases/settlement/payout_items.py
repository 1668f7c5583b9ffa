"""Lines of a payout (docs/settlement.md "What a payout is made of"): every movement of available USDT since the
previous payout, with the balances carried in and out. The lines sum to the payout's amount."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account, Caller
from ...domain.errors import Refusal
from ...domain.ledger import EntryKind, JournalEntry, entry_id
from ...domain.money import Usdt
from ...domain.movements import Balance, Movement, Sorts, movement_id, sort_of
from ...domain.settlement.withdrawals import Withdrawal
from ..common.paging import Page
from ..ledger.movements import Span, batches_of, bring_up
from .withdrawals import get_withdrawal


class CarryKind(StrEnum):
    """Kind of a line that is not a movement."""

    CARRIED_IN = "carried_in"
    """Balance that the previous payout left."""
    CARRIED_OUT = "carried_out"
    """Balance that this payout leaves, with a negative sign: less than the network can move, or reserved for
    refunds."""
    CORRECTED = "corrected"
    """Difference between the wallet's transfer and the reserved amount, after an operator accepted the transfer."""


_AVAILABLE = Sorts(balance=Balance.AVAILABLE)
_RESERVED = EntryKind.PAYOUT_RESERVED


class PayoutItem(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    kind: EntryKind | CarryKind
    amount: Usdt
    at: datetime
    movement: Movement | None = None
    """None for a line that is not a movement."""


class _Made(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a payout, without those of movements, which are read later."""

    head: list[PayoutItem]
    tail: list[PayoutItem]
    span: Span
    before: int
    """Number of movements of available USDT before the span."""
    count: int
    """Number of such movements in the span."""


async def list_payout_items(
    ports: Ports, caller: Caller, withdrawal_id: str, number: int, size: int
) -> Page[PayoutItem]:
    """Return a page of a payout's lines, in the order of time.

    Raises: Refusal WITHDRAWAL_NOT_FOUND; PROVIDER_UNAVAILABLE while movements are being listed.
    """
    items, total = await _lines(ports, caller, withdrawal_id, (number - 1) * size, size)
    return Page(items, number, size, total)


async def _lines(
    ports: Ports, caller: Caller, withdrawal_id: str, offset: int, limit: int
) -> tuple[list[PayoutItem], int]:
    """Return up to `limit` lines from `offset` on, and the total number of lines."""
    withdrawal = await get_withdrawal(ports, caller, withdrawal_id)
    await bring_up(ports, caller)
    async with ports.storage.unit() as unit:
        made = await _made(unit, caller, withdrawal)
        # The lines are the head, then the movements, then the tail. Map the requested range to each of them.
        low, high = offset - len(made.head), offset + limit - len(made.head)
        first, last = max(low, 0), min(high, made.count)
        movements = await made.span.of(made.before + first + 1, made.before + last)
    items = [*made.head[offset : offset + limit], *map(_item, movements)]
    items += made.tail[max(low - made.count, 0) : max(high - made.count, 0)]
    return items, len(made.head) + made.count + len(made.tail)


async def payout_items_of(ports: Ports, withdrawal_id: str, limit: int, *, offset: int = 0) -> list[PayoutItem]:
    """Return lines of any payout, for operators. Raises: as `list_payout_items`."""
    return (await _lines(ports, await _caller(ports, withdrawal_id), withdrawal_id, offset, limit))[0]


async def every_payout_item_of(ports: Ports, withdrawal_id: str) -> AsyncIterator[Sequence[PayoutItem]]:
    """Return all lines of any payout in batches, for operators. Raises: as `list_payout_items`."""
    return (await all_payout_items(ports, await _caller(ports, withdrawal_id), withdrawal_id))[1]


async def _caller(ports: Ports, withdrawal_id: str) -> Caller:
    """Return the merchant of a payout as a caller. Raises: Refusal WITHDRAWAL_NOT_FOUND."""
    found = await ports.storage.get(Withdrawal, withdrawal_id)
    account = None if found is None else await ports.storage.get(Account, found.account_id)
    if found is None or account is None:
        raise Refusal("WITHDRAWAL_NOT_FOUND", "No withdrawal of this id")
    return Caller(account=account, mode=found.mode, key_id="")


async def all_payout_items(
    ports: Ports, caller: Caller, withdrawal_id: str
) -> tuple[Withdrawal, AsyncIterator[Sequence[PayoutItem]]]:
    """Return a payout and all its lines in batches. Raises: as `list_payout_items`."""
    withdrawal = await get_withdrawal(ports, caller, withdrawal_id)
    await bring_up(ports, caller)
    async with ports.storage.unit() as unit:
        made = await _made(unit, caller, withdrawal)
    return withdrawal, _batches(ports, made)


async def _batches(ports: Ports, made: _Made) -> AsyncIterator[Sequence[PayoutItem]]:
    yield made.head
    async for batch in batches_of(ports, made.span, lambda movement: _AVAILABLE.takes(sort_of(movement))):
        yield [_item(movement) for movement in batch]
    yield made.tail


async def _made(unit: Unit, caller: Caller, withdrawal: Withdrawal) -> _Made:
    whole = Span(unit=unit, account_id=caller.account_id, mode=caller.mode, low=1, high=1, sorts=_AVAILABLE)
    own = await _reserved(unit, caller, withdrawal, 1)
    if own is None:
        raise LookupError(f"nothing was reserved for {withdrawal.id}")
    earlier = await _payout_before(msgspec.structs.replace(whole, high=own.number, sorts=Sorts(kind=_RESERVED)))
    head, tail = [], []
    if earlier is not None and earlier.available_after != Usdt(0):
        head.append(PayoutItem(kind=CarryKind.CARRIED_IN, amount=earlier.available_after, at=earlier.at))
    corrected = await _reserved(unit, caller, withdrawal, 2)
    if corrected is not None:
        tail.append(PayoutItem(kind=CarryKind.CORRECTED, amount=Usdt(0) - corrected.available, at=corrected.at))
    if own.available_after != Usdt(0):
        tail.append(PayoutItem(kind=CarryKind.CARRIED_OUT, amount=Usdt(0) - own.available_after, at=own.at))
    low = 1 if earlier is None else earlier.number + 1
    span = msgspec.structs.replace(whole, low=low, high=own.number)
    before, until = await span.counted()
    return _Made(head=head, tail=tail, span=span, before=before, count=until - before)


async def _reserved(unit: Unit, caller: Caller, withdrawal: Withdrawal, revision: int) -> Movement | None:
    entry = await unit[JournalEntry].get(entry_id(_RESERVED, withdrawal.id, revision))
    if entry is None or not entry.place:
        return None
    return await unit[Movement].get(movement_id(caller.account_id, caller.mode, entry.place))


async def _payout_before(reservations: Span) -> Movement | None:
    """Return the last payout reserved in the span. An entry that only corrects a reservation does not count."""
    _, ordinal = await reservations.counted()
    while ordinal:
        [found] = await reservations.of(ordinal, ordinal)
        if found.revision == 1:
            return found
        ordinal -= 1
    return None


def _item(movement: Movement) -> PayoutItem:
    return PayoutItem(kind=movement.kind, amount=movement.available, at=movement.at, movement=movement)
