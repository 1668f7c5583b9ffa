"""Comparison of a quarantined copy with its providers: transfers and refunds that it lacks. It writes nothing.

An operation that has a row is checked by its id when its job runs (wallet.py, bank_refunds.py). The comparison covers
operations without a row, and rows whose amount or address differs from the transfer sent.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bank import ListingBank, SentRefund
from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.payouts import FindingSender, ListingSender, SentTransfer, UsdtSender
from ....ports.storage import Between
from ...domain import ids
from ...domain.accounts.accounts import Account, Mode
from ...domain.days import LONG_AGO
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer
from ...domain.exchanges.returns import returned_transfer
from ...domain.money import Rub, Usdt
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import Refund, remainder
from ...domain.settlement.withdrawals import Withdrawal
from ..exchanges.return_steps import RETURN_EXCHANGE
from ..exchanges.rub_return import returned_by
from ..exchanges.sending import SENT
from ..exchanges.steps import WATCH_EXCHANGE
from ..exchanges.usdt_return import USDT_RETURNS
from ..refunds.steps import refunds_of
from ..refunds.suspense_progress import suspense_of
from ..settlement.withdrawal_progress import EXECUTE, PAYOUTS
from ..signed_transfers.row import SignedTransfers
from ..signed_transfers.wallet import is_same_address, sent_before
from .attribution import causing_batches, find_caused, owner_by_address, owners_by_cause

MARGIN = timedelta(minutes=10)
"""Allowance for a provider's clock that is behind ours."""

_ROWS: Mapping[str, SignedTransfers[Any]] = {
    EXECUTE.kind: PAYOUTS,
    WATCH_EXCHANGE.kind: SENT,
    RETURN_EXCHANGE.kind: USDT_RETURNS,
}
"""Kinds of subjects that send USDT, by the kind of their job."""


