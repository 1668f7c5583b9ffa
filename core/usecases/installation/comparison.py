"""A held copy beside the world: what providers sent since the moment that it is of, and it does not know.

Whoever can be asked for one operation is asked when its turn comes (wallet.py, bank_refunds.py). This is for what
the copy has no record of at all, and would therefore never ask for.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bank import ListingBank, SentRefund
from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.payouts import ListingSender, SentTransfer, UsdtSender
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, Mode
from ...domain.days import LONG_AGO
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer
from ...domain.exchanges.returns import returned_transfer
from ...domain.ledger import EntryKind, Purse
from ...domain.money import Rub, Usdt
from ...domain.refunds.refunds import Refund
from ...domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from ..acts.audit import on
from ..exchanges.rub_return import returned_by
from ..ledger.ledger import LEDGER_RULES
from ..refunds.suspense_progress import suspense_of
from ..sealed import tag_withdrawal, wallet_fits
from ..settlement.withdrawal_progress import EXECUTE, announce_withdrawal, book_payout
from ..settlement.withdrawals import cancel_withdrawal, every_withdrawal
from ..units import retrying

MARGIN = timedelta(minutes=10)
"""By how much a provider's clock may be behind ours."""

CALLED_OFF = "the balance that it was made of lacked payouts that were made since"

_RACES = (*LEDGER_RULES, "withdrawals_id", "jobs_id", "journal_id")


class Lacking(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider sent and the database has no record of."""

    provider: str
    kind: str
    """`transfer` or `refund`."""
    operation: str
    amount: str
    to: str
    """The address, or the bank's id of the invoice."""
    account_id: str | None = None
    """Whose payout it is; it is brought in. Null: only an operator can say what it was."""
    sent: SentTransfer | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    since: datetime
    lacking: list[Lacking]
    compared: list[str]
    not_compared: list[str]
    """Live providers that cannot list what they sent: their own statements tell."""


async def compare(ports: Ports, as_of: datetime | None) -> Comparison:
    """Ask every live provider that can list what it sent since then. Writes nothing.

    Raises: Unavailable when one of them gives no answer: nothing is known then.
    """
    since = LONG_AGO if as_of is None else as_of - MARGIN
    lacking: list[Lacking] = []
    compared: list[str] = []
    not_compared: list[str] = []
    for bank in ports.banks.of_mode(Mode.LIVE):
        if isinstance(bank, ListingBank):
            lacking += await _refunds(ports, bank.name, await bank.refunds_since(since))
        if not bank.capabilities.simulated:
            (compared if isinstance(bank, ListingBank) else not_compared).append(bank.name)
    name = ports.senders.modes.get(Mode.LIVE.value)
    if name is not None:
        sender = ports.senders.named(name)
        if isinstance(sender, ListingSender):
            lacking += await _transfers(ports, sender, await sender.sent_since(since))
        if not sender.capabilities.simulated:
            (compared if isinstance(sender, ListingSender) else not_compared).append(name)
    return Comparison(since=since, lacking=lacking, compared=compared, not_compared=not_compared)


async def _refunds(ports: Ports, bank: str, sent: Sequence[SentRefund]) -> list[Lacking]:
    return [
        Lacking(
            provider=bank,
            kind="refund",
            operation=each.operation,
            amount=f"{Rub(each.amount_kopecks)} RUB",
            to=each.reference,
        )
        for each in sent
        if not await _knows_refund(ports, each.operation)
    ]


async def _knows_refund(ports: Ports, operation: str) -> bool:
    async with ports.storage.unit() as unit:
        if await returned_by(unit, operation) or await suspense_of(unit, operation):
            return True
    return await _has_one(ports, [(Refund, operation)])


async def _transfers(ports: Ports, sender: UsdtSender, sent: Sequence[SentTransfer]) -> list[Lacking]:
    found: list[Lacking] = []
    for each in sent:
        operation = each.signed.operation
        wanted: list[tuple[type[Any], str]] = [(Withdrawal, operation), (Exchange, operation)]
        transfer_id = returned_transfer(operation)
        if transfer_id is not None:
            wanted.append((ExchangeTransfer, transfer_id))
        if not await _has_one(ports, wanted):
            found.append(
                Lacking(
                    provider=sender.name,
                    kind="transfer",
                    operation=operation,
                    amount=f"{Usdt(each.units)} USDT",
                    to=each.address,
                    account_id=await _owner(ports, each) if operation.startswith(ids.WITHDRAWAL) else None,
                    sent=each,
                )
            )
    return found


async def _has_one(ports: Ports, wanted: Sequence[tuple[type[Any], str]]) -> bool:
    for kind, record_id in wanted:
        if await ports.storage.get(kind, record_id) is not None:
            return True
    return False


async def _owner(ports: Ports, sent: SentTransfer) -> str | None:
    """The one merchant who is paid out to the address; None where there are several, or none."""
    owners = [
        account.id
        async for batch in ports.storage.scan(Account)
        for account in batch
        if account.settings.payout_wallet == sent.address and wallet_fits(ports.vault, account)
    ]
    return owners[0] if len(owners) == 1 else None


async def bring_in(ports: Ports, comparison: Comparison) -> list[Withdrawal]:
    """Write the payouts that the world has and the database lacks, under the ids that they have there, each an act of
    its own. What they took is a debt where it is not credited here yet, and the next settlement pays that much less.

    Their jobs take over what the wallet sent, and follow it to its end. What the merchant has pending and unsent is
    called off: it was made of a balance that these are not taken off yet.
    """
    name = ports.senders.modes.get(Mode.LIVE.value, "")
    brought = [
        await _write(on(ports, each.operation), each.sent, each.account_id, name)
        for each in comparison.lacking
        if each.sent is not None and each.account_id is not None
    ]
    for account_id in sorted({each.account_id for each in brought}):
        await _call_off_pending(ports, account_id, {each.id for each in brought})
    return brought


async def _call_off_pending(ports: Ports, account_id: str, but: Collection[str]) -> None:
    for each in await every_withdrawal(ports, account_id=account_id, status=WithdrawalStatus.PENDING):
        if each.mode is not Mode.LIVE or each.id in but:
            continue
        try:
            await cancel_withdrawal(on(ports, each.id), each.id, CALLED_OFF)
        except Refusal as refusal:
            if refusal.code != "INVALID_STATE":
                raise
            # The wallet sent it: its job takes that over.


async def _write(ports: Ports, sent: SentTransfer, account_id: str, sender: str) -> Withdrawal:
    async def work(unit: Unit) -> Withdrawal:
        present = await unit[Withdrawal].get(sent.signed.operation)
        if present is not None:
            return present
        withdrawal = Withdrawal(
            id=sent.signed.operation,
            account_id=account_id,
            mode=Mode.LIVE,
            status=WithdrawalStatus.PENDING,
            amount=Usdt(sent.units),
            wallet=sent.address,
            sender=sender,
            network=ports.senders.named(sender).capabilities.network.value,
            created_at=ports.clock.now(),
            sequence=1,
        )
        withdrawal = tag_withdrawal(ports.vault, withdrawal)
        book_payout(ports, unit, withdrawal, EntryKind.PAYOUT_RESERVED, Purse.AVAILABLE, Purse.RESERVED)
        await announce_withdrawal(ports, unit, withdrawal, None)
        unit[Withdrawal].add(withdrawal)
        unit[Job].add(EXECUTE.first(withdrawal.id, withdrawal.created_at, withdrawal.created_at))
        return withdrawal

    return await retrying(ports.storage, work, again_on=_RACES)
