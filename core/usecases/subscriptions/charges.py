"""Charges by mandate for merchants: create one, list them, read when the next is allowed (docs/subscriptions.md
"Charging"). The progress of a charge at the bank is in charge_progress.py.
"""

from collections.abc import Callable

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.accounts.accounts import Caller
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.accounts.receipts import ReceiptTerms
from ...domain.errors import Refusal
from ...domain.payments.payer_contact import receipt_data
from ...domain.payments.payments import Opening, Payment, PaymentStatus
from ...domain.subscriptions.charge_decisions import Blocked, ChargeWindow, MayCharge, Occupied
from ...domain.subscriptions.charge_moves import charge_started, charge_undone
from ...domain.subscriptions.charge_reports import has_no_outcome
from ...domain.subscriptions.charges import ChargeCase, ChargeOrder, judge_charge, subscription_window
from ...domain.subscriptions.subscriptions import Subscription
from ..common.causes import caused_charge_id
from ..common.encrypted import private_aad
from ..common.idempotency import Lock, Made, once, once_made, yield_to_maker
from ..common.paging import ListFilter, Page
from ..common.quarantine import holds_back
from ..common.units import retrying, unit_of_work
from ..operations.engine import bring, send, settle
from ..payments.charge_effects import tell_exhaustion
from ..payments.list import PaymentFilter, list_payments
from ..payments.receipt_records import has_register
from ..payments.receipts import receipt_terms, takes_without
from ..payments.recurring import new_recurring_payment, no_subscription, own_subscription, save_subscription
from ..payments.tallies import remove_payment
from .charge_progress import CHARGES, FIRST_POLL, WATCH_CHARGE, Charging, charger

KIND = "charge"

_BANK_AWAY = 10
"""Retry-After in seconds; the watch polls the bank before then, too."""


class ChargeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The charge that answers a request."""

    payment: Payment
    is_new: bool
    """Whether this request made the charge (201) or found an earlier one (200)."""
    replayed: bool = False
    """Whether the idempotency key belongs to that charge."""


class _Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an accepted request: a new charge that is recorded but not sent, or an earlier charge."""

    payment: Payment
    subscription: Subscription
    is_new: bool


async def create_charge(
    ports: Ports, caller: Caller, subscription_id: str, key: str | None, read_order: Callable[[], ChargeOrder]
) -> ChargeAnswer:
    """Charge the subscription's payer, once per key and once per period.

    `read_order` parses the body, and is called only for a new key. A new charge is answered as `pending`, and an event
    reports its outcome. While a charge is pending, and in the calendar scheme when the period already has one, that
    charge is the answer and no bank is called.

    Raises: Refusal SUBSCRIPTION_NOT_FOUND, refusals of the key, then in the order of CHARGE_RULES; PROVIDER_ERROR when
    the charge certainly failed; PROVIDER_UNAVAILABLE when it is pending and the same request polls again.
    """
    await _own(ports, caller, subscription_id)

    async def make(lock: Lock) -> ChargeAnswer:
        taken = await _take(ports, caller, subscription_id, read_order(), lock)
        payment = await _send_first(ports, taken) if taken.is_new else taken.payment
        return ChargeAnswer(payment=payment, is_new=taken.is_new)

    async def recall(payment_id: str) -> ChargeAnswer | None:
        payment = await _recall(ports, subscription_id, payment_id)
        return None if payment is None else ChargeAnswer(payment=payment, is_new=False)

    made: Made[ChargeAnswer] = await once(ports, caller, key, KIND, make=make, recall=recall, id_rule="payments_id")
    return msgspec.structs.replace(made.resource, replayed=made.replayed)


async def _own(ports: Ports, caller: Caller, subscription_id: str) -> Subscription:
    async with ports.storage.unit() as unit:
        subscription = await own_subscription(unit, caller, subscription_id)
    if subscription is None:
        raise no_subscription()
    return subscription


