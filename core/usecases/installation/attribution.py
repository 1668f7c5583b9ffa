"""Merchant of a transfer that has no row in the database, found by the causes of its id or by its address.

A payout's id follows from its batch and its merchant. So the batches that may have been settled since the copy was made
give the ids of the payouts that may have been sent. A transfer with such an id certainly belongs to that merchant,
however many merchants share the address.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from datetime import datetime, timedelta

from ....ports.bundle import Ports
from ....ports.payouts import FindingSender, SentTransfer
from ...domain.accounts.accounts import Account, Mode
from ...domain.settlement.settlement import SettlementBatch, last_run
from ...domain.settlement.withdrawals import Withdrawal
from ..common.encrypted import settings_fit
from ..settlement.settlement import daily_id
from ..settlement.withdrawals import payout_id
from ..signed_transfers.wallet import is_same_address, sent_before

MOST_NUMBERS = 5
"""Maximum number of payouts of one batch to one merchant to search for. A second one exists only if more money became
available before the batch ended."""


async def causing_batches(ports: Ports, since: datetime) -> list[str]:
    """Return ids of the live batches that may have created payouts since a moment: batches in the database that were
    not complete then, and the daily batches from then on, which the database may lack."""
    found: dict[str, None] = {}
    newest: datetime | None = None
    async for batches in ports.storage.scan(SettlementBatch, mode=Mode.LIVE):
        for batch in batches:
            newest = max(filter(None, (newest, batch.started_at)))
            if batch.completed_at is None or batch.completed_at >= since:
                found[batch.id] = None
    # The database is not older than its newest batch, so it lacks no day before that.
    first = max(filter(None, (since, newest)))
    run, last = last_run(first), last_run(ports.clock.now())
    oldest = await _oldest_account(ports)
    while run <= last:
        if oldest is not None and run.date() >= oldest.date():
            found[daily_id(Mode.LIVE, run)] = None
        run += timedelta(days=1)
    return list(found)


async def _oldest_account(ports: Ports) -> datetime | None:
    moments = [account.created_at async for batch in ports.storage.scan(Account) for account in batch]
    return min(moments, default=None)


async def owners_by_cause(ports: Ports, batches: Collection[str], operations: Collection[str]) -> Mapping[str, str]:
    """Return the account of each operation that is a payout of one of the batches."""
    owners: dict[str, str] = {}
    if not operations:
        return owners
    async for accounts in ports.storage.scan(Account):
        for account in accounts:
            for batch_id in batches:
                for number in range(1, MOST_NUMBERS + 1):
                    operation = payout_id(ports, Mode.LIVE, batch_id, account.id, number)
                    if operation in operations:
                        owners[operation] = account.id
    return owners


async def find_caused(ports: Ports, sender: FindingSender, batches: Collection[str]) -> AsyncIterator[SentTransfer]:
    """Query a wallet that cannot list for each payout that the batches may have created, by its id. Yield the transfers
    it sent.

    Raises: Unavailable.
    """
    async for accounts in ports.storage.scan(Account):
        for account in accounts:
            for batch_id in batches:
                for number in range(1, MOST_NUMBERS + 1):
                    operation = payout_id(ports, Mode.LIVE, batch_id, account.id, number)
                    sent = await sent_before(sender, operation)
                    if sent is not None:
                        yield sent
                    elif await ports.storage.get(Withdrawal, operation) is None:
                        break


async def owner_by_address(ports: Ports, address: str) -> str | None:
    """Return the merchant with this payout address. None if there is no such merchant, or more than one."""
    owners = [
        account.id
        async for batch in ports.storage.scan(Account)
        for account in batch
        if account.settings.payout_wallet is not None
        and is_same_address(account.settings.payout_wallet, address)
        and settings_fit(ports.vault, account)
    ]
    return owners[0] if len(owners) == 1 else None
