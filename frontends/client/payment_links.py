"""Payment links (docs/payment-links.md)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .payments import Payment
from .requests import Amount, Request, amount_or_none, at, create, get, post


class PaymentLinkStatus(OpenEnum):
    """Status of a payment link."""

    ACTIVE = "active"
    USED_UP = "used_up"
    EXPIRED = "expired"
    ARCHIVED = "archived"


class LinkField(Record, frozen=True, kw_only=True):
    """A field that the payer fills in."""

    label: str
    kind: str
    required: bool


class LinkAnswer(Record, frozen=True, kw_only=True):
    """What a payer filled in."""

    label: str
    value: str


class PaymentLink(Record, frozen=True, kw_only=True):
    """A page on which payers pay, and the sums of its payments."""

    id: str
    url: str
    """The payer's page."""
    status: PaymentLinkStatus
    description: str
    amount_rub: Decimal | None
    """None: the payer chooses it."""
    amount_min_rub: Decimal | None
    amount_max_rub: Decimal | None
    reusable: bool
    payments_max: int | None
    fields: list[LinkField]
    success_text: str | None
    external_id: str | None
    metadata: dict[str, Any] | None
    shop_id: str
    payments: int
    """Number of paid payments."""
    paid_rub: Decimal
    created_at: datetime
    expires_at: datetime | None
    archived_at: datetime | None
    sandbox: bool = False


class LinkPayment(Record, frozen=True, kw_only=True):
    """A payment of a link."""

    payment: Payment
    fields: list[LinkAnswer]


class PaymentLinks(Group[Face]):
    """`client.payment_links`"""

    @operation
    def create(
        self,
        *,
        description: str,
        amount_rub: Amount | None = None,
        amount_min_rub: Amount | None = None,
        amount_max_rub: Amount | None = None,
        reusable: bool | None = None,
        payments_max: int | None = None,
        fields: Sequence[Mapping[str, Any]] | None = None,
        success_text: str | None = None,
        external_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        shop_id: str | None = None,
        expires_at: datetime | None = None,
        idempotency_key: str | UUID | None = None,
    ) -> Request[PaymentLink]:
        """Create a payment link. Without `amount_rub` the payer chooses the amount."""
        body = {
            "description": description,
            "amount_rub": amount_or_none(amount_rub),
            "amount_min_rub": amount_or_none(amount_min_rub),
            "amount_max_rub": amount_or_none(amount_max_rub),
            "reusable": reusable,
            "payments_max": payments_max,
            "fields": None if fields is None else [*fields],
            "success_text": success_text,
            "external_id": external_id,
            "metadata": metadata,
            "shop_id": shop_id,
            "expires_at": expires_at,
        }
        return create("/payment-links", PaymentLink, body, idempotency_key)

    @operation
    def get(self, payment_link_id: str) -> Request[PaymentLink]:
        """Return the current state of a payment link."""
        return get(at("payment-links", payment_link_id), PaymentLink)

    @operation
    def list(
        self,
        *,
        shop_id: str | None = None,
        external_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[PaymentLink]]:
        """List payment links, newest first. `created_from` is inclusive, `created_to` exclusive."""
        return get(
            "/payment-links",
            Page[PaymentLink],
            shop_id=shop_id,
            external_id=external_id,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate = walk(list)

    @operation
    def payments(
        self, payment_link_id: str, *, page: int | None = None, per_page: int | None = None
    ) -> Request[Page[LinkPayment]]:
        """List the payments of a link, newest first, with what their payers filled in."""
        return get(at("payment-links", payment_link_id, "payments"), Page[LinkPayment], page=page, per_page=per_page)

    iterate_payments = walk(payments)

    @operation
    def archive(self, payment_link_id: str) -> Request[PaymentLink]:
        """Archive a payment link, so that nobody can pay by it any more."""
        return post(at("payment-links", payment_link_id, "archive"), PaymentLink, repeatable=True)
