"""Payments for merchants: create and read (docs/payments.md "Taking one")."""

from collections.abc import Awaitable, Callable

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.accounts.shops import Shop
from ...domain.accounts.terminals import PAYMENT_METHODS
from ...domain.errors import Refusal
from ...domain.ids import canonical_uuid
from ...domain.payments.orders import Case, PaymentOrder, ReadOrder, judge, kept_metadata
from ...domain.payments.payer_contact import contact_mask, has_receipt_contact, private_data
from ...domain.payments.payments import ASKING, OPEN, PENDING, Opening, Payment, lifetime, short_number
from ..accounts.access import RECENT
from ..accounts.terminals import offered_terminal, terminal_of
from ..common.encrypted import payer_email_digest, private_aad, require_pay_to
from ..common.idempotency import Lock, Made, once, once_made
from ..gateways.gateways import first_open
from ..kyc.gate import pass_gate
from .opening import draw, open_at_bank, outcome_unknown
from .receipt_records import has_register
from .receipts import no_receipt, receipt_terms, takes_without
from .route_refusals import no_route, outside_limits, routeless
from .tallies import add_payment

KIND = "payment"


Besides = Callable[[Unit, Payment], Awaitable[Payment]]
"""What the unit of a new payment writes besides it; returns the payment as it is to be written."""


async def create_payment(
    ports: Ports, caller: Caller, key: str | None, read_order: ReadOrder, besides: Besides | None = None
) -> Made[Payment]:
    """Create a payment, once per key. `read_order` parses the body, and is called only for a new key.

    Raises: Refusal, in the order of docs/concepts.md "What is refused first".
    """

    async def make(lock: Lock) -> Payment:
        order = read_order()
        payment, watch = draw(ports, await _checked(ports, caller, order, lock.record_id))
        async with ports.storage.unit() as unit:
            if besides is not None:
                payment = await besides(unit, payment)
            unit[IdempotencyKey].add(lock(payment.id))
            add_payment(unit, payment)
            unit[Job].add(watch)
            await unit.commit()
        return payment if payment.opening is OPEN else await open_at_bank(ports, payment)

    return await once(ports, caller, key, KIND, make=make, recall=lambda made: _recall(ports, made))


async def _checked(ports: Ports, caller: Caller, order: PaymentOrder, key_id: str) -> Payment:
    """Return the payment that this order makes, not yet written. `key_id` is the id of its idempotency key. Raises:
    Refusal.
    """
    case = await _case(ports, caller, order)
    judge(case)
    await pass_gate(ports, caller, order.client_phone)
    terminal = case.terminal
    routes = ports.banks.of_mode(caller.mode, () if terminal is None else terminal.routes)
    if not routes:
        raise routeless(ports, caller.mode)
    fitting = [bank for bank in routes if bank.capabilities.takes(case.amount.kopecks)]
    if not fitting:
        raise outside_limits(routes)
    settings = caller.account.settings
    cart = case.cart
    terms = receipt_terms(
        settings,
        fitting,
        cart,
        has_contact=has_receipt_contact(order),
        has_register=has_register(ports, caller.mode),
    )
    able = [bank for bank in fitting if takes_without(bank, terms)]
    if not able:
        raise no_receipt(settings)
    bank = await first_open(ports, able, caller.mode, caller.account_id)
    if bank is None:
        raise no_route(away=True)
    payment_id = ids.prefixed(ids.PAYMENT, ports.ids.uuid())
    private = private_data(order, None if terms is None else cart)
    ttl_minutes = order.ttl_minutes if terminal is None or terminal.own_lifetime else None
    # Build it in two steps: with more than 15 keyword arguments Python fills a dictionary item by item, which is
    # slower.
    payment = Payment(
        id=payment_id,
        account_id=caller.account_id,
        mode=caller.mode,
        shop_id=_shop_id(caller, order),
        status=PENDING,
        amount=case.amount,
        payment_method=_payment_method(order) if terminal is None else terminal.payment_method,
        created_at=case.now,
        expires_at=case.now + lifetime(ttl_minutes, own=bank.capabilities.own_lifetime),
        ttl_minutes=ttl_minutes,
        external_id=order.external_id,
        description=order.description,
        metadata=kept_metadata(order.metadata),
        auto_return=settings.auto_return if order.auto_return is None else order.auto_return,
        bank=bank.name,
    )
    return msgspec.structs.replace(
        payment,
        number=short_number(payment_id),
        method_id=None if terminal is None else terminal.id,
        private=None if private is None else ports.vault.encrypt(private, private_aad(payment_id)),
        payer_contact=contact_mask(order),
        payer_email_digest=payer_email_digest(ports.vault, caller, order.client_email),
        markup=None if case.shop is None else case.shop.markup,
        receipt=terms,
        key_id=key_id,
    )


