"""What waits for a person now, over all accounts and both modes, oldest first.

Every find follows an index and is bounded, so that a console may ask every few seconds beside a busy service. Over
accounts it goes by tallies, which say whose payments stand where; what no index follows is looked for within days.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ...ports.bundle import Ports
from ...ports.storage import AtLeast, AtMost, OneOf, Unit
from ..domain.accounts import Mode
from ..domain.breaker import Breaker
from ..domain.days import LONG_AGO
from ..domain.events import Delivery, DeliveryStatus
from ..domain.exchange_funds import SUSPENDED_FOR, ExchangeTransfer
from ..domain.gateways import GatewayStatus
from ..domain.payments import Opening, Payment, PaymentStatus, Suspense
from ..domain.proofs import STUCK, DeliveryProof, ProofStatus
from ..domain.refunds import PendingReason, Refund, RefundStatus
from ..domain.tallies import EVER, Tally, day_of
from ..domain.withdrawals import Withdrawal, WithdrawalStatus
from .gateways import list_gateways
from .ledger_watch import ledger_faults
from .refund_contradictions import list_contradicted

MOST = 100
"""Of one kind, and of one account."""

UNKNOWN_FROM = timedelta(hours=6)
"""From when on nobody asks the bank by itself any more (DECISIONS 2)."""
UNKNOWN_FOR = timedelta(days=3)
"""How long an expired payment of unknown outcome is shown: its payer never had a way to pay it."""
REFUND_LATE = timedelta(days=1)
PAYOUT_LATE = timedelta(hours=1)
PAYOUT_FAILED_FOR = timedelta(days=7)
LETTERS_FAILED_FOR = timedelta(days=30)


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """One thing for a person to look at."""

    kind: str
    """`mismatch`, `refund`, `gateway`, …: what has to be decided."""
    of: str
    """The kind of object: `payment`, `refund`, …"""
    object_id: str
    text: str
    since: datetime | None = None
    """Null for what has no beginning, an alarm: it comes first."""
    account_id: str | None = None
    mode: Mode | None = None


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found. `complete`: no kind reached its bound."""

    found: list[Need]
    complete: bool


Finder = Callable[[Ports, Unit], Awaitable[list[Need]]]


async def read_needs(ports: Ports) -> Needs:
    """What waits now. Raises: Unavailable."""
    found: list[Need] = []
    complete = True
    for finder in FINDERS:
        async with ports.storage.unit() as unit:
            some = await finder(ports, unit)
        complete = complete and len(some) < MOST
        found += some
    return Needs(found=sorted(found, key=lambda need: need.since or LONG_AGO), complete=complete)


async def _with_payments(unit: Unit, status: PaymentStatus, *periods: str) -> list[str]:
    """The accounts that have payments of this status, of days or ever."""
    counts = await unit[Tally].sums("count", by="account_id", period=OneOf(periods), status=status)
    return [account_id for account_id, count in counts.items() if count > 0]


async def _payments(unit: Unit, accounts: list[str], **criteria: Any) -> list[Payment]:
    found: list[Payment] = []
    for account_id in accounts:
        for mode in Mode:
            found += await unit[Payment].find(
                account_id=account_id, mode=mode, order="created_at", limit=MOST, **criteria
            )
            if len(found) >= MOST:
                return found[:MOST]
    return found


def _of_payment(kind: str, payment: Payment, text: str, since: datetime) -> Need:
    return Need(
        kind=kind,
        of="payment",
        object_id=payment.id,
        text=text,
        since=since,
        account_id=payment.account_id,
        mode=payment.mode,
    )


async def _mismatches(_ports: Ports, unit: Unit) -> list[Need]:
    accounts = await _with_payments(unit, PaymentStatus.AMOUNT_MISMATCH, EVER)
    found = await _payments(unit, accounts, status=PaymentStatus.AMOUNT_MISMATCH)
    return [
        _of_payment(
            "mismatch",
            payment,
            f"{payment.amount} RUB asked, {payment.actual_amount or 'unknown'} came",
            payment.created_at,
        )
        for payment in found
    ]


async def _unknown(ports: Ports, unit: Unit) -> list[Need]:
    """Payments of which nobody will ask the bank again: charges stay pending, all others have expired."""
    now = ports.clock.now()
    before = AtMost(now - UNKNOWN_FROM)
    days = [day_of(now - timedelta(days=back)) for back in range(UNKNOWN_FOR.days + 1)]
    pending = await _payments(
        unit,
        await _with_payments(unit, PaymentStatus.PENDING, EVER),
        status=PaymentStatus.PENDING,
        opening=Opening.UNKNOWN,
        created_at=before,
    )
    expired = await _payments(
        unit,
        await _with_payments(unit, PaymentStatus.EXPIRED, *days),
        status=PaymentStatus.EXPIRED,
        opening=Opening.UNKNOWN,
        bank_reference=None,
        created_at=AtLeast(now - UNKNOWN_FOR),
    )
    late = [payment for payment in expired if payment.created_at <= now - UNKNOWN_FROM]
    text = "the bank never said what became of it"
    return [_of_payment("unknown", payment, text, payment.created_at) for payment in (*pending, *late)]


async def _suspense(_ports: Ports, unit: Unit) -> list[Need]:
    found = await unit[Suspense].find(resolved_at=None, order="received_at", limit=MOST)
    return [_of_suspended(row, f"{row.amount} RUB came: {row.reason}") for row in found]


