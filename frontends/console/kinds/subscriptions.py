"""Subscriptions: list, and detail with the charges."""

from typing import Any

import msgspec

from ....core.domain import ids
from ....core.domain.payments.payments import Payment
from ....core.domain.subscriptions.charge_decisions import ChargeWindow
from ....core.domain.subscriptions.charges import subscription_window
from ....core.domain.subscriptions.subscriptions import Subscription, SubscriptionStatus, binding_ends_at, pause_ends_at
from ....core.usecases.browse.browse import browse
from ....core.usecases.browse.timeline import Moment, read_timeline
from ....core.usecases.common.account_time import living_with
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .kinds import ACCOUNT, MODE, Filter, Kind, Wish
from .wishes import DATES, ORDER, by_status, wanted

_CHARGES = 200
"""Maximum number of charges in a detail, newest first."""


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription and its charge window, on its account's clock."""

    id: str
    version: int
    account_id: str
    subscription: Subscription
    window: ChargeWindow


async def _read(ports: Ports, wish: Wish, after: Subscription | None, limit: int) -> list[Subscription]:
    asked = wanted(wish)
    return await browse(
        ports, Subscription, asked, after, limit, statuses=SubscriptionStatus, **by_status(asked, SubscriptionStatus)
    )


async def _get(ports: Ports, subscription_id: str) -> _Shown | None:
    if not ids.is_prefixed(ids.SUBSCRIPTION, subscription_id):
        return None
    found = await ports.storage.get(Subscription, subscription_id)
    if found is None:
        return None
    async with living_with(ports, found.account_id, found.mode):
        window = subscription_window(found, ports.clock.now())
    return _Shown(id=found.id, version=found.version, account_id=found.account_id, subscription=found, window=window)


def _every(each: Subscription) -> str:
    return each.interval.value if each.interval_count == 1 else f"{each.interval_count} {each.interval.value}s"


def _state(each: Subscription) -> str:
    return "past due" if each.past_due else each.status.value


def _facts(shown: _Shown) -> list[tuple[str, Any]]:
    each, window = shown.subscription, shown.window
    most = "" if window.attempts_max is None else f" of {window.attempts_max}"
    return [
        ("status", each.status),
        ("amount", f"{each.amount} RUB every {_every(each)}"),
        ("at most", f"{each.cap_amount} RUB a charge"),
        ("payer agreed to", None if each.consent is None else f"{each.consent} RUB a charge"),
        ("a period", None if each.cap_window is None else f"{each.cap_window} RUB at most"),
        ("past due", each.past_due or None),
        ("to be bound", each.rebind_required or None),
        ("link pending", each.binding_url_pending or None),
        ("may charge", window.can_charge),
        ("why not", window.reason),
        ("from", window.next_allowed_at),
        ("period", window.period_ref),
        ("attempts", f"{window.attempts_used}{most}" if window.period_ref else None),
        ("budget ends", window.window_ends_at),
        ("binding ends", binding_ends_at(each)),
        ("pause ends", pause_ends_at(each)),
        ("description", each.description),
        ("external id", each.external_id),
        ("client", each.client_ref),
        ("phone", each.phone_mask),
        ("scheme", each.scheme),
        ("mode", each.mode),
        ("account", each.account_id),
        ("shop", each.shop_id),
        ("bank", each.mandate_bank),
        ("created", each.created_at),
        ("last success", each.anchor),
    ]


async def _timeline(ports: Ports, shown: _Shown) -> list[Moment]:
    """Return the subscription's own events and each payment that bound or charged it."""
    each = shown.subscription
    async with ports.storage.unit() as unit:
        payments = await unit[Payment].find(
            account_id=each.account_id, mode=each.mode, subscription_id=each.id, order="-created_at", limit=_CHARGES
        )
    charges = [
        Moment(
            at=payment.created_at,
            source="charge" if payment.is_charge else "binding",
            text=f"{payment.amount} RUB {payment.period_ref or ''}: {payment.status}".replace(" :", ":"),
            detail=payment.id,
            of="payment",
            object_id=payment.id,
        )
        for payment in payments
    ]
    return sorted([*await read_timeline(ports, each), *charges], key=lambda moment: moment.at)


SUBSCRIPTIONS = Kind(
    name="subscription",
    title="Subscriptions",
    key="5",
    columns=(
        when("created", lambda each: each.created_at),
        Column(title="status", cell=_state, width=15),
        Column(title="amount RUB", cell=lambda each: each.amount, width=11, right=True),
        Column(title="every", cell=_every, width=8),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        merchant(13, 24),
        Column(title="subscription", cell=lambda each: each.id, width=40, wide=True),
        Column(title="external id", cell=lambda each: each.external_id, width=16, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE, Filter(name="status", choices=tuple(SubscriptionStatus)), ACCOUNT, *DATES, ORDER),
    timeline=_timeline,
)
