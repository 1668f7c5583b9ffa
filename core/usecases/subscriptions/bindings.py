"""Binding a payer at a bank: from the recorded operation to a QR, or to a final refusal (docs/subscriptions.md "How the
payer binds").

The binding payment and the subscription's `binding` are committed before the bank is called. One operation id makes one
binding however often it is sent, so after any failure the watch (binding_progress.py) simply repeats the request.
"""

from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.jobs import Job
from ....ports.mandates import Binding as AtBank
from ....ports.mandates import BindingRequest, MandateBank
from ....ports.searching import find_binding
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Scheme
from ...domain.accounts.terminals import Terminal
from ...domain.payments.payments import LIFETIME, BindingCharge, Opening, Payment, PaymentStatus
from ...domain.subscriptions.moves import binding_begun, binding_closed, link_issued, untold
from ...domain.subscriptions.periods import calendar_period, current_period, window_number, window_period
from ...domain.subscriptions.subscriptions import (
    BINDING_SYMBOL,
    CONFIRMATION_WAIT,
    LINK_WAIT,
    Binding,
    Subscription,
)
from ..common.encrypted import pay_tag, with_link_tag
from ..common.schedule import FollowUp
from ..common.units import unit_of_work
from ..gateways.gateways import first_open
from ..gateways.outcomes import follow_outcome, save_unknown
from ..gateways.polling import Looked, next_poll
from ..gateways.watch import watched
from ..payments.opening import link_kind
from ..payments.receipts import purpose_of, receipt_of, takes_without
from ..payments.recurring import (
    any_subscription,
    binding_operation,
    new_recurring_payment,
    save_subscription,
)
from ..payments.tallies import remove_payment
from .binders import Picked, binder, binders, takes_first_charge

WATCH_BINDING = FollowUp("binding.watch")
"""The job that follows a binding."""
FIRST_POLL = timedelta(seconds=10)
"""Delay until the watch takes over a binding that was recorded but not answered."""

WAITING = (PaymentStatus.PENDING, PaymentStatus.PROCESSING)


def page_of(ports: Ports, subscription_id: str) -> str:
    """Return the address of the page on which the payer confirms (docs/window.md "Subscriptions")."""
    return ports.urls.subscription_page(subscription_id)


async def begin(ports: Ports, unit: Unit, subscription: Subscription, picked: Picked) -> Subscription:
    """Record the binding before the bank is called: write its payment and its watch. Return the subscription, which the
    caller saves in the same unit.
    """
    now = ports.clock.now()
    subscription = await without_refunded_first(unit, subscription)
    takes_money = takes_first_charge(subscription)
    payment_id = ids.prefixed(ids.PAYMENT, ports.ids.uuid())
    await new_recurring_payment(
        ports,
        unit,
        subscription,
        payment_id=payment_id,
        amount=subscription.amount if takes_money else BINDING_SYMBOL,
        period_ref=_period_ref(subscription, now),
        expires_at=now + _life(subscription),
        binding=BindingCharge.FIRST if takes_money else BindingCharge.NONE,
        shown_amount=subscription.amount,
        bank=picked.bank.name,
        receipt=picked.terms,
    )
    unit[Job].add(WATCH_BINDING.first(payment_id, now + FIRST_POLL, now))
    binding = Binding(
        operation=binding_operation(payment_id),
        requested_at=now,
        payment_id=payment_id,
        bank=picked.bank.name,
    )
    return binding_begun(subscription, binding, now)


async def without_refunded_first(unit: Unit, subscription: Subscription) -> Subscription:
    """Remove a refunded first payment from the subscription, so that the next binding takes the first charge anew."""
    first = subscription.first_payment_id
    paid = None if first is None else await unit[Payment].get(first)
    if paid is None or paid.status is not PaymentStatus.REFUNDED:
        return subscription
    return msgspec.structs.replace(subscription, first_payment_id=None)


def _life(subscription: Subscription) -> timedelta:
    """Return the lifetime of a binding. A QR of our page lives as long as any other; a link of the payment system is
    issued only once and has to last.
    """
    return LIFETIME if subscription.scheme is Scheme.WINDOW else LINK_WAIT + CONFIRMATION_WAIT


def _period_ref(subscription: Subscription, now: datetime) -> str:
    terms = subscription.terms
    if terms.scheme is Scheme.CALENDAR:
        return calendar_period(terms.interval, now).ref
    anchor = subscription.anchor
    if anchor is None:
        return current_period(terms, now).ref
    return window_period(terms, anchor, window_number(terms, anchor, now)).ref


async def ask(ports: Ports, payment: Payment, *, announced: bool = True) -> Payment | None:
    """Request the binding from the payment's bank, and from the next bank after a final refusal.

    Return the payment as saved; None when every bank refused. The watch handles unknown outcomes and unavailable banks.
    With `announced`, a link that is ready is announced by an event; callers that return the link in their answer pass
    False.
    """
    while True:
        try:
            bank = binder(ports, payment.bank)
            async with watched(ports, payment.mode, payment.bank):
                binding = await bank.bind(_request(ports, payment, bank))
        except OutcomeUnknown:
            return await _note_unknown(ports, payment)
        except Unavailable:
            return payment
        except (Refused, NotConfigured, NotSupported):
            left = await _take_next_route(ports, payment)
        else:
            return await take_binding(ports, payment, binding, announced=announced)
        if left is None or left.bank_reference is not None or left.opening is Opening.UNKNOWN:
            return left
        payment = left