async def _case(ports: Ports, caller: Caller, order: PaymentOrder) -> Case:
    """Load the records that the rules need. Malformed ids are not looked up; the validation rule refuses them."""
    shop_id = canonical_uuid(_shop_id(caller, order))
    shop = None if shop_id is None else await ports.storage.recent(Shop, shop_id, within=RECENT)
    terminal = None
    if caller.account.settings.terminals:
        async with ports.storage.unit() as unit:
            terminal = await offered_terminal(unit, caller, order.method_id, _payment_method(order))
    return Case(order=order, caller=caller, now=ports.clock.now(), shop=shop, terminal=terminal)


def _shop_id(caller: Caller, order: PaymentOrder) -> str:
    """Return the order's shop. Payments without `shop_id` go to the default shop (docs/concepts.md "Shops")."""
    return caller.account.default_shop_id if order.shop_id is None else order.shop_id.lower()


def _payment_method(order: PaymentOrder) -> str:
    return order.payment_method or PAYMENT_METHODS[0]


async def _recall(ports: Ports, payment_id: str) -> Payment | None:
    """Return the payment of a known key, once its creation has finished."""

    async def read() -> Payment | None:
        return await ports.storage.get(Payment, payment_id)

    payment = await once_made(ports, read, lambda found: found.opening is not ASKING)
    if payment is not None and payment.opening is Opening.UNKNOWN:
        raise outcome_unknown(payment)
    return payment


async def get_payment(ports: Ports, caller: Caller, payment_id: str) -> Payment:
    """Return a payment of the caller's account and mode.

    Raises: Refusal PAYMENT_NOT_FOUND, also for a payment of another account or mode (never 403).
    """
    payment = None
    if ids.is_prefixed(ids.PAYMENT, payment_id):
        payment = await ports.storage.get(Payment, payment_id)
    if payment is None or payment.account_id != caller.account_id or payment.mode is not caller.mode:
        raise Refusal("PAYMENT_NOT_FOUND", "No payment of this id")
    if not caller.sees_shop(payment.shop_id):
        raise Refusal("PAYMENT_NOT_FOUND", "No payment of this id")
    return payment


async def get_sbp_link(ports: Ports, caller: Caller, payment_id: str) -> str | None:
    """Return the bank's own SBP link of a payment, or None if it has no link for merchants.

    No link is returned for exchange terminals (their payers must pass our window), for links of other systems, or once
    the payment can no longer be paid.

    Raises: Refusal PAYMENT_NOT_FOUND; DIRECT_LINK_NOT_ALLOWED unless the account or the terminal allows direct links
    and the bank does not forbid them; PROVIDER_UNAVAILABLE if the stored link differs from the bank's.
    """
    payment = await get_payment(ports, caller, payment_id)
    async with ports.storage.unit() as unit:
        terminal = await terminal_of(unit, payment)
    if terminal is not None and terminal.is_exchange:
        return None
    allowed = caller.account.settings.direct_links or (terminal is not None and terminal.direct_link)
    bank = ports.banks.capabilities_of(payment.bank)
    if not allowed or bank is None or not bank.direct_link:
        raise Refusal("DIRECT_LINK_NOT_ALLOWED", "Direct links are not allowed for this payment")
    payable = payment.status is PENDING and ports.clock.now() < payment.expires_at
    if not payable or payment.link_kind is not None:
        return None
    require_pay_to(ports.vault, payment)
    return payment.bank_link
