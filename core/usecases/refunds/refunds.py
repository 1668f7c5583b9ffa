"""Refunds for merchants and operators: create, read, cancel, approve, reject (docs/refunds.md "Rules", "How it ends").
The progress of an approved refund is in progress.py.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Unavailable
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller, Mode, RefundApproval, Settings
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.errors import Refusal
from ...domain.payments.payments import Payment
from ...domain.refunds.orders import REASON_LONGEST, RefundCase, RefundOrder, judge_refund
from ...domain.refunds.refunds import PendingReason, Refund, RefundStatus, RefundTrigger
from ..accounts.accounts import find_account
from ..accounts.terminals import terminal_of
from ..actions.four_eyes import gated
from ..common.account_time import in_test_time
from ..common.causes import caused_id
from ..common.encrypted import true_settings
from ..common.idempotency import Lock, Made, once, yield_to_maker
from ..common.units import retrying, unit_of_work
from .executed import is_executed
from .receipts import refund_receipt
from .steps import CARRY_OUT, RACES, move, refunds_of

KIND = "refund"

TEST_PAUSE = timedelta(seconds=2)
"""Delay of an automatically approved refund in test mode, so that the sandbox can still reject it."""

ReadRefundOrder = Callable[[], RefundOrder]


def require_refunds(caller: Caller) -> None:
    """Refuse the refund endpoints until the refund API is enabled for the account (docs/refunds.md "Asking for one").
    Raises: Refusal NOT_FOUND.
    """
    if not caller.account.settings.refunds and not caller.is_person:
        raise Refusal("NOT_FOUND", "Endpoint not found: refunds are not on for this account")


async def create_refund(ports: Ports, caller: Caller, key: str | None, read_order: ReadRefundOrder) -> Made[Refund]:
    """Create a refund, once per key. `read_order` parses the body, and is called only for a new key.

    Raises: Refusal, in the order of `orders.RULES`.
    """
    require_refunds(caller)

    async def make(lock: Lock) -> Refund:
        order = read_order()
        refund_id = caused_id(ports, caller.mode, ids.REFUND, lock.record_id)

        async def work(unit: Unit) -> Refund:
            payment = await _payment(unit, order.payment_id)
            if payment is not None and (payment.account_id, payment.mode) != (caller.account_id, caller.mode):
                payment = None
            if payment is not None and not caller.sees_shop(payment.shop_id):
                payment = None
            key_record = lock(refund_id)
            brought_in = await unit[Refund].get(refund_id)
            if brought_in is not None:
                # `cambist resume` wrote it from the bank's list, when the database had forgotten key and refund.
                unit[IdempotencyKey].add(key_record)
                return unit[Refund].save(_completed_by(brought_in, order, key_record.id))
            try:
                settings = true_settings(ports.vault, caller.account)
                refund = await _applied_for(ports, unit, refund_id, order, payment, settings)
            except Refusal:
                await yield_to_maker(unit, lock)
                raise
            unit[IdempotencyKey].add(key_record)
            applicant = caller.key_id if caller.is_person else None
            made_by = {"applicant": applicant, "key_maker": caller.key_maker}
            return unit[Refund].add(msgspec.structs.replace(refund, key_id=key_record.id, **made_by))

        return await retrying(ports.storage, work)

    async def recall(refund_id: str) -> Refund | None:
        return await ports.storage.get(Refund, refund_id)

    return await once(ports, caller, key, KIND, make=make, recall=recall, id_rule="refunds_id")


def _completed_by(refund: Refund, order: RefundOrder, key_id: str) -> Refund:
    """Add the data that only the merchant knows. Amount and payment stay as the bank executed them."""
    return msgspec.structs.replace(
        refund, external_id=order.external_id, reason=order.reason, metadata=order.metadata, key_id=key_id
    )


@in_test_time(Payment)
async def create_refund_for(
    ports: Ports,
    payment_id: str,
    *,
    amount_rub: str | None = None,
    external_id: str | None = None,
    reason: str | None = None,
) -> Refund:
    """Create a refund as an operator: without a key, and even if the refund API is off (docs/refunds.md "Asking for
    one"). Raises: Refusal, in the order of `orders.RULES`; Waits when the refund would be sent and two operators are
    needed.
    """
    ports = gated(ports, "create_refund_for", payment_id, amount_rub=amount_rub, external_id=external_id, reason=reason)
    order = RefundOrder(payment_id=payment_id, amount_rub=amount_rub, external_id=external_id, reason=reason)
    refund_id = ids.prefixed(ids.REFUND, ports.ids.uuid())

    async def work(unit: Unit) -> Refund:
        payment = await _payment(unit, order.payment_id)
        account = None if payment is None else await find_account(unit, payment.account_id)
        settings = Settings() if account is None else true_settings(ports.vault, account)
        return unit[Refund].add(await _applied_for(ports, unit, refund_id, order, payment, settings))

    return await retrying(ports.storage, work)


async def _payment(unit: Unit, payment_id: str) -> Payment | None:
    return await unit[Payment].get(payment_id) if ids.is_prefixed(ids.PAYMENT, payment_id) else None


async def _applied_for(
    ports: Ports, unit: Unit, refund_id: str, order: RefundOrder, payment: Payment | None, settings: Settings
) -> Refund:
    """Return the refund of an order, for the caller to add.

    The payment is saved as well, so that the later of two concurrent orders sees the first. Without manual approval the
    refund's job is planned here. Raises: Refusal.
    """
    case = RefundCase(
        order=order,
        payment=payment,
        refunds=() if payment is None else await refunds_of(unit, payment.id),
        terminal=None if payment is None else await terminal_of(unit, payment),
        metadata_kb_max=settings.metadata_kb_max,
    )
    judge_refund(case)
    payment, now = case.found, ports.clock.now()
    private = refund_receipt(ports, refund_id, order, payment, case.amount, settings)
    approves_itself = approval_of(settings, payment.mode) is RefundApproval.AUTO
    unit[Payment].save(msgspec.structs.replace(payment, refund_pending=True))
    if approves_itself:
        await CARRY_OUT.plan(unit, refund_id, now + TEST_PAUSE if payment.mode is Mode.TEST else now, now)
    return Refund(
        id=refund_id,
        account_id=payment.account_id,
        mode=payment.mode,
        payment_id=payment.id,
        shop_id=payment.shop_id,
        status=RefundStatus.PENDING,
        pending_reason=None if approves_itself else PendingReason.AWAITING_APPROVAL,
        amount=case.amount,
        created_at=now,
        approved_at=now if approves_itself else None,
        external_id=order.external_id,
        reason=order.reason,
        metadata=order.metadata,
        private=private,
    )


def approval_of(settings: Settings, mode: Mode) -> RefundApproval:
    """Return how refund applications are approved in a mode (docs/refunds.md "Rules")."""
    usual = RefundApproval.MANUAL if mode is Mode.LIVE else RefundApproval.AUTO
    return settings.refund_approval or usual


async def get_refund(ports: Ports, caller: Caller, refund_id: str) -> Refund:
    """Return a refund of the caller's account and mode. Raises: Refusal NOT_FOUND, REFUND_NOT_FOUND."""
    require_refunds(caller)
    async with ports.storage.unit() as unit:
        return await _own(unit, caller, refund_id)


async def _own(unit: Unit, caller: Caller, refund_id: str) -> Refund:
    refund = await unit[Refund].get(refund_id) if ids.is_prefixed(ids.REFUND, refund_id) else None
    if refund is None or (refund.account_id, refund.mode) != (caller.account_id, caller.mode):
        raise _not_found()
    if not caller.sees_shop(refund.shop_id):
        raise _not_found()
    return refund


def _not_found() -> Refusal:
    return Refusal("REFUND_NOT_FOUND", "No refund of this id")


async def cancel_refund(ports: Ports, caller: Caller, refund_id: str) -> Refund:
    """Cancel a refund before its money is touched.

    Raises: Refusal NOT_FOUND, REFUND_NOT_FOUND; INVALID_STATE unless the refund is pending, or if the bank executed it
    during a period that a restored database has forgotten; PROVIDER_UNAVAILABLE while the bank does not say so.
    """
    require_refunds(caller)
    async with ports.storage.unit() as unit:
        await _own(unit, caller, refund_id)
    await _require_unexecuted(ports, refund_id)

    async def work(unit: Unit) -> Refund:
        refund = await _own(unit, caller, refund_id)
        return await _end_pending(ports, unit, refund, RefundTrigger.CANCELLED)

    return await retrying(ports.storage, work)


async def _require_unexecuted(ports: Ports, refund_id: str) -> None:
    """Refuse to end a pending refund that the bank has executed. The bank is polled only in an installation that is, or
    was, quarantined. Raises: Refusal INVALID_STATE, PROVIDER_UNAVAILABLE.
    """
    try:
        executed = await is_executed(ports, refund_id)
    except Unavailable as fault:
        raise Refusal(
            "PROVIDER_UNAVAILABLE", "The bank does not say whether it executed the refund", retry_after=30
        ) from fault
    if executed:
        raise Refusal("INVALID_STATE", "The bank has executed the refund already")


async def _end_pending(
    ports: Ports, unit: Unit, refund: Refund, trigger: RefundTrigger, failure: str | None = None
) -> Refund:
    if refund.status is not RefundStatus.PENDING:
        raise _not_pending(refund)
    await CARRY_OUT.drop(unit, refund.id)
    return await move(ports, unit, refund, (trigger,), failure=failure)


def _not_pending(refund: Refund) -> Refusal:
    return Refusal("INVALID_STATE", f"The refund is {refund.status}, not pending")


@in_test_time(Refund)
async def approve_refund(ports: Ports, refund_id: str) -> Refund:
    """Approve a pending refund as an operator. A refund that waits for money is tried again now. Raises: Refusal
    REFUND_NOT_FOUND, INVALID_STATE; Waits when two operators are needed.
    """
    ports = gated(ports, "approve_refund", refund_id)

    async def work(unit: Unit) -> Refund:
        refund = await _any(unit, refund_id)
        if refund.status is not RefundStatus.PENDING:
            raise _not_pending(refund)
        return await approve(ports, unit, refund, ports.clock.now())

    return await retrying(ports.storage, work, again_on=RACES)


async def approve(ports: Ports, unit: Unit, refund: Refund, due: datetime) -> Refund:
    """Let a pending refund continue at `due`, in the caller's unit."""
    await CARRY_OUT.plan(unit, refund.id, due, ports.clock.now())
    approved_at = refund.approved_at or ports.clock.now()
    return unit[Refund].save(msgspec.structs.replace(refund, approved_at=approved_at, pending_reason=None))


@in_test_time(Refund)
async def reject_refund(ports: Ports, refund_id: str, reason: str) -> Refund:
    """Reject a pending refund as an operator; the merchant sees `reason`. Raises: Refusal VALIDATION_ERROR,
    REFUND_NOT_FOUND, INVALID_STATE, PROVIDER_UNAVAILABLE, as `cancel_refund`.
    """
    told = reason.strip()
    if not 1 <= len(told) <= REASON_LONGEST or not told.isprintable():
        raise Refusal("VALIDATION_ERROR", f"A reason has 1 to {REASON_LONGEST} printable characters")

    async def work(unit: Unit) -> Refund:
        return await _end_pending(ports, unit, await _any(unit, refund_id), RefundTrigger.REJECTED, told)

    async with ports.storage.unit() as unit:
        await _any(unit, refund_id)
    await _require_unexecuted(ports, refund_id)
    return await retrying(ports.storage, work)


async def _any(unit: Unit, refund_id: str) -> Refund:
    refund = await unit[Refund].get(refund_id) if ids.is_prefixed(ids.REFUND, refund_id) else None
    if refund is None:
        raise _not_found()
    return refund


@in_test_time(Refund)
@unit_of_work(again_on=RACES)
async def reverse_refund(ports: Ports, unit: Unit, refund_id: str) -> Refund:
    """Record the operator's statement that a completed refund came back to the bank, for banks that do not report it.
    The merchant gets the money back, and the payment counts again. A later report by the bank changes nothing.

    Raises: Refusal REFUND_NOT_FOUND, INVALID_STATE.
    """
    refund = await _any(unit, refund_id)
    if refund.status is not RefundStatus.COMPLETED:
        raise Refusal("INVALID_STATE", f"The refund is {refund.status}, not completed")
    await CARRY_OUT.drop(unit, refund.id)
    return await move(ports, unit, refund, (RefundTrigger.CAME_BACK,))
