"""Payouts to merchants: created after each settlement, read by merchants, cancelled or requested by operators
(docs/settlement.md "Payouts"). withdrawal_progress.py sends them to the network."""

import logging
from heapq import nlargest
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, Unavailable
from ....ports.jobs import Job
from ....ports.payouts import SentTransfer
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.errors import Refusal
from ...domain.ledger import BalanceType, EntryKind
from ...domain.money import Usdt
from ...domain.settlement.settlement import Settlement
from ...domain.settlement.withdrawals import WITHDRAWAL_MOVES, Withdrawal, WithdrawalStatus, WithdrawalTrigger, payable
from ...domain.wallets import is_wallet_on
from ..accounts.accounts import find_account
from ..actions.four_eyes import gated
from ..common.account_time import in_test_time, in_test_time_of_account
from ..common.causes import caused_id
from ..common.encrypted import settings_fit, tag_withdrawal
from ..common.keyset import Cursor, Listed, Listing, read_listing
from ..common.paging import MomentFilter, Page, list_newest
from ..common.quarantine import holds_back
from ..common.units import retrying, unit_of_work
from ..ledger.ledger import LEDGER_RULES, balance_types, may_take
from ..refunds.waiting import kept_for_refunds
from ..signed_transfers.wallet import sent_before
from .withdrawal_progress import EXECUTE, PAYOUTS, advance, announce_withdrawal, book_payout

LONGEST_REASON = 255

RACES = (*LEDGER_RULES, "withdrawals_id", "jobs_id", "journal_id")
"""Unique rules whose Conflict means that another unit took the money or created the same payout first, so the work
reads again."""

log = logging.getLogger("cambist.payouts")


async def pay_out(
    ports: Ports, account_id: str, mode: Mode, *, batch_id: str | None = None, settlement_id: str | None = None
) -> Withdrawal | None:
    """Pay out all of a merchant's available USDT that the network can move. The rest stays available.

    Return None when there is nothing to pay, or no merchant's wallet on the network, or no wallet of ours. The balance
    then stays for the next settlement. It also stays in a quarantined copy, whose balance lacks later payouts. An
    amount that refunds wait for stays too, if the account is set so. The unit that creates the payout also reserves its
    amount, so a second call finds nothing to pay. `batch_id`: the settlement that causes the payout; None for a
    request. `settlement_id`: the batch's statement, if there is one. The statement names the first payout that follows
    it.
    """
    try:
        sender = ports.senders.of_mode(mode)
    except NotConfigured as fault:
        log.warning("nothing is paid out to account %s: %s", account_id, fault)
        return None

    async def work(unit: Unit) -> Withdrawal | None:
        account = await unit[Account].get(account_id)
        if account is None or account.settings.payout_wallet is None or await holds_back(ports, unit, mode):
            return None
        network = sender.capabilities.network.value
        if not is_wallet_on(network, account.settings.payout_wallet):
            log.warning("nothing is paid out to account %s: its payout_wallet is none on %s", account_id, network)
            return None
        kept = await kept_for_refunds(unit, account, mode)
        amount = await _take(unit, account_id, mode, sender.capabilities.step, kept)
        if amount is None:
            return None
        withdrawal = Withdrawal(
            id=await _id(ports, unit, account_id, mode, batch_id),
            account_id=account_id,
            mode=mode,
            status=WithdrawalStatus.PENDING,
            amount=amount,
            wallet=account.settings.payout_wallet,
            sender=sender.name,
            network=network,
            created_at=ports.clock.now(),
            settlement_id=settlement_id,
            sequence=1,
        )
        if settings_fit(ports.vault, account):
            withdrawal = tag_withdrawal(ports.vault, withdrawal)
        else:
            # It waits unsigned until an operator sees it (withdrawal_progress.py).
            log.error("settings of %s that move money are not what the vault tagged: nothing is signed", account_id)
        book_payout(ports, unit, withdrawal, EntryKind.PAYOUT_RESERVED, BalanceType.AVAILABLE, BalanceType.RESERVED)
        await announce_withdrawal(ports, unit, withdrawal, None)
        unit[Job].add(EXECUTE.first(withdrawal.id, withdrawal.created_at, withdrawal.created_at))
        if settlement_id is not None:
            statement = await unit[Settlement].get(settlement_id)
            if statement is not None and statement.withdrawal_id is None:
                unit[Settlement].save(msgspec.structs.replace(statement, withdrawal_id=withdrawal.id))
        return unit[Withdrawal].add(withdrawal)

    return await retrying(ports.storage, work, again_on=RACES)


def payout_id(ports: Ports, mode: Mode, batch_id: str, account_id: str, number: int) -> str:
    """Return the id of a batch's payout to a merchant. `number` counts from 1."""
    return caused_id(ports, mode, ids.WITHDRAWAL, batch_id, account_id, str(number))


