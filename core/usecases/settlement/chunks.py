"""Chunks of a settlement: one unit of work settles some payments of one merchant, each with its ledger entry, its line
of the statement, and its event (docs/settlement.md "Reconciling")."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account
from ...domain.ledger import BalanceType, EntryKind, JournalEntry, journal_entry
from ...domain.money import Rub
from ...domain.payments.payments import Payment, PaymentTrigger, moved_to
from ...domain.refunds.refunds import holds_money
from ...domain.settlement.settlement import (
    Correction,
    ItemKind,
    Line,
    Settlement,
    SettlementBatch,
    SettlementItem,
    Worth,
    item_id,
    lines_of,
)
from ..common.units import retrying
from ..ledger.ledger import post
from ..payments.moves import follow
from ..payments.tallies import save_all_moved
from ..refunds.steps import refunds_of
from .run import STATEMENT_RACES, Run, due_corrections, due_payments, hold_on, open_statement


class _Settled(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one settled payment or correction."""

    object_id: str
    """Object id of the ledger entry."""
    payment_id: str
    shop_id: str
    markup: str
    lines: Sequence[Line]
    amount: Rub
    """Amount less refunds."""
    worth: Worth


async def settle_chunk(ports: Ports, run: Run) -> bool:
    """Settle the merchant's next payments and corrections. Return False when none are left.

    Raises: Stale when another process has taken over the job.
    """

    async def work(unit: Unit) -> datetime | bool:
        payments = await due_payments(unit, run)
        corrections = await due_corrections(unit, run)
        if not payments and not corrections:
            return False
        await hold_on(ports, unit, run.job)
        statement = await open_statement(ports, unit, run)
        settled = await _settle_payments(ports, unit, run, statement, payments)
        settled += [_settle_correction(unit, run, statement, *each) for each in corrections]
        _write_lines(unit, statement, settled)
        post(unit, *(_entry(ports, run, each) for each in settled if each.amount.kopecks))
        _add_up(unit, run, statement, settled)
        return payments[-1].created_at if payments else True

    done = await retrying(ports.storage, work, again_on=STATEMENT_RACES)
    if isinstance(done, datetime):
        run.progress.since = done
    elif not done and run.progress.since is not None:
        # Payments that the bank reported late may have made an older payment due meanwhile.
        run.progress.since = None
        return True
    return bool(done)


async def _settle_payments(
    ports: Ports, unit: Unit, run: Run, statement: Settlement, payments: Sequence[Payment]
) -> list[_Settled]:
    account = await unit[Account].get(run.account.id) or run.account
    now = ports.clock.now()
    settled: list[_Settled] = []
    moves: list[tuple[Payment, Payment]] = []
    for payment in payments:
        paid, (markup, terms) = payment.actual_amount or Rub(0), run.accepted_at(payment.markup, payment.shop_id)
        taken = await _taken(unit, payment) if payment.refund_taken > Rub(0) else []
        left = paid - payment.refund_taken
        worth = terms.worth(left)
        after = moved_to(
            payment, PaymentTrigger.SETTLED, settled_at=now, settlement_id=statement.id, amount_usdt=worth.credit
        )
        await follow(ports, unit, payment, after, account=account, shop=run.shops[payment.shop_id])
        moves.append((payment, after))
        settled.append(
            _Settled(
                object_id=payment.id,
                payment_id=payment.id,
                shop_id=payment.shop_id,
                markup=markup,
                lines=lines_of(payment.id, paid, taken, terms),
                amount=left,
                worth=worth,
            )
        )
    save_all_moved(unit, moves)
    return settled


async def _taken(unit: Unit, payment: Payment) -> list[tuple[str, Rub]]:
    """Return the refunds that have taken money from the payment, oldest first."""
    refunds = await refunds_of(unit, payment.id)
    held = [refund for refund in refunds if holds_money(refund)]
    return [(refund.id, refund.taken_rub) for refund in held if refund.taken_rub is not None]


def _settle_correction(
    unit: Unit, run: Run, statement: Settlement, correction: Correction, payment: Payment | None
) -> _Settled:
    markup, terms = run.accepted_at(None if payment is None else payment.markup, correction.shop_id)
    worth = terms.worth(correction.amount)
    line = Line(
        kind=ItemKind.CORRECTION,
        object_id=correction.id,
        amount=correction.amount,
        fee=worth.fee,
        credit=worth.credit,
    )
    unit[Correction].save(msgspec.structs.replace(correction, settlement_id=statement.id))
    return _Settled(
        object_id=correction.id,
        payment_id=correction.payment_id,
        shop_id=correction.shop_id,
        markup=markup,
        lines=[line],
        amount=correction.amount,
        worth=worth,
    )


def _write_lines(unit: Unit, statement: Settlement, settled: Sequence[_Settled]) -> None:
    for each in settled:
        for line in each.lines:
            unit[SettlementItem].add(
                SettlementItem(
                    id=item_id(statement.id, line, each.payment_id),
                    settlement_id=statement.id,
                    payment_id=each.payment_id,
                    shop_id=each.shop_id,
                    kind=line.kind,
                    amount=line.amount,
                    markup=each.markup,
                    fee=line.fee,
                    credit=line.credit,
                )
            )


def _entry(ports: Ports, run: Run, settled: _Settled) -> JournalEntry:
    """Return the entry that moves the RUB to the service and its USDT to the merchant."""
    kopecks, worth = settled.amount.kopecks, settled.worth
    return journal_entry(
        EntryKind.SETTLEMENT,
        settled.object_id,
        account_id=run.account.id,
        mode=run.batch.mode,
        at=ports.clock.now(),
        postings={
            BalanceType.PENDING: -kopecks,
            BalanceType.CONVERTED_RUB: kopecks,
            BalanceType.CONVERTED_USDT: -worth.market.units,
            BalanceType.AVAILABLE: worth.credit.units,
            BalanceType.FEES: worth.fee.units,
            BalanceType.ROUNDING: worth.rounding.units,
        },
    )


def _add_up(unit: Unit, run: Run, statement: Settlement, settled: Sequence[_Settled]) -> None:
    sums = {
        "payments": sum(1 for each in settled for line in each.lines if line.kind is ItemKind.PAYMENT),
        "amount": sum(each.amount.kopecks for each in settled),
        "fee": sum(each.worth.fee.units for each in settled),
        "credit": sum(each.worth.credit.units for each in settled),
    }
    for field, by in sums.items():
        unit[Settlement].increase(statement.id, field, by)
        unit[SettlementBatch].increase(run.batch.id, field, by)
    unit[Settlement].increase(statement.id, "items", sum(len(each.lines) for each in settled))
