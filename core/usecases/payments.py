"""What merchants do with payments: create, read, list (SPEC "Endpoints: Payments")."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from ...ports.bank import Bank
from ...ports.bundle import Ports
from ...ports.jobs import Job
from ..domain import ids
from ..domain.accounts import Caller, Shop
from ..domain.errors import Refusal, shape_error
from ..domain.idempotency import IdempotencyKey
from ..domain.ids import canonical_uuid
from ..domain.orders import (
    PaymentOrder,
    ReadOrder,
    check_after_shop,
    check_before_shop,
    check_shop,
    kept_metadata,
    private_data,
)
from ..domain.payments import LIFETIME, Opening, Payment, PaymentStatus
from .idempotency import Made, once
from .kyc import pass_gate
from .payment_opening import first_watch, open_at_bank, outcome_unknown
from .seals import private_place

KIND = "payment"

_MAKER_PAUSES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25)
_MAKER_PATIENCE = 25.0
"""Seconds a repeat waits for the request that holds its key, or for the recovery of one that died."""


async def create_payment(ports: Ports, caller: Caller, key: str | None, read_order: ReadOrder) -> Made[Payment]:
    """Take a payment order, once per key. `read_order` reads the body, and is called only for a new key.

    Raises: Refusal, in the order of DECISIONS 1.
    """

    async def make(lock: Callable[[str], IdempotencyKey]) -> Payment:
        order = read_order()
        payment = await _checked(ports, caller, order)
        key_record = lock(payment.id)
        payment = msgspec.structs.replace(payment, key_id=key_record.id)
        async with ports.storage.unit() as unit:
            unit[IdempotencyKey].add(key_record)
            unit[Payment].add(payment)
            unit[Job].add(first_watch(payment))
            await unit.commit()
        return await open_at_bank(ports, payment)

    return await once(ports, caller, key, KIND, make=make, recall=lambda made: _recall(ports, made))


async def _checked(ports: Ports, caller: Caller, order: PaymentOrder) -> Payment:
    """The payment that this order makes, not yet written. Raises: Refusal."""
    now = ports.clock.now()
    check_before_shop(order, caller, now)
    shop_id = caller.account.default_shop_id if order.shop_id is None else order.shop_id.lower()
    async with ports.storage.unit() as unit:
        shop = check_shop(await unit[Shop].get(shop_id), caller)
    amount = check_after_shop(order, caller)
    await pass_gate(ports, caller, order.client_phone)
    routes = ports.banks.of_mode(caller.mode)
    if not routes:
        raise Refusal("PAYMENT_ROUTE_UNAVAILABLE", "No working route for this payment")
    payment_id = ids.prefixed(ids.PAYMENT, ports.ids.uuid())
    private = private_data(order)
    return Payment(
        id=payment_id,
        account_id=caller.account_id,
        mode=caller.mode,
        shop_id=shop.id,
        status=PaymentStatus.PENDING,
        amount=amount,
        payment_method=order.payment_method or "sbp",
        created_at=now,
        expires_at=now + _lifetime(order, routes[0]),
        external_id=order.external_id,
        description=order.description,
        metadata=kept_metadata(order),
        auto_return=caller.account.settings.auto_return if order.auto_return is None else order.auto_return,
        private=None if private is None else ports.vault.seal(private, private_place(payment_id)),
        bank=routes[0].name,
    )


def _lifetime(order: PaymentOrder, bank: Bank) -> timedelta:
    """`ttl_minutes` counts only where the bank lets us choose (SPEC "Payment creation rules", 1)."""
    if order.ttl_minutes is None or not bank.capabilities.own_lifetime:
        return LIFETIME
    return timedelta(minutes=order.ttl_minutes)


async def _recall(ports: Ports, payment_id: str) -> Payment | None:
    """The payment of a known key, once its creation has come to an end."""
    waited, turn = 0.0, 0
    while True:
        async with ports.storage.unit() as unit:
            payment = await unit[Payment].get(payment_id)
        if payment is None or payment.opening is Opening.OPEN:
            return payment
        if payment.opening is Opening.UNKNOWN:
            raise outcome_unknown()
        if waited >= _MAKER_PATIENCE:
            raise Refusal(
                "PROVIDER_UNAVAILABLE", "The first request with this key is still at work; try again", retry_after=5
            )
        pause = _MAKER_PAUSES[min(turn, len(_MAKER_PAUSES) - 1)]
        await ports.clock.sleep(pause)
        waited, turn = waited + pause, turn + 1


async def get_payment(ports: Ports, caller: Caller, payment_id: str) -> Payment:
    """One payment of the caller's account and mode.

    Raises: Refusal PAYMENT_NOT_FOUND, also for a foreign one or one of the other mode (never 403).
    """
    payment = None
    if ids.is_prefixed(ids.PAYMENT, payment_id):
        async with ports.storage.unit() as unit:
            payment = await unit[Payment].get(payment_id)
    if payment is None or payment.account_id != caller.account_id or payment.mode is not caller.mode:
        raise Refusal("PAYMENT_NOT_FOUND", "No payment of this id")
    return payment


class PaymentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Query values of GET /payments as they came; None: not given."""

    shop_id: str | None = None
    status: str | None = None


class Page(msgspec.Struct, frozen=True):
    """A page of payments, newest first, and how many there are in all."""

    payments: list[Payment]
    number: int
    size: int
    total: int


async def list_payments(ports: Ports, caller: Caller, wanted: PaymentFilter, number: int, size: int) -> Page:
    """A page of the caller's payments. Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND."""
    criteria: dict[str, Any] = {"account_id": caller.account_id, "mode": caller.mode}
    if wanted.status is not None:
        criteria["status"] = _status(wanted.status)
    async with ports.storage.unit() as unit:
        if wanted.shop_id is not None:
            shop_id = canonical_uuid(wanted.shop_id)
            if shop_id is None:
                raise shape_error("shop_id", "must be a UUID")
            shop = await unit[Shop].get(shop_id)
            if shop is None or shop.account_id != caller.account_id:
                raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this shop_id")
            criteria["shop_id"] = shop_id
        shelf = unit[Payment]
        total = await shelf.total(**criteria)
        past_end = (number - 1) * size >= total
        payments = [] if past_end else await shelf.page(number, size, order="-created_at", **criteria)
    return Page(payments, number, size, total)


def _status(text: str) -> PaymentStatus:
    try:
        return PaymentStatus(text.lower())
    except ValueError:
        raise shape_error("status", f"must be one of: {', '.join(PaymentStatus)}") from None
