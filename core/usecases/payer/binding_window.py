"""The payer's page of a subscription. The id is the payer's only permission, and the page shows no personal data.

Reading the page calls no bank; pressing its button does (`press_button`).
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from ....ports.bundle import Ports
from ....ports.mandates import MandateEvent
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.errors import Refusal
from ...domain.money import Rub
from ...domain.payer.binding_window import BindingFace, binding_face, returns_by_itself
from ...domain.payer.brand import Brand
from ...domain.payer.window import bank_link, order_number, web_link
from ...domain.payments.payments import BindingCharge, FailureReason, LinkKind, Payment
from ...domain.subscriptions.periods import Interval
from ...domain.subscriptions.subscriptions import Subscription, binding_ends_at
from ..common.account_time import find_test_clock, in_test_time
from ..common.encrypted import require_pay_to
from ..gateways.polling import hurry_poll
from ..payments.recurring import any_subscription
from ..sandbox.subscriptions import simulate_event, simulator_of
from ..subscriptions.binders import takes_first_charge
from ..subscriptions.binding_opening import TermsChanged, open_binding, opens_here
from ..subscriptions.bindings import WAITING, WATCH_BINDING, without_refunded_first
from .window import seller_of


class BindingAction(StrEnum):
    """Actions in the panel of a simulated bank."""

    CONFIRM = "confirm"
    REFUSE = "refuse"


class Pressed(StrEnum):
    """Result of pressing the button."""

    SHOWN = "shown"
    """The page shows a QR, or why no QR is available."""
    CHANGED = "changed"
    """The terms have changed since the payer saw them. No bank was called."""
    AWAY = "away"
    """No bank could give a QR at the moment."""


_WITHOUT_QR = (BindingFace.TERMS, BindingFace.LAPSED, BindingFace.LAPSED_PAID)
"""Faces with a button."""


class BindingStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the page that changes while it is open. `now` is the service's time."""

    face: BindingFace
    now: datetime
    deadline: datetime
    drawn: str
    """A key of the drawn content: a different text means a different amount or QR, even with the same face."""


class BindingView(msgspec.Struct, frozen=True, kw_only=True):
    """All data of the page."""

    id: str
    standing: BindingStanding
    shop_name: str
    brand: Brand
    amount: Rub
    interval: Interval
    interval_count: int
    description: str
    order_number: str | None
    """The merchant's own id of the subscription."""
    takes_money: bool
    """Whether the shown or next QR takes the first charge; if not, the binding is symbolic."""
    may_press: bool
    """Whether the button requests a QR from a bank. Links of the calendar scheme come from the payment system
    instead.
    """
    qr_payload: str | None
    bank_link: str | None
    link_kind: LinkKind | None
    return_url: str | None
    """Where the payer goes after confirming."""
    shop_url: str | None
    """Where the payer goes without confirming, to start again."""
    auto_return: bool
    test_mode: bool
    simulated: bool
    """Whether the bank is a simulator: no money moves, and the page says so."""
    actions: tuple[BindingAction, ...]


@in_test_time(Subscription)
async def press_button(ports: Ports, subscription_id: str, seen: str) -> Pressed | None:
    """Request a QR from a bank, unless one can still be confirmed, if the amount is still the one shown to the payer
    (`seen`). Return None when there is no such subscription.
    """
    try:
        await open_binding(ports, subscription_id, seen=seen)
    except TermsChanged:
        return Pressed.CHANGED
    except Refusal:
        return Pressed.AWAY
    view = await binding_view(ports, subscription_id)
    if view is None:
        return None
    return Pressed.AWAY if view.may_press else Pressed.SHOWN


