"""Deletion of test objects with everything that belongs to them: idempotency keys, jobs, money (docs/sandbox.md
"Forgetting"). data.py defines the records and their order; here each kind of object has its `forget_…`.

No function here changes the journal. For each object that moved money, `_counter` posts one entry that reverses the
object's entries, ledger account by ledger account, in the unit that deletes the object. Balances, books and objects
therefore agree after every unit, and the hash chain stays intact. The service's own ledger accounts of test mode are
reversed, too; otherwise they would hold income of deleted objects.

Every `forget_…` takes objects of one account and mode, at least one, and returns how many of them it deleted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Between, OneOf, R, Record, Unit
from ...domain.accounts.accounts import Mode
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer, transfer_ids
from ...domain.exchanges.returns import MOST_TRIES
from ...domain.kyc.clients import Client
from ...domain.ledger import BalanceType, EntryKind, JournalEntry, entry_id, journal_entry
from ...domain.money import Rub, Usdt
from ...domain.payments.outcomes import UnknownOutcome
from ...domain.payments.payment_links import LinkAnswers, LinkTotals, PaymentLink
from ...domain.payments.payments import Payment
from ...domain.payments.proofs import DeliveryProof
from ...domain.payments.suspense import Suspense
from ...domain.people.payment_notes import PaymentNotes
from ...domain.receipts.receipts import FiscalReceipt
from ...domain.refunds import suspense_returns
from ...domain.refunds.refunds import Refund
from ...domain.settlement.settlement import (
    Correction,
    ItemKind,
    Line,
    Settlement,
    SettlementBatch,
    SettlementItem,
    item_id,
)
from ...domain.settlement.withdrawals import Withdrawal
from ...domain.subscriptions.subscriptions import Subscription
from ...domain.webhooks.events import Attempt, Delivery, EndpointDelivery, Event
from ..job_kinds import JOB_KINDS
from ..ledger.ledger import post
from ..payments.tallies import remove_payment
from ..webhooks.receivers import attempts_of, further_deliveries

_K = EntryKind

JOBS: Mapping[type, tuple[str, ...]] = {
    record: tuple(row.kind for row in JOB_KINDS if row.follows is record)
    for record in (row.follows for row in JOB_KINDS)
    if record is not None
}
"""Kinds of jobs for each type of record. A job's id is the kind, a colon and the record's id."""

ENTRIES: Mapping[type, tuple[EntryKind, ...]] = {
    Payment: (_K.RECEIPT, _K.REVIEW, _K.REVIEW_ACCEPTED, _K.SETTLEMENT),
    Suspense: (_K.SUSPENSE, _K.SUSPENSE_RETURNED),
    # A correction has the id of its refund.
    Refund: (_K.REFUND_TAKEN, _K.REFUND_PAID, _K.REFUND_RETURNED, _K.REFUND_REVERSED, _K.SETTLEMENT),
    Withdrawal: (_K.PAYOUT_RESERVED, _K.PAYOUT_SENT, _K.PAYOUT_RELEASED),
    Exchange: (
        _K.EXCHANGE_RECEIVED,
        _K.EXCHANGE_SUSPENDED,
        _K.EXCHANGE_TAKEN_BACK,
        _K.EXCHANGE_RETURNED,
        _K.EXCHANGE_GIVEN,
        _K.EXCHANGE_DELIVERED,
        _K.EXCHANGE_COMPLETED,
        _K.EXCHANGE_FAILED,
    ),
}
"""Kinds of journal entries that can be booked for each type of record."""

_REVISIONS = {
    # The second revision exists if a transfer that the wallet sent was accepted later.
    _K.PAYOUT_RESERVED: 2,
    _K.SUSPENSE: suspense_returns.MOST_TRIES + 1,
    _K.SUSPENSE_RETURNED: suspense_returns.MOST_TRIES,
    _K.EXCHANGE_RETURNED: MOST_TRIES,
    _K.EXCHANGE_SUSPENDED: MOST_TRIES,
}
"""Highest revision of an entry's id, for kinds that can be booked more than once for one object."""


async def forget_payments(ports: Ports, unit: Unit, payments: Sequence[Payment]) -> int:
    """Delete payments with their refunds, corrections, proofs, money in suspense, lines in statements, rows of
    unknown outcomes, and notes.
    """
    account_id, mode = payments[0].account_id, payments[0].mode
    ids = tuple(payment.id for payment in payments)
    refunds = await unit[Refund].find(payment_id=OneOf(ids))
    suspended = await unit[Suspense].find(account_id=account_id, mode=mode, payment_id=OneOf(ids))
    corrections = await _of_ids(unit, Correction, [refund.id for refund in refunds])
    # Delete in the order in which a settlement writes, so that databases lock rows in one order.
    for payment in payments:
        remove_payment(unit, payment)
    receipts = await unit[FiscalReceipt].find(payment_id=OneOf(ids))
    _take_away(unit, FiscalReceipt, receipts)
    _take_away(unit, Refund, refunds)
    _take_away(unit, Suspense, suspended)
    _take_away(unit, Correction, corrections)
    _take_away(unit, DeliveryProof, await _of_ids(unit, DeliveryProof, ids))
    _take_away(unit, UnknownOutcome, await _of_ids(unit, UnknownOutcome, ids))
    _take_away(unit, PaymentNotes, await _of_ids(unit, PaymentNotes, ids))
    _take_away(unit, LinkAnswers, await _of_ids(unit, LinkAnswers, ids))
    await _take_jobs(unit, (*payments, *refunds, *suspended, *receipts))
    await _take_keys(unit, (*payments, *refunds, *receipts))
    await _take_lines(unit, payments, refunds, corrections)
    await _take_back(ports, unit, (*payments, *refunds, *suspended))
    return len(payments)


