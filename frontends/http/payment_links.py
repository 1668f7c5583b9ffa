"""HTTP API of payment links, without business rules (docs/payment-links.md)."""

from typing import Annotated, Any

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso, iso_or_none
from ...core.domain.payments.payment_links import LinkAnswer, LinkField, PaymentLinkOrder
from ...core.domain.payments.payments import MINIMUM
from ...core.usecases.payment_links.payment_links import (
    LinkFilter,
    ShownLink,
    archive_link,
    create_link,
    get_link,
    list_link_payments,
    list_links,
)
from ...ports.bundle import Ports
from .edge.answers import answer, made
from .edge.bodies import page_of
from .edge.operation import FOUND_BY, PAGES, UUID, ApiRequest, Operation, Query, Refusals
from .records import PaymentView, payment_view
from .views import Pagination, pagination


class PayerFieldView(msgspec.Struct, frozen=True, kw_only=True):
    """A field that the payer fills in."""

    label: Annotated[str, Meta(description="Label that the payer sees")]
    kind: Annotated[str, Meta(description="`text`, `email` or `phone`")]
    required: Annotated[bool, Meta(description="Whether the payer must fill it in")]


class PaymentLinkView(msgspec.Struct, frozen=True, kw_only=True):
    """The payment link object (docs/payment-links.md "What you get")."""

    id: Annotated[str, shared.ID]
    url: Annotated[str, Meta(description="The payer's page: send it, or print it as a QR code")]
    status: Annotated[str, Meta(description="`active`, `used_up`, `expired` or `archived`")]
    description: Annotated[str, Meta(description="What is paid for; the payer sees it")]
    amount_rub: Annotated[str | None, Meta(description="Amount; null: the payer chooses it")]
    amount_min_rub: Annotated[
        str | None, Meta(description="Smallest amount that the payer may choose; null with an amount")
    ]
    amount_max_rub: Annotated[
        str | None, Meta(description="Largest amount that the payer may choose; null with an amount")
    ]
    reusable: Annotated[bool, Meta(description="Whether it may be paid more than once")]
    payments_max: Annotated[int | None, Meta(description="Number of payments that it may have; null: any number")]
    fields: Annotated[list[PayerFieldView], Meta(description="Fields that the payer fills in")]
    success_text: Annotated[str | None, Meta(description="Text that the payer sees after the payment")]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    metadata: Annotated[dict[str, Any] | None, Meta(description="Your own keys; each payment gets them")]
    shop_id: Annotated[str, shared.SHOP_ID]
    payments: Annotated[int, Meta(description="Number of paid payments")]
    paid_rub: Annotated[str, Meta(description="Sum of the paid payments, also of those refunded later")]
    created_at: Annotated[str, shared.CREATED_AT]
    expires_at: Annotated[str | None, Meta(description="Deadline; null: none")]
    archived_at: Annotated[str | None, Meta(description="Time of archiving; null until then")]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


class PaymentLinksView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[PaymentLinkView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


class LinkPaymentView(msgspec.Struct, frozen=True, kw_only=True):
    """A payment of a link."""

    payment: Annotated[PaymentView, Meta(description="The payment")]
    fields: Annotated[list[LinkAnswer], Meta(description="What the payer filled in")]


class LinkPaymentsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[LinkPaymentView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def link_view(ports: Ports, shown: ShownLink, amount_rub_max: str) -> PaymentLinkView:
    """Return the payment link object of the API. `amount_rub_max`: the account's largest amount."""
    link = shown.link
    is_open = link.amount is None
    return PaymentLinkView(
        id=link.id,
        url=ports.urls.link_page(link.id),
        status=shown.status.value,
        description=link.description,
        amount_rub=None if link.amount is None else str(link.amount),
        amount_min_rub=str(link.amount_min or MINIMUM) if is_open else None,
        amount_max_rub=str(link.amount_max or amount_rub_max) if is_open else None,
        reusable=link.payments_max != 1,
        payments_max=link.payments_max,
        fields=[_field_view(field) for field in link.fields],
        success_text=link.success_text,
        external_id=link.external_id,
        metadata=link.metadata,
        shop_id=link.shop_id,
        payments=shown.totals.payments,
        paid_rub=str(shown.totals.amount),
        created_at=iso(link.created_at),
        expires_at=iso_or_none(link.expires_at),
        archived_at=iso_or_none(link.archived_at),
        sandbox=True if link.mode is Mode.TEST else UNSET,
    )


def _field_view(field: LinkField) -> PayerFieldView:
    return PayerFieldView(label=field.label, kind=field.of_kind.value, required=field.is_required)


def _view(ports: Ports, caller: Caller, shown: ShownLink) -> PaymentLinkView:
    return link_view(ports, shown, str(caller.account.settings.amount_rub_max))


async def create(ports: Ports, caller: Caller, request: ApiRequest[PaymentLinkOrder]) -> ASGIApp:
    link = await create_link(ports, caller, request.key, request.read)
    return made(_view(ports, caller, link.resource), replayed=link.replayed)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    found = await list_links(ports, caller, request.asked(LinkFilter), *page_of(request.query))
    data = [_view(ports, caller, shown) for shown in found.records]
    return answer(PaymentLinksView(data=data, pagination=pagination(found)))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(_view(ports, caller, await get_link(ports, caller, request.id)))


async def payments(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    found = await list_link_payments(ports, caller, request.id, *page_of(request.query))
    data = [
        LinkPaymentView(payment=payment_view(ports, each.payment), fields=[*each.answers]) for each in found.records
    ]
    return answer(LinkPaymentsView(data=data, pagination=pagination(found)))


async def archive(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(_view(ports, caller, await archive_link(ports, caller, request.id)))


_NO_LINK: Refusals = {404: ("PAYMENT_LINK_NOT_FOUND",)}
_ONE = "/api/v1/payment-links/{payment_link_id}"

PAYMENT_LINKS = (
    Operation(
        "create_payment_link",
        "post",
        "/api/v1/payment-links",
        "Links",
        "Create a payment link",
        create,
        body=PaymentLinkOrder,
        answer=PaymentLinkView,
        creates=True,
        refusals={400: ("SHOP_NOT_FOUND",), 403: ("SHOP_DISABLED",), 422: ("VALIDATION_ERROR",)},
        right=Right.PAYMENTS,
    ),
    Operation(
        "list_payment_links",
        "get",
        "/api/v1/payment-links",
        "Links",
        "List payment links, newest first",
        page,
        answer=PaymentLinksView,
        query=(*PAGES, Query("shop_id", "Only of this shop.", UUID), *FOUND_BY),
        refusals={400: ("SHOP_NOT_FOUND",)},
    ),
    Operation(
        "get_payment_link",
        "get",
        _ONE,
        "Links",
        "Get a payment link",
        one,
        answer=PaymentLinkView,
        refusals=_NO_LINK,
    ),
    Operation(
        "list_payments_of_link",
        "get",
        f"{_ONE}/payments",
        "Links",
        "List the payments of a payment link, newest first, with what their payers filled in",
        payments,
        answer=LinkPaymentsView,
        query=PAGES,
        refusals=_NO_LINK,
    ),
    Operation(
        "archive_payment_link",
        "post",
        f"{_ONE}/archive",
        "Links",
        "Archive a payment link: nobody can pay by it any more",
        archive,
        answer=PaymentLinkView,
        refusals=_NO_LINK,
        right=Right.PAYMENTS,
    ),
)
