"""The settings of an account as an operator writes them: `NAME=TEXT`, one row per name, each with its reader.

`webhook_secret` is among the names but not among the fields of `Settings`: it is kept sealed, in the account itself.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from .accounts.accounts import Account, KycDemand, KycFlow, RefundApproval, Scheme, Settings
from .accounts.receipts import PaymentMode, PaymentSubject, TaxSystem, Vat, is_email
from .errors import FieldFault, Refusal
from .money import Rub, Usdt
from .payments.payments import MINIMUM
from .shapes import is_mail_address, nearest
from .wallets import is_wallet
from .web_addresses import web_address
from .webhooks.wanted import read_wanted

WEBHOOK_SECRET = "webhook_secret"  # noqa: S105  (the name of a setting, not a secret)

_SECRET = re.compile(r"[!-~]{16,256}\Z")
_INTEGER = re.compile(r"[0-9]{1,9}\Z")
_PERCENT = re.compile(r"(?:0|[1-9][0-9]?)(?:\.[0-9]{1,4})?\Z")


def _secret(text: str) -> str:
    if not _SECRET.match(text):
        raise ValueError("must be 16 to 256 printable ASCII characters without spaces")
    return text


_BOOLEAN = "true, false"


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def _integer(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _INTEGER.match(text) or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return read


def _largest_amount(text: str) -> Rub:
    amount = Rub.parse(text)
    if amount < MINIMUM:
        raise ValueError(f"must be at least {MINIMUM}")
    return amount


def _overdraft(text: str) -> Usdt:
    amount = Usdt.parse(text)
    if amount < Usdt(0):
        raise ValueError("must not be below zero")
    return amount


def _percent(highest: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not _PERCENT.match(text) or Decimal(text) > highest:
            raise ValueError(f"must be a number from 0 to {highest} with up to 4 decimals")
        return text

    return read


def _wallet(text: str) -> str:
    if not is_wallet(text):
        raise ValueError(
            "must be an address of TRON, 34 letters and digits that begin with T, or of Ethereum and BNB Smart Chain, "
            "0x and 40 hex digits, with the right checksum"
        )
    return text


def _email(text: str) -> str:
    if not is_email(text):
        raise ValueError("must be an e-mail address")
    return text


def _mail_address(text: str) -> str:
    if not is_mail_address(text):
        raise ValueError("must be an e-mail address in ASCII")
    return text


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    def read(text: str) -> StrEnum:
        if text not in tuple(kind):
            raise ValueError(f"must be one of: {', '.join(kind)}")
        return kind(text)

    return read


def _words(kind: type[StrEnum]) -> str:
    return ", ".join(kind)


def _wanted_events(text: str) -> tuple[str, ...]:
    return read_wanted([each.strip() for each in text.split(",")])


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One name. `read` raises ValueError saying what is wrong, never quoting the text: it may be a secret."""

    read: Callable[[str], Any]
    form: str
    """What may be written, in short."""
    meaning: str
    clearable: bool = False
    """An empty text sets it to null."""


