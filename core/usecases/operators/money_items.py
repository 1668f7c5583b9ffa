"""Action items about money that waits: payments, refunds, payouts, exchanges, suspense (action_items.py)."""

from datetime import datetime, timedelta

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, AtMost, Between, OneOf, Unit
from ...domain.exchanges.exchanges import Exchange, ExchangeStatus
from ...domain.exchanges.funds import SUSPENDED_FOR, ExchangeTransfer
from ...domain.exchanges.reversals import LOST
from ...domain.money import Rub
from ...domain.payments.outcomes import Operation, UnknownOutcome
from ...domain.payments.payments import Payment, PaymentStatus
from ...domain.payments.suspense import Suspense
from ...domain.refunds.refunds import PendingReason, Refund, RefundStatus
from ...domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from ..common.encrypted import exchange_fits, withdrawal_fits
from ..gateways.outcomes import told_from
from ..refunds.contradictions import contradiction, list_contradicted
from .action_item import MOST, ActionItem, first, item
from .unanswered import find_unanswered

UNKNOWN_FROM = timedelta(hours=6)
"""Age from which the service no longer polls the bank (ARCHITECTURE.md "Three outcomes")."""
REFUND_LATE = timedelta(days=1)
NOT_TAGGED = "not signed: its wallet or amount is not what the vault tagged"
NOT_FINAL = "is signed, and not final on chain yet"
NOT_AS_MADE = "not sent: where it goes to, or how much, is not what the vault tagged"
SENT_FROM = (
    ExchangeStatus.USDT_RECEIVED,
    ExchangeStatus.RUB_SENDING,
    ExchangeStatus.RUB_RECEIVED,
    ExchangeStatus.USDT_SENDING,
)
PAYOUT_LATE = timedelta(hours=1)
PAYOUT_STUCK = timedelta(hours=3)
"""Maximum time from a payout's request until it is final on the network."""
PAYOUT_FAILED_FOR = timedelta(days=7)
LOSS_FOR = timedelta(days=90)
"""How long to list RUB that a payer's bank took back, counted from their arrival."""


async def mismatches(_ports: Ports, unit: Unit) -> list[ActionItem]:
    found = await first(unit, Payment, "created_at", status=PaymentStatus.AMOUNT_MISMATCH)
    return [
        item(
            "mismatch",
            "payment",
            payment,
            f"{_came(payment)} came for {payment.amount} RUB",
            payment.created_at,
            brief="another amount came than was asked for",
        )
        for payment in found
    ]


def _came(payment: Payment) -> str:
    return "an unknown amount" if payment.actual_amount is None else f"{payment.actual_amount} RUB"


