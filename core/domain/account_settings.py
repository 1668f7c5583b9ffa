"""The settings of an account in the form that operators write: `NAME=TEXT`, one row for each name, with its reader.

`webhook_secret` is among the names but not among the fields of `Settings`: the account itself stores it encrypted.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .accounts.accounts import Account, KycDemand, KycFlow, RefundApproval, Scheme, Settings
from .accounts.receipts import PaymentMode, PaymentSubject, TaxSystem, Vat
from .errors import FieldFault, Refusal
from .money import Rub, Usdt
from .payer.brand import CONTACT_LONGEST, TEXT_LONGEST
from .payer.colors import read_color
from .setting_readers import (
    BOOLEAN,
    boolean,
    email,
    integer,
    largest_amount,
    line,
    mail_address,
    one_of,
    overdraft,
    percent,
    secret,
    wallet,
    wanted_events,
    words,
)
from .shapes import nearest
from .web_addresses import web_address

WEBHOOK_SECRET = "webhook_secret"  # noqa: S105  (the name of a setting, not a secret)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting. `read` raises ValueError with the cause, and never quotes the text: it may be a secret."""

    read: Callable[[str], Any]
    form: str
    """Short description of the accepted texts."""
    meaning: str
    clearable: bool = False
    """Whether an empty text sets it to null."""


BRAND_SETTINGS: Mapping[str, Setting] = {
    "brand_color": Setting(
        read=read_color,
        form="colour, such as #2152d9",
        meaning="the colour of buttons and links on the payer's pages",
        clearable=True,
    ),
    "brand_contact": Setting(
        read=line(CONTACT_LONGEST),
        form=f"up to {CONTACT_LONGEST} characters",
        meaning="where payers ask for help: a mail address, a phone, a web address, or words",
        clearable=True,
    ),
    "brand_success_text": Setting(
        read=line(TEXT_LONGEST),
        form=f"up to {TEXT_LONGEST} characters",
        meaning="what payers read after a payment, unless their payment link has its own text",
        clearable=True,
    ),
}
"""The look of the payer's pages: settings of an account and of each shop."""