async def _id(ports: Ports, unit: Unit, account_id: str, mode: Mode, batch_id: str | None) -> str:
    """Return the id of a batch's next payout to a merchant. Usually it is the first one. There is another one only if
    more money became available before the batch ended."""
    if batch_id is None:
        return ids.prefixed(ids.WITHDRAWAL, ports.ids.uuid())
    number, made = 1, payout_id(ports, mode, batch_id, account_id, 1)
    while await unit[Withdrawal].get(made) is not None:
        number += 1
        made = payout_id(ports, mode, batch_id, account_id, number)
    return made


async def _take(unit: Unit, account_id: str, mode: Mode, step: int, kept: Usdt) -> Usdt | None:
    """Return the amount to pay out: the available USDT less `kept`, as far as the network can move it. Guard it against
    concurrent takers. None if it is zero."""
    while True:
        available = Usdt((await balance_types(unit, account_id, mode)).get(BalanceType.AVAILABLE, 0))
        amount = payable(available - kept, step)
        if amount <= Usdt(0):
            return None
        if await may_take(unit, account_id, mode, amount, overdraft=Usdt(0)):
            return amount
        # A refund took some of it between the two reads.


@in_test_time_of_account
async def pay_out_now(ports: Ports, account_id: str, mode: Mode) -> Withdrawal:
    """Pay out on an operator's request, without waiting for the next settlement.

    Raises: Refusal ACCOUNT_NOT_FOUND; INVALID_STATE when there is no wallet or nothing to pay, or the installation is
    quarantined.
    """
    async with ports.storage.unit() as unit:
        account = await find_account(unit, account_id)
        if await holds_back(ports, unit, mode):
            raise Refusal("INVALID_STATE", "The installation is held: nothing is paid out until `cambist resume`")
    if account.settings.payout_wallet is None:
        raise Refusal("INVALID_STATE", "The account has no payout_wallet")
    try:
        capabilities = ports.senders.of_mode(mode).capabilities
    except NotConfigured as fault:
        raise Refusal("INVALID_STATE", f"Nothing can be paid out: {fault}") from None
    if not is_wallet_on(capabilities.network.value, account.settings.payout_wallet):
        raise Refusal("INVALID_STATE", f"The payout_wallet is no address of {capabilities.network}")
    withdrawal = await pay_out(ports, account.id, mode)
    if withdrawal is None:
        why = f"less than {Usdt(capabilities.step)} USDT is available and kept for no refund"
        raise Refusal("INVALID_STATE", f"There is nothing to pay out: {why}")
    return withdrawal


@in_test_time(Withdrawal)
async def cancel_withdrawal(ports: Ports, withdrawal_id: str, reason: str) -> Withdrawal:
    """Cancel a payout before it is signed. Its amount becomes available again. Either this call wins or the job that
    signs it, never both.

    Raises: Refusal WITHDRAWAL_NOT_FOUND; VALIDATION_ERROR for an empty or long reason; INVALID_STATE from `processing`
    on, because a signed transfer can still be sent, and when the wallet sent it in a time that a restored database
    lacks; PROVIDER_UNAVAILABLE while the wallet gives no answer, in which case nothing is signed either.
    """
    why = reason.strip()
    if not why or len(why) > LONGEST_REASON or not why.isprintable():
        raise Refusal("VALIDATION_ERROR", f"A reason has 1 to {LONGEST_REASON} printable characters")

    async def work(unit: Unit) -> Withdrawal:
        withdrawal = await _find(unit, withdrawal_id)
        if withdrawal.status is not WithdrawalStatus.PENDING:
            raise Refusal("INVALID_STATE", f"The withdrawal is {withdrawal.status}, not pending")
        await EXECUTE.drop(unit, withdrawal.id)
        return await advance(ports, unit, withdrawal, WithdrawalTrigger.CALLED_OFF, why)

    async with ports.storage.unit() as unit:
        seen = await _find(unit, withdrawal_id)
    if seen.status is WithdrawalStatus.PENDING:
        await _require_unsent(ports, seen)
    return await retrying(ports.storage, work)


async def _sent(ports: Ports, withdrawal: Withdrawal) -> SentTransfer | None:
    """Return the wallet's transfer for a payout that has none in our database. Raises: Refusal PROVIDER_UNAVAILABLE."""
    try:
        return await sent_before(ports.senders.named(withdrawal.sender), withdrawal.id)
    except NotConfigured:
        return None  # no wallet is left to query
    except Unavailable as fault:
        raise Refusal(
            "PROVIDER_UNAVAILABLE", f"The wallet did not report whether it sent the payout: {fault}", retry_after=30
        ) from None


