"""What waits for a person now, over all accounts and both modes, oldest first.

Every find follows an index that leads to little else than what is shown, and is bounded, so that a console may ask
every few seconds beside a busy service.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, AtMost, Between, OneOf, R, Unit
from ...domain.accounts.accounts import Mode, Owned
from ...domain.days import LONG_AGO
from ...domain.exchanges.exchanges import Exchange, ExchangeStatus
from ...domain.exchanges.funds import SUSPENDED_FOR, ExchangeTransfer
from ...domain.exchanges.reversals import LOST
from ...domain.gateways.gateways import GatewayStatus
from ...domain.kyc.clients import Client, KycStatus
from ...domain.money import Rub
from ...domain.payments.outcomes import Operation, UnknownOutcome
from ...domain.payments.payments import Payment, PaymentStatus, Suspense
from ...domain.payments.proofs import STUCK, DeliveryProof, ProofStatus
from ...domain.refunds.refunds import PendingReason, Refund, RefundStatus
from ...domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from ...domain.webhooks.breaker import Breaker
from ...domain.webhooks.events import Delivery, DeliveryStatus
from ..gateways.gateways import list_gateways
from ..gateways.outcomes import told_from
from ..holding import read_hold
from ..ledger.watch import ledger_faults
from ..refunds.contradictions import list_contradicted
from ..sealed import act_fits, exchange_fits, withdrawal_fits
from .pending_acts import list_acts
from .unanswered import find_unanswered
from .unreadable import list_unreadable

MOST = 100
"""Of one kind."""

UNKNOWN_FROM = timedelta(hours=6)
"""From when on nobody asks the bank by itself any more (ARCHITECTURE.md "Three ends")."""
REFUND_LATE = timedelta(days=1)
NOT_TAGGED = "not signed: its wallet or amount is not what the vault tagged"
NOT_FINAL = "is signed, and not final on chain yet"
NOT_AS_MADE = "not sent: where it goes to, or how much, is not what the vault tagged"
ALTERED = "not what the vault tagged: reject it"
SENT_FROM = (
    ExchangeStatus.USDT_RECEIVED,
    ExchangeStatus.RUB_SENDING,
    ExchangeStatus.RUB_RECEIVED,
    ExchangeStatus.USDT_SENDING,
)
PAYOUT_LATE = timedelta(hours=1)
PAYOUT_STUCK = timedelta(hours=3)
"""From when it was asked for until the network is final about it, at most."""
PAYOUT_FAILED_FOR = timedelta(days=7)
LETTERS_FAILED_FOR = timedelta(days=30)
REVOKED_FOR = timedelta(days=30)
"""How long a client is shown whom the verifier takes back."""
LOSS_FOR = timedelta(days=90)
"""How long RUB that were taken back are shown, from when they had come."""


class ActionItem(msgspec.Struct, frozen=True, kw_only=True):
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
    urgent: bool = False
    """It may not wait for the morning."""
    brief: str = ""
    """The text without amounts and names, for messages that leave the house; empty: it has none."""


class ActionItems(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found. `complete`: no kind reached its bound."""

    found: list[ActionItem]
    complete: bool


def _item(
    kind: str,
    of: str,
    row: Owned,
    text: str,
    since: datetime | None,
    *,
    object_id: str | None = None,
    urgent: bool = False,
    brief: str = "",
) -> ActionItem:
    return ActionItem(
        kind=kind,
        of=of,
        object_id=object_id or row.id,
        text=text,
        since=since,
        account_id=row.account_id,
        mode=row.mode,
        urgent=urgent,
        brief=brief,
    )


Finder = Callable[[Ports, Unit], Awaitable[list[ActionItem]]]


async def _first(unit: Unit, kind: type[R], order: str, **criteria: Any) -> list[R]:
    return await unit[kind].find(order=order, limit=MOST, readable=True, **criteria)


async def read_action_items(ports: Ports) -> ActionItems:
    """What waits now. Raises: Unavailable."""
    found: list[ActionItem] = []
    complete = True
    for finder in FINDERS:
        some = await found_by(finder, ports)
        complete = complete and len(some) < MOST
        found += some
    return ActionItems(found=sorted(found, key=lambda item: item.since or LONG_AGO), complete=complete)


async def found_by(finder: Finder, ports: Ports) -> list[ActionItem]:
    """What one finder finds now, of each kind at most MOST. Raises: Unavailable; Unreadable."""
    async with ports.storage.unit() as unit:
        return await finder(ports, unit)


