"""Payment links: pages on which a merchant's clients pay without a program of the merchant (docs/payment-links.md).

A link is no payment. Each press of its button makes an ordinary payment, whose invoice the bank draws up at that
moment; so a link may live for weeks and be paid many times.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.accounts import Account, Mode
from ..accounts.receipts import is_email
from ..days import parse_moment
from ..errors import shape_error, value_error
from ..masked import Masked
from ..money import Rub
from ..shapes import check_metadata, check_text, check_uuid, has_control
from .orders import EXTERNAL_ID_LONGEST, PHONE
from .payments import MINIMUM, Payment, PaymentStatus

LONGEST_LIFE = timedelta(days=30)
FIELDS_MOST = 5
LABEL_LONGEST = 60
ANSWER_LONGEST = 255
TEXT_LONGEST = 255
PAYMENTS_MOST = 10_000
"""Largest `payments_max`. The open and paid payments of a limited link are counted at each press."""

TAKES_A_PLACE = (
    PaymentStatus.PENDING,
    PaymentStatus.PROCESSING,
    PaymentStatus.AMOUNT_MISMATCH,
    PaymentStatus.PAID,
    PaymentStatus.SETTLED,
    PaymentStatus.REFUNDED,
)
"""Statuses of the payments that count towards a link's limit. An expired payment frees its place."""


class FieldKind(StrEnum):
    """Kind of a field that the payer fills in."""

    TEXT = "text"
    EMAIL = "email"
    """Becomes the payment's `client_email`, to which receipts are sent."""
    PHONE = "phone"
    """Becomes the payment's `client_phone`."""


class LinkField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field that the payer fills in before paying."""

    label: Annotated[
        str, Meta(description="Label that the payer sees"), shared.limits(minLength=1, maxLength=LABEL_LONGEST)
    ]
    kind: Annotated[
        Annotated[str, shared.among(FieldKind)] | None,
        Meta(description="`text` by default; an `email` and a `phone` also become those of the payment"),
    ] = None
    required: Annotated[bool | None, Meta(description="Whether the payer must fill it in; true if absent")] = None

    @property
    def of_kind(self) -> FieldKind:
        return FieldKind(self.kind or FieldKind.TEXT)

    @property
    def is_required(self) -> bool:
        return self.required is not False


class LinkStatus(StrEnum):
    """State of a link, which follows from its record, the time and its payments."""

    ACTIVE = "active"
    USED_UP = "used_up"
    """It has had all payments that it may have."""
    EXPIRED = "expired"
    ARCHIVED = "archived"


class PaymentLink(msgspec.Struct, frozen=True, kw_only=True):
    """A payment link. Its id is the payer's only permission to open it."""

    id: str
    account_id: str
    mode: Mode
    shop_id: str
    description: str
    created_at: datetime
    amount: Rub | None = None
    """None: the payer chooses it, from `amount_min` to `amount_max`."""
    amount_min: Rub | None = None
    amount_max: Rub | None = None
    payments_max: int | None = 1
    """Number of payments that it may have; None: any number."""
    fields: tuple[LinkField, ...] = ()
    success_text: str | None = None
    """Shown to the payer after the payment."""
    external_id: str | None = None
    metadata: dict[str, Any] | None = None
    expires_at: datetime | None = None
    archived_at: datetime | None = None
    key_id: str | None = None
    """Record of the Idempotency-Key that created it."""
    version: int = 0


class LinkTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of a link's paid payments; they have the link's id. A refund does not change them."""

    id: str
    account_id: str
    mode: Mode
    payments: int = 0
    amount: Rub = Rub(0)
    version: int = 0


def link_totals_of(payment: Payment, count: int) -> LinkTotals:
    """Return the increment of its link's sums for `count` such payments. Raises ValueError for an unpaid payment, and
    for one without a link."""
    if payment.link_id is None or payment.actual_amount is None:
        raise ValueError(f"{payment.id} is no paid payment of a link")
    return LinkTotals(
        id=payment.link_id,
        account_id=payment.account_id,
        mode=payment.mode,
        payments=count,
        amount=Rub(payment.actual_amount.kopecks * count),
    )


class LinkAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of a payer before a payment; they have the payment's id."""

    id: str
    body: bytes
    """Encrypted: a JSON array of labels with answers, which may be personal data."""
    version: int = 0