async def _take_lines(
    unit: Unit, payments: Sequence[Payment], refunds: Sequence[Refund], corrections: Sequence[Correction]
) -> None:
    """Delete the lines of these objects from their statements, and subtract them from the sums of statement and batch
    (kopecks of RUB, units of USDT), so that each sum still matches its lines.
    """
    of_payment: dict[str, list[str]] = {payment.id: [] for payment in payments}
    for refund in refunds:
        of_payment[refund.payment_id].append(refund.id)
    wanted: list[str] = []
    for payment in payments:
        if payment.settlement_id is not None:
            wanted.append(_line_id(payment.settlement_id, payment.id, ItemKind.PAYMENT, payment.id))
            wanted += (
                _line_id(payment.settlement_id, payment.id, ItemKind.REFUND, refund_id)
                for refund_id in of_payment[payment.id]
            )
    wanted += (
        _line_id(each.settlement_id, each.payment_id, ItemKind.CORRECTION, each.id)
        for each in corrections
        if each.settlement_id is not None
    )
    lines = await _of_ids(unit, SettlementItem, wanted)
    _take_away(unit, SettlementItem, lines)
    for statement in await _of_ids(unit, Settlement, {line.settlement_id for line in lines}):
        mine = [line for line in lines if line.settlement_id == statement.id]
        sums = {
            "payments": sum(line.kind is ItemKind.PAYMENT for line in mine),
            "amount": sum(line.amount.kopecks for line in mine),
            "fee": sum(line.fee.units for line in mine),
            "credit": sum(line.credit.units for line in mine),
        }
        for field, by in sums.items():
            unit[Settlement].increase(statement.id, field, -by)
            unit[SettlementBatch].increase(statement.batch_id, field, -by)
        unit[Settlement].increase(statement.id, "items", -len(mine))


def _line_id(settlement_id: str, payment_id: str, kind: ItemKind, object_id: str) -> str:
    """Return the id of an object's line in a statement. The id contains no amount."""
    nothing = Line(kind=kind, object_id=object_id, amount=Rub(0), fee=Usdt(0), credit=Usdt(0))
    return item_id(settlement_id, nothing, payment_id)


async def forget_links(_ports: Ports, unit: Unit, links: Sequence[PaymentLink]) -> int:
    """Delete payment links with their sums, and free their keys. Their payments are deleted before."""
    _take_away(unit, LinkTotals, await _of_ids(unit, LinkTotals, [link.id for link in links]))
    await _take_keys(unit, links)
    return _take_away(unit, PaymentLink, links)


async def forget_refunds(ports: Ports, unit: Unit, refunds: Sequence[Refund]) -> int:
    """Delete refunds whose payment is gone. `forget_payments` deletes the others with their payment."""
    present = await _of_ids(unit, Payment, {refund.payment_id for refund in refunds})
    gone = [refund for refund in refunds if refund.payment_id not in {payment.id for payment in present}]
    await _take_jobs(unit, gone)
    await _take_keys(unit, gone)
    await _take_back(ports, unit, gone)
    return _take_away(unit, Refund, gone)


async def forget_suspense(ports: Ports, unit: Unit, suspended: Sequence[Suspense]) -> int:
    """Delete money in suspense whose payment is gone. `forget_payments` deletes the rest with its payment."""
    present = await _of_ids(unit, Payment, {each.payment_id for each in suspended})
    gone = [each for each in suspended if each.payment_id not in {payment.id for payment in present}]
    await _take_jobs(unit, gone)
    await _take_back(ports, unit, gone)
    return _take_away(unit, Suspense, gone)


async def forget_subscriptions(_ports: Ports, unit: Unit, subscriptions: Sequence[Subscription]) -> int:
    """Delete subscriptions. Their payments are deleted like all others."""
    await _take_jobs(unit, subscriptions)
    await _take_keys(unit, subscriptions)
    return _take_away(unit, Subscription, subscriptions)


async def forget_exchanges(ports: Ports, unit: Unit, exchanges: Sequence[Exchange]) -> int:
    """Delete exchanges with their transfers, and reverse the entries of exchange, transfers and parts."""
    moved: list[tuple[str, tuple[EntryKind, ...]]] = []
    for exchange in exchanges:
        transfers = await unit[ExchangeTransfer].find(id=Between(*transfer_ids(exchange.id)))
        await _take_jobs(unit, transfers)
        _take_away(unit, ExchangeTransfer, transfers)
        operations = (exchange.id, *(each.id for each in transfers), *(part.operation for part in exchange.parts))
        moved += ((operation, ENTRIES[Exchange]) for operation in operations)
    await _take_jobs(unit, exchanges)
    await _take_keys(unit, exchanges)
    await _counter(ports, unit, exchanges[0].account_id, exchanges[0].mode, moved)
    return _take_away(unit, Exchange, exchanges)