@in_test_time(Subscription)
async def binding_view(ports: Ports, subscription_id: str) -> BindingView | None:
    """Return the data of the page, without calling a bank; None when there is no such subscription.

    Raises: Refusal PROVIDER_UNAVAILABLE while the stored QR or link differs from the bank's.
    """
    now = ports.clock.now()
    async with ports.storage.unit() as unit:
        subscription, payment = await _read(unit, subscription_id)
        seller = None if subscription is None else await seller_of(unit, subscription)
    if subscription is None or seller is None:
        return None
    standing = _standing(subscription, payment, now)
    shown = payment if standing.face is BindingFace.WAITING else None
    if shown is not None:
        require_pay_to(ports.vault, shown)
    simulated = simulator_of(ports, _bank_name(ports, subscription)) is not None
    return BindingView(
        id=subscription.id,
        standing=standing,
        shop_name=seller.name,
        brand=seller.brand,
        amount=subscription.amount,
        interval=subscription.interval,
        interval_count=subscription.interval_count,
        description=subscription.description,
        order_number=order_number(subscription.external_id),
        takes_money=takes_first_charge(subscription) if shown is None else shown.binding is BindingCharge.FIRST,
        may_press=standing.face in _WITHOUT_QR and opens_here(subscription, now),
        qr_payload=None if shown is None else shown.qr_payload,
        bank_link=None if shown is None else bank_link(shown),
        link_kind=None if shown is None else shown.link_kind,
        return_url=web_link(subscription.success_url),
        shop_url=seller.return_url,
        auto_return=returns_by_itself(standing.face, payment, now),
        test_mode=subscription.mode is Mode.TEST,
        simulated=simulated,
        actions=tuple(BindingAction) if shown is not None and simulated else (),
    )


async def binding_standing(ports: Ports, subscription_id: str, *, opened: bool = False) -> BindingStanding | None:
    """Return the state that the page's script requests every second. With `opened` the page was opened or returned to,
    so the bank is polled soon. None as in `binding_view`.
    """
    async with ports.storage.unit() as unit:
        subscription, payment = await _read(unit, subscription_id)
        test_clock = (
            None if subscription is None else await find_test_clock(unit, subscription.account_id, subscription.mode)
        )
    if opened and payment is not None and payment.status in WAITING:
        await hurry_poll(ports, WATCH_BINDING, payment)
    with ports.clock.entered(test_clock):
        return None if subscription is None else _standing(subscription, payment, ports.clock.now())


@in_test_time(Subscription)
async def simulate_binding(ports: Ports, subscription_id: str, action: BindingAction, reason: FailureReason) -> bool:
    """Perform an action at the simulated bank, as a payer would. Return False when there is no such subscription or its
    bank is real. An action that comes too late changes nothing, and the page shows why.
    """
    view = await binding_view(ports, subscription_id)
    if view is None or not view.simulated:
        return False
    if action in view.actions:
        async with ports.storage.unit() as unit:
            subscription = await any_subscription(unit, subscription_id)
        if subscription is not None:
            failure = reason.value if action is BindingAction.REFUSE else None
            await simulate_event(ports, subscription, MandateEvent(action.value), failure=failure)
    return True


async def _read(unit: Unit, subscription_id: str) -> tuple[Subscription | None, Payment | None]:
    """Return a subscription as its next binding will see it, and the payment of its current binding."""
    subscription = await any_subscription(unit, subscription_id)
    if subscription is None:
        return None, None
    binding = subscription.binding
    payment = None if binding is None else await unit[Payment].get(binding.payment_id or "")
    return await without_refunded_first(unit, subscription), payment


def _standing(subscription: Subscription, payment: Payment | None, now: datetime) -> BindingStanding:
    ends_at = binding_ends_at(subscription) or now
    asked_at = "" if payment is None else f"{payment.created_at.timestamp():.3f}"
    return BindingStanding(
        face=binding_face(subscription, payment, now),
        now=now,
        deadline=ends_at if payment is None else payment.expires_at,
        drawn=f"{subscription.amount}/{asked_at}",
    )


def _bank_name(ports: Ports, subscription: Subscription) -> str | None:
    if subscription.binding is not None and subscription.binding.bank is not None:
        return subscription.binding.bank
    return next((bank.name for bank in ports.banks.of_mode(subscription.mode)), None)