async def _take(ports: Ports, caller: Caller, subscription_id: str, order: ChargeOrder, lock: Lock) -> _Taken:
    """Check and record the order in one unit. A refusal still saves a due exhaustion event. Raises: Refusal."""
    payment_id = caused_charge_id(ports, caller.mode, subscription_id, lock.record_id)

    async def work(unit: Unit) -> _Taken | Refusal:
        subscription = await own_subscription(unit, caller, subscription_id)
        bank = None if subscription is None else charger(ports, subscription.mandate_bank)
        settings = caller.account.settings
        by_register = has_register(ports, caller.mode)
        terms = None if bank is None else receipt_terms(settings, (bank,), has_contact=False, has_register=by_register)
        case = ChargeCase(
            order=order,
            recurring=settings.recurring,
            subscription=subscription,
            provider=bank is not None and not await holds_back(ports, unit, caller.mode),
            receipt_lacks=()
            if bank is None or order.receipt is not None or takes_without(bank, terms)
            else settings.receipt_lacks(has_contact=False),
            settings=settings,
            now=ports.clock.now(),
        )
        try:
            verdict: MayCharge | Blocked | Occupied | Refusal = judge_charge(case)
        except Refusal as refusal:
            await yield_to_maker(unit, lock)
            verdict = refusal
        if subscription is None:
            raise no_subscription()
        after = await tell_exhaustion(ports, unit, subscription)
        taken: _Taken | Refusal
        if isinstance(verdict, Refusal):
            taken = verdict
        elif isinstance(verdict, MayCharge):
            if bank is not None and order.receipt is not None:
                terms = receipt_terms(settings, (bank,), case.cart, has_contact=True, has_register=by_register)
            payment, after = await _record(ports, unit, case, after, verdict, lock(payment_id), terms)
            taken = _Taken(payment=payment, subscription=after, is_new=True)
        else:
            taken = _Taken(payment=await _answering(unit, verdict, lock), subscription=after, is_new=False)
        await save_subscription(ports, unit, subscription, after)
        return taken

    taken = await retrying(ports.storage, work)
    if isinstance(taken, Refusal):
        raise taken
    return taken


async def _record(
    ports: Ports,
    unit: Unit,
    case: ChargeCase,
    subscription: Subscription,
    verdict: MayCharge,
    key: IdempotencyKey,
    terms: ReceiptTerms | None,
) -> tuple[Payment, Subscription]:
    """Write the attempt before the bank is called: key, payment, watch, and the subscription's attempt count."""
    unit[IdempotencyKey].add(key)
    cart, private = case.cart, None
    if terms is not None and cart is not None:
        private = ports.vault.encrypt(receipt_data(cart), private_aad(key.resource_id))
    payment = await new_recurring_payment(
        ports,
        unit,
        subscription,
        amount=case.amount,
        period_ref=verdict.period.ref,
        expires_at=verdict.period.closes_at,
        payment_id=key.resource_id,
        external_id=case.order.external_id,
        key_id=key.id,
        bank=subscription.mandate_bank,
        receipt=terms,
        private=private,
    )
    unit[Job].add(WATCH_CHARGE.first(payment.id, payment.created_at + FIRST_POLL, payment.created_at))
    started = charge_started(
        subscription, verdict, payment_id=payment.id, external_id=payment.external_id, now=case.now
    )
    return payment, started


async def _answering(unit: Unit, verdict: Blocked | Occupied, lock: Lock) -> Payment:
    """Return the earlier charge that answers the request.

    The key is assigned to that charge, so that a repeat never makes a second one. While the charge may still be taken
    back, its record knows only its own key, so no key is added.
    """
    payment = await unit[Payment].get(verdict.payment_id)
    if payment is None:
        raise Refusal("PROVIDER_UNAVAILABLE", "The last charge is being taken back; try again", retry_after=1)
    if payment.opening is not Opening.ASKING:
        unit[IdempotencyKey].add(lock(payment.id))
    return payment