ACCOUNT_SETTINGS: Mapping[str, Setting] = {
    "acceptance": Setting(
        read=_boolean,
        form=_BOOLEAN,
        meaning="new payments are taken; else 422 PAYMENT_UNAVAILABLE",
    ),
    "alarm_email": Setting(
        read=_mail_address,
        form="e-mail address",
        meaning="who is told when the receiver of live mode has been dead for an hour, where e-mail is connected",
        clearable=True,
    ),
    "amount_rub_max": Setting(
        read=_largest_amount,
        form="RUB",
        meaning="the largest payment outside a terminal",
    ),
    "auto_return": Setting(
        read=_boolean,
        form=_BOOLEAN,
        meaning="the payer's window goes back to the shop by itself, unless a payment says otherwise",
    ),
    "direct_links": Setting(
        read=_boolean,
        form=_BOOLEAN,
        meaning="the bank's own link of a payment may be handed out",
    ),
    "exchange": Setting(
        read=_boolean,
        form=_BOOLEAN,
        meaning="USDT and RUB may be exchanged for the merchant's clients",
    ),
    "exchange_markup_percent": Setting(
        read=_percent(50),
        form="0 to 50",
        meaning="what of an exchange is the merchant's, in percent at the base rate",
    ),
    "kyc": Setting(
        read=_one_of(KycDemand),
        form=_words(KycDemand),
        meaning="whether a payment needs a verified client",
    ),
    "kyc_flow": Setting(
        read=_one_of(KycFlow),
        form=_words(KycFlow),
        meaning="how clients are verified: documents by the API, or a hosted form",
    ),
    "kyc_open_page": Setting(
        read=_boolean,
        form=_BOOLEAN,
        meaning="clients may come to the hosted KYC page without a link, and name their phone there",
    ),
    "payout_wallet": Setting(
        read=_wallet,
        form="address, of TRON (T…) or EVM (0x…)",
        meaning="where settlements are paid out to; without one the balance stays",
        clearable=True,
    ),
    "proof_reminders": Setting(
        read=_boolean,
        form=_BOOLEAN,
        meaning="events remind of delivery proofs that are missing",
    ),
    "receipt_email": Setting(
        read=_email,
        form="e-mail",
        meaning="where a receipt goes whose payer gave neither e-mail nor phone, as of every charge of a subscription",
        clearable=True,
    ),
    "receipt_mode": Setting(
        read=_one_of(PaymentMode),
        form=_words(PaymentMode),
        meaning="what receipts say the money is, set against the delivery",
        clearable=True,
    ),
    "receipt_subject": Setting(
        read=_one_of(PaymentSubject),
        form=_words(PaymentSubject),
        meaning="what receipts say is paid for",
        clearable=True,
    ),
    "receipt_tax_system": Setting(
        read=_one_of(TaxSystem),
        form=_words(TaxSystem),
        meaning="by which the merchant is taxed, for receipts",
        clearable=True,
    ),
    "receipt_vat": Setting(
        read=_one_of(Vat),
        form=_words(Vat),
        meaning="the rate of VAT of receipts, in percent; none is without VAT, a stroke is a calculated rate",
        clearable=True,
    ),
    "recurring": Setting(
        read=_boolean,
        form=_BOOLEAN,
        meaning="subscriptions may be charged; else 501 RECURRING_NOT_SUPPORTED",
    ),
    "refund_approval": Setting(
        read=_one_of(RefundApproval),
        form=_words(RefundApproval),
        meaning="whether an operator approves refunds first; without a word live ones, not test ones",
        clearable=True,
    ),
    "refund_overdraft_usdt": Setting(
        read=_overdraft,
        form="USDT",
        meaning="how far below zero refunds may take the available balance",
    ),
    "refund_reserve": Setting(
        read=_boolean,
        form=_BOOLEAN,
        meaning="payouts leave what refunds that wait for money need",
    ),
    "refunds": Setting(
        read=_boolean,
        form=_BOOLEAN,
        meaning="refunds by the API; else its paths are 404",
    ),
    "return_url": Setting(
        read=web_address,
        form="web address",
        meaning="where payers go back to, unless their shop has its own",
        clearable=True,
    ),
    "subscription_scheme": Setting(
        read=_one_of(Scheme),
        form=_words(Scheme),
        meaning="how the periods of new subscriptions are counted",
    ),
    "terminals": Setting(
        read=_boolean,
        form=_BOOLEAN,
        meaning="terminals may be listed and named by method_id",
    ),
    "ttl_minutes_max": Setting(
        read=_integer(1, 1440),
        form="1 to 1440",
        meaning="the longest life of a payment, in minutes",
    ),
    WEBHOOK_SECRET: Setting(
        read=_secret,
        form="16 to 256 characters",
        meaning="signs webhooks; - reads it from standard input, --generate-secret makes one",
        clearable=True,
    ),
    "webhook_events": Setting(
        read=_wanted_events,
        form="types of events, with commas",
        meaning="which events the receiver wants; what tells of money cannot be left out",
        clearable=True,
    ),
    "webhook_url": Setting(
        read=web_address,
        form="web address",
        meaning="where webhooks are sent; https in live mode",
        clearable=True,
    ),
}


def read_settings(texts: Mapping[str, str], known: Mapping[str, Setting] = ACCOUNT_SETTINGS) -> dict[str, Any]:
    """The values, by name. Raises: Refusal VALIDATION_ERROR that names every fault at once."""
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
    """Every setting as an operator may see it: plain values, and of the secret only whether there is one."""
    shown: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        value = getattr(account.settings, name)
        if isinstance(value, tuple):
            value = ",".join(value)
        shown[name] = str(value) if isinstance(value, (Rub, Usdt)) else value
    shown["webhook_secret_set"] = account.webhook_secret is not None
    return dict(sorted(shown.items()))
