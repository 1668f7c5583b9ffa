"""Links to the hosted page `{app_url}/kyc`: who has one acts for one client of one account, for a while.

A browser must hold no API key, so the link carries the permission: account and phone, sealed by the vault, which also
signs. It is made anew by every POST /kyc/check, so it may end soon.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from urllib.parse import urlencode

import msgspec

from ....ports.bundle import Ports
from ....ports.vault import VaultError
from ...domain.masked import Masked

LINK_TIME = timedelta(hours=1)
_PLACE = "kyc.link"
_LONGEST = 1024


class KycLink(Masked, frozen=True, kw_only=True):
    """What a link permits. Its repr hides the phone."""

    _shown = ("account_id",)

    account_id: str
    phone: str
    expires_at: datetime
    vouched: bool = True
    """The merchant gave it, so its holder may be told how the client stands. Else the page began it by itself, for
    whoever named the phone."""


def hosted_url(ports: Ports, account_id: str, phone: str) -> str:
    """The hosted page for a client of a live account; a merchant may add `redirect`. The phone is sealed in it, because
    addresses end in histories and logs."""
    return f"{ports.urls.app_url}/kyc?{urlencode({'session': new_session(ports, account_id, phone)})}"


def new_session(ports: Ports, account_id: str, phone: str, *, vouched: bool = True) -> str:
    """The sealed permission that a link carries."""
    link = KycLink(account_id=account_id, phone=phone, expires_at=ports.clock.now() + LINK_TIME, vouched=vouched)
    return urlsafe_b64encode(ports.vault.seal(msgspec.json.encode(link), _PLACE)).decode()


def open_link(ports: Ports, session: str) -> KycLink | None:
    """What the link permits; None when it was altered, is of another service, or has expired."""
    if len(session) > _LONGEST:
        return None
    try:
        sealed = urlsafe_b64decode(session)
        link = msgspec.json.decode(ports.vault.unseal(sealed, _PLACE), type=KycLink)
    except (ValueError, VaultError):
        return None
    return link if ports.clock.now() < link.expires_at else None