class Lacking(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer or refund that a provider sent and that the database lacks or records differently."""

    provider: str
    kind: str
    """`transfer` or `refund`."""
    operation: str
    amount: str
    to: str
    """The address, or the bank's id of the invoice."""
    account_id: str | None = None
    """Merchant whose books receive it. None: only an operator can name one."""
    is_certain: bool = False
    """Its id follows from the account, so no operator may assign it to another one."""
    is_ours: bool = True
    """False: an operator decided to leave it out of the books."""
    differs: bool = False
    """The database has a pending row with this id but another amount or address."""
    payment_id: str | None = None
    """The refunded payment."""
    sent: SentTransfer | None = None
    refund: SentRefund | None = None

    @property
    def is_open(self) -> bool:
        """It has no owner yet, so the hold stays."""
        return self.account_id is None and self.is_ours

    @property
    def advice(self) -> str | None:
        """Instruction for the operator; None unless it is open."""
        if not self.is_open:
            return None
        leave_out = f"--not-ours {self.operation} to leave it out of the books"
        if self.differs:
            return f"cambist payout accept {self.operation}, or {leave_out}" if self._is_payout else leave_out
        if self.kind == "refund":
            return f"let the merchant repeat it with its Idempotency-Key, or enter it by hand and give {leave_out}"
        if self._is_payout:
            return f"--assign {self.operation}=ACCOUNT_ID, or {leave_out}"
        return f"let the merchant repeat the exchange with its Idempotency-Key, or give {leave_out}"

    @property
    def _is_payout(self) -> bool:
        return self.operation.startswith(ids.WITHDRAWAL)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a comparison."""

    since: datetime
    lacking: list[Lacking]
    compared: list[str]
    not_compared: list[str]
    """Live providers that cannot list what they sent. Check their own statements instead."""

    @property
    def open(self) -> list[Lacking]:
        """Entries that an operator has to decide about before the hold ends."""
        return [each for each in self.lacking if each.is_open]


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's decisions about open transfers."""

    assigned: Mapping[str, str] = {}
    """Payout to account: it is booked as that merchant's debt."""
    not_ours: frozenset[str] = frozenset()
    """Operations to leave out of the books."""


async def compare(ports: Ports, as_of: datetime | None) -> Comparison:
    """Query every live provider for everything it sent since `as_of`. A provider that can list returns its list. A
    wallet that cannot is queried for each payout that a settlement may have caused. Writes nothing.

    Raises: Unavailable when one of them does not answer, because the result is then unknown.
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
        lacking += await _transfers(ports, sender, since)
        if not sender.capabilities.simulated:
            (compared if isinstance(sender, ListingSender) else not_compared).append(name)
    return Comparison(since=since, lacking=lacking, compared=compared, not_compared=not_compared)


async def decided(ports: Ports, found: Comparison, decisions: Decisions) -> Comparison:
    """Return the comparison with an operator's decisions. Decisions that an earlier run carried out are skipped.

    Raises: Refusal VALIDATION_ERROR for a decision about something else; ACCOUNT_NOT_FOUND.
    """
    lacking = {each.operation: each for each in found.lacking}
    for operation in (*decisions.assigned, *decisions.not_ours):
        each = lacking.get(operation)
        if each is not None:
            lacking[operation] = await _decided(ports, each, decisions)
        elif not await _is_booked(ports, operation, decisions.assigned.get(operation)):
            raise _wrong(operation, "no provider sent it, or it is known here")
    return msgspec.structs.replace(found, lacking=list(lacking.values()))


async def _decided(ports: Ports, lacking: Lacking, decisions: Decisions) -> Lacking:
    operation = lacking.operation
    account_id = decisions.assigned.get(operation)
    if account_id is not None and operation in decisions.not_ours:
        raise _wrong(operation, "it is either assigned or not ours")
    if lacking.is_certain and account_id != lacking.account_id:
        raise _wrong(operation, f"its id follows from account {lacking.account_id}, which it belongs to")
    if account_id is None:
        return msgspec.structs.replace(lacking, account_id=None, payment_id=None, is_ours=False)
    if lacking.differs or not operation.startswith(ids.WITHDRAWAL):
        raise _wrong(operation, "only a payout (wd_...) that has no row here is assigned")
    if await ports.storage.get(Account, account_id) is None:
        raise Refusal("ACCOUNT_NOT_FOUND", f"No account has the id {account_id}")
    return msgspec.structs.replace(lacking, account_id=account_id)


async def _is_booked(ports: Ports, operation: str, account_id: str | None) -> bool:
    found = await ports.storage.get(Withdrawal, operation) if ids.is_prefixed(ids.WITHDRAWAL, operation) else None
    return found is not None and found.account_id == account_id


def _wrong(operation: str, why: str) -> Refusal:
    return Refusal("VALIDATION_ERROR", f"{operation}: {why}")


async def _refunds(ports: Ports, bank: str, sent: Sequence[SentRefund]) -> list[Lacking]:
    unknown = {each.operation: each for each in sent if not await _knows_refund(ports, each.operation)}
    payments = await _payments_of(ports, bank, {each.reference for each in unknown.values()})
    found = []
    for each in unknown.values():
        payment = payments.get(each.reference)
        is_refund = ids.is_prefixed(ids.REFUND, each.operation)
        owned = payment if payment is not None and is_refund and await _covers(ports, payment, each) else None
        found.append(
            Lacking(
                provider=bank,
                kind="refund",
                operation=each.operation,
                amount=f"{Rub(each.amount_kopecks)} RUB",
                to=each.reference,
                account_id=None if owned is None else owned.account_id,
                payment_id=None if owned is None else owned.id,
                refund=each,
            )
        )
    return found


async def _knows_refund(ports: Ports, operation: str) -> bool:
    async with ports.storage.unit() as unit:
        if await returned_by(unit, operation) or await suspense_of(unit, operation):
            return True
    return await ports.storage.get(Refund, operation) is not None


async def _payments_of(ports: Ports, bank: str, references: set[str]) -> Mapping[str, Payment]:
    """Return the payments of these invoices. No index finds them, so this reads all payments if there are any
    references."""
    found: dict[str, Payment] = {}
    if references:
        async for batch in ports.storage.scan(Payment, mode=Mode.LIVE):
            found |= {
                each.bank_reference: each for each in batch if each.bank == bank and each.bank_reference in references
            }
    return found


async def _covers(ports: Ports, payment: Payment, refund: SentRefund) -> bool:
    """Return whether enough of the payment is left to refund."""
    async with ports.storage.unit() as unit:
        return remainder(payment, await refunds_of(unit, payment.id)).kopecks >= refund.amount_kopecks


async def _transfers(ports: Ports, sender: UsdtSender, since: datetime) -> list[Lacking]:
    batches = await causing_batches(ports, since)
    found: list[Lacking] = []
    for each in await _sent(ports, sender, since, batches):
        known = await _known(ports, each.signed.operation)
        if known is None or _differs(*known, each):
            found.append(
                Lacking(
                    provider=sender.name,
                    kind="transfer",
                    operation=each.signed.operation,
                    amount=f"{Usdt(each.units)} USDT",
                    to=each.address,
                    differs=known is not None,
                    sent=each,
                )
            )
    payouts = {each.operation for each in found if each.operation.startswith(ids.WITHDRAWAL) and not each.differs}
    owners = await owners_by_cause(ports, batches, payouts)
    return [await _owned(ports, each, owners) if each.operation in payouts else each for each in found]


async def _owned(ports: Ports, lacking: Lacking, owners: Mapping[str, str]) -> Lacking:
    caused = owners.get(lacking.operation)
    account_id = caused or await owner_by_address(ports, lacking.to)
    return msgspec.structs.replace(lacking, account_id=account_id, is_certain=caused is not None)


async def _sent(ports: Ports, sender: UsdtSender, since: datetime, batches: Sequence[str]) -> Sequence[SentTransfer]:
    if isinstance(sender, ListingSender):
        return await sender.sent_since(since)
    if not isinstance(sender, FindingSender):
        return []
    found = {each.signed.operation: each async for each in find_caused(ports, sender, batches)}
    for kind, row in _ROWS.items():
        # `;` is the character that follows the colon.
        async for jobs in ports.storage.scan(Job, id=Between(f"{kind}:", f"{kind};")):
            for job in jobs:
                sent = await _sent_of(ports, sender, row, job.argument)
                if sent is not None:
                    found[sent.signed.operation] = sent
    return list(found.values())


async def _sent_of(
    ports: Ports, sender: FindingSender, row: SignedTransfers[Any], record_id: str
) -> SentTransfer | None:
    """Ask the wallet for the operation of a record that has no signed transfer yet."""
    record = await ports.storage.get(row.record, record_id)
    sending = None if record is None else row.sending(record)
    if sending is None or sending.signed is not None or sending.sender != sender.name:
        return None
    return await sent_before(sender, sending.operation)


async def _known(ports: Ports, operation: str) -> tuple[SignedTransfers[Any], Any] | None:
    """Return the record that an operation belongs to, with its description for signed transfers."""
    wanted: list[tuple[SignedTransfers[Any], type[Any], str]] = [
        (PAYOUTS, Withdrawal, operation),
        (SENT, Exchange, operation),
    ]
    transfer_id = returned_transfer(operation)
    if transfer_id is not None:
        wanted.append((USDT_RETURNS, ExchangeTransfer, transfer_id))
    for row, kind, record_id in wanted:
        record = await ports.storage.get(kind, record_id)
        if record is not None:
            return row, record
    return None


def _differs(row: SignedTransfers[Any], record: Any, sent: SentTransfer) -> bool:
    """Return whether a record that waits to be sent has another amount or address than its wallet sent."""
    sending = row.sending(record)
    if sending is None or sending.signed is not None or sending.operation != sent.signed.operation:
        return False
    return sending.units != sent.units or not is_same_address(sending.address, sent.address)
