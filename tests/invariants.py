"""The books against the objects: every balance follows from payments, refunds, settlements, withdrawals and exchanges,
and the ledger proves itself (ARCHITECTURE.md "Money")."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from cambist.adapters.storage.encrypted_notes import EncryptedNotes
from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.ledger import SERVICE, BalanceType, LedgerAccount
from cambist.core.domain.payments.outcomes import UnknownOutcome, is_outcome_unknown, unknown_outcome
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.refunds.refunds import Refund, holds_money, is_open, remainder
from cambist.core.domain.settlement.settlement import Correction, Settlement, SettlementBatch, SettlementItem
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.ports.bundle import Ports
from cambist.ports.notes import ProviderNote
from tests.exchange_invariants import CLIENT_BALANCE_TYPES, SERVICE_BALANCE_TYPES, add_exchanges, check_exchanges
from tests.movement_checks import check_movements, check_payouts

R = TypeVar("R")
Owner = tuple[str, Mode]
Records = dict[type[Any], list[Any]]
_SIMPLE = (
    BalanceType.PENDING,
    BalanceType.REVIEW,
    BalanceType.SUSPENSE,
    BalanceType.RESERVED,
    BalanceType.PAID_OUT,
    BalanceType.REFUNDED_USDT,
)
_KINDS = (
    *(Account, LedgerAccount, Payment, Suspense, Refund, Withdrawal, Exchange, ExchangeTransfer),
    *(Settlement, SettlementBatch, SettlementItem, Correction, UnknownOutcome),
)
_OPEN = (WithdrawalStatus.PENDING, WithdrawalStatus.PROCESSING, WithdrawalStatus.SENT)


async def everything(ports: Ports, kind: type[Any]) -> list[Any]:
    """All records of a kind."""
    return [record async for batch in ports.storage.scan(kind) for record in batch]


async def noted(ports: Ports) -> list[ProviderNote]:
    """Return all notes of adapters, decrypted."""
    storage = EncryptedNotes(ports.storage, ports.vault)
    return [note async for batch in storage.scan(ProviderNote) for note in batch]


async def balances(ports: Ports) -> Counter[tuple[str, Mode, BalanceType]]:
    """The running balances, stripes added up."""
    return _balances(await everything(ports, LedgerAccount))


async def check_books(ports: Ports) -> None:
    """Raises AssertionError where money and objects say different things."""
    report = await verify_ledger(ports)
    assert report.holds, report
    await check_movements(ports)
    await check_payouts(ports)
    records = {kind: await everything(ports, kind) for kind in _KINDS}
    _check_sums_of_refunds(records)
    _check_statements(records)
    _check_unknown_outcomes(records)
    check_exchanges(records[Exchange], records[ExchangeTransfer])
    expected = _expected(records)
    found = _balances(records[LedgerAccount])
    owners = {account.id for account in records[Account]}
    for owner in owners:
        for mode in Mode:
            for balance_type in (*_SIMPLE, *CLIENT_BALANCE_TYPES):
                assert found[owner, mode, balance_type] == expected[owner, mode, balance_type], (
                    owner,
                    mode,
                    balance_type,
                )
            earned = expected[owner, mode, BalanceType.AVAILABLE]
            held = found[owner, mode, BalanceType.RESERVED] + found[owner, mode, BalanceType.PAID_OUT]
            assert found[owner, mode, BalanceType.AVAILABLE] + held == earned, (owner, mode)
    for mode in Mode:
        for balance_type in (BalanceType.REFUNDING, BalanceType.FEES, *SERVICE_BALANCE_TYPES):
            assert found[SERVICE, mode, balance_type] == expected[SERVICE, mode, balance_type], (mode, balance_type)
        assert found[SERVICE, mode, BalanceType.ROUNDING] >= 0


def _balances(rows: list[LedgerAccount]) -> Counter[tuple[str, Mode, BalanceType]]:
    found: Counter[tuple[str, Mode, BalanceType]] = Counter()
    for row in rows:
        found[row.owner, row.mode, row.balance_type] += row.balance
    return found


def _expected(records: Records) -> Counter[tuple[str, Mode, BalanceType]]:
    """Compute the expected balances from the objects. AVAILABLE stands for everything earned, reserved and paid-out
    money included."""
    sums: Counter[tuple[str, Mode, BalanceType]] = Counter()
    for payment in records[Payment]:
        owner: Owner = payment.account_id, payment.mode
        if payment.status is PaymentStatus.PAID:
            sums[*owner, BalanceType.PENDING] += payment.actual_amount.kopecks - payment.refund_taken.kopecks
        if payment.status is PaymentStatus.AMOUNT_MISMATCH and payment.transfer_id is not None:
            sums[*owner, BalanceType.REVIEW] += payment.actual_amount.kopecks
    for correction in records[Correction]:
        if correction.settlement_id is None:
            sums[correction.account_id, correction.mode, BalanceType.PENDING] += correction.amount.kopecks
    for suspense in records[Suspense]:
        if suspense.resolved_at is None:
            sums[suspense.account_id, suspense.mode, BalanceType.SUSPENSE] += suspense.amount.kopecks
    for settlement in records[Settlement]:
        sums[settlement.account_id, settlement.mode, BalanceType.AVAILABLE] += settlement.credit.units
        sums[SERVICE, settlement.mode, BalanceType.FEES] += settlement.fee.units
    for refund in records[Refund]:
        if holds_money(refund) and refund.taken_usdt is not None:
            sums[refund.account_id, refund.mode, BalanceType.AVAILABLE] -= refund.taken_usdt.units
            sums[refund.account_id, refund.mode, BalanceType.REFUNDED_USDT] += refund.taken_usdt.units
        if refund.status == "processing":
            sums[SERVICE, refund.mode, BalanceType.REFUNDING] += refund.amount.kopecks
    for withdrawal in records[Withdrawal]:
        if withdrawal.status in _OPEN:
            sums[withdrawal.account_id, withdrawal.mode, BalanceType.RESERVED] += withdrawal.amount.units
        if withdrawal.status is WithdrawalStatus.COMPLETED:
            sums[withdrawal.account_id, withdrawal.mode, BalanceType.PAID_OUT] += withdrawal.amount.units
    add_exchanges(sums, records[Exchange], records[ExchangeTransfer])
    return sums


def _check_sums_of_refunds(records: Records) -> None:
    """Check that refunds never exceed the payment, that the amount taken equals the open entries, and that
    refund_pending is true while a refund is open."""
    refunds = _grouped(records[Refund], lambda refund: refund.payment_id)
    for payment in records[Payment]:
        mine = refunds[payment.id]
        taken = sum(refund.amount.kopecks for refund in mine if holds_money(refund))
        assert payment.refund_taken.kopecks == taken, payment.id
        assert payment.refund_pending is any(is_open(refund) for refund in mine), payment.id
        assert not mine or remainder(payment, mine).kopecks >= 0, payment.id


def _check_statements(records: Records) -> None:
    """A statement sums to its credit, a batch to its statements, and a payment is in one at most."""
    of_statement = _grouped(records[SettlementItem], lambda item: item.settlement_id)
    for settlement in records[Settlement]:
        mine = of_statement[settlement.id]
        assert settlement.items == len(mine)
        assert settlement.payments == sum(item.kind == "payment" for item in mine)
        assert settlement.amount.kopecks == sum(item.amount.kopecks for item in mine)
        assert settlement.fee.units == sum(item.fee.units for item in mine)
        assert settlement.credit.units == sum(item.credit.units for item in mine)
    paid_in = Counter(item.payment_id for item in records[SettlementItem] if item.kind == "payment")
    assert not [payment_id for payment_id, times in paid_in.items() if times > 1]
    of_batch = _grouped(records[Settlement], lambda settlement: settlement.batch_id.partition("@")[0])
    for batch in records[SettlementBatch]:
        assert batch.credit.units == sum(settlement.credit.units for settlement in of_batch[batch.id])
        assert batch.payments == sum(settlement.payments for settlement in of_batch[batch.id])
    credited = (item for item in records[SettlementItem] if item.kind != "correction")
    of_payment = _grouped(credited, lambda item: item.payment_id)
    for payment in records[Payment]:
        if payment.settlement_id is not None:
            assert payment.amount_usdt.units == sum(item.credit.units for item in of_payment[payment.id]), payment.id


def _check_unknown_outcomes(records: Records) -> None:
    """There is a row for each payment of unknown outcome, and for no other (ARCHITECTURE.md "Three outcomes")."""
    unknown = [unknown_outcome(payment) for payment in records[Payment] if is_outcome_unknown(payment)]
    assert sorted(records[UnknownOutcome], key=_id) == sorted(unknown, key=_id)


def _id(record: UnknownOutcome) -> str:
    return record.id


def _grouped(records: Iterable[R], key: Callable[[R], Any]) -> defaultdict[Any, list[R]]:
    found: defaultdict[Any, list[R]] = defaultdict(list)
    for record in records:
        found[key(record)].append(record)
    return found
