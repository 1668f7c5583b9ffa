"""Check of rows beside the journal that contain amounts or destinations of money. It compares payments, refunds and
payouts with their entries, movements with all entries, and payouts, settings, API keys, exchanges, returns and operator
actions with their tags. A change to one side alone is detected by the other."""

from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec

from ....ports.storage import Between, OneOf, Record, Snapshot
from ....ports.vault import Vault
from ...domain.accounts.accounts import Account, ApiKey
from ...domain.assertions import NEVER_BELOW
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer, is_under_way
from ...domain.installation import Installation
from ...domain.ledger import BalanceType, EntryKind, JournalEntry, entry_id
from ...domain.operators.pending_actions import PendingAction
from ...domain.payments.payments import Payment, PaymentStatus
from ...domain.payments.tallies import TOOK_MONEY
from ...domain.refunds.refunds import Refund, holds_money
from ...domain.settlement.withdrawals import GIVEN_BACK, Withdrawal, WithdrawalStatus
from ...domain.subscriptions.subscriptions import Subscription
from ..common.encrypted import (
    action_fits,
    exchange_fits,
    hold_fits,
    key_fits,
    link_fits,
    pay_to_fits,
    return_fits,
    settings_fit,
    withdrawal_fits,
)
from .chain_check import BATCH
from .checkpoint import Scope, Sums
from .movement_check import movement_faults
from .object_check import object_faults
from .statement_check import statement_faults

MOST = 100
"""Maximum number of reported values."""

_BOOKED: Mapping[EntryKind, BalanceType] = {
    EntryKind.RECEIPT: BalanceType.PENDING,
    EntryKind.REVIEW: BalanceType.REVIEW,
    EntryKind.REVIEW_ACCEPTED: BalanceType.PENDING,
}
"""Kinds of entries that book a payment's money, and their ledger accounts."""
_REVISIONS = (1, 2)
"""Revisions of the entries that are compared here; a payout may be reserved twice."""


class BadValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that differs from the journal or from its tag."""

    id: str
    field: str
    """For example `payments.amount`."""
    reason: str


async def bad_values(
    seen: Snapshot, vault: Vault, scope: Scope, counted: Mapping[str, int], listed: dict[str, tuple[int, Sums]]
) -> list[BadValue]:
    """Return all differences, at most MOST. `counted`: sums of the journal's entries by the ids of running balances.
    `listed` has the last movement of each account and mode at the checkpoint, and receives the present ones.

    An unreadable row is skipped, because other checks report it. Raises: Unreadable for an entry.
    """
    found: list[BadValue] = []
    async for each in _every(seen, vault, scope, counted, listed):
        found.append(each)
        if len(found) == MOST:
            break
    return found


async def _every(
    seen: Snapshot, vault: Vault, scope: Scope, counted: Mapping[str, int], listed: dict[str, tuple[int, Sums]]
) -> AsyncIterator[BadValue]:
    async for accounts in scope.rows(seen, Account):
        for account in accounts:
            if not settings_fit(vault, account):
                yield _bad(account.id, "accounts.settings", "that move money are not what the vault tagged")
    async for keys in scope.rows(seen, ApiKey):
        for key in keys:
            if not key_fits(vault, key):
                yield _bad(key.id, "api_keys.account_id", "or what else it opens is not what the vault tagged")
    async for installations in scope.rows(seen, Installation):
        for row in installations:
            if not hold_fits(vault, row):
                yield _bad(row.id, "installations.held_since", "or the rest of the hold is not what the vault tagged")
    async for withdrawals in scope.rows(seen, Withdrawal):
        reserved = await _booked(seen, scope, EntryKind.PAYOUT_RESERVED, BalanceType.RESERVED, withdrawals)
        sent = await _booked(seen, scope, EntryKind.PAYOUT_SENT, BalanceType.RESERVED, withdrawals)
        released = await _booked(seen, scope, EntryKind.PAYOUT_RELEASED, BalanceType.RESERVED, withdrawals)
        for withdrawal in withdrawals:
            for field, reason in _faults_of_payout(vault, withdrawal, reserved.get(withdrawal.id)):
                yield _bad(withdrawal.id, field, reason)
            is_sent = withdrawal.status is WithdrawalStatus.COMPLETED
            is_back = withdrawal.status in GIVEN_BACK
            if (is_sent, is_back) != (withdrawal.id in sent, withdrawal.id in released):
                reason = f"is {withdrawal.status}, but its entries say otherwise"
                yield _bad(withdrawal.id, "withdrawals.status", reason)
    async for each in _exchanges(seen, vault, scope):
        yield each
    async for payments in scope.rows(seen, Payment):
        for each in await _payments(seen, scope, payments):
            yield each
        for payment in payments:
            if not pay_to_fits(vault, payment):
                yield _bad(payment.id, "payments.qr_payload", "or where else it leads its payer is not what was tagged")
    async for subscriptions in scope.rows(seen, Subscription):
        for subscription in subscriptions:
            if not link_fits(vault, subscription):
                yield _bad(subscription.id, "subscriptions.binding_url", "is not what the vault tagged")
    async for refunds in scope.rows(seen, Refund):
        for each in await _refunds(seen, scope, refunds):
            yield each
    for record_id, reason in _below_zero(counted):
        yield _bad(record_id, "ledger_accounts.balance", reason)
    named: set[tuple[str, str]] = set()
    for faults in (
        object_faults(seen, scope),
        statement_faults(seen, scope),
        movement_faults(seen, scope, counted, listed),
    ):
        async for record_id, field, reason in faults:
            if field.startswith("movements.") or (record_id, field) not in named:
                yield _bad(record_id, field, reason)
            named.add((record_id, field))


async def _exchanges(seen: Snapshot, vault: Vault, scope: Scope) -> AsyncIterator[BadValue]:
    """Check the tags of exchanges, returns and pending actions. A transfer that is not sent back has no tag."""
    what = "or what else it says of the money is not what the vault tagged"
    async for exchanges in scope.rows(seen, Exchange):
        for exchange in exchanges:
            if not exchange_fits(vault, exchange):
                yield _bad(exchange.id, "exchanges.client_wallet", what)
    async for transfers in scope.rows(seen, ExchangeTransfer):
        for transfer in transfers:
            is_judged = transfer.return_tag is not None or is_under_way(transfer)
            if is_judged and not return_fits(vault, transfer):
                yield _bad(transfer.id, "exchange_transfers.sent_back", what)
    async for actions in scope.rows(seen, PendingAction):
        for action in actions:
            if not action_fits(vault, action):
                yield _bad(action.id, "pending_actions.operator", "or what else it says is not what the vault tagged")


def _bad(record_id: str, field: str, reason: str) -> BadValue:
    return BadValue(id=record_id, field=field, reason=reason)


def _faults_of_payout(vault: Vault, withdrawal: Withdrawal, reserved: int | None) -> list[tuple[str, str]]:
    faults = []
    if (reserved or 0) != withdrawal.amount.units:
        faults.append(("withdrawals.amount", f"is {withdrawal.amount.units}, but {reserved or 0} are booked"))
    # A payout made under altered settings has no tag and is never sent, so an operator cancels it.
    is_judged = withdrawal.tag is not None or withdrawal.status not in GIVEN_BACK
    if is_judged and not withdrawal_fits(vault, withdrawal):
        faults.append(("withdrawals.wallet", "or what else it is paid by is not what the vault tagged"))
    return faults


async def _payments(seen: Snapshot, scope: Scope, payments: Sequence[Payment]) -> list[BadValue]:
    booked = {kind: await _booked(seen, scope, kind, balance_type, payments) for kind, balance_type in _BOOKED.items()}
    return [
        _bad(payment.id, field, reason)
        for payment in payments
        for field, reason in _faults_of_payment(payment, {kind: sums.get(payment.id) for kind, sums in booked.items()})
    ]


async def _refunds(seen: Snapshot, scope: Scope, refunds: Sequence[Refund]) -> list[BadValue]:
    """Compare refunds with their entries. A refund that holds money has a taking entry and no returning one; any other
    refund has no money."""
    taken = await _booked(seen, scope, EntryKind.REFUND_TAKEN, BalanceType.REFUNDING, refunds)
    back: set[str] = set()
    for kind in (EntryKind.REFUND_RETURNED, EntryKind.REFUND_REVERSED):
        back |= (await _booked(seen, scope, kind, BalanceType.REFUNDING, refunds)).keys()
    return [
        _bad(refund.id, "refunds.status", f"is {refund.status}, but its entries say otherwise")
        for refund in refunds
        if holds_money(refund) is not (refund.id in taken and refund.id not in back)
    ]


def _below_zero(counted: Mapping[str, int]) -> list[tuple[str, str]]:
    sums: dict[str, int] = {}
    for row_id, units in counted.items():
        account = row_id.rpartition(":")[0]
        sums[account] = sums.get(account, 0) + units
    return [
        (account, f"is {units}: more was taken than came")
        for account, units in sums.items()
        if units < 0 and account.endswith(NEVER_BELOW)
    ]


def _faults_of_payment(payment: Payment, came: Mapping[EntryKind, int | None]) -> list[tuple[str, str]]:
    receipt, review = came[EntryKind.RECEIPT], came[EntryKind.REVIEW]
    accepted = came[EntryKind.REVIEW_ACCEPTED]
    actual = 0 if payment.actual_amount is None else payment.actual_amount.kopecks
    taken = receipt if receipt is not None else accepted
    if payment.status not in TOOK_MONEY:
        faults = [] if taken is None else [("payments.status", f"is {payment.status}, but {taken} are booked as paid")]
        if payment.status is PaymentStatus.AMOUNT_MISMATCH and review not in (None, actual):
            faults.append(("payments.actual_amount", f"is {actual}, but {review} are booked"))
        return faults
    if (taken or 0) != actual:
        return [("payments.actual_amount", f"is {actual}, but {taken or 0} are booked")]
    # A payment of another amount went through review.
    if receipt is not None and payment.amount.kopecks != receipt:
        return [("payments.amount", f"is {payment.amount.kopecks}, but {receipt} were paid and booked")]
    return []


async def _booked(
    seen: Snapshot, scope: Scope, kind: EntryKind, balance_type: BalanceType, objects: Sequence[Record]
) -> dict[str, int]:
    """Return the sums that entries of a kind booked into a ledger account, by object."""
    found: dict[str, int] = {}
    async for entry in _entries_of(seen, scope, kind, objects):
        amount = sum(posting.amount for posting in entry.postings if posting.balance_type is balance_type)
        found[entry.object_id] = found.get(entry.object_id, 0) + amount
    return found


async def _entries_of(
    seen: Snapshot, scope: Scope, kind: EntryKind, objects: Sequence[Record]
) -> AsyncIterator[JournalEntry]:
    """Yield the entries of a kind about these objects. Without a checkpoint the objects follow each other, and so do
    their entries."""
    if scope.since is None:
        span = Between(f"{kind}:{objects[0].id}", f"{kind}:{objects[-1].id};")
        after, past = span.low, 0
        while batch := await seen[JournalEntry].find(id=Between(after, span.high), offset=past, limit=BATCH):
            for entry in batch:
                yield entry
            after, past = batch[-1].id, 1
        return
    wanted = [entry_id(kind, each.id, revision) for each in objects for revision in _REVISIONS]
    for at in range(0, len(wanted), BATCH):
        names = tuple(wanted[at : at + BATCH])
        for entry in await seen[JournalEntry].find(id=OneOf(names), limit=len(names)):
            yield entry