class LinkAnswer(Masked, frozen=True, kw_only=True):
    """One field as the payer filled it in. Its repr is empty: this may be personal data."""

    label: Annotated[str, Meta(description="Label of the field")]
    value: Annotated[str, Meta(description="What the payer filled in")]


class PaymentLinkOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /payment-links. Null counts as absent."""

    description: Annotated[
        str, Meta(description="What is paid for; the payer sees it"), shared.limits(minLength=1, maxLength=255)
    ]
    amount_rub: Annotated[shared.RubText | None, Meta(description="Amount; absent: the payer chooses it")] = None
    amount_min_rub: Annotated[
        shared.RubText | None, Meta(description="Smallest amount that the payer may choose; 30.00 if absent")
    ] = None
    amount_max_rub: Annotated[
        shared.RubText | None, Meta(description="Largest amount that the payer may choose; your maximum if absent")
    ] = None
    reusable: Annotated[bool | None, Meta(description="Whether it may be paid more than once; false if absent")] = None
    payments_max: Annotated[
        Annotated[int, shared.limits(minimum=1, maximum=PAYMENTS_MOST)] | None,
        Meta(description="Number of payments that a reusable link may have; absent: any number"),
    ] = None
    fields: Annotated[
        Annotated[list[LinkField], shared.limits(maxItems=FIELDS_MOST)] | None,
        Meta(description="Fields that the payer fills in, at most 5"),
    ] = None
    success_text: Annotated[
        Annotated[str, shared.limits(maxLength=TEXT_LONGEST)] | None,
        Meta(description="Text that the payer sees after the payment"),
    ] = None
    external_id: Annotated[Annotated[str, shared.limits(maxLength=256)] | None, shared.EXTERNAL_ID] = None
    metadata: Annotated[dict[str, Any] | None, Meta(description="Your own keys; each payment gets them")] = None
    shop_id: Annotated[shared.UuidText | None, shared.SHOP_ID] = None
    expires_at: Annotated[
        shared.MomentText | None, Meta(description="Deadline, at most 30 days ahead; absent: none")
    ] = None


class LinkTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The checked values of an order."""

    amount: Rub | None
    amount_min: Rub | None
    amount_max: Rub | None
    payments_max: int | None
    expires_at: datetime | None


def read_terms(order: PaymentLinkOrder, account: Account, now: datetime) -> LinkTerms:
    """Check an order. Raises: Refusal VALIDATION_ERROR, with 422 for a value that breaks its rule."""
    if not order.description.strip():
        raise shape_error("description", "must not be empty")
    check_text("description", order.description, 255)
    check_text("success_text", order.success_text, TEXT_LONGEST)
    check_text("external_id", order.external_id, EXTERNAL_ID_LONGEST)
    check_uuid("shop_id", order.shop_id)
    check_metadata(order.metadata, account.settings.metadata_kb_max)
    _check_fields(order.fields or ())
    amount = _amount("amount_rub", order.amount_rub, account)
    low = _amount("amount_min_rub", order.amount_min_rub, account)
    high = _amount("amount_max_rub", order.amount_max_rub, account)
    if amount is not None and (low is not None or high is not None):
        raise shape_error("amount_rub", "excludes amount_min_rub and amount_max_rub")
    if low is not None and high is not None and low > high:
        raise value_error("amount_min_rub", "must not be above amount_max_rub")
    if order.payments_max is not None:
        if not order.reusable:
            raise shape_error("payments_max", "is for reusable links only")
        if not 1 <= order.payments_max <= PAYMENTS_MOST:
            raise shape_error("payments_max", f"must be from 1 to {PAYMENTS_MOST}")
    return LinkTerms(
        amount=amount,
        amount_min=low,
        amount_max=high,
        payments_max=order.payments_max if order.reusable else 1,
        expires_at=_deadline(order.expires_at, now),
    )


