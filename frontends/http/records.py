"""Objects of the API: payments, refunds, statements, movements and the balance, made of the core's records.

An embedding program gets the same objects, so this module needs no library of the HTTP API.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import TEST, Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.movements import MOVEMENT_KINDS, Movement, ObjectType
from ...core.domain.payments.payments import FailureReason, Payment, PaymentStatus, shown_metadata, shows_payer_name
from ...core.domain.refunds.refunds import Refund
from ...core.domain.settlement.settlement import Settlement
from ...core.usecases.common.encrypted import open_payer_name
from ...core.usecases.ledger.balance import Balance
from ...core.usecases.ledger.conversions import Conversion
from ...ports.bundle import Ports


class PaymentView(msgspec.Struct, kw_only=True):
    """A payment (docs/payments.md "What you get")."""

    id: Annotated[str, shared.ID]
    status: Annotated[str, shared.STATUS, shared.among(PaymentStatus)]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    actual_amount_rub: Annotated[str | None, shared.ACTUAL_AMOUNT_RUB]
    amount_usdt: Annotated[str | None, shared.AMOUNT_USDT]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    payment_method: Annotated[str, shared.PAYMENT_METHOD]
    method_id: Annotated[str | UnsetType, shared.METHOD_ID] = UNSET
    payment_url: Annotated[str, Meta(description="Page where the payer pays; pass it on unchanged")]
    expires_at: Annotated[str, shared.EXPIRES_AT]
    refund_pending: Annotated[bool, Meta(description="Whether a refund is under way; the status does not change")]
    metadata: Annotated[dict[str, Any] | None, shared.METADATA]
    payer_name: Annotated[str | UnsetType, shared.PAYER_NAME] = UNSET
    shop_id: Annotated[str, shared.SHOP_ID]
    subscription_id: Annotated[str | UnsetType, shared.SUBSCRIPTION_ID] = UNSET
    period_ref: Annotated[str | UnsetType, shared.PERIOD_REF] = UNSET
    retry_of: Annotated[
        str | UnsetType, Meta(description="The payment of the same order that the payer tried before, on its page")
    ] = UNSET
    retried_by: Annotated[
        str | UnsetType, Meta(description="The payment of the same order that the payer made afterwards, on its page")
    ] = UNSET
    failure_reason: Annotated[Annotated[str, shared.among(FailureReason)] | UnsetType, shared.FAILURE_REASON] = UNSET
    created_at: Annotated[str, shared.CREATED_AT]
    paid_at: Annotated[str | None, Meta(description="Time of payment, by the bank's clock")]
    settled_at: Annotated[str | None, Meta(description="Time of settlement")]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


def payment_view(ports: Ports, payment: Payment) -> PaymentView:
    """Return the payment object of the API."""
    view = PaymentView(
        id=payment.id,
        status=payment.status.value,
        amount_rub=str(payment.amount),
        actual_amount_rub=None if payment.actual_amount is None else str(payment.actual_amount),
        amount_usdt=None if payment.amount_usdt is None else str(payment.amount_usdt),
        external_id=payment.external_id,
        payment_method=payment.payment_method,
        payment_url=_page_of(ports, payment),
        expires_at=iso(payment.expires_at),
        refund_pending=payment.refund_pending,
        metadata=shown_metadata(payment),
        shop_id=payment.shop_id,
        created_at=iso(payment.created_at),
        paid_at=iso_or_none(payment.paid_at),
        settled_at=iso_or_none(payment.settled_at),
    )
    # Fields that most payments lack are set afterwards: above 15 keyword arguments Python builds a dictionary of them.
    if payment.method_id:
        view.method_id = payment.method_id
    if shows_payer_name(payment) and (payer_name := open_payer_name(ports.vault, payment)):
        view.payer_name = payer_name
    if payment.subscription_id:
        view.subscription_id = payment.subscription_id
    if payment.period_ref:
        view.period_ref = payment.period_ref
    if payment.retry_of:
        view.retry_of = payment.retry_of
    if payment.retried_by:
        view.retried_by = payment.retried_by
    if payment.failure_reason is not None:
        view.failure_reason = payment.failure_reason.value
    if payment.mode is TEST:
        view.sandbox = True
    return view


def _page_of(ports: Ports, payment: Payment) -> str:
    """Return the payer's page of a payment. All payments of a subscription share one page."""
    if payment.subscription_id is not None:
        return ports.urls.subscription_page(payment.subscription_id)
    return ports.urls.payment_page(payment.id)


class RefundView(msgspec.Struct, frozen=True, kw_only=True):
    """The refund object (docs/refunds.md "Refunds"). `id` and `refund_id` are the same."""

    id: Annotated[str, shared.ID]
    refund_id: Annotated[str, Meta(description="Id of the refund")]
    payment_id: Annotated[str, shared.PAYMENT_ID]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    amount_usdt: Annotated[
        str | None, Meta(description="USDT taken from the available balance, if the payment was settled; else null")
    ]
    rate_market: Annotated[
        str | None, Meta(description="Rate of the payment's settlement, used for `amount_usdt`; else null")
    ]
    status: Annotated[str, shared.STATUS]
    pending_reason: Annotated[
        str | None, Meta(description="Why a pending refund waits: `awaiting_approval`, `insufficient_balance`")
    ]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    reason: Annotated[str | None, Meta(description="Your reason")]
    failure_reason: Annotated[str | None, shared.FAILURE_REASON]
    metadata: Annotated[dict[str, Any] | None, shared.METADATA]
    shop_id: Annotated[str, shared.SHOP_ID]
    created_at: Annotated[str, shared.CREATED_AT]
    completed_at: Annotated[str | None, shared.COMPLETED_AT]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


