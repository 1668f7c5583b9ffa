"""Merchants' accounts, their keys and settings (docs/concepts.md "Accounts, keys, modes")."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol

import msgspec

from ..errors import Refusal
from ..money import Rub, Usdt
from ..sandbox_clock import SandboxClock
from ..shapes import has_control
from .key_terms import KeyTerms
from .receipts import PaymentMode, PaymentSubject, ReceiptTerms, TaxSystem, Vat


class Mode(StrEnum):
    """The two modes of an account. Objects of one are invisible in the other
    (docs/concepts.md "Accounts, keys, modes")."""

    LIVE = "live"
    TEST = "test"


class Owned(Protocol):
    """A record of an account, in one of its modes."""

    @property
    def id(self) -> str: ...
    @property
    def account_id(self) -> str: ...
    @property
    def mode(self) -> Mode: ...


LIVE: Final = Mode.LIVE
TEST: Final = Mode.TEST
"""Constants for the path of every request: before Python 3.12, a member read through its class takes ten times as long
as a plain name. `payments.py` and other modules have such constants for the same reason."""

KEY_PREFIXES = {LIVE: "svc_live_", TEST: "svc_test_"}


class KycDemand(StrEnum):
    """Whether the account's clients must be verified (the setting `kyc`)."""

    OFF = "off"
    REQUIRED = "required"
    DISABLED = "disabled"
    """KYC calls answer `403 PROVIDER_DISABLED`; payments need no verification."""


KYC_REQUIRED: Final = KycDemand.REQUIRED
"""For the path of every payment (see TEST)."""


class KycFlow(StrEnum):
    """Requirements of a client's registration (the setting `kyc_flow`)."""

    DOCUMENTS = "documents"
    """An uploaded selfie and document."""
    REDIRECT = "redirect"
    """An e-mail and a user type; the client fills in the verifier's form."""


class RefundApproval(StrEnum):
    """How refund applications are approved (the setting `refund_approval`)."""

    AUTO = "auto"
    MANUAL = "manual"


