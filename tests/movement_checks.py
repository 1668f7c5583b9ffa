"""Check movements against the journal and the balances (docs/settlement.md "Movements"): for every account and mode
their sum is the balance, and a listed movement never changes."""

from collections import defaultdict

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.ledger import BALANCE_TYPES, BalanceType, EntryKind, JournalEntry, moves_balance
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.movements import Movement, movement_id, movement_ids, sort_of
from cambist.core.domain.settlement.withdrawals import Withdrawal
from cambist.core.usecases.ledger.ledger import balance_types
from cambist.core.usecases.ledger.listing import list_fresh
from cambist.core.usecases.settlement.payout_items import PayoutItem, all_payout_items, list_payout_items
from cambist.ports.bundle import Ports
from cambist.ports.storage import Between

_SIZE = 3
"""Page size."""


async def movements_of(ports: Ports, account_id: str, mode: Mode) -> list[Movement]:
    """Return all movements of the account, in the order of the list."""
    span = Between(*movement_ids(account_id, mode))
    return [movement async for batch in ports.storage.scan(Movement, id=span) for movement in batch]


async def check_movements(ports: Ports) -> None:
    """List what is fresh. Raises AssertionError where a movement does not follow from its entry and those before it, an
    entry is listed twice or not at all, or the last balance is not that of GET /balance."""
    entries: defaultdict[tuple[str, Mode], list[JournalEntry]] = defaultdict(list)
    owners = {account.id async for batch in ports.storage.scan(Account) for account in batch}
    for owner in owners:
        for mode in Mode:
            before = await movements_of(ports, owner, mode)
            assert await list_fresh(ports, owner, mode)
            assert (await movements_of(ports, owner, mode))[: len(before)] == before, (owner, mode)
    async for batch in ports.storage.scan(JournalEntry):
        for entry in batch:
            if entry.account_id in owners and entry.kind not in (EntryKind.MOVED_OUT, EntryKind.MOVED_IN):
                assert (entry.place != 0) is moves_balance(entry.postings), entry.id
                entries[entry.account_id, entry.mode].append(entry)
    for owner in owners:
        for mode in Mode:
            listed = await movements_of(ports, owner, mode)
            by_place = {entry.place: entry for entry in entries[owner, mode] if entry.place}
            assert len(by_place) == len(listed) == sum(entry.place != 0 for entry in entries[owner, mode])
            _check_list(owner, mode, listed, by_place)
            async with ports.storage.unit() as unit:
                balance = await balance_types(unit, owner, mode)
            assert _after(listed[-1] if listed else None) == {
                balance_type: balance.get(balance_type, 0) for balance_type in BALANCE_TYPES
            }, (owner, mode)


async def check_payouts(ports: Ports) -> None:
    """Raises AssertionError where the lines of a payout do not sum to its amount, or those of the file are others."""
    async for batch in ports.storage.scan(Withdrawal):
        for withdrawal in batch:
            account = await ports.storage.get(Account, withdrawal.account_id)
            assert account is not None
            caller = Caller(account=account, mode=withdrawal.mode, key_id="a-key")
            lines: list[PayoutItem] = []
            total = 1
            while len(lines) < total:
                page = await list_payout_items(ports, caller, withdrawal.id, len(lines) // _SIZE + 1, _SIZE)
                assert page.records
                lines, total = [*lines, *page.records], page.total
            assert sum(line.amount.units for line in lines) == withdrawal.amount.units, (withdrawal.id, lines)
            _, file = await all_payout_items(ports, caller, withdrawal.id)
            assert [line async for some in file for line in some] == lines


def _check_list(owner: str, mode: Mode, listed: list[Movement], by_place: dict[int, JournalEntry]) -> None:
    sums = dict.fromkeys(BALANCE_TYPES, 0)
    counts: defaultdict[str, int] = defaultdict(int)
    for number, movement in enumerate(listed, 1):
        entry = by_place[number]
        assert (movement.id, movement.number) == (movement_id(owner, mode, number), number)
        assert movement.entry_id == entry.id
        for posting in entry.postings:
            if posting.balance_type in sums:
                sums[posting.balance_type] += posting.amount
        assert _after(movement) == sums, movement.id
        counts[sort_of(movement)] += 1
        assert movement.counts == counts, movement.id


def _after(movement: Movement | None) -> dict[BalanceType, int]:
    available = reserved = Usdt(0)
    pending = Rub(0)
    if movement is not None:
        available, reserved, pending = movement.available_after, movement.reserved_after, movement.pending_after
    return {
        BalanceType.AVAILABLE: available.units,
        BalanceType.RESERVED: reserved.units,
        BalanceType.PENDING: pending.kopecks,
    }
