"""Lifetime and states of the payer window (docs/window.md "Back to the shop", "How long it is there")."""

import re
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlsplit

from ..accounts.accounts import Account
from ..payments.payments import LATE_WINDOW, LinkKind, Payment, PaymentStatus
from ..web_addresses import is_web_address

MINUTE = timedelta(minutes=1)
"""How long the window stays after the end of a payment."""

RETURN_SECONDS = 5
"""Countdown after success, before the window redirects the payer by itself."""


class Face(StrEnum):
    """Content of the window. It differs from the status: `paid` and `settled` look alike to a payer, and `pending` has
    three faces."""

    PREPARING = "preparing"
    """The bank has not returned its QR code yet."""
    WAITING = "waiting"
    CHECKING = "checking"
    """The deadline has passed and the result is unknown: the payer should not start to pay now."""
    PROCESSING = "processing"
    PAID = "paid"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REVIEW = "review"
    OVERTAKEN = "overtaken"
    """The money for the order is with another attempt: the payer should not pay this one."""


FINAL_FACES = frozenset({Face.PAID, Face.FAILED, Face.CANCELLED})
"""Nothing of interest to the payer happens after these."""

_RETRIABLE = frozenset({Face.FAILED, Face.CANCELLED, Face.EXPIRED})
_NOT_PAID = _RETRIABLE | {Face.PREPARING, Face.WAITING, Face.CHECKING}

_S = PaymentStatus
_CLOSING = {
    _S.PAID: Face.PAID,
    _S.SETTLED: Face.PAID,
    _S.REFUNDED: Face.PAID,
    _S.FAILED: Face.FAILED,
    _S.CANCELLED: Face.CANCELLED,
}


def face(payment: Payment, now: datetime) -> Face | None:
    """Return the content of the window at `now`; None when it is closed and the link answers 404.

    The minute is half-open and runs from `closed_at`. A late payment moves `closed_at`, so it reopens the window. A
    refund does not, so it neither opens the window nor closes it before the minute is over.
    """
    if payment.status in _CLOSING:
        shown = payment.closed_at is not None and now < payment.closed_at + MINUTE
        return _CLOSING[payment.status] if shown else None
    if payment.status is _S.EXPIRED:
        return Face.EXPIRED if now < payment.created_at + LATE_WINDOW else None
    if payment.status is _S.AMOUNT_MISMATCH:
        return Face.REVIEW
    if payment.status is _S.PROCESSING:
        return Face.PROCESSING
    return _pending(payment, now)


def may_retry(account: Account, payment: Payment, shown: Face | None) -> bool:
    """Return whether the payer may make another payment of the order on the page. Payment links have their own
    button."""
    return account.settings.payer_retry and payment.link_id is None and shown in _RETRIABLE


def overtaken(shown: Face | None) -> Face | None:
    """Return the content of the window while another attempt has the money of the order."""
    return Face.OVERTAKEN if shown in _NOT_PAID else shown


def _pending(payment: Payment, now: datetime) -> Face:
    if now >= payment.expires_at:
        return Face.CHECKING
    if payment.qr_payload is None and payment.bank_link is None:
        return Face.PREPARING
    return Face.WAITING


_APP_LINK = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,63}://[!-~]{1,2000}\Z")
_NO_APP = frozenset({"javascript", "data", "vbscript", "file", "blob", "filesystem", "about", "ftp", "ws", "wss"})


def bank_link(payment: Payment) -> str | None:
    """Return the bank's link if it is safe for a payer: a web URL, or, for an application, a URL with its own
    scheme."""
    link = web_link(payment.bank_link)
    if link is None and payment.bank_link is not None and payment.link_kind is LinkKind.DEEPLINK:
        scheme = payment.bank_link.partition(":")[0].lower()
        return payment.bank_link if _APP_LINK.match(payment.bank_link) and scheme not in _NO_APP else None
    return link


ORDER_NUMBER_MOST = 64
"""Longest merchant's id that a payer may have to read out, in characters; longer ones are for programs."""


def order_number(external_id: str | None) -> str | None:
    """Return the merchant's id in the form for payers."""
    return external_id if external_id is not None and len(external_id) <= ORDER_NUMBER_MOST else None


def leads_nowhere(link: str) -> bool:
    """Return whether the link is a simulated bank's: names below `.example` are reserved and never resolve (RFC
    6761)."""
    return (urlsplit(link).hostname or "").endswith(".example")


def web_link(text: str | None) -> str | None:
    """Return the URL if a payer may be sent there, otherwise None.

    This is a second check of the stored value: `javascript:` must never become a link.
    """
    return text if text is not None and is_web_address(text) else None