async def _mismatches(_ports: Ports, unit: Unit) -> list[ActionItem]:
    found = await _first(unit, Payment, "created_at", status=PaymentStatus.AMOUNT_MISMATCH)
    return [
        _item(
            "mismatch",
            "payment",
            payment,
            f"{payment.amount} RUB asked, {payment.actual_amount or 'unknown'} came",
            payment.created_at,
            brief="another amount came than was asked for",
        )
        for payment in found
    ]


async def _unknown(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Payments that the bank was asked about for long enough: it may never say."""
    now = ports.clock.now()
    found: list[UnknownOutcome] = []
    for operation in Operation:
        span = Between(told_from(operation, now), now - UNKNOWN_FROM)
        found += await _first(unit, UnknownOutcome, "created_at", operation=operation, created_at=span)
    text = "the bank never said what became of it"
    oldest = sorted(found, key=lambda row: row.created_at)[:MOST]
    return [_item("unknown", "payment", row, text, row.created_at) for row in oldest]


async def _suspense(_ports: Ports, unit: Unit) -> list[ActionItem]:
    found = await _first(unit, Suspense, "received_at", resolved_at=None)
    return [_of_suspended(row, f"{row.amount} RUB came: {row.reason}") for row in found]


async def _exchange_suspense(_ports: Ports, unit: Unit) -> list[ActionItem]:
    found = await _first(unit, ExchangeTransfer, "received_at", resolved_at=None, reason=OneOf(SUSPENDED_FOR))
    return [_of_suspended(row, f"{row.currency} of an exchange: {row.reason}") for row in found]


async def _losses(ports: Ports, unit: Unit) -> list[ActionItem]:
    """RUB that payers' banks took back once something was given for them."""
    since = AtLeast(ports.clock.now() - LOSS_FOR)
    found = await _first(unit, ExchangeTransfer, "received_at", resolved_at=None, reason=LOST, received_at=since)
    text = "RUB were taken back once the exchange was over: a loss"
    return [
        _item(
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


async def _revoked(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Clients who were verified, and whom the verifier refuses since: they were blocked, which an operator may end."""
    since = AtLeast(ports.clock.now() - REVOKED_FOR)
    found = await _first(unit, Client, "created_at", blocked=True, kyc=KycStatus.VERIFIED, level=0, updated_at=since)
    text = "verified, and refused by the verifier since: blocked"
    return [_item("client", "client", row, text, row.updated_at, brief=text) for row in found]


def _of_suspended(row: Suspense | ExchangeTransfer, text: str) -> ActionItem:
    return _item("suspense", "suspense", row, text, row.received_at, brief=f"money in suspense: {row.reason}")


def _of_refund(kind: str, refund: Refund, text: str, since: datetime | None = None) -> ActionItem:
    told = f"{refund.amount} RUB {text}"
    return _item(kind, "refund", refund, told, since or refund.created_at, brief=text)


async def _refunds(ports: Ports, unit: Unit) -> list[ActionItem]:
    waiting = await _first(
        unit, Refund, "created_at", status=RefundStatus.PENDING, pending_reason=PendingReason.AWAITING_APPROVAL
    )
    late = AtMost(ports.clock.now() - REFUND_LATE)
    stuck = await _first(unit, Refund, "created_at", status=RefundStatus.PROCESSING, created_at=late)
    sent = await list_contradicted(unit, MOST)
    return [
        *(_of_refund("refund", refund, "awaits approval") for refund in waiting),
        *(_of_refund("unknown", refund, "of a refund: the bank is silent") for refund in stuck),
        *(_of_refund("refund", refund, "failed, but was sent", refund.contradicted_at) for refund in sent),
    ]


async def _unanswered(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Operations that their banks have forgotten and never told the end of."""
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


async def _payouts(ports: Ports, unit: Unit) -> list[ActionItem]:
    now = ports.clock.now()
    failed = await _first(
        unit, Withdrawal, "created_at", status=WithdrawalStatus.FAILED, created_at=AtLeast(now - PAYOUT_FAILED_FOR)
    )
    waiting = await _first(
        unit, Withdrawal, "created_at", status=WithdrawalStatus.PENDING, created_at=AtMost(now - PAYOUT_LATE)
    )
    on_the_way = []
    for status in (WithdrawalStatus.PROCESSING, WithdrawalStatus.SENT):
        signed = AtMost(now - PAYOUT_STUCK)
        on_the_way += await _first(unit, Withdrawal, "created_at", status=status, created_at=signed)
    pending = await _first(unit, Withdrawal, "created_at", status=WithdrawalStatus.PENDING)
    forged = [row for row in pending if not withdrawal_fits(ports.vault, row)]
    told = {row.id for row in forged}
    late = [row for row in waiting if row.id not in told]
    found = ((NOT_TAGGED, forged), ("failed", failed), (NOT_FINAL, on_the_way), ("cannot be signed yet", late))
    return [
        _item(
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


async def _exchanges(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Exchanges whose money is not sent, because they are not what they were made."""
    found = []
    for status in SENT_FROM:
        some = await unit[Exchange].find(status=status, order="created_at", limit=MOST, readable=True)
        found += [row for row in some if not exchange_fits(ports.vault, row)]
    return [_item("exchange", "exchange", row, NOT_AS_MADE, row.created_at, urgent=True) for row in found]


async def _proofs(ports: Ports, unit: Unit) -> list[ActionItem]:
    """In review for longer than a check takes by itself."""
    found = await _first(
        unit, DeliveryProof, "status_at", status=ProofStatus.IN_REVIEW, status_at=AtMost(ports.clock.now() - STUCK)
    )
    text = "delivery proof in review"
    return [ActionItem(kind="proof", of="payment", object_id=row.id, text=text, since=row.status_at) for row in found]


async def _receivers(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Open breakers, and receivers for which webhooks were given up."""
    opened = await _first(unit, Breaker, "next_probe_at", next_probe_at=AtLeast(LONG_AGO))
    found = [
        _of_receiver("breaker", row, f"does not answer: {row.last_answer or 'no answer'}", row.opened_at)
        for row in opened
    ]
    since = AtLeast(ports.clock.now() - LETTERS_FAILED_FOR)
    for row in await _first(unit, Breaker, "-last_failure_at", last_failure_at=since):
        failed = await _first(
            unit, Delivery, "id", account_id=row.account_id, mode=row.mode, status=DeliveryStatus.FAILED, due=None
        )
        if failed:
            count = "1 webhook" if len(failed) == 1 else f"{len(failed)}{'+' if len(failed) == MOST else ''} webhooks"
            found.append(_of_receiver("delivery", row, f"{count} given up", failed[0].created_at))
    return found


def _of_receiver(kind: str, row: Breaker, text: str, since: datetime | None) -> ActionItem:
    return _item(kind, "receiver", row, text, since)


async def _gateways(ports: Ports, _unit: Unit) -> list[ActionItem]:
    return [
        ActionItem(
            kind="gateway",
            of="gateway",
            object_id=shown.gateway_id,
            text=f"{shown.status}{'' if shown.reason is None else f': {shown.reason}'}",
            since=shown.since,
            mode=mode,
            urgent=shown.status is GatewayStatus.DOWN,
        )
        for mode in Mode
        for shown in await list_gateways(ports, mode)
        if shown.status is not GatewayStatus.OPERATIONAL
    ]


async def _ledger(ports: Ports, _unit: Unit) -> list[ActionItem]:
    faults = await ledger_faults(ports)
    return [ActionItem(kind="ledger", of="ledger", object_id="", text=fault, urgent=True) for fault in faults]


async def _unreadable(ports: Ports, _unit: Unit) -> list[ActionItem]:
    return [
        ActionItem(kind="unreadable", of="row", object_id=row.id, text=f"cannot be read: {row.why}", since=row.found_at)
        for row in await list_unreadable(ports, MOST)
    ]


async def _acts(ports: Ports, _unit: Unit) -> list[ActionItem]:
    """What another operator asked for and this one may confirm."""
    found = [(act, act_fits(ports.vault, act)) for act in await list_acts(ports, limit=MOST)]
    return [
        ActionItem(
            kind="confirm",
            of="act",
            object_id=act.id,
            text=f"{act.operator} asks for {act.act}" if fits else ALTERED,
            since=act.created_at,
            account_id=act.account_id,
            mode=act.mode,
            urgent=not fits,
            brief=f"{act.act} waits for a second operator" if fits else ALTERED,
        )
        for act, fits in found
    ]


async def _hold(ports: Ports, _unit: Unit) -> list[ActionItem]:
    installation = await read_hold(ports)
    if installation is None:
        return []
    text = f"no money is sent: {installation.told}; cambist resume"
    return [ActionItem(kind="hold", of="installation", object_id="", text=text, mode=Mode.LIVE, urgent=True)]


FINDERS: tuple[Finder, ...] = (
    _hold,
    _acts,
    _ledger,
    _unreadable,
    _mismatches,
    _suspense,
    _exchange_suspense,
    _losses,
    _unknown,
    _refunds,
    _unanswered,
    _payouts,
    _exchanges,
    _revoked,
    _proofs,
    _receivers,
    _gateways,
)
