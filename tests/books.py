"""The books against the objects: every balance follows from payments, refunds, settlements, withdrawals and exchanges,
and the ledger proves itself (DECISIONS 4; invariants of the domain)."""

from collections import Counter
from typing import Any

from cambist.core.domain.accounts import Account, Mode
from cambist.core.domain.exchange_funds import ExchangeTransfer
from cambist.core.domain.exchanges import Exchange
from cambist.core.domain.ledger import SERVICE, LedgerAccount, Purse
from cambist.core.domain.payments import Payment, PaymentStatus, Suspense
from cambist.core.domain.refunds import Refund, holds_money, is_open, remainder
from cambist.core.domain.settlement import Correction, Settlement, SettlementBatch, SettlementItem
from cambist.core.domain.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.usecases.ledger_check import verify_ledger
from cambist.ports.bundle import Ports
from tests.exchange_books import CLIENT_PURSES, SERVICE_PURSES, add_exchanges, check_exchanges

Owner = tuple[str, Mode]
_SIMPLE = (Purse.PENDING, Purse.REVIEW, Purse.SUSPENSE, Purse.RESERVED, Purse.PAID_OUT)
_OPEN = (WithdrawalStatus.PENDING, WithdrawalStatus.PROCESSING, WithdrawalStatus.SENT)


async def everything(ports: Ports, kind: type[Any]) -> list[Any]:
    """All records of a kind."""
    return [record async for batch in ports.storage.scan(kind) for record in batch]


async def balances(ports: Ports) -> Counter[tuple[str, Mode, Purse]]:
    """The running balances, stripes added up."""
    found: Counter[tuple[str, Mode, Purse]] = Counter()
    for row in await everything(ports, LedgerAccount):
        found[row.owner, row.mode, row.purse] += row.balance
    return found


async def check_books(ports: Ports) -> None:
    """Raises AssertionError where money and objects say different things."""
    report = await verify_ledger(ports)
    assert report.holds, report
    await _check_sums_of_refunds(ports)
    await _check_statements(ports)
    check_exchanges(await everything(ports, Exchange), await everything(ports, ExchangeTransfer))
    expected = await _expected(ports)
    found = await balances(ports)
    owners = {account.id for account in await everything(ports, Account)}
    for owner in owners:
        for mode in Mode:
            for purse in (*_SIMPLE, *CLIENT_PURSES):
                assert found[owner, mode, purse] == expected[owner, mode, purse], (owner, mode, purse)
            earned = expected[owner, mode, Purse.AVAILABLE]
            held = found[owner, mode, Purse.RESERVED] + found[owner, mode, Purse.PAID_OUT]
            assert found[owner, mode, Purse.AVAILABLE] + held == earned, (owner, mode)
    for mode in Mode:
        for purse in (Purse.REFUNDING, Purse.FEES, *SERVICE_PURSES):
            assert found[SERVICE, mode, purse] == expected[SERVICE, mode, purse], (mode, purse)
        assert found[SERVICE, mode, Purse.ROUNDING] >= 0


async def _expected(ports: Ports) -> Counter[tuple[str, Mode, Purse]]:
    """What the objects say. AVAILABLE stands for all that was earned: with what is reserved and paid out."""
    sums: Counter[tuple[str, Mode, Purse]] = Counter()
    for payment in await everything(ports, Payment):
        owner: Owner = payment.account_id, payment.mode
        if payment.status is PaymentStatus.PAID:
            sums[*owner, Purse.PENDING] += payment.actual_amount.kopecks - payment.refund_taken.kopecks
        if payment.status is PaymentStatus.AMOUNT_MISMATCH and payment.transfer_id is not None:
            sums[*owner, Purse.REVIEW] += payment.actual_amount.kopecks
    for correction in await everything(ports, Correction):
        if correction.settlement_id is None:
            sums[correction.account_id, correction.mode, Purse.PENDING] += correction.amount.kopecks
    for suspense in await everything(ports, Suspense):
        if suspense.resolved_at is None:
            sums[suspense.account_id, suspense.mode, Purse.SUSPENSE] += suspense.amount.kopecks
    for settlement in await everything(ports, Settlement):
        sums[settlement.account_id, settlement.mode, Purse.AVAILABLE] += settlement.credit.units
        sums[SERVICE, settlement.mode, Purse.FEES] += settlement.fee.units
    for refund in await everything(ports, Refund):
        if holds_money(refund) and refund.taken_usdt is not None:
            sums[refund.account_id, refund.mode, Purse.AVAILABLE] -= refund.taken_usdt.units
        if refund.status == "processing":
            sums[SERVICE, refund.mode, Purse.REFUNDING] += refund.amount.kopecks
    for withdrawal in await everything(ports, Withdrawal):
        if withdrawal.status in _OPEN:
            sums[withdrawal.account_id, withdrawal.mode, Purse.RESERVED] += withdrawal.amount.units
        if withdrawal.status is WithdrawalStatus.COMPLETED:
            sums[withdrawal.account_id, withdrawal.mode, Purse.PAID_OUT] += withdrawal.amount.units
    add_exchanges(sums, await everything(ports, Exchange), await everything(ports, ExchangeTransfer))
    return sums


async def _check_sums_of_refunds(ports: Ports) -> None:
    """Refunded never exceeds paid; what is taken is what stands taken; refund_pending is true while one is open."""
    refunds: dict[str, list[Refund]] = {}
    for refund in await everything(ports, Refund):
        refunds.setdefault(refund.payment_id, []).append(refund)
    for payment in await everything(ports, Payment):
        mine = refunds.get(payment.id, [])
        taken = sum(refund.amount.kopecks for refund in mine if holds_money(refund))
        assert payment.refund_taken.kopecks == taken, payment.id
        assert payment.refund_pending is any(is_open(refund) for refund in mine), payment.id
        assert not mine or remainder(payment, mine).kopecks >= 0, payment.id


async def _check_statements(ports: Ports) -> None:
    """A statement sums to its credit, a batch to its statements, and a payment is in one at most."""
    items = await everything(ports, SettlementItem)
    settlements = await everything(ports, Settlement)
    for settlement in settlements:
        mine = [item for item in items if item.settlement_id == settlement.id]
        assert settlement.items == len(mine)
        assert settlement.payments == sum(item.kind == "payment" for item in mine)
        assert settlement.amount.kopecks == sum(item.amount.kopecks for item in mine)
        assert settlement.fee.units == sum(item.fee.units for item in mine)
        assert settlement.credit.units == sum(item.credit.units for item in mine)
    paid_in = Counter(item.payment_id for item in items if item.kind == "payment")
    assert not [payment_id for payment_id, times in paid_in.items() if times > 1]
    for batch in await everything(ports, SettlementBatch):
        mine = [settlement for settlement in settlements if settlement.batch_id == batch.id]
        assert batch.credit.units == sum(settlement.credit.units for settlement in mine)
        assert batch.payments == sum(settlement.payments for settlement in mine)
    for payment in await everything(ports, Payment):
        if payment.settlement_id is not None:
            mine = [item for item in items if item.payment_id == payment.id and item.kind != "correction"]
            assert payment.amount_usdt.units == sum(item.credit.units for item in mine), payment.id
