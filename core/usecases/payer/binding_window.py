"""What a payer sees of a subscription, and does there. The id is the payer's only key, and nothing personal is shown.

Reading a page asks no bank. The payer's press of its button does (`press_button`).
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
from ...domain.payer.window import bank_link, order_number, web_link
from ...domain.payments.payments import BindingCharge, FailureReason, LinkKind, Payment
from ...domain.subscriptions.periods import Interval
from ...domain.subscriptions.subscriptions import Subscription, binding_ends_at
from ..gateways.polling import hurry_look
from ..payments.recurring import any_subscription
from ..sandbox.subscriptions import simulate_event, simulator_of
from ..sealed import require_pay_to
from ..subscriptions.binders import takes_first_charge
from ..subscriptions.binding_opening import TermsChanged, open_binding, opens_here
from ..subscriptions.bindings import WAITING, WATCH_BINDING, without_refunded_first
from ..test_clock import find_test_clock, in_test_time
from .window import seller_of


class BindingAct(StrEnum):
    """What the panel of a simulated bank can simulate."""

    CONFIRM = "confirm"
    REFUSE = "refuse"


class Pressed(StrEnum):
    """What came of the payer's press of the button."""

    SHOWN = "shown"
    """The page shows a QR, or why there is none to be had."""
    CHANGED = "changed"
    """The terms are no longer those that the payer saw. No bank was asked."""
    AWAY = "away"
    """No bank gave a QR for the moment."""


_WITHOUT_QR = (BindingFace.TERMS, BindingFace.LAPSED, BindingFace.LAPSED_PAID)
"""The faces with a button."""


class BindingStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The little that changes while a payer looks. `now` is the service's time."""

    face: BindingFace
    now: datetime
    deadline: datetime
    drawn: str
    """Another text means that the page shows another amount or QR, also where the face is the same."""


class BindingView(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page is drawn from."""

    id: str
    standing: BindingStanding
    shop_name: str
    amount: Rub
    interval: Interval
    interval_count: int
    description: str
    order_number: str | None
    """The merchant's own id of the subscription."""
    takes_money: bool
    """The QR that is shown, or would be, takes the first charge; else it is the symbolic one."""
    may_press: bool
    """The button asks a bank for a QR. Links of the calendar scheme come from the payment system instead."""
    qr_payload: str | None
    bank_link: str | None
    link_kind: LinkKind | None
    return_url: str | None
    """Where a payer goes on who confirmed."""
    shop_url: str | None
    """Where one goes who did not: to begin anew."""
    auto_return: bool
    test_mode: bool
    simulated: bool
    """The bank is a simulator: no money moves, and the page says so."""
    acts: tuple[BindingAct, ...]


@in_test_time(Subscription)
async def press_button(ports: Ports, subscription_id: str, seen: str) -> Pressed | None:
    """Ask a bank for a QR, unless one is alive, where the amount is still the one that the payer has `seen`. None when
    there is no such subscription."""
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
    """Return what to draw now, without asking anybody; None when there is no such subscription.

    Raises: Refusal PROVIDER_UNAVAILABLE while the payer would be led elsewhere than the bank said.
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
        acts=tuple(BindingAct) if shown is not None and simulated else (),
    )


async def binding_standing(ports: Ports, subscription_id: str, *, opened: bool = False) -> BindingStanding | None:
    """Return what the page's script asks for every second. `opened`: the page was opened or returned to, so the bank is
    asked soon. None as in `binding_view`."""
    async with ports.storage.unit() as unit:
        subscription, payment = await _read(unit, subscription_id)
        test_clock = (
            None if subscription is None else await find_test_clock(unit, subscription.account_id, subscription.mode)
        )
    if opened and payment is not None and payment.status in WAITING:
        await hurry_look(ports, WATCH_BINDING, payment)
    with ports.clock.entered(test_clock):
        return None if subscription is None else _standing(subscription, payment, ports.clock.now())


@in_test_time(Subscription)
async def simulate_binding(ports: Ports, subscription_id: str, act: BindingAct, reason: FailureReason) -> bool:
    """Let the simulated bank act, as a payer would. False when there is no such subscription, or its bank is a real
    one. An act that comes too late changes nothing: the page then shows why."""
    view = await binding_view(ports, subscription_id)
    if view is None or not view.simulated:
        return False
    if act in view.acts:
        async with ports.storage.unit() as unit:
            subscription = await any_subscription(unit, subscription_id)
        if subscription is not None:
            failure = reason.value if act is BindingAct.REFUSE else None
            await simulate_event(ports, subscription, MandateEvent(act.value), failure=failure)
    return True


async def _read(unit: Unit, subscription_id: str) -> tuple[Subscription | None, Payment | None]:
    """Return a subscription as its next binding finds it, with the payment of the present one."""
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
