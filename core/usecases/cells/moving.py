"""The move of an account to another cell: copied while it works, then held for seconds, compared, and switched
(docs/cells.md "Moving an account").

The account is where its Account row is, and the unit that writes this row in the target decides. Before it, every
failure is undone; after it, the move can only be finished, by calling it again.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from ....ports.faults import Conflict
from ....ports.jobs import Job
from ....ports.storage import OneOf, Unit
from ...domain.accounts.accounts import Account, ApiKey, KeyUse, Mode
from ...domain.cells import AccountMove, Departure, Stage
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import FINAL, Exchange
from ...domain.kyc.kyc import Upload
from ...domain.ledger import JournalEntry
from ...domain.operators.audit import OperatorAction
from ...domain.operators.pending_actions import OPEN, PendingAction
from ...domain.payments.payment_links import PaymentLink
from ...domain.payments.payments import Payment
from ...domain.people.notifications import TelegramChat
from ...domain.people.people import Membership, Passkey, Session, User
from ...domain.settlement.settlement import Settlement
from ...domain.settlement.withdrawals import GIVEN_BACK, Withdrawal, WithdrawalStatus
from ...domain.subscriptions.subscriptions import Subscription
from ..actions.audit import add_row
from ..common.chains import HEAD_RULE, begin_chains
from ..common.units import retrying
from ..ledger.listing import list_fresh
from ..vault_checks import PEPPER, misfits, present_checks
from .books import copy_entries, empty, fill, last_number, list_places, merchant_sums
from .cell import Cell
from .copying import Walk, copy_notes, copy_rows, recognise, sealed_for
from .plan import AT_ONCE, PARENTS, ROWS, Found, Lot, note, present

PASSES = 5
"""Copies before the hold at most. Each copies what changed during the one before."""
FEW = 200
"""Rows of a copy after which the next one may be done under the hold."""
SHOWN = timedelta(days=2)
"""Age of payments whose window may still be opened: their links lead on to the other cell."""
_SETTLED_STATES = GIVEN_BACK | {WithdrawalStatus.COMPLETED}

log = logging.getLogger("cambist.cells")


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a move."""

    account_id: str
    source: str
    target: str
    rows: Mapping[str, int]
    """Number of rows by table."""
    entries: int
    held_seconds: float
    """How long changes were refused. A resumed move counts from the first hold."""
    resumed: bool


async def move_account(
    source: Cell,
    target: Cell,
    account_id: str,
    *,
    action: OperatorAction,
    settled: float,
    switch: Callable[[], Awaitable[None]],
) -> Move:
    """Move an account, or finish its move. `settled`: seconds after which no process of the source still changes a held
    account. `switch` is called once requests should go to the target.

    Raises: Refusal ACCOUNT_NOT_FOUND, INVALID_STATE with the reason; Unavailable when a database fails. If it failed in
    the deciding unit, the account stays held, because the unit may have been written: call it again, or `undo_move`.
    """
    _require_cells(source, target)
    here = await source.storage.get(Account, account_id)
    there = await target.storage.get(Account, account_id)
    move = await source.storage.get(AccountMove, account_id)
    if there is None and here is None:
        raise Refusal("ACCOUNT_NOT_FOUND", f"The account is not in {source.name}")
    if move is not None and move.cell != target.name:
        raise Refusal("INVALID_STATE", f"A move of the account to {move.cell} is not finished")
    if there is not None and move is None:
        raise Refusal("INVALID_STATE", f"The account is in {target.name} already")
    if there is None:
        walk = await _copied(source, target, account_id, settled)
        try:
            await _commit(source, target, account_id, walk, action)
        except (Conflict, Refusal):
            await undo_move(source, target, account_id)
            raise
    else:
        walk = Walk(Found(account_id))
    await _forget_departures(target, account_id)
    await switch()
    left = await source.storage.get(AccountMove, account_id)
    held_at = source.now() if left is None else left.held_at
    held = (source.now() - held_at).total_seconds()
    await _clear(source, target, account_id, action)
    async with target.storage.unit() as unit:
        entries = await unit[JournalEntry].total(account_id=account_id)
    return Move(
        account_id=account_id,
        source=source.name,
        target=target.name,
        rows=dict(walk.rows),
        entries=entries,
        held_seconds=held,
        resumed=move is not None,
    )


