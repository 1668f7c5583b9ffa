"""Your account, its options and limits (docs/concepts.md "Your account")."""

from decimal import Decimal

from .model import Record
from .operations import Face, Group, operation
from .requests import Request, get


class AccountOptions(Record, frozen=True, kw_only=True):
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


class AccountLimits(Record, frozen=True, kw_only=True):
    amount_rub_max: Decimal
    ttl_minutes_max: int
    metadata_kb_max: int


class AccountKey(Record, frozen=True, kw_only=True):
    """The key pair of the request."""

    api_key: str
    rights: list[str] | None
    """None means all rights."""
    addresses: list[str] | None
    """None means any address."""


class Account(Record, frozen=True, kw_only=True):
    """The account of the client's key."""

    id: str
    name: str
    default_shop_id: str
    options: AccountOptions
    limits: AccountLimits
    key: AccountKey
    sandbox: bool = False


class OwnAccount(Group[Face]):
    """`client.account`"""

    @operation
    def get(self) -> Request[Account]:
        """Return your account: its options and limits, and the rights of the key."""
        return get("/account", Account)