async def forget_withdrawals(ports: Ports, unit: Unit, withdrawals: Sequence[Withdrawal]) -> int:
    """Delete payouts, and reverse their entries."""
    await _take_jobs(unit, withdrawals)
    await _take_back(ports, unit, withdrawals)
    return _take_away(unit, Withdrawal, withdrawals)


async def forget_settlements(_ports: Ports, unit: Unit, settlements: Sequence[Settlement]) -> int:
    """Delete statements that are completed and have no lines left. The others stay: a settlement may be filling
    them.
    """
    return _take_away(unit, Settlement, [each for each in settlements if each.completed_at and not each.items])


async def forget_batches(_ports: Ports, unit: Unit, batches: Sequence[SettlementBatch]) -> int:
    """Delete completed batches that have no statements left."""
    used = await unit[Settlement].find(batch_id=OneOf(tuple(batch.id for batch in batches)))
    in_use = {statement.batch_id for statement in used}
    return _take_away(unit, SettlementBatch, [each for each in batches if each.completed_at and each.id not in in_use])


async def forget_clients(_ports: Ports, unit: Unit, clients: Sequence[Client]) -> int:
    """Delete end clients with their jobs."""
    await _take_jobs(unit, clients)
    return _take_away(unit, Client, clients)


async def forget_events(_ports: Ports, unit: Unit, events: Sequence[Event]) -> int:
    """Delete events with their deliveries and all attempts."""
    deliveries = await _of_ids(unit, Delivery, [event.id for event in events])
    further = await further_deliveries(unit, events)
    _take_away(unit, Attempt, await attempts_of(unit, (*deliveries, *further)))
    _take_away(unit, Delivery, deliveries)
    _take_away(unit, EndpointDelivery, further)
    return _take_away(unit, Event, events)


async def _take_jobs(unit: Unit, objects: Iterable[Record]) -> None:
    """Delete the jobs that follow these objects, including leased ones. A worker that saves such a job finds it gone,
    and stops.
    """
    ids = [f"{kind}:{each.id}" for each in objects for kind in JOBS[type(each)]]
    _take_away(unit, Job, await _of_ids(unit, Job, ids))


async def _take_keys(
    unit: Unit, objects: Iterable[Payment | PaymentLink | Refund | FiscalReceipt | Subscription | Exchange]
) -> None:
    """Free the idempotency keys with which these objects were made. A key that now names another object stays."""
    made = {each.key_id: each.id for each in objects if each.key_id is not None}
    keys = await _of_ids(unit, IdempotencyKey, made)
    _take_away(unit, IdempotencyKey, [key for key in keys if key.resource_id == made[key.id]])


async def _take_back(ports: Ports, unit: Unit, objects: Sequence[Payment | Refund | Suspense | Withdrawal]) -> None:
    """Post the reversing entries of objects of one account and mode; do nothing without objects."""
    if objects:
        moved = [(each.id, ENTRIES[type(each)]) for each in objects]
        await _counter(ports, unit, objects[0].account_id, objects[0].mode, moved)


async def _counter(
    ports: Ports, unit: Unit, account_id: str, mode: Mode, moved: Iterable[tuple[str, tuple[EntryKind, ...]]]
) -> None:
    """Post one reversing entry (SANDBOX_CLEARED) for each object whose entries do not sum to zero in every ledger
    account.

    `moved` contains pairs of an object's id and the kinds of its entries.
    """
    ids = [
        entry_id(kind, object_id, revision)
        for object_id, kinds in moved
        for kind in kinds
        for revision in range(1, _REVISIONS.get(kind, 1) + 1)
    ]
    sums: dict[str, Counter[BalanceType]] = {}
    for entry in await _of_ids(unit, JournalEntry, ids):
        balance_types = sums.setdefault(entry.object_id, Counter())
        for posting in entry.postings:
            balance_types[posting.balance_type] -= posting.amount
    now = ports.clock.now()
    post(
        unit,
        *(
            journal_entry(
                _K.SANDBOX_CLEARED, object_id, account_id=account_id, mode=mode, at=now, postings=dict(balance_types)
            )
            for object_id, balance_types in sums.items()
            if any(balance_types.values())
        ),
    )


async def _of_ids(unit: Unit, kind: type[R], ids: Iterable[str]) -> list[R]:
    """Return the existing records with these ids."""
    wanted = tuple(ids)
    return await unit[kind].find(id=OneOf(wanted), limit=len(wanted)) if wanted else []


def _take_away(unit: Unit, kind: type[R], records: Sequence[R]) -> int:
    """Delete these records in the unit, and return how many."""
    for record in records:
        unit[kind].remove(record)
    return len(records)
