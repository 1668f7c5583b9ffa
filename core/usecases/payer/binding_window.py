"""What a payer sees of a subscription: read by its id alone, which is the payer's only key, and nothing personal in
it."""

import contextlib
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
from ..subscriptions.binding_opening import open_binding
from ..subscriptions.bindings import WAITING, WATCH_BINDING
from ..test_clock import find_test_clock, in_test_time
from .window import seller_of


class BindingAct(StrEnum):
    """What the panel of a simulated bank can simulate."""

    CONFIRM = "confirm"
    REFUSE = "refuse"


class BindingStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The little that changes while a payer looks. `now` is the service's time."""

    face: BindingFace
    now: datetime
    deadline: datetime


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
async def open_window(ports: Ports, subscription_id: str) -> BindingView | None:
    """The payer opens the link: a bank is asked for a QR, unless one is alive; the page shows what there is then. None
    when there is no such subscription."""
    # No bank can be asked for now: the page says that there is no QR, and lets the payer try again.
    with contextlib.suppress(Refusal):
        await open_binding(ports, subscription_id)
    return await binding_view(ports, subscription_id)


@in_test_time(Subscription)
async def binding_view(ports: Ports, subscription_id: str) -> BindingView | None:
    """What to draw now, without asking anybody; None when there is no such subscription."""
    now = ports.clock.now()
    async with ports.storage.unit() as unit:
        subscription = await any_subscription(unit, subscription_id)
        if subscription is None:
            return None
        payment = await _payment(unit, subscription)
        seller = await seller_of(unit, subscription)
    if seller is None:
        return None
    standing = _standing(subscription, payment, now)
    waits = standing.face is BindingFace.WAITING
    simulated = simulator_of(ports, _bank_name(ports, subscription)) is not None
    takes_money = subscription.binding_charge is BindingCharge.FIRST and subscription.first_payment_id is None
    if waits and payment is not None:
        takes_money = payment.binding is BindingCharge.FIRST
    return BindingView(
        id=subscription.id,
        standing=standing,
        shop_name=seller.name,
        amount=payment.amount if waits and takes_money and payment is not None else subscription.amount,
        interval=subscription.interval,
        interval_count=subscription.interval_count,
        description=subscription.description,
        order_number=order_number(subscription.external_id),
        takes_money=takes_money,
        qr_payload=payment.qr_payload if waits and payment is not None else None,
        bank_link=bank_link(payment) if waits and payment is not None else None,
        link_kind=payment.link_kind if waits and payment is not None else None,
        return_url=web_link(subscription.success_url),
        shop_url=seller.return_url,
        auto_return=returns_by_itself(standing.face, payment, now),
        test_mode=subscription.mode is Mode.TEST,
        simulated=simulated,
        acts=tuple(BindingAct) if waits and simulated else (),
    )


async def binding_standing(ports: Ports, subscription_id: str, *, opened: bool = False) -> BindingStanding | None:
    """For whoever asks every second. `opened`: the page begins to ask, or is back from the bank's, so the bank is asked
    soon. None as in `binding_view`."""
    async with ports.storage.unit() as unit:
        subscription = await any_subscription(unit, subscription_id)
        payment = None if subscription is None else await _payment(unit, subscription)
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


async def _payment(unit: Unit, subscription: Subscription) -> Payment | None:
    binding = subscription.binding
    return None if binding is None else await unit[Payment].get(binding.payment_id or "")


def _standing(subscription: Subscription, payment: Payment | None, now: datetime) -> BindingStanding:
    ends_at = binding_ends_at(subscription) or now
    return BindingStanding(
        face=binding_face(subscription, payment, now),
        now=now,
        deadline=ends_at if payment is None else payment.expires_at,
    )


def _bank_name(ports: Ports, subscription: Subscription) -> str | None:
    if subscription.binding is not None and subscription.binding.bank is not None:
        return subscription.binding.bank
    return next((bank.name for bank in ports.banks.of_mode(subscription.mode)), None)