def refund_view(refund: Refund) -> RefundView:
    """Return the refund object of the API."""
    return RefundView(
        id=refund.id,
        refund_id=refund.id,
        payment_id=refund.payment_id,
        amount_rub=str(refund.amount),
        amount_usdt=None if refund.taken_usdt is None else str(refund.taken_usdt),
        rate_market=refund.rate_market,
        status=refund.status.value,
        pending_reason=None if refund.pending_reason is None else refund.pending_reason.value,
        external_id=refund.external_id,
        reason=refund.reason,
        failure_reason=refund.failure_reason,
        metadata=refund.metadata,
        shop_id=refund.shop_id,
        created_at=iso(refund.created_at),
        completed_at=iso_or_none(refund.completed_at),
        sandbox=True if refund.mode is Mode.TEST else UNSET,
    )


class SettlementView(msgspec.Struct, frozen=True, kw_only=True):
    """A statement (docs/settlement.md "Reconciling")."""

    id: Annotated[str, shared.ID]
    cutoff: Annotated[str, Meta(description="Payments paid before this time are included")]
    started_at: Annotated[str, Meta(description="Time of the start, whose rate applies")]
    completed_at: Annotated[str | None, shared.COMPLETED_AT]
    rate_market: Annotated[str, shared.RATE_MARKET]
    payments: Annotated[int, shared.PAYMENTS]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    fee_usdt: Annotated[str, Meta(description="Fee of the service")]
    credit_usdt: Annotated[str, Meta(description="Increase of the balance, after the fee")]
    withdrawal_id: Annotated[str | None, shared.WITHDRAWAL_ID]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


def settlement_view(settlement: Settlement) -> SettlementView:
    """Return the settlement object of the API."""
    return SettlementView(
        id=settlement.id,
        cutoff=iso(settlement.cutoff),
        started_at=iso(settlement.started_at),
        completed_at=iso_or_none(settlement.completed_at),
        rate_market=settlement.rate_market,
        payments=settlement.payments,
        amount_rub=str(settlement.amount),
        fee_usdt=str(settlement.fee),
        credit_usdt=str(settlement.credit),
        withdrawal_id=settlement.withdrawal_id,
        sandbox=True if settlement.mode is Mode.TEST else UNSET,
    )


class BalanceView(msgspec.Struct, frozen=True, kw_only=True):
    """The balance (docs/settlement.md "The balance")."""

    available_usdt: Annotated[str, Meta(description="USDT available for payout now")]
    reserved_usdt: Annotated[str, Meta(description="USDT reserved for payouts under way")]
    pending_rub: Annotated[str, Meta(description="Accepted RUB that wait for settlement")]
    total_settled_usdt: Annotated[
        str, Meta(description="All USDT ever received; refunds after settlement and payouts do not lower it")
    ]
    total_withdrawn_usdt: Annotated[str, Meta(description="Sum of all payouts")]
    updated_at: Annotated[str, Meta(description="Present time: the balance is always up to date")]


def balance_view(balance: Balance) -> BalanceView:
    """Return the balance object of the API."""
    return BalanceView(
        available_usdt=str(balance.available),
        reserved_usdt=str(balance.reserved),
        pending_rub=str(balance.pending),
        total_settled_usdt=str(balance.settled),
        total_withdrawn_usdt=str(balance.withdrawn),
        updated_at=iso(balance.at),
    )


class MovementView(msgspec.Struct, frozen=True, kw_only=True):
    """A movement (docs/settlement.md "Movements")."""

    id: Annotated[str, Meta(description="Unique id that never changes")]
    number: Annotated[int, Meta(description="Position in the list of all movements, from 1")]
    kind: Annotated[str, Meta(description="Kind of movement"), shared.among(MOVEMENT_KINDS)]
    object_type: Annotated[
        str, Meta(description="`payment`, `refund`, `withdrawal` or `exchange`"), shared.among(ObjectType)
    ]
    object_id: Annotated[str, Meta(description="Id of the object that caused the movement")]
    available_usdt: Annotated[str, Meta(description="Change of `available_usdt`")]
    reserved_usdt: Annotated[str, Meta(description="Change of `reserved_usdt`")]
    pending_rub: Annotated[str, Meta(description="Change of `pending_rub`")]
    converted_rub: Annotated[
        str | None, Meta(description="RUB converted to USDT, or RUB for which USDT were taken; null without conversion")
    ]
    rate: Annotated[str | None, Meta(description="RUB per USDT used for `converted_rub`; else null")]
    settlement_id: Annotated[str | None, Meta(description="Id of the settlement whose statement has this line")]
    balance_available_usdt: Annotated[str, Meta(description="`available_usdt` after the movement")]
    balance_reserved_usdt: Annotated[str, Meta(description="`reserved_usdt` after the movement")]
    balance_pending_rub: Annotated[str, Meta(description="`pending_rub` after the movement")]
    created_at: Annotated[str, Meta(description="Time of booking; never before that of the previous movement")]


def movement_view(movement: Movement, conversion: Conversion | None) -> MovementView:
    """Return the movement object of the API."""
    return MovementView(
        id=movement.entry_id,
        number=movement.number,
        kind=movement.kind.value,
        object_type=movement.object_type.value,
        object_id=movement.object_id,
        available_usdt=str(movement.available),
        reserved_usdt=str(movement.reserved),
        pending_rub=str(movement.pending),
        converted_rub=None if conversion is None else str(conversion.amount),
        rate=None if conversion is None else conversion.rate,
        settlement_id=None if conversion is None else conversion.settlement_id,
        balance_available_usdt=str(movement.available_after),
        balance_reserved_usdt=str(movement.reserved_after),
        balance_pending_rub=str(movement.pending_after),
        created_at=iso(movement.at),
    )
