"""Effect of a refund on the merchant's money (docs/refunds.md "The money").

Before settlement a refund lowers the pending RUB; after it, the available USDT by the market value, so that the fee
stays. A failed or reversed refund gives back exactly what it took. Call these functions in the unit that saves the
payment and the refund; they return both as saved.
"""

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account
from ...domain.ledger import BalanceType, EntryKind
from ...domain.money import Usdt
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import Refund
from ...domain.settlement.settlement import Correction, Settlement, at_market
from ..common.encrypted import true_settings
from ..ledger.ledger import book, may_take


async def take(ports: Ports, unit: Unit, payment: Payment, refund: Refund) -> tuple[Payment, Refund] | None:
    """Take the refund's amount from the merchant's balance, on its way to the bank; return None when the balance does
    not cover it.

    The caller passes `ledger.LEDGER_RULES` to `retrying`.
    """
    if payment.settlement_id is not None:
        value = await market_value(unit, payment, refund)
        account = await unit[Account].get(payment.account_id)
        overdraft = Usdt(0) if account is None else true_settings(ports.vault, account).refund_overdraft_usdt
        if not await may_take(unit, payment.account_id, payment.mode, value, overdraft=overdraft):
            return None
    return await take_executed(ports, unit, payment, refund)


async def take_executed(ports: Ports, unit: Unit, payment: Payment, refund: Refund) -> tuple[Payment, Refund]:
    """Take the amount of a refund that the bank has executed, whatever the balance; a shortfall is a debt."""
    kopecks = refund.amount.kopecks
    if payment.settlement_id is None:
        # The payment is paid and not settled, so its RUB are available.
        refund = msgspec.structs.replace(refund, taken_rub=refund.amount, taken_usdt=None, rate_market=None)
        postings = {BalanceType.PENDING: -kopecks, BalanceType.REFUNDING: kopecks}
    else:
        rate = await market_rate_of(unit, payment)
        value = at_market(refund.amount, rate)
        refund = msgspec.structs.replace(refund, taken_rub=None, taken_usdt=value, rate_market=rate)
        postings = {
            BalanceType.AVAILABLE: -value.units,
            BalanceType.REFUNDED_USDT: value.units,
            BalanceType.CONVERTED_RUB: -kopecks,
            BalanceType.REFUNDING: kopecks,
        }
    book(ports, unit, EntryKind.REFUND_TAKEN, refund, postings)
    return msgspec.structs.replace(payment, refund_taken=payment.refund_taken + refund.amount), refund


async def market_value(unit: Unit, payment: Payment, refund: Refund) -> Usdt:
    """Return the amount of available USDT that a refund of a settled payment takes. Raises: LookupError."""
    return at_market(refund.amount, await market_rate_of(unit, payment))


async def market_rate_of(unit: Unit, payment: Payment) -> str:
    """Return the rate at which a payment was settled. Raises: LookupError."""
    settlement = await unit[Settlement].get(payment.settlement_id or "")
    if settlement is None:
        raise LookupError(f"{payment.id} is settled, and its statement is gone")
    return settlement.rate_market


def paid(ports: Ports, unit: Unit, refund: Refund) -> None:
    """Book that the bank has sent the refund: the RUB have left."""
    kopecks = refund.amount.kopecks
    book(ports, unit, EntryKind.REFUND_PAID, refund, {BalanceType.REFUNDING: -kopecks, BalanceType.BANK: kopecks})


def give_back(ports: Ports, unit: Unit, payment: Payment, refund: Refund, *, reversed_: bool) -> Payment:
    """Give back exactly the amount taken. With `reversed_` the refund was already sent, and the bank has the RUB again.

    RUB that were taken before the payment's settlement, and come back after it, wait for the next settlement as a
    correction.
    """
    kopecks = refund.amount.kopecks
    source = BalanceType.BANK if reversed_ else BalanceType.REFUNDING
    if refund.taken_usdt is not None:
        postings = {
            source: -kopecks,
            BalanceType.CONVERTED_RUB: kopecks,
            BalanceType.REFUNDED_USDT: -refund.taken_usdt.units,
            BalanceType.AVAILABLE: refund.taken_usdt.units,
        }
    else:
        postings = {source: -kopecks, BalanceType.PENDING: kopecks}
        if payment.settlement_id is not None:
            unit[Correction].add(
                Correction(
                    id=refund.id,
                    account_id=refund.account_id,
                    mode=refund.mode,
                    payment_id=payment.id,
                    shop_id=payment.shop_id,
                    amount=refund.amount,
                    since=ports.clock.now(),
                )
            )
    kind = EntryKind.REFUND_REVERSED if reversed_ else EntryKind.REFUND_RETURNED
    book(ports, unit, kind, refund, postings)
    return msgspec.structs.replace(payment, refund_taken=payment.refund_taken - refund.amount)