async def unknown(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return payments whose outcome the service no longer polls. The bank may never report it."""
    now = ports.clock.now()
    found: list[UnknownOutcome] = []
    for operation in Operation:
        span = Between(told_from(operation, now), now - UNKNOWN_FROM)
        found += await first(unit, UnknownOutcome, "created_at", operation=operation, created_at=span)
    text = "the bank never said what became of it"
    oldest = sorted(found, key=lambda row: row.created_at)[:MOST]
    return [item("unknown", "payment", row, text, row.created_at) for row in oldest]


async def suspense(_ports: Ports, unit: Unit) -> list[ActionItem]:
    found = await first(unit, Suspense, "received_at", resolved_at=None)
    return [_of_unapplied(row) for row in found]


def _of_unapplied(row: Suspense) -> ActionItem:
    text = f"{row.amount} RUB came: {row.reason}"
    if row.amount_at_bank is None:
        return _of_suspended(row, text)
    brief = "the bank now reports another amount for a transfer in suspense"
    since = row.received_at
    text = f"{text}; the bank now reports {row.amount_at_bank} RUB"
    return item("suspense", "suspense", row, text, since, urgent=True, brief=brief)


async def exchange_suspense(_ports: Ports, unit: Unit) -> list[ActionItem]:
    found = await first(unit, ExchangeTransfer, "received_at", resolved_at=None, reason=OneOf(SUSPENDED_FOR))
    return [_of_suspended(row, f"{row.currency} of an exchange: {row.reason}") for row in found]


async def losses(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return RUB that a payer's bank took back after the exchange had been paid out."""
    since = AtLeast(ports.clock.now() - LOSS_FOR)
    found = await first(unit, ExchangeTransfer, "received_at", resolved_at=None, reason=LOST, received_at=since)
    text = "RUB were taken back once the exchange was over: a loss"
    return [
        item(
            "loss",
            "exchange",
            row,
            f"{Rub(row.taken_back)} {text}",
            row.received_at,
            object_id=row.exchange_id,
            brief=text,
        )
        for row in found
    ]


def _of_suspended(row: Suspense | ExchangeTransfer, text: str) -> ActionItem:
    return item("suspense", "suspense", row, text, row.received_at, brief=f"money in suspense: {row.reason}")


def _of_refund(kind: str, refund: Refund, text: str, since: datetime | None = None) -> ActionItem:
    told = f"{refund.amount} RUB {text}"
    return item(kind, "refund", refund, told, since or refund.created_at, brief=text)


async def refunds(ports: Ports, unit: Unit) -> list[ActionItem]:
    waiting = await first(
        unit, Refund, "created_at", status=RefundStatus.PENDING, pending_reason=PendingReason.AWAITING_APPROVAL
    )
    late = AtMost(ports.clock.now() - REFUND_LATE)
    stuck = await first(unit, Refund, "created_at", status=RefundStatus.PROCESSING, created_at=late)
    sent = await list_contradicted(unit, MOST)
    return [
        *(_of_refund("refund", refund, "awaits approval") for refund in waiting),
        *(_of_refund("unknown", refund, "of a refund: the bank is silent") for refund in stuck),
        *(_of_refund("refund", refund, contradiction(refund), refund.contradicted_at) for refund in sent),
    ]


async def unanswered(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return operations whose banks have forgotten them and never reported an outcome."""
    return [
        ActionItem(
            kind="unanswered",
            of=each.of,
            object_id=each.object_id,
            text=f"not sent again: the bank knows nothing of {each.operation}; cambist operation end",
            since=each.until,
            account_id=each.account_id,
            mode=each.mode,
        )
        for each in await find_unanswered(ports, unit, MOST)
    ]


async def payouts(ports: Ports, unit: Unit) -> list[ActionItem]:
    now = ports.clock.now()
    failed = await first(
        unit, Withdrawal, "created_at", status=WithdrawalStatus.FAILED, created_at=AtLeast(now - PAYOUT_FAILED_FOR)
    )
    waiting = await first(
        unit, Withdrawal, "created_at", status=WithdrawalStatus.PENDING, created_at=AtMost(now - PAYOUT_LATE)
    )
    on_the_way = []
    for status in (WithdrawalStatus.PROCESSING, WithdrawalStatus.SENT):
        signed = AtMost(now - PAYOUT_STUCK)
        on_the_way += await first(unit, Withdrawal, "created_at", status=status, created_at=signed)
    pending = await first(unit, Withdrawal, "created_at", status=WithdrawalStatus.PENDING)
    forged = [row for row in pending if not withdrawal_fits(ports.vault, row)]
    told = {row.id for row in forged}
    late = [row for row in waiting if row.id not in told]
    found = ((NOT_TAGGED, forged), ("failed", failed), (NOT_FINAL, on_the_way), ("cannot be signed yet", late))
    return [
        item(
            "payout",
            "withdrawal",
            row,
            f"{row.amount} USDT {what}",
            row.created_at,
            urgent=what == NOT_TAGGED,
            brief=what,
        )
        for what, rows in found
        for row in rows
    ]


async def exchanges(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return exchanges whose money is not sent, because the vault's tag does not match their rows."""
    found = []
    for status in SENT_FROM:
        some = await unit[Exchange].find(status=status, order="created_at", limit=MOST, readable=True)
        found += [row for row in some if not exchange_fits(ports.vault, row)]
    return [item("exchange", "exchange", row, NOT_AS_MADE, row.created_at, urgent=True) for row in found]