def _check_fields(fields: Sequence[LinkField]) -> None:
    if len(fields) > FIELDS_MOST:
        raise shape_error("fields", f"has at most {FIELDS_MOST} elements")
    kinds: list[FieldKind] = []
    labels: set[str] = set()
    for index, field in enumerate(fields):
        path = f"fields[{index}]"
        if not field.label.strip():
            raise shape_error(f"{path}.label", "must not be empty")
        check_text(f"{path}.label", field.label, LABEL_LONGEST)
        if field.kind not in (None, *FieldKind):
            raise shape_error(f"{path}.kind", f"must be one of: {', '.join(FieldKind)}")
        if field.label in labels:
            raise value_error(f"{path}.label", "must differ from the other labels")
        if field.of_kind is not FieldKind.TEXT and field.of_kind in kinds:
            raise value_error(f"{path}.kind", f"{field.of_kind} may appear once")
        kinds.append(field.of_kind)
        labels.add(field.label)


def _amount(name: str, text: str | None, account: Account) -> Rub | None:
    if text is None:
        return None
    try:
        amount = Rub.parse(text)
    except ValueError as error:
        raise shape_error(name, str(error)) from None
    largest = account.settings.amount_rub_max
    if not MINIMUM <= amount <= largest:
        raise value_error(name, f"must be from {MINIMUM} to {largest}")
    return amount


def _deadline(text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    moment = parse_moment(text)
    if moment is None:
        raise shape_error("expires_at", "must be ISO 8601 with a time zone")
    if not now < moment <= now + LONGEST_LIFE:
        raise value_error("expires_at", f"must be in the future, at most {LONGEST_LIFE.days} days ahead")
    return moment


def status_of(link: PaymentLink, now: datetime, taken: int) -> LinkStatus:
    """Return the status of a link. `taken`: the number of its payments that take a place."""
    if link.archived_at is not None:
        return LinkStatus.ARCHIVED
    if link.expires_at is not None and now >= link.expires_at:
        return LinkStatus.EXPIRED
    return LinkStatus.ACTIVE if link.payments_max is None or taken < link.payments_max else LinkStatus.USED_UP


class FillFault(StrEnum):
    """Fault of a field that a payer filled in."""

    MISSING = "missing"
    TOO_LONG = "too_long"
    NO_EMAIL = "no_email"
    NO_PHONE = "no_phone"
    NO_AMOUNT = "no_amount"
    TOO_LOW = "too_low"
    TOO_HIGH = "too_high"


def read_amount(link: PaymentLink, typed: str, largest: Rub) -> Rub | FillFault:
    """Return the amount that a payer typed, such as `1 500,50`, or its fault. `largest`: the account's
    maximum. A link with an amount of its own ignores the text."""
    if link.amount is not None:
        return link.amount
    plain = "".join(char for char in typed if not char.isspace()).rstrip("₽").replace(",", ".")
    if not plain:
        return FillFault.MISSING
    try:
        amount = Rub.parse(plain)
    except ValueError:
        return FillFault.NO_AMOUNT
    if amount < (link.amount_min or MINIMUM):
        return FillFault.TOO_LOW
    return FillFault.TOO_HIGH if amount > (link.amount_max or largest) else amount


def read_answer(field: LinkField, typed: str) -> str | FillFault | None:
    """Return the answer in a field, its fault, or None for an optional field that was left empty."""
    text = typed.strip()
    if not text:
        return FillFault.MISSING if field.is_required else None
    if field.of_kind is FieldKind.PHONE:
        digits = "".join(char for char in text if char not in " ()-\u00a0")
        if len(digits) == 11 and digits.startswith("8"):
            digits = f"+7{digits[1:]}"
        return digits if PHONE.match(digits) else FillFault.NO_PHONE
    if len(text) > ANSWER_LONGEST or has_control(text):
        return FillFault.TOO_LONG
    if field.of_kind is FieldKind.EMAIL and not is_email(text):
        return FillFault.NO_EMAIL
    return text


def answers_of(link: PaymentLink, filled: Mapping[int, str]) -> list[LinkAnswer]:
    """Return the filled fields of a link, in order."""
    return [LinkAnswer(label=field.label, value=filled[at]) for at, field in enumerate(link.fields) if at in filled]
