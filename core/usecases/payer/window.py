"""The payer's page of a payment. The id is the payer's only permission to read it, and it shows no personal data."""

from datetime import datetime
from enum import StrEnum

import msgspec

from ....ports.bank import InvoiceStatus
from ....ports.bank_simulator import Simulation
from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.accounts.shops import Shop, seller_name
from ...domain.ids import PAYMENT, is_prefixed
from ...domain.money import Rub
from ...domain.payer.brand import Brand, brand_of
from ...domain.payer.window import Face, bank_link, face, may_retry, order_number, overtaken, web_link
from ...domain.payments.payment_links import PaymentLink
from ...domain.payments.payments import RETRIES_MOST, FailureReason, LinkKind, Payment, PaymentStatus
from ...domain.subscriptions.subscriptions import Subscription
from ..common.account_time import find_test_clock, in_test_time
from ..common.encrypted import confirmation_key, require_pay_to
from ..common.simulated import is_simulated
from ..gateways.polling import hurry_poll
from ..payments.opening import WATCH
from ..payments.progress import MAY_BE_PAID
from ..payments.retries import attempts_of, has_other_money
from ..sandbox.sandbox import simulate_payment


class PayerAction(StrEnum):
    """Actions in the panel of a simulated bank."""

    PAY = "pay"
    UNDERPAY = "underpay"
    FAIL = "fail"


_ACTIONS = {
    Face.WAITING: (PayerAction.PAY, PayerAction.UNDERPAY, PayerAction.FAIL),
    Face.CHECKING: (PayerAction.PAY, PayerAction.UNDERPAY, PayerAction.FAIL),
    Face.PROCESSING: (PayerAction.PAY, PayerAction.UNDERPAY, PayerAction.FAIL),
    Face.EXPIRED: (PayerAction.PAY, PayerAction.UNDERPAY),
}


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the page that changes while it is open. `now` is the service's time, so that a wrong clock in the
    payer's browser does not distort the countdown.
    """

    status: PaymentStatus
    face: Face
    now: datetime
    deadline: datetime


class PayerView(msgspec.Struct, frozen=True, kw_only=True):
    """All data of the page."""

    id: str
    standing: Standing
    shop_name: str
    brand: Brand
    amount: Rub
    received: Rub | None
    """The amount received, if it differs from the payment's amount."""
    description: str | None
    order_number: str | None
    """The merchant's own id of the payment, by which its support finds it."""
    qr_payload: str | None
    bank_link: str | None
    link_kind: LinkKind | None
    """None means an SBP link with a QR."""
    failure_reason: FailureReason | None
    success_text: str | None
    """The merchant's text after the payment: that of its payment link, else of its brand."""
    return_url: str | None
    auto_return: bool
    test_mode: bool
    simulated: bool
    """Whether the bank is a simulator: no money moves, and the page says so."""
    actions: tuple[PayerAction, ...]
    """Actions that the simulator's panel offers now; empty with a real bank."""
    confirmation: str | None = None
    """Address of the payment's confirmation, once it is paid."""
    can_retry: bool = False
    """Whether a button makes another payment of the same order."""
    newest_id: str | None = None
    """The newest payment of the order, if it is another one."""