async def _send_first(ports: Ports, taken: _Taken) -> Payment:
    told = await send(CHARGES, ports, Charging(taken.payment, taken.subscription))
    if told.word is None:
        # Not configured or not supported: nothing was sent.
        if await _undo(ports, taken.payment):
            raise Refusal("PROVIDER_NOT_CONFIGURED", "Charges by subscription are not available at present")
        payment = await _read(ports, taken.payment.id) or taken.payment
    else:
        settled = (await settle(CHARGES, ports, told)).subject
        payment = taken.payment if settled is None else settled.payment
    if payment.status is PaymentStatus.FAILED:
        raise _refused(payment)
    if payment.opening is not Opening.OPEN:
        raise _nobody_knows()
    # Answer `pending`, as the bank accepted it, even if the outcome is known already.
    return msgspec.structs.replace(taken.payment, opening=Opening.OPEN, bank_reference=payment.bank_reference)


@unit_of_work()
async def _undo(ports: Ports, unit: Unit, payment: Payment) -> bool:
    """Take back a charge that was certainly never sent, and its key, so that the period is free again. Return whether
    the charge is gone; False once another process may have sent it.
    """
    present = await unit[Payment].get(payment.id)
    if present is None or present.opening is not Opening.ASKING:
        return present is None
    remove_payment(unit, present)
    await WATCH_CHARGE.drop(unit, payment.id)
    key = None if present.key_id is None else await unit[IdempotencyKey].get(present.key_id)
    if key is not None:
        unit[IdempotencyKey].remove(key)
    subscription = await unit[Subscription].get(present.subscription_id or "")
    if subscription is not None:
        after = charge_undone(subscription, payment.id, ports.clock.now())
        await save_subscription(ports, unit, subscription, after)
    return True


def _refused(payment: Payment) -> Refusal:
    return Refusal(
        "PROVIDER_ERROR",
        f"The charge was refused: {payment.failure_reason}",
        details={"payment_id": payment.id, "failure_reason": payment.failure_reason},
    )


def _nobody_knows() -> Refusal:
    return Refusal(
        "PROVIDER_UNAVAILABLE",
        "The charge's outcome is not known; it stays pending. Repeat the same request, with the same Idempotency-Key",
        retry_after=_BANK_AWAY,
    )


async def _read(ports: Ports, payment_id: str) -> Payment | None:
    return await ports.storage.get(Payment, payment_id)


async def _recall(ports: Ports, subscription_id: str, payment_id: str) -> Payment | None:
    """Return the charge of a known key, once its first request has finished. Poll the bank again if the outcome is
    unknown (docs/subscriptions.md "When a charge is refused").
    """
    payment = await once_made(
        ports, lambda: _read(ports, payment_id), lambda found: found.opening is not Opening.ASKING
    )
    if payment is None:
        return None
    if payment.subscription_id != subscription_id:
        raise Refusal("IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key belongs to a charge of another subscription")
    if payment.opening is not Opening.UNKNOWN or not has_no_outcome(payment):
        return payment
    await bring(CHARGES, ports, payment.id)
    payment = await _read(ports, payment_id)
    if payment is not None and payment.status is PaymentStatus.FAILED:
        raise _refused(payment)
    if payment is not None and payment.opening is Opening.UNKNOWN:
        raise _nobody_knows()
    return payment


async def list_charges(
    ports: Ports, caller: Caller, subscription_id: str, asked: ListFilter, read_page: Callable[[], tuple[int, int]]
) -> Page[Payment]:
    """Return the payments of a subscription, including its bindings, newest first (docs/subscriptions.md "Charging").

    Raises: Refusal SUBSCRIPTION_NOT_FOUND, then what `read_page` raises, VALIDATION_ERROR.
    """
    subscription = await _own(ports, caller, subscription_id)
    wanted = PaymentFilter(subscription_id=subscription.id, **msgspec.structs.asdict(asked))
    return await list_payments(ports, caller, wanted, *read_page())


async def read_charge_window(ports: Ports, caller: Caller, subscription_id: str) -> ChargeWindow:
    """Return when a charge is allowed, computed by the rule that guards charges. Raises: Refusal
    SUBSCRIPTION_NOT_FOUND.
    """
    return subscription_window(await _own(ports, caller, subscription_id), ports.clock.now())