@in_test_time(Withdrawal)
async def accept_sent(ports: Ports, withdrawal_id: str) -> Withdrawal:
    """Accept the wallet's transfer for a pending payout, although its amount or address differs from the payout's. This
    happens when a restored database settled anew. The payout takes the transfer's amount and address. A smaller
    transfer leaves the difference available; a larger one makes it the merchant's debt. The payout's job follows the
    transfer.

    Raises: Refusal WITHDRAWAL_NOT_FOUND; INVALID_STATE unless the payout is pending and the wallet sent a transfer for
    it; PROVIDER_UNAVAILABLE.
    """
    ports = gated(ports, "accept_sent", withdrawal_id)
    async with ports.storage.unit() as unit:
        seen = await _find(unit, withdrawal_id)
    sent = await _sent(ports, seen) if seen.status is WithdrawalStatus.PENDING else None

    async def work(unit: Unit) -> Withdrawal:
        withdrawal = await _find(unit, withdrawal_id)
        if withdrawal.status is not WithdrawalStatus.PENDING:
            raise Refusal("INVALID_STATE", f"The withdrawal is {withdrawal.status}, not pending")
        if sent is None:
            raise Refusal("INVALID_STATE", "The wallet sent nothing for the payout, or did not answer")
        more = sent.units - withdrawal.amount.units
        if more:
            book_payout(
                ports,
                unit,
                withdrawal,
                EntryKind.PAYOUT_RESERVED,
                BalanceType.AVAILABLE,
                BalanceType.RESERVED,
                corrected=more,
            )
        await EXECUTE.hurry(unit, withdrawal.id, ports.clock.now())
        after = msgspec.structs.replace(withdrawal, amount=Usdt(sent.units), wallet=sent.address)
        after = tag_withdrawal(ports.vault, after)
        return await PAYOUTS.store(ports, unit, after, sent.signed)

    return await retrying(ports.storage, work)


async def _require_unsent(ports: Ports, withdrawal: Withdrawal) -> None:
    known = await _sent(ports, withdrawal)
    if known is not None:
        raise Refusal(
            "INVALID_STATE", f"The wallet sent the payout before, as {known.signed.tx_hash}: {known.units} units"
        )


@in_test_time(Withdrawal)
@unit_of_work()
async def hurry_withdrawal(ports: Ports, unit: Unit, withdrawal_id: str) -> Withdrawal:
    """Make the job of a payout in progress due now. A payout is never signed twice.

    Raises: Refusal WITHDRAWAL_NOT_FOUND; INVALID_STATE once the payout is over. The amount of a failed one is available
    again, and `pay_out_now` pays it out.
    """
    withdrawal = await _find(unit, withdrawal_id)
    if WITHDRAWAL_MOVES.is_final(withdrawal.status) or await unit[Job].get(EXECUTE.id_of(withdrawal.id)) is None:
        raise Refusal("INVALID_STATE", f"The withdrawal is {withdrawal.status}; the unpaid amount is available again")
    await EXECUTE.hurry(unit, withdrawal.id, ports.clock.now())
    return withdrawal


async def list_withdrawals(
    ports: Ports, caller: Caller, asked: MomentFilter, number: int, size: int
) -> Page[Withdrawal]:
    """Return a page of the caller's payouts, newest first. Raises: Refusal VALIDATION_ERROR."""
    owner = {"account_id": caller.account_id, "mode": caller.mode}
    return await list_newest(ports, Withdrawal, number, size, created_at=asked.made(), **owner)


async def browse_withdrawals(
    ports: Ports, caller: Caller, asked: MomentFilter, cursor: Cursor | None, size: int
) -> Listed[Withdrawal]:
    """Return a page of the caller's payouts by cursor, newest first. Raises: Refusal VALIDATION_ERROR."""
    owner = {"account_id": caller.account_id, "mode": caller.mode}
    return await read_listing(ports, Listing(kind=Withdrawal, criteria=owner, made=asked.made()), cursor, size)


async def get_withdrawal(ports: Ports, caller: Caller, withdrawal_id: str) -> Withdrawal:
    """Return one payout. Raises: Refusal WITHDRAWAL_NOT_FOUND, also for one of another account or mode."""
    async with ports.storage.unit() as unit:
        withdrawal = await _find(unit, withdrawal_id)
    if (withdrawal.account_id, withdrawal.mode) != (caller.account_id, caller.mode):
        raise _not_found()
    return withdrawal


async def every_withdrawal(
    ports: Ports,
    *,
    account_id: str | None = None,
    status: WithdrawalStatus | None = None,
    limit: int = 1000,
) -> list[Withdrawal]:
    """Return the newest payouts of all accounts or one, in all statuses or one, newest first. For operators.

    Raises: Refusal ACCOUNT_NOT_FOUND.
    """
    if account_id is not None:
        async with ports.storage.unit() as unit:
            await find_account(unit, account_id)
    wanted: dict[str, Any] = {"account_id": account_id, "status": status}
    criteria = {field: value for field, value in wanted.items() if value is not None}
    newest: list[Withdrawal] = []
    async for batch in ports.storage.scan(Withdrawal, **criteria):
        newest = nlargest(limit, (*newest, *batch), key=lambda each: (each.created_at, each.id))
    return newest


async def _find(unit: Unit, withdrawal_id: str) -> Withdrawal:
    withdrawal = None
    if ids.is_prefixed(ids.WITHDRAWAL, withdrawal_id):
        withdrawal = await unit[Withdrawal].get(withdrawal_id)
    if withdrawal is None:
        raise _not_found()
    return withdrawal


def _not_found() -> Refusal:
    return Refusal("WITHDRAWAL_NOT_FOUND", "No withdrawal of this id")
