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
    """What belongs to an account, in one of its modes."""

    @property
    def id(self) -> str: ...
    @property
    def account_id(self) -> str: ...
    @property
    def mode(self) -> Mode: ...


LIVE: Final = Mode.LIVE
TEST: Final = Mode.TEST
"""For rooms that every request passes: before Python 3.12, a member that is looked up through its class takes ten times
as long as a name. `payments.py` and the others have theirs for the same reason."""

KEY_PREFIXES = {LIVE: "svc_live_", TEST: "svc_test_"}


class KycDemand(StrEnum):
    """Whether the account's clients must be verified (the setting `kyc`)."""

    OFF = "off"
    REQUIRED = "required"
    DISABLED = "disabled"
    """KYC calls answer `403 PROVIDER_DISABLED`; payments ask for nothing."""


KYC_REQUIRED: Final = KycDemand.REQUIRED
"""For every payment (see TEST)."""


class KycFlow(StrEnum):
    """What a client's registration needs (the setting `kyc_flow`)."""

    DOCUMENTS = "documents"
    """A selfie and a document, uploaded."""
    REDIRECT = "redirect"
    """An e-mail and a user type; the client fills in the verifier's form."""


class RefundApproval(StrEnum):
    """How refund applications are approved (the setting `refund_approval`)."""

    AUTO = "auto"
    MANUAL = "manual"


class Scheme(StrEnum):
    """How periods are counted: an account's setting `subscription_scheme`, kept by each subscription for life."""

    CALENDAR = "calendar"
    """Calendar days, ISO weeks and months by UTC; one charge in each."""
    WINDOW = "window"
    """From the day of the last successful payment, Moscow time; failed charges may be tried again within a budget."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator sets per account. Names are those of `cambist account set`."""

    webhook_url: str | None = None
    webhook_events: tuple[str, ...] | None = None
    """The types of events that the receiver wants, judged when one happens; None: all
    (docs/webhooks.md "The events you want")."""
    alarm_email: str | None = None
    """Who is told when the receiver of live mode has not answered well for an hour (docs/alarms.md "Merchants")."""
    acceptance: bool = True
    """Off: `422 PAYMENT_UNAVAILABLE` for new payments."""
    auto_return: bool = True
    """Whether the payer window returns the payer by itself, where a payment does not say."""
    return_url: str | None = None
    metadata_kb_max: int = 16
    """The largest `metadata` of a payment or refund, in KB as JSON."""
    ttl_minutes_max: int = 60
    amount_rub_max: Rub = Rub(1_000_000_00)
    """The largest one-off payment outside a terminal."""
    terminals: bool = False
    """Merchants may list terminals and name one by `method_id`."""
    direct_links: bool = False
    """The bank's own link of a payment may be handed out (`GET /payments/{id}/sbp-link`)."""
    proof_reminders: bool = True
    """Events remind of delivery proofs that are missing; judged when one would be sent."""
    kyc: KycDemand = KycDemand.OFF
    """Whether a new payment needs a verified client."""
    kyc_flow: KycFlow = KycFlow.DOCUMENTS
    kyc_open_page: bool = True
    """Clients may come to the hosted page without a link of the merchant's (docs/kyc.md "Without a link of yours")."""
    refunds: bool = False
    """The refund API is on; off, its paths answer a plain 404."""
    refund_approval: RefundApproval | None = None
    """Whether an operator approves refunds first; None: in live mode yes, in test mode no (docs/refunds.md "Rules")."""
    refund_overdraft_usdt: Usdt = Usdt(0)
    """How far below zero refunds may take the available USDT (docs/refunds.md "The money")."""
    refund_reserve: bool = False
    """Payouts leave what refunds that wait for money need (docs/refunds.md "The money")."""
    recurring: bool = True
    """Subscriptions may be charged; off, charges answer `501 RECURRING_NOT_SUPPORTED`."""
    subscription_scheme: Scheme = Scheme.WINDOW
    """How the periods of new subscriptions are counted."""
    exchange: bool = False
    """USDT to RUB exchanges are connected; off, `POST /exchanges` answers `400 FEATURE_NOT_ENABLED`."""
    exchange_markup_percent: str = "2"
    """What of an exchange's value at the base rate does not go to the client, but is credited to the merchant: 0 to
    50, as text so that no digit is lost."""
    payout_wallet: str | None = None
    """The TRON address that settlements are paid out to; without one the balance stays available
    (docs/settlement.md "Payouts")."""
    receipt_tax_system: TaxSystem | None = None
    """This and the next three are what receipts say (docs/payments.md "Receipts"): all of them, or none is written."""
    receipt_vat: Vat | None = None
    receipt_subject: PaymentSubject | None = None
    receipt_mode: PaymentMode | None = None
    receipt_email: str | None = None
    """Where the receipt goes of a payment whose payer's address is not known."""

    def receipt_lacks(self, *, has_contact: bool) -> tuple[str, ...]:
        """The settings that a receipt needs and that are not set. `has_contact`: the payer's e-mail or phone is
        known."""
        needed = _RECEIPT if has_contact else (*_RECEIPT, "receipt_email")
        return tuple(name for name in needed if getattr(self, name) is None)

    def receipt_terms(self, *, has_contact: bool) -> ReceiptTerms | None:
        """What the receipts of a new payment say; None where something is lacking."""
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
"""Settings that decide what money leaves, or where it goes."""

