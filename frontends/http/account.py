"""HTTP API of the caller's account: what it may do, and its limits (docs/concepts.md "Your account")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.usecases.refunds.refunds import approval_of
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation


class AccountOptionsView(msgspec.Struct, frozen=True, kw_only=True):
    """Options that the service's operator switches on and off."""

    acceptance: Annotated[bool, Meta(description="Whether new payments are accepted; else `422 PAYMENT_UNAVAILABLE`")]
    refunds: Annotated[bool, Meta(description="Whether the refund API is on")]
    refund_approval: Annotated[
        str, Meta(description="`manual`: a person approves each refund first; `auto`: refunds start at once")
    ]
    terminals: Annotated[bool, Meta(description="Whether payments may choose a terminal by `method_id`")]
    direct_links: Annotated[bool, Meta(description="Whether `GET /payments/{id}/sbp-link` is allowed")]
    recurring: Annotated[bool, Meta(description="Whether subscriptions may be charged")]
    subscription_scheme: Annotated[str, Meta(description="How the periods of new subscriptions are counted")]
    exchange: Annotated[bool, Meta(description="Whether exchanges of USDT to RUB are available")]
    kyc: Annotated[str, Meta(description="Whether payments and subscriptions need a verified client")]
    kyc_flow: Annotated[str, Meta(description="Fields that `POST /kyc/register` needs")]


class AccountLimitsView(msgspec.Struct, frozen=True, kw_only=True):
    amount_rub_max: Annotated[str, Meta(description="Largest amount of a payment outside a terminal")]
    ttl_minutes_max: Annotated[int, Meta(description="Largest `ttl_minutes` of a payment")]
    metadata_kb_max: Annotated[int, Meta(description="Largest `metadata`, in KB as JSON")]


class AccountKeyView(msgspec.Struct, frozen=True, kw_only=True):
    """The key pair of the request."""

    api_key: Annotated[str, Meta(description="The key of this request")]
    rights: Annotated[list[str] | None, Meta(description="Rights of the key; null: all")]
    addresses: Annotated[list[str] | None, Meta(description="Networks from which the key may be used; null: any")]


class AccountView(msgspec.Struct, frozen=True, kw_only=True):
    """The account of the request's key."""

    id: Annotated[str, shared.ID]
    name: Annotated[str, Meta(description="Name of the account")]
    default_shop_id: Annotated[str, Meta(description="Shop of payments without `shop_id`")]
    options: Annotated[
        AccountOptionsView, Meta(description="Options that the operator of the service switches on and off")
    ]
    limits: Annotated[AccountLimitsView, Meta(description="Limits of requests")]
    key: Annotated[AccountKeyView, Meta(description="The key of this request and its permissions")]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


def account_view(caller: Caller) -> AccountView:
    """Return the account object of the API."""
    account, settings, terms = caller.account, caller.account.settings, caller.terms
    return AccountView(
        id=account.id,
        name=account.name,
        default_shop_id=account.default_shop_id,
        options=AccountOptionsView(
            acceptance=settings.acceptance,
            refunds=settings.refunds,
            refund_approval=approval_of(settings, caller.mode).value,
            terminals=settings.terminals,
            direct_links=settings.direct_links,
            recurring=settings.recurring,
            subscription_scheme=settings.subscription_scheme.value,
            exchange=settings.exchange,
            kyc=settings.kyc.value,
            kyc_flow=settings.kyc_flow.value,
        ),
        limits=AccountLimitsView(
            amount_rub_max=str(settings.amount_rub_max),
            ttl_minutes_max=settings.ttl_minutes_max,
            metadata_kb_max=settings.metadata_kb_max,
        ),
        key=AccountKeyView(
            api_key=caller.key_id,
            rights=None if terms.rights is None else list(terms.rights),
            addresses=None if terms.addresses is None else list(terms.addresses),
        ),
        sandbox=True if caller.mode is Mode.TEST else UNSET,
    )


async def account(_ports: Ports, caller: Caller, _request: ApiRequest[None]) -> ASGIApp:
    return answer(account_view(caller))


ACCOUNT = (
    Operation(
        "get_account",
        "get",
        "/api/v1/account",
        "Account",
        "Get your account: its options and limits, and the rights of the key",
        account,
        answer=AccountView,
    ),
)
