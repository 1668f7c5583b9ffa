"""Payments, terminals and delivery proofs (docs/payments.md "Payments")."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .requests import Amount, Request, amount, at, create, get, get_csv, post


class PaymentStatus(OpenEnum):
    """Status of a payment."""

    PENDING = "pending"
    PROCESSING = "processing"
    PAID = "paid"
    SETTLED = "settled"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    AMOUNT_MISMATCH = "amount_mismatch"
    REFUNDED = "refunded"


class FailureReason(OpenEnum):
    """Why a payment failed."""

    INSUFFICIENT_FUNDS = "insufficient_funds"
    DECLINED_BY_BANK = "declined_by_bank"
    MANDATE_REVOKED = "mandate_revoked"
    CANCELLED_BY_CUSTOMER = "cancelled_by_customer"
    CANCELLED_BY_BANK = "cancelled_by_bank"
    EXPIRED = "expired"
    UNKNOWN = "unknown"


class TransferStatus(OpenEnum):
    """What became of money that came in."""

    CREDITED = "credited"
    UNDER_REVIEW = "under_review"
    SUSPENDED = "suspended"
    RETURNING = "returning"
    RETURNED = "returned"


class ProofNetwork(OpenEnum):
    """Blockchain network of a delivery proof."""

    TRC20 = "TRC20"
    ERC20 = "ERC20"
    BEP20 = "BEP20"


class ProofStatus(OpenEnum):
    """Status of a delivery proof."""

    WAITING = "waiting"
    ACCEPTED = "accepted"
    IN_REVIEW = "in_review"
    AWAITING_CONFIRMATIONS = "awaiting_confirmations"
    CONFIRMED = "confirmed"
    CONFIRMED_AMOUNT_DIFFERS = "confirmed_amount_differs"
    REJECTED = "rejected"


class ProofRejection(OpenEnum):
    """Why a delivery proof was rejected."""

    NOT_FOUND_OR_UNCONFIRMED = "not_found_or_unconfirmed"
    ALREADY_USED = "already_used"
    INVALID = "invalid"


class Payer(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The payer's data, for terminals that require it."""

    full_name: str
    document_number: str
    kyc_reference: str | None = None
    kyc_completed_at: datetime | None = None


class Payment(Record, frozen=True, kw_only=True):
    """A payment, or a charge of a subscription. Show `payment_url` to the payer unchanged."""

    id: str
    status: PaymentStatus
    amount_rub: Decimal
    actual_amount_rub: Decimal | None
    amount_usdt: Decimal | None
    external_id: str | None
    payment_method: str
    method_id: str | None = None
    payment_url: str
    expires_at: datetime
    refund_pending: bool
    metadata: dict[str, Any] | None
    payer_name: str | None = None
    shop_id: str
    subscription_id: str | None = None
    period_ref: str | None = None
    retry_of: str | None = None
    retried_by: str | None = None
    failure_reason: FailureReason | None = None
    created_at: datetime
    paid_at: datetime | None
    settled_at: datetime | None
    sandbox: bool = False


class PaymentMethod(Record, frozen=True, kw_only=True):
    """A terminal, and the fields that it requires in every payment."""

    method_id: str
    payment_method: str
    label: str
    required_fields: list[str]


Methods = list[PaymentMethod]


class DeliveryProof(Record, frozen=True, kw_only=True):
    """Hash of the USDT transfer to the client, and its verification status."""

    network: ProofNetwork | None
    tx_hash: str | None
    status: ProofStatus
    reason: ProofRejection | None = None


class SbpLink(Record, frozen=True, kw_only=True):
    """The bank's own link, or None once it can no longer be paid."""

    sbp_link: str | None


class Transfer(Record, frozen=True, kw_only=True):
    """Money received for a payment, and its status."""

    amount_rub: Decimal
    status: TransferStatus
    reason: str | None
    received_at: datetime
    returned_at: datetime | None