class ClosedView(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a payment whose window is closed: the seller to contact, and the numbers to mention. It shows no
    amounts, because it is no receipt.
    """

    id: str
    shop_name: str
    brand: Brand
    order_number: str | None
    return_url: str | None


@in_test_time(Payment)
async def view(ports: Ports, payment_id: str, *, opened: bool = False) -> PayerView | None:
    """Return the data of the page; None when there is no such payment or its window is closed. With `opened` a payer
    may have opened the page, so the bank is polled soon; opening it has no other effect, however often.

    Raises: Refusal PROVIDER_UNAVAILABLE while the stored QR or link differs from the bank's.
    """
    async with ports.storage.unit() as unit:
        payment = await one_off(unit, payment_id)
        present = None if payment is None else await _standing(ports, unit, payment)
        if payment is None or present is None:
            return None
        account = await unit[Account].get(payment.account_id)
        attempts = await attempts_of(unit, payment)
        seller = await seller_of(unit, payment)
        link = None if payment.link_id is None else await unit[PaymentLink].get(payment.link_id)
    if seller is None or account is None:
        return None
    if opened:
        await _hurry_poll(ports, payment)
    if present.face is Face.WAITING:
        require_pay_to(ports.vault, payment)
    confirmation = ports.urls.confirmation_page(payment.id, confirmation_key(ports.vault, payment.id))
    return PayerView(
        id=payment.id,
        standing=present,
        shop_name=seller.name,
        brand=seller.brand,
        amount=payment.amount,
        received=payment.actual_amount if payment.actual_amount != payment.amount else None,
        description=payment.description,
        order_number=order_number(payment.external_id),
        qr_payload=payment.qr_payload,
        bank_link=bank_link(payment),
        link_kind=payment.link_kind,
        failure_reason=payment.failure_reason,
        success_text=(link and link.success_text) or seller.brand.success_text,
        return_url=seller.return_url,
        auto_return=payment.auto_return,
        test_mode=payment.mode is Mode.TEST,
        simulated=is_simulated(ports, payment.bank),
        actions=actions(ports, payment, present.face),
        confirmation=confirmation if present.face is Face.PAID else None,
        can_retry=may_retry(account, payment, present.face) and len(attempts) <= RETRIES_MOST,
        newest_id=attempts[-1].id if attempts[-1].id != payment.id else None,
    )


async def closed(ports: Ports, payment_id: str) -> ClosedView | None:
    """Return the page of a closed window; None when there is no such payment."""
    async with ports.storage.unit() as unit:
        payment = await one_off(unit, payment_id)
        seller = None if payment is None else await seller_of(unit, payment)
    if payment is None or seller is None:
        return None
    return ClosedView(
        id=payment.id,
        shop_name=seller.name,
        brand=seller.brand,
        order_number=order_number(payment.external_id),
        return_url=seller.return_url,
    )


async def standing(ports: Ports, payment_id: str, *, opened: bool = False) -> Standing | None:
    """Return the state that the page's script requests every second, with one read (two in test mode). With `opened`
    the page was opened or returned to from the bank, so the bank is polled soon. None as in `view`.
    """
    async with ports.storage.unit() as unit:
        payment = await one_off(unit, payment_id)
        if payment is None:
            return None
        test_clock = await find_test_clock(unit, payment.account_id, payment.mode)
        with ports.clock.entered(test_clock):
            present = await _standing(ports, unit, payment)
    if opened:
        await _hurry_poll(ports, payment)
    return present


async def _hurry_poll(ports: Ports, payment: Payment) -> None:
    if payment.status in MAY_BE_PAID:
        await hurry_poll(ports, WATCH, payment)


def actions(ports: Ports, payment: Payment, shown: Face) -> tuple[PayerAction, ...]:
    """Return the actions for a payment with this face; an expired payment can only be paid late."""
    if payment.bank_reference is None or not is_simulated(ports, payment.bank):
        return ()
    return _ACTIONS.get(shown, ())


@in_test_time(Payment)
async def simulate(ports: Ports, payment_id: str, action: PayerAction, reason: FailureReason) -> bool:
    """Perform an action at the simulated bank, as a payer would. Return False when the payment has no simulated bank or
    no open window.

    An action that comes too late for the payment's state changes nothing, and the page shows why. An underpaid payment
    gets half of its amount.
    """
    async with ports.storage.unit() as unit:
        payment = await one_off(unit, payment_id)
    if payment is None or not is_simulated(ports, payment.bank):
        return False
    shown = face(payment, ports.clock.now())
    if shown is None:
        return False
    if action in actions(ports, payment, shown):
        await simulate_payment(ports, payment, _simulation(action, payment, reason))
    return True


def _simulation(action: PayerAction, payment: Payment, reason: FailureReason) -> Simulation:
    if action is PayerAction.FAIL:
        return Simulation(status=InvoiceStatus.FAILED, failure=reason.value)
    short = half_of(payment.amount).kopecks if action is PayerAction.UNDERPAY else None
    return Simulation(status=InvoiceStatus.PAID, amount_kopecks=short)


def half_of(amount: Rub) -> Rub:
    """Return the amount that an underpaying payer sends."""
    return Rub(amount.kopecks // 2)


async def one_off(unit: Unit, payment_id: str) -> Payment | None:
    """Return a one-off payment; None for another or malformed id."""
    # Look up only ids of our own format; other texts in a link are not worth a query.
    payment = await unit[Payment].get(payment_id) if is_prefixed(PAYMENT, payment_id) else None
    # A charge needs nothing from its payer, and a subscription is confirmed on its own page.
    return None if payment is None or payment.subscription_id is not None else payment


class Seller(msgspec.Struct, frozen=True, kw_only=True):
    """The seller as the payer sees it."""

    name: str
    return_url: str | None
    brand: Brand


async def seller_of(unit: Unit, sold: Payment | Subscription) -> Seller | None:
    """Return the seller's name and the address to return to."""
    shop = await unit[Shop].get(sold.shop_id)
    account = await unit[Account].get(sold.account_id)
    if shop is None or account is None:
        return None
    back = web_link(shop.return_url) or web_link(account.settings.return_url)
    return Seller(name=seller_name(shop, account), return_url=back, brand=brand_of(account, shop))


async def _standing(ports: Ports, unit: Unit, payment: Payment) -> Standing | None:
    now = ports.clock.now()
    shown = face(payment, now)
    if await has_other_money(unit, payment):
        shown = overtaken(shown)
    return None if shown is None else Standing(status=payment.status, face=shown, now=now, deadline=payment.expires_at)