def _request(ports: Ports, payment: Payment, bank: MandateBank) -> BindingRequest:
    takes_money = payment.binding is BindingCharge.FIRST
    return BindingRequest(
        operation=binding_operation(payment.id),
        first_charge_kopecks=payment.amount.kopecks if takes_money else None,
        purpose=purpose_of(payment),
        expires_at=payment.expires_at,
        return_url=ports.urls.subscription_page(payment.subscription_id or ""),
        account=payment.account_id,
        shop=payment.shop_id,
        terminal=payment.method_id,
        receipt=receipt_of(ports, payment, bank) if takes_money else None,
    )


@unit_of_work()
async def _note_unknown(_: Ports, unit: Unit, asked: Payment) -> Payment | None:
    """Mark the outcome as unknown. The bank may have made the binding, so no other bank is tried: the payer could bind
    and pay twice.
    """
    present = await unit[Payment].get(asked.id)
    if present is None or present.opening is not Opening.ASKING:
        return present
    return await save_unknown(unit, present)


@unit_of_work()
async def take_binding(
    ports: Ports, unit: Unit, asked: Payment, made: AtBank, *, announced: bool = True
) -> Payment | None:
    """Save the reference of a binding that the bank has made, and its link if it is issued already."""
    payment = await unit[Payment].get(asked.id)
    if payment is None or payment.bank_reference is not None:
        return payment
    now = ports.clock.now()
    before = await any_subscription(unit, payment.subscription_id or "")
    if before is not None and before.binding is not None and before.binding.payment_id == payment.id:
        noted = msgspec.structs.replace(
            before.binding,
            bank=payment.bank,
            bank_reference=made.reference,
            qr_payload=made.payload,
            bank_link=made.link,
        )
        after = binding_begun(before, noted, now)
        if made.link is not None:
            after = link_issued(after, made.link, now)
        if announced:
            await save_subscription(ports, unit, before, after)
        else:
            unit[Subscription].save(untold(before, with_link_tag(ports.vault, before, after)))
    first_poll = next_poll(ports, payment, Looked(check_after=made.check_after))
    if first_poll is not None and (made.link is not None or made.check_after is not None):
        await WATCH_BINDING.hurry(unit, payment.id, first_poll)
    bound = msgspec.structs.replace(
        payment,
        opening=Opening.OPEN,
        bank_reference=made.reference,
        qr_payload=made.payload,
        bank_link=made.link,
        link_kind=None if made.link is None else link_kind(made.kind),
    )
    bound = msgspec.structs.replace(bound, pay_tag=pay_tag(ports.vault, bound))
    await follow_outcome(unit, payment, bound)
    return unit[Payment].save(bound)


async def find_at_bank(ports: Ports, payment: Payment) -> Payment | None:
    """Return the payment with its bank reference, searching the bank if we have not saved it yet. Raises: faults of the
    bank port.
    """
    if payment.bank_reference is not None:
        return payment
    async with watched(ports, payment.mode, payment.bank):
        bank = binder(ports, payment.bank)
        request = _request(ports, payment, bank)
        found = await find_binding(bank, request, payment.created_at)
    return payment if found is None else await take_binding(ports, payment, found)


@unit_of_work()
async def _take_next_route(ports: Ports, unit: Unit, asked: Payment) -> Payment | None:
    """Move the payment to the next bank after a refusal. When no bank is left, take the payment back and return None:
    the subscription gets no link.
    """
    payment = await unit[Payment].get(asked.id)
    if payment is None or payment.opening is not Opening.ASKING or payment.bank != asked.bank:
        return payment
    if payment.status not in WAITING:
        return None  # ended or withdrawn meanwhile: no further bank is asked
    method_id = payment.method_id
    terminal = None if method_id is None else await unit[Terminal].get(method_id)
    routes = binders(ports, payment.mode, terminal)
    names = [bank.name for bank in routes]
    after = names.index(payment.bank) + 1 if payment.bank in names else 0
    subscription = await any_subscription(unit, payment.subscription_id or "")
    left = None
    if subscription is not None:
        able = [bank for bank in routes[after:] if takes_without(bank, payment.receipt)]
        if payment.binding is BindingCharge.FIRST:
            able = [bank for bank in able if bank.capabilities.takes(payment.amount.kopecks)]
        left = await first_open(ports, able, subscription.mode, subscription.account_id)
    if left is not None:
        return unit[Payment].save(msgspec.structs.replace(payment, bank=left.name))
    await take_back(ports, unit, payment)
    return None


async def take_back(ports: Ports, unit: Unit, payment: Payment) -> None:
    """Remove a binding that no bank knows, in the caller's unit. On our page the payer may open another; a link
    expected from the payment system will not come.
    """
    remove_payment(unit, payment)
    await follow_outcome(unit, payment, None)
    await WATCH_BINDING.drop(unit, payment.id)
    before = await any_subscription(unit, payment.subscription_id or "")
    if before is None or before.binding is None or before.binding.payment_id != payment.id:
        return
    now = ports.clock.now()
    after = msgspec.structs.replace(before, binding=None)
    await save_subscription(ports, unit, before, binding_closed(after, now) if after.binding_url_pending else after)


async def ask_for(ports: Ports, payment_id: str | None, *, announced: bool = True) -> None:
    """Request a binding that was just recorded and is still wanted. Without an id, do nothing."""
    if payment_id is None:
        return
    payment = await ports.storage.get(Payment, payment_id)
    if payment is not None and payment.opening is Opening.ASKING and payment.status in WAITING:
        await ask(ports, payment, announced=announced)