async def undo_move(source: Cell, target: Cell, account_id: str) -> None:
    """End a move that did not happen: the account takes changes again, and the target forgets its copy. Raises: Refusal
    INVALID_STATE once the account is in the target; Fault."""
    if await target.storage.get(Account, account_id) is not None:
        raise Refusal("INVALID_STATE", f"The account is in {target.name}: finish the move")
    await _release(source, account_id)
    await _forget(target, account_id)

    async def work(unit: Unit) -> None:
        arriving = await unit[AccountMove].get(account_id)
        if arriving is not None and arriving.stage is Stage.ARRIVING:
            if await unit[JournalEntry].find(account_id=account_id, limit=1):
                unit[AccountMove].save(msgspec.structs.replace(arriving, stage=Stage.LEFT, left_at=target.now()))
            else:
                unit[AccountMove].remove(arriving)

    await retrying(target.storage, work)


def _require_cells(source: Cell, target: Cell) -> None:
    if source.name == target.name:
        raise Refusal("INVALID_STATE", f"The account is in {source.name} already")
    if PEPPER in misfits(target.ports.vault, present_checks(source.ports.vault)):
        raise Refusal(
            "INVALID_STATE", "The cells have different peppers: API keys of one would not open anything in the other"
        )


async def _copied(source: Cell, target: Cell, account_id: str, settled: float) -> Walk:
    """Copy the account, and hold it at the end. Undo both if that fails."""
    await _require_movable(source, account_id)
    await _require_files(source, target, account_id)
    try:
        behind = await _copy_at_work(source, target, account_id)
        await _hold(source, target, account_id)
        await source.ports.clock.sleep(settled)
        await _require_movable(source, account_id)
        return await _copy_at_rest(source, target, account_id, behind)
    except BaseException as fault:
        log.warning("the move of %s is undone: %r", account_id, fault)
        await undo_move(source, target, account_id)
        raise


async def _copy_at_work(source: Cell, target: Cell, account_id: str) -> int:
    """Copy the account while it changes. Return the length of the journal's chain before the copy."""
    await _mark(target, account_id, Stage.ARRIVING, source)
    behind = await last_number(source.storage)
    await copy_entries(source, target, account_id)
    for _ in range(PASSES):
        if (await copy_rows(source, target, account_id)).written < FEW:
            break
    return behind


async def _copy_at_rest(source: Cell, target: Cell, account_id: str, behind: int) -> Walk:
    """Copy what changed since, until a comparison of all rows finds no difference. Raises: Refusal INVALID_STATE."""
    await _list_movements(source, account_id)
    await copy_entries(source, target, account_id, behind)
    await list_places(source, target, account_id)
    await fill(source, target, account_id)
    for _ in range(PASSES):
        walk = await copy_rows(source, target, account_id)
        if not walk.written:
            await copy_notes(source, target, walk)
            await _require_same_balances(source, target, account_id)
            return walk
    raise Refusal("INVALID_STATE", "The account's rows change although it is held")


async def _require_movable(source: Cell, account_id: str) -> None:
    """Refuse while something is under way that belongs to the source: money that its wallet sends, deposits to its
    addresses, an unfinished statement, and actions that wait for a second person."""
    blockers: list[str] = []
    mine: dict[str, Any] = {"account_id": account_id}
    storage = source.storage
    async for payouts in storage.scan(Withdrawal, **mine):
        blockers += [f"payout {each.id} is {each.status}" for each in payouts if each.status not in _SETTLED_STATES]
    async for exchanges in storage.scan(Exchange, **mine):
        blockers += [f"exchange {each.id} is {each.status}" for each in exchanges if each.status not in FINAL]
    async for statements in storage.scan(Settlement, **mine):
        blockers += [f"settlement {each.id} is not completed" for each in statements if each.completed_at is None]
    async for actions in storage.scan(PendingAction, **mine):
        blockers += [f"{each.id} ({each.action}) is {each.status}" for each in actions if each.status in OPEN]
    if blockers:
        rest = "" if len(blockers) == 1 else f", and {len(blockers) - 1} more"
        raise Refusal("INVALID_STATE", f"The account cannot move yet: {blockers[0]}{rest}")