class Scheme(StrEnum):
    """How periods are counted: an account's setting `subscription_scheme`, fixed for each subscription at its
    creation."""

    CALENDAR = "calendar"
    """By calendar: UTC days, ISO weeks and months; one charge in each."""
    WINDOW = "window"
    """From the day of the last successful payment, Moscow time; failed charges may be retried within a budget."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an account that an operator sets. The names are those of `cambist account set`."""

    webhook_url: str | None = None
    webhook_events: tuple[str, ...] | None = None
    """Types of events that the receiver wants, applied when an event happens; None: all
    (docs/webhooks.md "The events you want")."""
    alarm_email: str | None = None
    """Address for alarms about a receiver of live mode that has failed for an hour (docs/alarms.md "Merchants")."""
    acceptance: bool = True
    """When off, new payments get `422 PAYMENT_UNAVAILABLE`."""
    auto_return: bool = True
    """Whether the payer window redirects the payer by itself, unless the payment says otherwise."""
    return_url: str | None = None
    payer_retry: bool = False
    """Whether payers may make another payment of the order on the page after one failed or expired."""
    brand_color: str | None = None
    """This and the next two are the look of the payer's pages, unless a shop has its own
    (docs/window.md "Your brand")."""
    brand_contact: str | None = None
    brand_success_text: str | None = None
    metadata_kb_max: int = 16
    """Limit for `metadata` of a payment or refund, in KB as JSON."""
    ttl_minutes_max: int = 60
    amount_rub_max: Rub = Rub(1_000_000_00)
    """Limit for a one-off payment outside a terminal."""
    terminals: bool = False
    """Whether merchants may list terminals and choose one by `method_id`."""
    direct_links: bool = False
    """Whether merchants may get the bank's own link of a payment (`GET /payments/{id}/sbp-link`)."""
    proof_reminders: bool = True
    """Whether events remind of missing delivery proofs; applied when one would be sent."""
    kyc: KycDemand = KycDemand.OFF
    """Whether a new payment needs a verified client."""
    kyc_flow: KycFlow = KycFlow.DOCUMENTS
    kyc_open_page: bool = True
    """Whether clients may open the hosted page without a link from the merchant
    (docs/kyc.md "Without a link of yours")."""
    refunds: bool = False
    """Whether the refund API is on; when off, its paths answer a plain 404."""
    refund_approval: RefundApproval | None = None
    """Whether an operator approves refunds first; None: in live mode yes, in test mode no (docs/refunds.md "Rules")."""
    refund_overdraft_usdt: Usdt = Usdt(0)
    """Lowest available USDT after a refund, as an amount below zero (docs/refunds.md "The money")."""
    refund_reserve: bool = False
    """Whether payouts leave enough for refunds that wait for money (docs/refunds.md "The money")."""
    second_person: bool = False
    """Whether another person approves secrets, the payout wallet and roles that a person of the account wants to change
    (docs/dashboard.md "A second person")."""
    recurring: bool = True
    """Whether subscriptions may be charged; when off, charges answer `501 RECURRING_NOT_SUPPORTED`."""
    subscription_scheme: Scheme = Scheme.WINDOW
    """How the periods of new subscriptions are counted."""
    exchange: bool = False
    """Whether USDT to RUB exchanges are available; when off, `POST /exchanges` answers `400 FEATURE_NOT_ENABLED`."""
    exchange_markup_percent: str = "2"
    """The merchant's share of an exchange's value at the base rate, in percent: 0 to 50, as text so that no digit is
    lost."""
    payout_wallet: str | None = None
    """TRON address for payouts of settlements; without one the balance stays available
    (docs/settlement.md "Payouts")."""
    receipt_tax_system: TaxSystem | None = None
    """This and the next three are the content of receipts (docs/payments.md "Receipts"): without one of them, no
    receipt is written."""
    receipt_vat: Vat | None = None
    receipt_subject: PaymentSubject | None = None
    receipt_mode: PaymentMode | None = None
    receipt_email: str | None = None
    """Address for the receipt of a payment whose payer has no known address."""

    def receipt_lacks(self, *, has_contact: bool) -> tuple[str, ...]:
        """Return the missing settings for a receipt. `has_contact`: the payer's e-mail or phone is known."""
        needed = _RECEIPT if has_contact else (*_RECEIPT, "receipt_email")
        return tuple(name for name in needed if getattr(self, name) is None)

    def receipt_terms(self, *, has_contact: bool) -> ReceiptTerms | None:
        """Return the content of a new payment's receipts; None if a setting is missing."""
        tax_system, vat, subject, mode = (
            self.receipt_tax_system,
            self.receipt_vat,
            self.receipt_subject,
            self.receipt_mode,
        )
        if tax_system is None or vat is None or subject is None or mode is None:
            return None
        if not has_contact and self.receipt_email is None:
            return None
        email = None if has_contact else self.receipt_email
        return ReceiptTerms(tax_system=tax_system, vat=vat, subject=subject, mode=mode, email=email)


MONEY_SETTINGS = (
    *("payout_wallet", "refunds", "refund_approval", "refund_overdraft_usdt", "refund_reserve"),
    *("exchange", "exchange_markup_percent", "amount_rub_max"),
)
"""Settings that decide how much money leaves the service, and where it goes."""

_DEFAULTS = Settings()


