"""Moves of payments: apply the decision of a report or an operator, and write the effects of every move."""

import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ....ports.bank import Transfer
from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account
from ...domain.accounts.shops import Shop
from ...domain.ledger import BalanceType
from ...domain.money import Rub
from ...domain.payments.payments import FailureReason, Payment, PaymentMove, PaymentStatus
from ...domain.payments.reports import Arrival, Decision, Report, decide, moved, noted
from ...domain.payments.suspense import Suspense, new_suspense
from ...domain.people.notifications import NotificationKind
from ..common.encrypted import payer_name_aad
from ..common.units import unit_of_work
from ..gateways.outcomes import follow_outcome
from ..person_events import note_for_people
from .bookings import book_move, book_noted, book_suspense
from .charge_effects import follow_charge
from .events import announce_payment
from .opening import plan_last_poll
from .proof_reminders import plan_reminders
from .receipt_records import plan_sale
from .tallies import save_moved


def read_failure(word: str | None) -> FailureReason | None:
    """Convert a bank's failure code to one of the documented reasons; an unrecognised code is UNKNOWN."""
    try:
        return None if word is None else FailureReason(word)
    except ValueError:
        return FailureReason.UNKNOWN


def read_arrivals(transfers: Sequence[Transfer]) -> tuple[Arrival, ...]:
    """Convert a bank's transfers to domain arrivals."""
    return tuple(
        Arrival(
            id=transfer.id,
            amount=Rub(transfer.amount_kopecks),
            at=transfer.at,
            payer_name=transfer.payer_name,
            fee=None if transfer.fee_kopecks is None else Rub(transfer.fee_kopecks),
            payer_bank=transfer.payer_bank,
            sbp_operation_id=transfer.sbp_operation_id,
        )
        for transfer in transfers
    )


log = logging.getLogger("cambist.payments")

RACES = ("suspense_id",)
"""Two concurrent notifications may book the same unapplied transfer; the second one finds it booked when it retries."""


@unit_of_work(again_on=RACES)
async def apply(ports: Ports, unit: Unit, payment_id: str, report: Report) -> Payment | None:
    """Apply a bank's report: move, event and suspense in one unit. Return None when there is no such payment."""
    payment = await unit[Payment].get(payment_id)
    if payment is None:
        return None
    _compare(payment, report)
    return await carry(ports, unit, payment, decide(payment, report, ports.clock.now()))


def _compare(payment: Payment, report: Report) -> None:
    """Log a report that gives the payment's own transfer another amount than we booked. The booking stays; the nightly
    reconciliation with the bank keeps the difference open.
    """
    for arrival in report.arrivals:
        if arrival.id == payment.transfer_id and payment.actual_amount not in (None, arrival.amount):
            booked = payment.actual_amount
            log.error(
                "%s: %s RUB are booked, the bank now reports %s for the same transfer",
                payment.id,
                booked,
                arrival.amount,
            )


async def carry(ports: Ports, unit: Unit, payment: Payment, decision: Decision) -> Payment:
    """Apply a decision in the caller's unit, which retries on RACES. Return the payment as saved."""
    suspended = []
    for unapplied in decision.unapplied:
        came = unapplied.arrival
        money = new_suspense(payment, came.id, came.amount, at=came.at, reason=unapplied.reason)
        suspended.append(await suspend(ports, unit, money))
    if decision.trigger is not None:
        return await move(ports, unit, payment, decision)
    if decision.arrival is not None:
        after = noted(payment, decision, encrypted_name=_encrypt_name(ports, payment, decision))
        if payment.status is PaymentStatus.AMOUNT_MISMATCH:
            # After a review the money is booked already, with the operator's amount.
            book_noted(ports, unit, after)
        return unit[Payment].save(after)
    # We judged this transfer unapplied from the payment's current state. Save the payment as well, so that a concurrent
    # change makes this unit stale; otherwise the same money might be booked twice.
    return unit[Payment].save(payment) if any(suspended) else payment


async def move(ports: Ports, unit: Unit, payment: Payment, decision: Decision) -> Payment:
    """Save a payment's move and all its effects, in the caller's unit. Raises: IllegalMove."""
    after = moved(payment, decision, ports.clock.now(), encrypted_name=_encrypt_name(ports, payment, decision))
    saved = save_moved(unit, payment, after)
    await follow(ports, unit, payment, after)
    return saved


async def _end_unknown(_ports: Ports, unit: Unit, move: PaymentMove) -> None:
    await follow_outcome(unit, move.before, move.after)


async def _note_mismatch(ports: Ports, unit: Unit, move: PaymentMove) -> None:
    if move.after.status is PaymentStatus.AMOUNT_MISMATCH:
        note_for_people(ports, unit, NotificationKind.MISMATCH, move.after.id)


FOLLOWS: tuple[Callable[[Ports, Unit, PaymentMove], Awaitable[None]], ...] = (
    _end_unknown,
    book_move,
    announce_payment,
    plan_reminders,
    plan_sale,
    follow_charge,
    plan_last_poll,
    _note_mismatch,
)
"""Effects of a payment's move, in order. Each function writes its part in the unit that saves the payment."""


async def follow(
    ports: Ports,
    unit: Unit,
    before: Payment,
    after: Payment,
    *,
    account: Account | None = None,
    shop: Shop | None = None,
) -> None:
    """Write the effects of a move that the caller saves in this unit. Pass `account` and `shop` of the payment if the
    unit has read them already.
    """
    account = account or await unit[Account].get(after.account_id)
    shop = shop or await unit[Shop].get(after.shop_id)
    move = PaymentMove(before, after, account, shop)
    for write in FOLLOWS:
        await write(ports, unit, move)


def _encrypt_name(ports: Ports, payment: Payment, decision: Decision) -> bytes | None:
    name = decision.arrival.payer_name if decision.arrival is not None else None
    return None if name is None else ports.vault.encrypt(name.encode(), payer_name_aad(payment.id))


async def suspend(ports: Ports, unit: Unit, money: Suspense, *, source: BalanceType = BalanceType.BANK) -> bool:
    """Book money that cannot move its payment to suspense, once per transfer. Return False if it was booked before.

    `source` is the ledger account that has the money so far. When the bank now reports another amount for a booked
    transfer, nothing is booked again: the bank's amount is saved beside ours, and an urgent action item shows both.
    """
    booked = await unit[Suspense].get(money.id)
    if booked is None:
        book_suspense(ports, unit, unit[Suspense].add(money), source)
        note_for_people(ports, unit, NotificationKind.MISMATCH, money.id)
        return True
    reported = None if money.amount == booked.amount else money.amount
    if reported is not None:
        text = "%s: %s RUB are booked in suspense, the bank now reports %s for the same transfer"
        log.error(text, booked.id, booked.amount, reported)
    if reported != booked.amount_at_bank:
        unit[Suspense].save(msgspec.structs.replace(booked, amount_at_bank=reported))
    return False
