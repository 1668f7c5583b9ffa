"""The payer opens the link of our window (docs/subscriptions.md "How the payer binds")."""

from datetime import datetime

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Scheme
from ...domain.payments.payments import Payment
from ...domain.subscriptions.subscriptions import Subscription, awaits_binding, binding_ends_at
from ..payments.recurring import any_subscription, save_subscription
from ..payments.route_refusals import no_route
from ..units import retrying
from .binders import pick_binder
from .bindings import WAITING, ask_for, begin


async def open_binding(ports: Ports, subscription_id: str) -> None:
    """The payer opened the link of our window: ask a bank, unless a QR is alive already
    (docs/subscriptions.md "How the payer binds"). Two openings at once make one binding.

    Raises: Refusal PAYMENT_ROUTE_UNAVAILABLE while no bank can be asked.
    """

    async def work(unit: Unit) -> str | None:
        before, now = await any_subscription(unit, subscription_id), ports.clock.now()
        if before is None or not opens_here(before, now):
            return None
        binding = before.binding
        payment = None if binding is None else await unit[Payment].get(binding.payment_id or "")
        if payment is not None and is_alive(before, payment, now):
            return None
        picked = await pick_binder(ports, unit, before)
        if picked is None:
            raise no_route(away=True)
        after = await begin(ports, unit, before, picked)
        await save_subscription(ports, unit, before, after)
        return None if after.binding is None else after.binding.payment_id

    begun = await retrying(ports.storage, work)
    await ask_for(ports, begun)


def opens_here(subscription: Subscription, now: datetime) -> bool:
    """A payer who opens our page may bind there now. Links of the calendar scheme are the payment system's."""
    ends_at = binding_ends_at(subscription)
    in_time = ends_at is None or now < ends_at
    return subscription.scheme is Scheme.WINDOW and awaits_binding(subscription) and in_time


def is_alive(subscription: Subscription, payment: Payment, now: datetime) -> bool:
    """The binding can still be confirmed: whoever opens the page again sees the same QR."""
    mine = subscription.binding is not None and subscription.binding.payment_id == payment.id
    return mine and payment.status in WAITING and now < payment.expires_at