ACCOUNT_SETTINGS: Mapping[str, Setting] = {
    "acceptance": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="new payments are taken; else 422 PAYMENT_UNAVAILABLE",
    ),
    "alarm_email": Setting(
        read=mail_address,
        form="e-mail address",
        meaning="who is told when the receiver of live mode has been dead for an hour, where e-mail is connected",
        clearable=True,
    ),
    "amount_rub_max": Setting(
        read=largest_amount,
        form="RUB",
        meaning="the largest payment outside a terminal",
    ),
    "auto_return": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="the payer's window goes back to the shop by itself, unless a payment says otherwise",
    ),
    **BRAND_SETTINGS,
    "direct_links": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="the bank's own link of a payment may be handed out",
    ),
    "exchange": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="USDT and RUB may be exchanged for the merchant's clients",
    ),
    "exchange_markup_percent": Setting(
        read=percent(50),
        form="0 to 50",
        meaning="what of an exchange is the merchant's, in percent at the base rate",
    ),
    "kyc": Setting(
        read=one_of(KycDemand),
        form=words(KycDemand),
        meaning="whether a payment needs a verified client",
    ),
    "kyc_flow": Setting(
        read=one_of(KycFlow),
        form=words(KycFlow),
        meaning="how clients are verified: documents by the API, or a hosted form",
    ),
    "kyc_open_page": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="clients may come to the hosted KYC page without a link, and name their phone there",
    ),
    "payer_retry": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="payers may try again on the page after a payment failed or expired",
    ),
    "payout_wallet": Setting(
        read=wallet,
        form="address, of TRON (T…) or EVM (0x…)",
        meaning="where settlements are paid out to; without one the balance stays",
        clearable=True,
    ),
    "proof_reminders": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="events remind of delivery proofs that are missing",
    ),
    "receipt_email": Setting(
        read=email,
        form="e-mail",
        meaning="where a receipt goes whose payer gave neither e-mail nor phone, as of every charge of a subscription",
        clearable=True,
    ),
    "receipt_mode": Setting(
        read=one_of(PaymentMode),
        form=words(PaymentMode),
        meaning="what receipts say the money is, set against the delivery",
        clearable=True,
    ),
    "receipt_subject": Setting(
        read=one_of(PaymentSubject),
        form=words(PaymentSubject),
        meaning="what receipts say is paid for",
        clearable=True,
    ),
    "receipt_tax_system": Setting(
        read=one_of(TaxSystem),
        form=words(TaxSystem),
        meaning="by which the merchant is taxed, for receipts",
        clearable=True,
    ),
    "receipt_vat": Setting(
        read=one_of(Vat),
        form=words(Vat),
        meaning="the rate of VAT of receipts, in percent; none is without VAT, a stroke is a calculated rate",
        clearable=True,
    ),
    "recurring": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="subscriptions may be charged; else 501 RECURRING_NOT_SUPPORTED",
    ),
    "refund_approval": Setting(
        read=one_of(RefundApproval),
        form=words(RefundApproval),
        meaning="whether an operator approves refunds first; without a word live ones, not test ones",
        clearable=True,
    ),
    "refund_overdraft_usdt": Setting(
        read=overdraft,
        form="USDT",
        meaning="how far below zero refunds may take the available balance",
    ),
    "refund_reserve": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="payouts leave what refunds that wait for money need",
    ),
    "refunds": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="refunds by the API; else its paths are 404",
    ),
    "return_url": Setting(
        read=web_address,
        form="web address",
        meaning="where payers go back to, unless their shop has its own",
        clearable=True,
    ),
    "second_person": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="in the dashboard another person approves live keys, webhook secrets, the payout wallet and roles",
    ),
    "subscription_scheme": Setting(
        read=one_of(Scheme),
        form=words(Scheme),
        meaning="how the periods of new subscriptions are counted",
    ),
    "terminals": Setting(
        read=boolean,
        form=BOOLEAN,
        meaning="terminals may be listed and named by method_id",
    ),
    "metadata_kb_max": Setting(
        read=integer(1, 64),
        form="1 to 64",
        meaning="the largest metadata of a payment or refund, in KB as JSON",
    ),
    "ttl_minutes_max": Setting(
        read=integer(1, 1440),
        form="1 to 1440",
        meaning="the longest life of a payment, in minutes",
    ),
    WEBHOOK_SECRET: Setting(
        read=secret,
        form="16 to 256 characters",
        meaning="signs webhooks; - reads it from standard input, --generate-secret makes one",
        clearable=True,
    ),
    "webhook_events": Setting(
        read=wanted_events,
        form="types of events, with commas",
        meaning="which events the first endpoint takes; some enabled endpoint must take each event about money",
        clearable=True,
    ),
    "webhook_url": Setting(
        read=web_address,
        form="web address",
        meaning="where webhooks are sent; https in live mode",
        clearable=True,
    ),
}


def plain_http_warning(settings: Settings) -> str | None:
    """Return a warning for operators if live webhooks cannot be sent because the address is not https."""
    if not (settings.webhook_url or "").lower().startswith("http:"):
        return None
    return (
        "live webhooks do not leave for an http address, and their events fail after 7 days. "
        "Set webhook_url to an https address"
    )


def read_settings(texts: Mapping[str, str], known: Mapping[str, Setting] = ACCOUNT_SETTINGS) -> dict[str, Any]:
    """Return the values by name. Raises: Refusal VALIDATION_ERROR that lists all faults at once."""
    faults: list[FieldFault] = []
    values: dict[str, Any] = {}
    for name, text in texts.items():
        setting = known.get(name)
        if setting is None:
            near = nearest(name, known)
            instead = f"did you mean {near}?" if near else f"there are: {', '.join(sorted(known))}"
            faults.append(FieldFault(ascii(name), f"is no setting; {instead}"))
        elif not text and setting.clearable:
            values[name] = None
        else:
            try:
                values[name] = setting.read(text)
            except ValueError as error:
                faults.append(FieldFault(name, str(error)))
    if not texts:
        faults.append(FieldFault("settings", f"name at least one of: {', '.join(sorted(known))}"))
    if faults:
        message = "; ".join(f"{fault.path} {fault.message}" for fault in faults)
        raise Refusal("VALIDATION_ERROR", message, details=faults)
    return values


def shown_settings(account: Account) -> dict[str, Any]:
    """Return every setting in a form safe for operators: plain values; for the secret only whether it is set."""
    shown: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        value = getattr(account.settings, name)
        if isinstance(value, tuple):
            value = ",".join(value)
        shown[name] = str(value) if isinstance(value, (Rub, Usdt)) else value
    shown["webhook_secret_set"] = account.webhook_secret is not None
    return dict(sorted(shown.items()))