class Payments(Group[Face]):
    """`client.payments`"""

    @operation
    def create(
        self,
        *,
        amount_rub: Amount,
        payment_method: str | None = None,
        method_id: str | None = None,
        external_id: str | None = None,
        client_phone: str | None = None,
        client_email: str | None = None,
        description: str | None = None,
        payer: Payer | None = None,
        metadata: Mapping[str, Any] | None = None,
        shop_id: str | None = None,
        ttl_minutes: int | None = None,
        client_info: Mapping[str, Any] | None = None,
        auto_return: bool | None = None,
        receipt: Mapping[str, Any] | None = None,
        webhook_url: str | None = None,
        idempotency_key: str | UUID | None = None,
    ) -> Request[Payment]:
        """Create a payment. Store your own `idempotency_key` with the order, so that a crash creates no second
        payment."""
        body = {
            "amount_rub": amount(amount_rub),
            "payment_method": payment_method,
            "method_id": method_id,
            "external_id": external_id,
            "client_phone": client_phone,
            "client_email": client_email,
            "description": description,
            "payer": payer,
            "metadata": metadata,
            "shop_id": shop_id,
            "ttl_minutes": ttl_minutes,
            "client_info": client_info,
            "auto_return": auto_return,
            "receipt": receipt,
            "webhook_url": webhook_url,
        }
        return create("/payments", Payment, body, idempotency_key, renewable=True)

    @operation
    def get(self, payment_id: str) -> Request[Payment]:
        """Return the current state of a payment."""
        return get(at("payments", payment_id), Payment)

    @operation
    def list(
        self,
        *,
        shop_id: str | None = None,
        status: PaymentStatus | str | None = None,
        external_id: str | None = None,
        payment_method: str | None = None,
        subscription_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[Payment]]:
        """List payments, newest first. `created_from` is inclusive, `created_to` exclusive."""
        return get(
            "/payments",
            Page[Payment],
            shop_id=shop_id,
            status=status,
            external_id=external_id,
            payment_method=payment_method,
            subscription_id=subscription_id,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate = walk(list)

    @operation
    def csv(
        self,
        *,
        shop_id: str | None = None,
        status: PaymentStatus | str | None = None,
        external_id: str | None = None,
        payment_method: str | None = None,
        subscription_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
    ) -> Request[str]:
        """Return all filtered payments in one CSV file, newest first."""
        return get_csv(
            "/payments",
            shop_id=shop_id,
            status=status,
            external_id=external_id,
            payment_method=payment_method,
            subscription_id=subscription_id,
            created_from=created_from,
            created_to=created_to,
        )

    @operation
    def sbp_link(self, payment_id: str) -> Request[SbpLink]:
        """Return the bank's own link of a payment, if the account may have it."""
        return get(at("payments", payment_id, "sbp-link"), SbpLink)

    @operation
    def transfers(
        self, payment_id: str, *, page: int | None = None, per_page: int | None = None
    ) -> Request[Page[Transfer]]:
        """List money received for a payment, including late, repeated and wrong amounts; oldest first."""
        return get(at("payments", payment_id, "transfers"), Page[Transfer], page=page, per_page=per_page)

    @operation
    def methods(self) -> Request[Methods]:
        """List the terminals available for payments."""
        return get("/payment-methods", Methods)

    @operation
    def submit_delivery_proof(
        self, payment_id: str, *, network: ProofNetwork | str, tx_hash: str
    ) -> Request[DeliveryProof]:
        """Submit the hash of the USDT transfer to the client. It can be repeated."""
        body = {"network": network, "tx_hash": tx_hash}
        return post(at("payments", payment_id, "delivery-proof"), DeliveryProof, body, repeatable=True)

    @operation
    def delivery_proof(self, payment_id: str) -> Request[DeliveryProof]:
        """Return the status of the delivery proof."""
        return get(at("payments", payment_id, "delivery-proof"), DeliveryProof)