async def _exchange_suspense(_ports: Ports, unit: Unit) -> list[Need]:
    found = await unit[ExchangeTransfer].find(
        resolved_at=None, reason=OneOf(SUSPENDED_FOR), order="received_at", limit=MOST
    )
    return [_of_suspended(row, f"{row.currency} of an exchange: {row.reason}") for row in found]


def _of_suspended(row: Suspense | ExchangeTransfer, text: str) -> Need:
    return Need(
        kind="suspense",
        of="suspense",
        object_id=row.id,
        text=text,
        since=row.received_at,
        account_id=row.account_id,
        mode=row.mode,
    )


def _of_refund(kind: str, refund: Refund, text: str, since: datetime | None = None) -> Need:
    return Need(
        kind=kind,
        of="refund",
        object_id=refund.id,
        text=text,
        since=since or refund.created_at,
        account_id=refund.account_id,
        mode=refund.mode,
    )


async def _refunds(ports: Ports, unit: Unit) -> list[Need]:
    waiting = await unit[Refund].find(
        status=RefundStatus.PENDING, pending_reason=PendingReason.AWAITING_APPROVAL, order="created_at", limit=MOST
    )
    late = AtMost(ports.clock.now() - REFUND_LATE)
    stuck = await unit[Refund].find(status=RefundStatus.PROCESSING, created_at=late, order="created_at", limit=MOST)
    sent = await list_contradicted(unit, MOST)
    return [
        *(_of_refund("refund", refund, f"{refund.amount} RUB awaits approval") for refund in waiting),
        *(_of_refund("unknown", refund, f"refund of {refund.amount} RUB: the bank is silent") for refund in stuck),
        *(
            _of_refund("refund", refund, f"{refund.amount} RUB failed, but was sent", refund.contradicted_at)
            for refund in sent
        ),
    ]


async def _payouts(ports: Ports, unit: Unit) -> list[Need]:
    now = ports.clock.now()
    failed = await unit[Withdrawal].find(
        status=WithdrawalStatus.FAILED, created_at=AtLeast(now - PAYOUT_FAILED_FOR), order="created_at", limit=MOST
    )
    waiting = await unit[Withdrawal].find(
        status=WithdrawalStatus.PENDING, created_at=AtMost(now - PAYOUT_LATE), order="created_at", limit=MOST
    )
    return [
        Need(
            kind="payout",
            of="withdrawal",
            object_id=row.id,
            text=f"{row.amount} USDT {'failed' if row.status is WithdrawalStatus.FAILED else 'cannot be signed yet'}",
            since=row.created_at,
            account_id=row.account_id,
            mode=row.mode,
        )
        for row in (*failed, *waiting)
    ]


async def _proofs(ports: Ports, unit: Unit) -> list[Need]:
    """In review for longer than a check takes by itself."""
    found = await unit[DeliveryProof].find(
        status=ProofStatus.IN_REVIEW, status_at=AtMost(ports.clock.now() - STUCK), order="status_at", limit=MOST
    )
    text = "delivery proof in review"
    return [Need(kind="proof", of="payment", object_id=row.id, text=text, since=row.status_at) for row in found]


async def _receivers(ports: Ports, unit: Unit) -> list[Need]:
    """Open breakers, and receivers for which letters were given up."""
    opened = await unit[Breaker].find(next_probe_at=AtLeast(LONG_AGO), order="next_probe_at", limit=MOST)
    found = [
        _of_receiver("breaker", row, f"does not answer: {row.last_answer or 'no answer'}", row.opened_at)
        for row in opened
    ]
    since = AtLeast(ports.clock.now() - LETTERS_FAILED_FOR)
    for row in await unit[Breaker].find(last_failure_at=since, order="-last_failure_at", limit=MOST):
        failed = await unit[Delivery].find(
            account_id=row.account_id, mode=row.mode, status=DeliveryStatus.FAILED, due=None, order="id", limit=MOST
        )
        if failed:
            count = "1 webhook" if len(failed) == 1 else f"{len(failed)}{'+' if len(failed) == MOST else ''} webhooks"
            found.append(_of_receiver("delivery", row, f"{count} given up", failed[0].created_at))
    return found


def _of_receiver(kind: str, row: Breaker, text: str, since: datetime | None) -> Need:
    return Need(
        kind=kind,
        of="receiver",
        object_id=row.id,
        text=text,
        since=since,
        account_id=row.account_id,
        mode=row.mode,
    )


async def _gateways(ports: Ports, _unit: Unit) -> list[Need]:
    return [
        Need(
            kind="gateway",
            of="gateway",
            object_id=shown.gateway_id,
            text=f"{shown.status}{'' if shown.reason is None else f': {shown.reason}'}",
            since=shown.since,
            mode=mode,
        )
        for mode in Mode
        for shown in await list_gateways(ports, mode)
        if shown.status is not GatewayStatus.OPERATIONAL
    ]


async def _ledger(ports: Ports, _unit: Unit) -> list[Need]:
    return [Need(kind="ledger", of="ledger", object_id="", text=fault) for fault in await ledger_faults(ports)]


FINDERS: tuple[Finder, ...] = (
    _ledger,
    _mismatches,
    _suspense,
    _exchange_suspense,
    _unknown,
    _refunds,
    _payouts,
    _proofs,
    _receivers,
    _gateways,
)
