"""HTTP API of the caller's account: what it may do, and its limits (docs/concepts.md "Your account")."""

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from ...core.domain.accounts.accounts import Caller, Mode
from ...core.usecases.refunds.refunds import approval_of
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation


class AccountOptionsView(msgspec.Struct, frozen=True, kw_only=True):
    """Options that the service's operator switches on and off."""

    acceptance: bool
    refunds: bool
    refund_approval: str
    terminals: bool
    direct_links: bool
    recurring: bool
    subscription_scheme: str
    exchange: bool
    kyc: str
    kyc_flow: str


class AccountLimitsView(msgspec.Struct, frozen=True, kw_only=True):
    amount_rub_max: str
    ttl_minutes_max: int
    metadata_kb_max: int


class AccountKeyView(msgspec.Struct, frozen=True, kw_only=True):
    """The key pair of the request."""

    api_key: str
    rights: list[str] | None
    addresses: list[str] | None


class AccountView(msgspec.Struct, frozen=True, kw_only=True):
    """The account of the request's key."""

    id: str
    name: str
    default_shop_id: str
    options: AccountOptionsView
    limits: AccountLimitsView
    key: AccountKeyView
    sandbox: bool | UnsetType = UNSET


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