def money_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings that move money and differ from the defaults."""
    found = {name: getattr(settings, name) for name in MONEY_SETTINGS}
    return {name: value for name, value in found.items() if value != getattr(_DEFAULTS, name)}


def without_money(settings: Settings) -> Settings:
    """Return the settings with those that move money at their most restrictive values."""
    return msgspec.structs.replace(
        settings,
        payout_wallet=None,
        refund_approval=RefundApproval.MANUAL,
        refund_overdraft_usdt=Usdt(0),
        exchange=False,
    )


_RECEIPT = ("receipt_tax_system", "receipt_vat", "receipt_subject", "receipt_mode")


class EndpointRef(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of a further webhook endpoint inside its account, so that the writer of an event knows the receivers
    without another read. It is written together with the endpoint, in one unit."""

    id: str
    mode: Mode
    event_types: tuple[str, ...] | None = None
    """None: all."""
    enabled: bool = True
    """For the rule about all endpoints together. The endpoint's own row decides whether webhooks are sent."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A merchant. Webhook secrets are encrypted; `previous_secret` signs in addition to the new one until it
    expires."""

    id: str
    name: str
    default_shop_id: str
    created_at: datetime
    settings: Settings = Settings()
    webhook_secret: bytes | None = None
    previous_secret: bytes | None = None
    previous_secret_until: datetime | None = None
    webhook_headers: bytes | None = None
    """Static headers of its own webhook endpoint, encrypted; null without any."""
    webhook_header_names: tuple[str, ...] | None = None
    """Names of these headers."""
    settings_tag: bytes | None = None
    """The vault's tag of the settings that move money, as an operator set them; null while all have their defaults."""
    clock: SandboxClock | None = None
    """Clock of test mode; null until it is first advanced."""
    endpoints: tuple[EndpointRef, ...] | None = None
    """Further webhook endpoints; null without any."""
    logo_id: str | None = None
    """Logo on the payer's pages, unless a shop has its own."""
    moving_to: str | None = None
    """Cell to which the account is being moved; changes are refused meanwhile (docs/cells.md)."""
    version: int = 0

    @property
    def receives(self) -> bool:
        """Whether both webhook address and secret are set; until then events wait (docs/webhooks.md "Webhooks")."""
        return self.settings.webhook_url is not None and self.webhook_secret is not None

    def further(self, mode: Mode) -> tuple[EndpointRef, ...]:
        """Return the further webhook endpoints of a mode."""
        return tuple(each for each in self.endpoints or () if each.mode is mode)


_ALL = KeyTerms()
"""Terms of nearly every key."""


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key pair. `id` is the public key itself. The secret is stored as a keyed digest."""

    id: str
    account_id: str
    mode: Mode
    secret_digest: bytes
    created_at: datetime
    ends_at: datetime | None = None
    """When it was or will be revoked; None while it is valid."""
    name: str | None = None
    """Name of an additional pair, of which several may be valid; None: the mode's own pair."""
    rights: tuple[str, ...] | None = None
    """Rights and addresses as in KeyTerms."""
    addresses: tuple[str, ...] | None = None
    made_by: str | None = None
    """The person who made it at the dashboard and so knows its secret; None: an operator."""
    tag: bytes | None = None
    """The vault's tag of all fields that decide about access; without it the pair gives no access."""
    version: int = 0

    @property
    def terms(self) -> KeyTerms:
        """Permissions of the key."""
        if self.rights is None and self.addresses is None:
            return _ALL
        return KeyTerms(rights=self.rights, addresses=self.addresses)


class KeyUse(msgspec.Struct, frozen=True, kw_only=True):
    """Last use of a pair, by the key's id: a separate row, so that using a key does not change the key."""

    id: str
    used_at: datetime
    """To the minute."""
    version: int = 0


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated key, or a signed-in person of the merchant, that makes a request."""

    account: Account
    mode: Mode
    key_id: str
    """The public key, or the person's id."""
    terms: KeyTerms = _ALL
    shops: tuple[str, ...] | None = None
    """Shops to which the caller is limited; None: all. Objects of other shops are as if they did not exist."""
    key_maker: str | None = None
    """The person who made the key."""
    is_person: bool = False
    """Whether it is a person at the dashboard, who may refund even if the refund API is off."""

    @property
    def account_id(self) -> str:
        return self.account.id

    def sees_shop(self, shop_id: str) -> bool:
        """Return whether the caller may see objects of this shop."""
        return self.shops is None or shop_id in self.shops

    def require_shop(self, shop_id: str | None) -> None:
        """Refuse a list without a shop, or of another shop, to a caller who is limited to shops. Raises: Refusal
        SHOP_NOT_FOUND."""
        if self.shops is not None and (shop_id is None or shop_id not in self.shops):
            raise Refusal("SHOP_NOT_FOUND", "Name one of the shops that you may see")


def plain_name(text: str, whose: str) -> str:
    """Return a name in its stored form: trimmed, 1 to 120 characters, no control characters. Raises: Refusal
    VALIDATION_ERROR."""
    name = text.strip()
    if not 1 <= len(name) <= 120:
        raise Refusal("VALIDATION_ERROR", f"{whose} name has 1 to 120 characters")
    if has_control(name):
        raise Refusal("VALIDATION_ERROR", f"{whose} name has no control characters")
    return name


def account_name(text: str) -> str:
    """Return an account's name in its stored form: the rule of shop names, except that two accounts may share one.

    Raises: Refusal VALIDATION_ERROR.
    """
    return plain_name(text, "An account")