async def _require_files(source: Cell, target: Cell, account_id: str) -> None:
    async for uploads in source.storage.scan(Upload, account_id=account_id):
        for upload in uploads:
            if await source.ports.files.stat(upload.id) and not await target.ports.files.stat(upload.id):
                raise Refusal(
                    "INVALID_STATE",
                    f"{target.name} cannot read the account's documents: the cells need one store of files",
                )


async def _mark(cell: Cell, account_id: str, stage: Stage, other: Cell) -> None:
    """Write how far the move is. A later call finds the same. The first account of a cell brings its chains."""

    async def work(unit: Unit) -> None:
        await begin_chains(cell.ports, unit)
        known = await unit[AccountMove].get(account_id)
        pay_url = other.ports.urls.pay_url
        made = AccountMove(id=account_id, stage=stage, cell=other.name, pay_url=pay_url, held_at=cell.now())
        if known is None:
            unit[AccountMove].add(made)
        elif known.stage is not stage or known.cell != other.name:
            unit[AccountMove].save(msgspec.structs.replace(made, version=known.version))

    await retrying(cell.storage, work, again_on=(HEAD_RULE,))


async def _hold(source: Cell, target: Cell, account_id: str) -> None:
    await _mark(source, account_id, Stage.LEAVING, target)

    async def work(unit: Unit) -> None:
        account = await unit[Account].get(account_id)
        if account is not None and account.moving_to != target.name:
            unit[Account].save(msgspec.structs.replace(account, moving_to=target.name))

    await retrying(source.storage, work)


async def _release(source: Cell, account_id: str) -> None:
    async def work(unit: Unit) -> None:
        account, move = await unit[Account].get(account_id), await unit[AccountMove].get(account_id)
        if account is not None and account.moving_to is not None:
            unit[Account].save(msgspec.structs.replace(account, moving_to=None))
        if move is not None:
            unit[AccountMove].remove(move)

    await retrying(source.storage, work)


async def _list_movements(source: Cell, account_id: str) -> None:
    ports = msgspec.structs.replace(source.ports, storage=source.storage)
    for mode in Mode:
        await list_fresh(ports, account_id, mode)


async def _require_same_balances(source: Cell, target: Cell, account_id: str) -> None:
    """Compare what the last copy of the rows has not compared. Raises: Refusal INVALID_STATE."""
    here, there = await merchant_sums(source, account_id), await merchant_sums(target, account_id)
    if here != there:
        raise Refusal("INVALID_STATE", f"The balances differ: {here} and {there}")


async def _commit(source: Cell, target: Cell, account_id: str, walk: Walk, action: OperatorAction) -> None:
    """Write the account with its keys and jobs in the target. From then on it is there."""
    account = await source.storage.get(Account, account_id)
    if account is None or account.moving_to != target.name:
        raise Refusal("INVALID_STATE", "The account is not held any more")
    here, there = source.ports.vault, target.ports.vault
    async with source.storage.unit() as unit:
        keys = await unit[ApiKey].find(account_id=account_id, limit=10_000)
    uses = await present(source.storage, KeyUse, [key.id for key in keys])
    jobs = await _jobs(source, walk)

    async def work(unit: Unit) -> None:
        unit[Account].add(sealed_for(here, msgspec.structs.replace(account, moving_to=None), there))
        for record, rows in ((ApiKey, keys), (KeyUse, uses)):
            known = {each.id for each in await present(target.storage, record, [row.id for row in rows])}
            for row in rows:
                if row.id not in known:
                    unit[record].add(sealed_for(here, row, there))
        known = {each.id for each in await present(target.storage, Job, [job.id for job in jobs])}
        for job in jobs:
            if job.id not in known:
                unit[Job].add(msgspec.structs.replace(job, leased_until=None))
        arriving = await unit[AccountMove].get(account_id)
        if arriving is not None:
            unit[AccountMove].remove(arriving)
        add_row(target.ports, unit, action, account_id=account_id, after=f"from {source.name}")

    await retrying(target.storage, work)


async def _jobs(source: Cell, walk: Walk) -> list[Job]:
    found: list[Job] = []
    async for batch in source.storage.scan(Job, batch=AT_ONCE):
        found += [job for job in batch if walk.owns(job.argument) or walk.owns(job.id)]
    return found


