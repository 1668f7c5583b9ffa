"""Shared code of bindings and charges: subscriptions with their events, and payments of method `recurring`.

`save_subscription` saves every change of a subscription and writes its events. `new_recurring_payment` makes the
payment of every request for money.
"""

from datetime import datetime

from msgspec import UNSET

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller, Mode
from ...domain.accounts.receipts import ReceiptTerms
from ...domain.accounts.shops import Shop
from ...domain.days import iso
from ...domain.errors import Refusal
from ...domain.money import Rub
from ...domain.payloads import SubscriptionPayload
from ...domain.payments.payments import RECURRING, BindingCharge, Payment, PaymentStatus
from ...domain.subscriptions.subscriptions import Subscription, SubscriptionStatus, announces
from ...domain.webhooks.events import EventType
from ..common.encrypted import binding_url, with_link_tag
from ..webhooks.outbox import announce_of
from .tallies import add_payment


async def new_recurring_payment(
    ports: Ports,
    unit: Unit,
    subscription: Subscription,
    *,
    amount: Rub,
    period_ref: str,
    expires_at: datetime,
    payment_id: str | None = None,
    external_id: str | None = None,
    key_id: str | None = None,
    binding: BindingCharge | None = None,
    shown_amount: Rub | None = None,
    bank: str | None = None,
    receipt: ReceiptTerms | None = None,
    private: bytes | None = None,
) -> Payment:
    """Write a payment of a subscription, in the unit that records it there. It has no event of its own: a payment's
    first event is its first move.

    The payment accepts money until `expires_at`, and for at least 6 hours after its creation (docs/payments.md "Money
    that cannot count"). A charge whose outcome may stay unknown for long therefore gets a distant deadline.
    """
    shop = await unit[Shop].get(subscription.shop_id)
    return add_payment(
        unit,
        Payment(
            id=payment_id or ids.prefixed(ids.PAYMENT, ports.ids.uuid()),
            account_id=subscription.account_id,
            mode=subscription.mode,
            shop_id=subscription.shop_id,
            status=PaymentStatus.PENDING,
            amount=amount,
            payment_method=RECURRING,
            created_at=ports.clock.now(),
            expires_at=expires_at,
            external_id=external_id,
            subscription_id=subscription.id,
            period_ref=period_ref,
            binding=binding,
            shown_amount=shown_amount,
            description=subscription.description,
            method_id=subscription.method_id,
            markup=None if shop is None else shop.markup,
            key_id=key_id,
            bank=bank,
            receipt=receipt,
            private=private,
        ),
    )


async def save_subscription(ports: Ports, unit: Unit, before: Subscription, after: Subscription) -> Subscription:
    """Save a change that a domain function made, and write its event if it has one. Every change of a subscription
    passes here. Return the subscription as saved; write nothing when nothing changed.

    A unit saves a subscription once; for several steps pass the first `before` and the last `after`.
    """
    if after == before:
        return before
    after = with_link_tag(ports.vault, before, after)
    if announces(before, after):
        await announce_subscription(ports, unit, after, before.status)
    return unit[Subscription].save(after)


async def announce_subscription(
    ports: Ports, unit: Unit, subscription: Subscription, previous: SubscriptionStatus
) -> None:
    """Write `subscription.status_changed`. `subscription` is the new state, with its sequence raised."""

    def payload(now: datetime) -> SubscriptionPayload:
        return SubscriptionPayload(
            event="subscription.status_changed",
            subscription_id=subscription.id,
            external_id=subscription.external_id,
            status=subscription.status,
            past_due=subscription.past_due,
            binding_url=binding_url(ports.vault, subscription),
            binding_url_pending=subscription.binding_url_pending,
            previous_status=previous,
            timestamp=iso(now),
            rebind_required=True if subscription.rebind_required else UNSET,
            sandbox=True if subscription.mode is Mode.TEST else UNSET,
        )

    await announce_of(ports, unit, subscription, EventType.SUBSCRIPTION_STATUS_CHANGED, payload)


async def own_subscription(unit: Unit, caller: Caller, subscription_id: str) -> Subscription | None:
    """Return the subscription of the caller's account and mode, or None."""
    found = await any_subscription(unit, subscription_id)
    if found is None or (found.account_id, found.mode) != (caller.account_id, caller.mode):
        return None
    return found


async def any_subscription(unit: Unit, subscription_id: str) -> Subscription | None:
    """Return the subscription of any account; a malformed id is not looked up."""
    is_id = ids.is_prefixed(ids.SUBSCRIPTION, subscription_id)
    return await unit[Subscription].get(subscription_id) if is_id else None


async def mandate_operation(unit: Unit, subscription: Subscription) -> str | None:
    """Return the operation id of the binding that gave the current mandate, because a bank knows the mandate by it,
    too. None without a mandate."""
    reference = subscription.mandate_reference
    if reference is None:
        return None
    found = await unit[Payment].find(
        account_id=subscription.account_id,
        mode=subscription.mode,
        subscription_id=subscription.id,
        bank=subscription.mandate_bank,
        bank_reference=reference,
        limit=1,
    )
    return binding_operation(found[0].id) if found else None


def no_subscription() -> Refusal:
    """Return the refusal for an unknown subscription, or one of another account or mode."""
    return Refusal("SUBSCRIPTION_NOT_FOUND", "No subscription of this id")


_BINDING = "bnd_"


def binding_operation(payment_id: str) -> str:
    """Return the operation id of a binding; it contains the id of the binding payment (docs/adapters.md "Operation
    ids").
    """
    return payment_id.replace(ids.PAYMENT, _BINDING, 1)


def bound_by(operation: str) -> str | None:
    """Return the id of the binding payment of an operation; None for an operation of another kind."""
    return operation.replace(_BINDING, ids.PAYMENT, 1) if ids.is_prefixed(_BINDING, operation) else None
