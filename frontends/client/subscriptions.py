"""Subscriptions and their charges (docs/subscriptions.md "Subscriptions")."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .payments import Payment
from .requests import Amount, Request, amount, amount_or_none, at, create, get, post


class SubscriptionStatus(OpenEnum):
    """Status of a subscription."""

    PENDING_BINDING = "pending_binding"
    ACTIVE = "active"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Interval(OpenEnum):
    """Interval between the charges of a subscription."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class BindingCharge(OpenEnum):
    """What the confirmation of a subscription takes from the payer."""

    FIRST = "first"
    NONE = "none"


class Subscription(Record, frozen=True, kw_only=True):
    """A payer's mandate for one charge per period. Give `binding_url` to the payer, who confirms there."""

    id: str
    status: SubscriptionStatus
    past_due: bool
    rebind_required: bool = False
    amount_rub: Decimal
    interval: Interval
    interval_count: int
    cap_amount_rub: Decimal
    cap_window_rub: Decimal | None = None
    description: str
    external_id: str | None
    binding_url: str | None
    binding_url_pending: bool
    """The link will arrive by webhook. Do not create the subscription again."""
    binding_charge: BindingCharge
    current_period_start: datetime | None
    current_period_end: datetime | None
    sandbox: bool = False


class ChargeWindow(Record, frozen=True, kw_only=True):
    """The period of the next charge, and whether a charge is possible now."""

    period_ref: str | None
    opens_at: datetime | None
    closes_at: datetime | None
    attempts_used: int
    attempts_max: int | None
    window_ends_at: datetime | None
    can_charge: bool
    reason: str | None
    """The error code that a charge would get, or `CHARGE_PENDING`."""
    next_allowed_at: datetime | None


class Subscriptions(Group[Face]):
    """`client.subscriptions`"""

    @operation
    def create(
        self,
        *,
        amount_rub: Amount,
        interval: Interval | str,
        description: str,
        interval_count: int | None = None,
        external_id: str | None = None,
        client_ref: str | None = None,
        client_phone: str | None = None,
        shop_id: str | None = None,
        method_id: str | None = None,
        success_url: str | None = None,
        binding_charge: BindingCharge | str | None = None,
        idempotency_key: str | UUID | None = None,
    ) -> Request[Subscription]:
        """Create a subscription. The payer confirms it at its `binding_url`."""
        body = {
            "amount_rub": amount(amount_rub),
            "interval": interval,
            "description": description,
            "interval_count": interval_count,
            "external_id": external_id,
            "client_ref": client_ref,
            "client_phone": client_phone,
            "shop_id": shop_id,
            "method_id": method_id,
            "success_url": success_url,
            "binding_charge": binding_charge,
        }
        return create("/subscriptions", Subscription, body, idempotency_key)

    @operation
    def get(self, subscription_id: str) -> Request[Subscription]:
        """Return the current state of a subscription."""
        return get(at("subscriptions", subscription_id), Subscription)

    @operation
    def list(
        self,
        *,
        status: SubscriptionStatus | str | None = None,
        external_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[Subscription]]:
        """List subscriptions, newest first. `created_from` is inclusive, `created_to` exclusive."""
        return get(
            "/subscriptions",
            Page[Subscription],
            status=status,
            external_id=external_id,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate = walk(list)

    @operation
    def update(
        self,
        subscription_id: str,
        *,
        amount_rub: Amount | None = None,
        cap_amount_rub: Amount | None = None,
        cap_window_rub: Amount | None | UnsetType = UNSET,
    ) -> Request[Subscription]:
        """Change the amounts from the next charge on. `cap_window_rub=None` removes the limit per window."""
        wish = {"amount_rub": amount_or_none(amount_rub), "cap_amount_rub": amount_or_none(cap_amount_rub)}
        body = {name: value for name, value in wish.items() if value is not None}
        window = {} if cap_window_rub is UNSET else {"cap_window_rub": amount_or_none(cap_window_rub)}
        asked = get(at("subscriptions", subscription_id), Subscription)
        return msgspec.structs.replace(asked, method="PATCH", body=msgspec.json.encode({**body, **window}))

    @operation
    def cancel(self, subscription_id: str) -> Request[Subscription]:
        """Cancel a subscription for good."""
        return post(at("subscriptions", subscription_id, "cancel"), Subscription)

    @operation
    def rebind(self, subscription_id: str, *, idempotency_key: str | UUID | None = None) -> Request[Subscription]:
        """Create a link for the payer of a lost mandate to bind again."""
        return create(at("subscriptions", subscription_id, "rebind"), Subscription, None, idempotency_key)

    @operation
    def charge(
        self,
        subscription_id: str,
        *,
        amount_rub: Amount,
        external_id: str | None = None,
        receipt: Mapping[str, Any] | None = None,
        idempotency_key: str | UUID | None = None,
    ) -> Request[Payment]:
        """Charge the payer, once per period. Always pass an `external_id`. The outcome arrives by webhook."""
        body = {"amount_rub": amount(amount_rub), "external_id": external_id, "receipt": receipt}
        return create(at("subscriptions", subscription_id, "charges"), Payment, body, idempotency_key)

    @operation
    def charges(
        self,
        subscription_id: str,
        *,
        external_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[Payment]]:
        """List the charges, newest first. The binding's own charge has `external_id` None."""
        return get(
            at("subscriptions", subscription_id, "charges"),
            Page[Payment],
            external_id=external_id,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate_charges = walk(charges)

    @operation
    def charge_window(self, subscription_id: str) -> Request[ChargeWindow]:
        """Return the period of the next charge, and whether a charge is possible now."""
        return get(at("subscriptions", subscription_id, "charge-window"), ChargeWindow)
