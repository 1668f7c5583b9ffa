"""Opening a binding: request a QR from a bank when the payer presses the button of our page (docs/subscriptions.md "How
the payer binds").
"""

from datetime import datetime

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Scheme
from ...domain.payments.payments import Payment
from ...domain.subscriptions.binding_reports import is_outdated
from ...domain.subscriptions.subscriptions import Subscription, awaits_binding, binding_ends_at
from ..common.units import retrying
from ..payments.recurring import any_subscription, save_subscription
from ..payments.route_refusals import no_route
from .binders import pick_binder
from .bindings import WAITING, ask_for, begin


class TermsChanged(Exception):
    """The amount differs from the one the payer was shown. Show the page again."""


async def open_binding(ports: Ports, subscription_id: str, *, seen: str | None = None) -> None:
    """Request a QR from a bank, unless one can still be confirmed. Two concurrent requests make one binding.

    `seen` is the amount that the page showed when the payer pressed its button; None for a simulated payer.

    Raises: TermsChanged when the amount has changed since; Refusal PAYMENT_ROUTE_UNAVAILABLE while no bank is
    available.
    """

    async def work(unit: Unit) -> str | None:
        before, now = await any_subscription(unit, subscription_id), ports.clock.now()
        if before is None or not opens_here(before, now):
            return None
        if seen is not None and seen != str(before.amount):
            raise TermsChanged
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
    """Return whether the payer may bind on our page now. Links of the calendar scheme belong to the payment system."""
    ends_at = binding_ends_at(subscription)
    in_time = ends_at is None or now < ends_at
    return subscription.scheme is Scheme.WINDOW and awaits_binding(subscription) and in_time


def is_alive(subscription: Subscription, payment: Payment, now: datetime) -> bool:
    """Return whether the payer may still confirm this binding, so that pressing again shows the same QR."""
    mine = subscription.binding is not None and subscription.binding.payment_id == payment.id
    is_open = payment.status in WAITING and now < payment.expires_at
    return mine and is_open and not is_outdated(subscription, payment)
