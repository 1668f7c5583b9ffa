"""Events as notifications describe them: read from their objects when the event's job runs."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import date, datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Between
from ...domain import ids
from ...domain.accounts.accounts import Mode
from ...domain.accounts.shops import Shop
from ...domain.days import MOSCOW, moscow_day
from ...domain.money import Rub
from ...domain.payments.payments import Payment, PaymentStatus
from ...domain.payments.suspense import SUSPENSE, Suspense
from ...domain.payments.tallies import Turnover, day_ids
from ...domain.people.notifications import NotificationKind
from ...domain.reconciliation.reconciliation import DIFFERENCE, Discrepancy
from ...domain.refunds.refunds import Refund, RefundStatus
from ...domain.reports.reports import ReportKind, report_id
from ...domain.settlement.explorers import network_title
from ...domain.settlement.withdrawals import Withdrawal, WithdrawalStatus, shown_hash
from ...domain.webhooks.breaker import Breaker, outage_id
from ...domain.webhooks.endpoints import EndpointKey
from ..ledger.day_sums import day_sums

_SHOPS_MOST = 20
"""Shops in a daily sum."""


class NotifiedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of an account."""

    account_id: str
    mode: Mode
    shop_id: str | None = None
    """None: it is about no shop, or about the whole account."""
    day: str = ""
    """The day of a daily sum."""
    details: dict[str, str]


async def read_event(ports: Ports, kind: NotificationKind, object_id: str) -> NotifiedEvent | None:
    """Return an event. None: its object is gone, or has changed so that the event is no longer true."""
    return await _READERS[kind](ports, object_id)


async def _refund(ports: Ports, object_id: str) -> NotifiedEvent | None:
    found = await ports.storage.get(Refund, object_id)
    if found is None or found.status is not RefundStatus.COMPLETED:
        return None
    values = {"amount": f"{found.amount} RUB", "object": found.id, "payment": found.payment_id}
    return NotifiedEvent(account_id=found.account_id, mode=found.mode, shop_id=found.shop_id, details=values)


async def _payout(ports: Ports, object_id: str) -> NotifiedEvent | None:
    found = await ports.storage.get(Withdrawal, object_id)
    if found is None or found.status is not WithdrawalStatus.COMPLETED:
        return None
    values = {
        "amount": f"{found.amount} USDT",
        "object": found.id,
        "network": network_title(found.network),
        "transaction": shown_hash(found) or "-",
    }
    return NotifiedEvent(account_id=found.account_id, mode=found.mode, details=values)


async def _mismatch(ports: Ports, object_id: str) -> NotifiedEvent | None:
    if object_id.startswith(DIFFERENCE):
        return await _difference(ports, object_id)
    suspense = await ports.storage.get(Suspense, object_id) if object_id.startswith(SUSPENSE) else None
    payment_id = object_id if suspense is None else suspense.payment_id
    payment = await ports.storage.get(Payment, payment_id) if ids.is_prefixed(ids.PAYMENT, payment_id) else None
    if payment is None:
        return None
    if suspense is not None:
        amount, reason = suspense.amount, "=suspense"
        if suspense.resolved_at is not None:
            return None
    elif payment.status is PaymentStatus.AMOUNT_MISMATCH:
        amount, reason = payment.actual_amount or payment.amount, "=amount"
    else:
        return None
    values = {"amount": f"{amount} RUB", "object": payment.id, "reason": reason}
    return NotifiedEvent(
        account_id=payment.account_id,
        mode=payment.mode,
        shop_id=payment.shop_id,
        details=values,
    )


async def _difference(ports: Ports, object_id: str) -> NotifiedEvent | None:
    found = await ports.storage.get(Discrepancy, object_id)
    if found is None or found.account_id is None or found.closed_at is not None:
        return None
    kopecks = found.their_kopecks if found.their_kopecks is not None else found.our_kopecks or 0
    values = {
        "amount": f"{kopecks // 100}.{kopecks % 100:02} RUB",
        "object": found.object_id or found.id,
        "reason": "=difference",
    }
    is_payment = found.object_id is not None and ids.is_prefixed(ids.PAYMENT, found.object_id)
    payment = await ports.storage.get(Payment, found.object_id or "") if is_payment else None
    shop_id = None if payment is None else payment.shop_id
    return NotifiedEvent(account_id=found.account_id, mode=found.mode, shop_id=shop_id, details=values)


async def _endpoint(ports: Ports, object_id: str) -> NotifiedEvent | None:
    found = await ports.storage.get(Breaker, object_id.partition("@")[0])
    if found is None or not found.is_open or found.opened_at is None or outage_id(found) != object_id:
        return None
    values = {"endpoint": EndpointKey.of(found.id).further or "=own", "since": _moscow(found.opened_at)}
    return NotifiedEvent(account_id=found.account_id, mode=found.mode, details=values)


async def _daily(ports: Ports, object_id: str) -> NotifiedEvent | None:
    account_id, _, day = object_id.partition(":")
    sums = await day_sums(ports, account_id, Mode.LIVE, *moscow_day(date.fromisoformat(day)))
    if sums is None:
        return None
    values = {
        "day": date.fromisoformat(day).strftime("%d.%m.%Y"),
        "taken": f"{sums.taken} RUB",
        "payments": str(sums.payments),
        "refunds": str(sums.refunds),
        "payouts": str(sums.payouts),
        "paid_out": f"{sums.paid_out} USDT",
        "available": f"{sums.available} USDT",
        "pending": f"{sums.pending} RUB",
        "shops": await _by_shop(ports, account_id, day),
        "register": f"{ports.urls.app_url}/reports/{report_id(account_id, Mode.LIVE, ReportKind.DAY, day)}",
    }
    return NotifiedEvent(account_id=account_id, mode=Mode.LIVE, day=day, details=values)


async def _by_shop(ports: Ports, account_id: str, day: str) -> str:
    """Return a line for each shop that took money on the Moscow day, the largest sum first; empty for a single shop."""
    # A Moscow day begins in the UTC day before it.
    before = (date.fromisoformat(day) - timedelta(days=1)).isoformat()
    span = Between(*day_ids(account_id, Mode.LIVE, before, day))
    taken: Counter[str] = Counter()
    payments: Counter[str] = Counter()
    async for batch in ports.storage.scan(Turnover, id=span):
        for each in batch:
            if each.moscow_day == day:
                taken[each.shop_id] += each.amount.kopecks
                payments[each.shop_id] += each.payments
    if len(taken) < 2:
        return ""
    lines = []
    for shop_id, kopecks in taken.most_common(_SHOPS_MOST):
        shop = await ports.storage.get(Shop, shop_id)
        lines.append(f"- {shop_id if shop is None else shop.name}: {Rub(kopecks)} RUB ({payments[shop_id]})")
    return "\n".join(lines + ["- …"] * (len(taken) > _SHOPS_MOST))


def _moscow(moment: datetime) -> str:
    return moment.astimezone(MOSCOW).strftime("%d.%m.%Y %H:%M MSK")


_READERS: Mapping[NotificationKind, Callable[[Ports, str], Awaitable[NotifiedEvent | None]]] = {
    NotificationKind.REFUND_DONE: _refund,
    NotificationKind.PAYOUT_SENT: _payout,
    NotificationKind.MISMATCH: _mismatch,
    NotificationKind.ENDPOINT_DEAD: _endpoint,
    NotificationKind.DAILY_SUM: _daily,
}
