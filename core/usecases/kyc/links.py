"""Links to the hosted page `{app_url}/kyc`. The holder of a link acts for one client of one account, for a limited
time.

A browser must hold no API key, so the link carries the permission: account and phone, encrypted and authenticated by
the vault. Every POST /kyc/check makes a new link, so its lifetime can be short.
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
    """The permission in a link. Its repr hides the phone."""

    _shown = ("account_id",)

    account_id: str
    phone: str
    expires_at: datetime
    vouched: bool = True
    """Whether the merchant gave the link, so that its holder may see the client's state. Otherwise the page started the
    session for an anonymous visitor who typed the phone.
    """


def hosted_url(ports: Ports, account_id: str, phone: str) -> str:
    """Return the address of the hosted page for a client of a live account; a merchant may add `redirect`. The phone in
    it is encrypted, because addresses end up in histories and logs.
    """
    return f"{ports.urls.app_url}/kyc?{urlencode({'session': new_session(ports, account_id, phone)})}"


def new_session(ports: Ports, account_id: str, phone: str, *, vouched: bool = True) -> str:
    """Return the encrypted permission of a link."""
    link = KycLink(account_id=account_id, phone=phone, expires_at=ports.clock.now() + LINK_TIME, vouched=vouched)
    return urlsafe_b64encode(ports.vault.encrypt(msgspec.json.encode(link), _PLACE)).decode()


def open_link(ports: Ports, session: str) -> KycLink | None:
    """Return the permission of a link; None when it was altered, belongs to another service, or has expired."""
    if len(session) > _LONGEST:
        return None
    try:
        sealed = urlsafe_b64decode(session)
        link = msgspec.json.decode(ports.vault.decrypt(sealed, _PLACE), type=KycLink)
    except (ValueError, VaultError):
        return None
    return link if ports.clock.now() < link.expires_at else None