_DEFAULTS = Settings()


def money_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings that move money and are not the defaults."""
    found = {name: getattr(settings, name) for name in MONEY_SETTINGS}
    return {name: value for name, value in found.items() if value != getattr(_DEFAULTS, name)}


def without_money(settings: Settings) -> Settings:
    """Return the settings with those that move money at the values that let the least out."""
    return msgspec.structs.replace(
        settings,
        payout_wallet=None,
        refund_approval=RefundApproval.MANUAL,
        refund_overdraft_usdt=Usdt(0),
        exchange=False,
    )


_RECEIPT = ("receipt_tax_system", "receipt_vat", "receipt_subject", "receipt_mode")


class EndpointRef(msgspec.Struct, frozen=True, kw_only=True):
    """What an account says of a further webhook endpoint, so that whoever writes an event knows who wants it without
    reading more. It is written with the endpoint, in one unit."""

    id: str
    mode: Mode
    event_types: tuple[str, ...] | None = None
    """None: all."""
    enabled: bool = True
    """For the rule on what the endpoints take together. Whether webhooks leave, the endpoint's own row says."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A merchant. Webhook secrets are sealed; `previous_secret` still signs beside the new one until its end."""

    id: str
    name: str
    default_shop_id: str
    created_at: datetime
    settings: Settings = Settings()
    webhook_secret: bytes | None = None
    previous_secret: bytes | None = None
    previous_secret_until: datetime | None = None
    settings_tag: bytes | None = None
    """The vault's tag over the settings that move money, as an operator set them; null while all are the defaults."""
    clock: SandboxClock | None = None
    """Of test mode; null until it is first moved."""
    endpoints: tuple[EndpointRef, ...] | None = None
    """Further webhook endpoints; null without any."""
    version: int = 0

    @property
    def receives(self) -> bool:
        """Both webhook address and secret are set; until then events wait (docs/webhooks.md "Webhooks")."""
        return self.settings.webhook_url is not None and self.webhook_secret is not None

    def further(self, mode: Mode) -> tuple[EndpointRef, ...]:
        """The further webhook endpoints of a mode."""
        return tuple(each for each in self.endpoints or () if each.mode is mode)


_ALL = KeyTerms()
"""Of nearly every key."""


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key pair. `id` is the public key itself; of the secret only a keyed digest is kept."""

    id: str
    account_id: str
    mode: Mode
    secret_digest: bytes
    created_at: datetime
    ends_at: datetime | None = None
    """Revoked from then on; None while it is the pair in force."""
    name: str | None = None
    """Of a pair beside the mode's own, of which there may be several in force; None: the mode's own."""
    rights: tuple[str, ...] | None = None
    """These two as KeyTerms has them."""
    addresses: tuple[str, ...] | None = None
    tag: bytes | None = None
    """The vault's tag over all that decides what the pair opens; without it the pair opens nothing."""
    version: int = 0

    @property
    def terms(self) -> KeyTerms:
        """What its holder may do."""
        if self.rights is None and self.addresses is None:
            return _ALL
        return KeyTerms(rights=self.rights, addresses=self.addresses)


class KeyUse(msgspec.Struct, frozen=True, kw_only=True):
    """When a pair was last used, by the key's id: a row of its own, so that using a key changes nothing of the key."""

    id: str
    used_at: datetime
    """To the minute."""
    version: int = 0


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: an authenticated key."""

    account: Account
    mode: Mode
    key_id: str
    terms: KeyTerms = _ALL

    @property
    def account_id(self) -> str:
        return self.account.id


def plain_name(text: str, whose: str) -> str:
    """A name as it is kept: trimmed, 1 to 120 characters, no control characters. Raises: Refusal VALIDATION_ERROR."""
    name = text.strip()
    if not 1 <= len(name) <= 120:
        raise Refusal("VALIDATION_ERROR", f"{whose} name has 1 to 120 characters")
    if has_control(name):
        raise Refusal("VALIDATION_ERROR", f"{whose} name has no control characters")
    return name


def account_name(text: str) -> str:
    """An account's name as it is kept: the rule of shop names, except that two accounts may share one.

    Raises: Refusal VALIDATION_ERROR.
    """
    return plain_name(text, "An account")