async def _clear(source: Cell, target: Cell, account_id: str, action: OperatorAction) -> None:
    """Take the account out of the cell that it left. A call after a crash continues."""
    walk = await _walk(source, account_id)
    async with source.storage.unit() as unit:
        keys = await unit[ApiKey].find(account_id=account_id, limit=10_000)
    await _note_departures(source, account_id, [key.id for key in keys])
    for job in await _jobs(source, walk):
        await _remove(source, Job, [job.id])
    await _remove(source, Account, [account_id])
    await _remove(source, KeyUse, [key.id for key in keys])
    await _remove(source, ApiKey, [key.id for key in keys])
    await _forget(source, account_id)

    async def work(unit: Unit) -> None:
        move = await unit[AccountMove].get(account_id)
        if move is not None and move.stage is not Stage.LEFT:
            unit[AccountMove].save(msgspec.structs.replace(move, stage=Stage.LEFT, left_at=source.now()))
            add_row(source.ports, unit, action, account_id=account_id, after=f"to {target.name}")

    await retrying(source.storage, work)


async def _walk(cell: Cell, account_id: str) -> Walk:
    """Return what leads to an account's rows and jobs."""
    walk = Walk(Found(account_id))
    recognise(walk, Account, [account_id])
    for rows in ROWS:
        async for batch in rows.find(cell.storage, walk.found):
            note(walk.found, rows.record, batch)
            recognise(walk, rows.record, [row.id for row in batch])
    return walk


async def _note_departures(source: Cell, account_id: str, keys: Sequence[str]) -> None:
    """Remember for which keys, and objects with hosted pages, requests may still come to this cell."""
    await _depart(source, account_id, keys)
    since = source.now() - SHOWN
    for record in (PaymentLink, Subscription):
        async for batch in source.storage.scan(record, batch=AT_ONCE, account_id=account_id):
            await _depart(source, account_id, [row.id for row in batch])
    async for payments in source.storage.scan(Payment, batch=AT_ONCE, account_id=account_id):
        await _depart(source, account_id, [row.id for row in payments if row.created_at >= since])


async def _depart(source: Cell, account_id: str, ids: Sequence[str]) -> None:
    async def work(unit: Unit) -> None:
        known = {each.id for each in await unit[Departure].find(id=OneOf(tuple(ids)), limit=len(ids))}
        for each in ids:
            if each not in known:
                unit[Departure].add(Departure(id=each, account_id=account_id))

    if ids:
        await retrying(source.storage, work, again_on=("departures_id",))


async def _forget_departures(cell: Cell, account_id: str) -> None:
    async for batch in cell.storage.scan(Departure, batch=AT_ONCE, account_id=account_id):
        await _remove(cell, Departure, [row.id for row in batch])


async def _forget(cell: Cell, account_id: str) -> None:
    """Delete the account's rows from a cell where it is not. Children go first, so that a later call finds the rest."""
    found = Found(account_id)
    for rows in ROWS:
        if rows.record in PARENTS or rows.record.__name__.endswith("Delivery"):
            async for batch in rows.find(cell.storage, found):
                note(found, rows.record, batch)
    members = [member_id.partition(":")[2] for member_id in found.ids.get(Membership, ())]
    for rows in reversed(ROWS):
        if rows.lot is Lot.COPIED:
            continue
        if rows.record is Membership:
            await _forget_people(cell, account_id, members)
        async for batch in rows.find(cell.storage, found):
            await _remove(cell, rows.record, [row.id for row in batch])
    await empty(cell, account_id)


async def _forget_people(cell: Cell, account_id: str, people: Sequence[str]) -> None:
    """Delete the account's sessions, and persons without another account in the cell."""
    for user_id in people:
        async for sessions in cell.storage.scan(Session, user_id=user_id, account_id=account_id):
            await _remove(cell, Session, [row.id for row in sessions])
        async with cell.storage.unit() as unit:
            others = await unit[Membership].find(user_id=user_id, limit=2)
        if any(each.account_id != account_id for each in others):
            continue
        async for passkeys in cell.storage.scan(Passkey, user_id=user_id):
            await _remove(cell, Passkey, [row.id for row in passkeys])
        await _remove(cell, TelegramChat, [user_id])
        await _remove(cell, User, [user_id])


async def _remove(cell: Cell, record: type[Any], ids: Sequence[str]) -> None:
    async def work(unit: Unit) -> None:
        for row in await unit[record].find(id=OneOf(tuple(ids)), limit=max(len(ids), 1)):
            unit[record].remove(row)

    if ids:
        await retrying(cell.storage, work)
