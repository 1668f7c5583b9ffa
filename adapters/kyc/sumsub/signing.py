"""Sumsub's signatures of requests and notifications, over their exact bytes (docs/providers/sumsub.md
"Notifications")."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime

from ....ports.notifications import InboundNotification

_DIGESTS = {"HMAC_SHA256_HEX": hashlib.sha256, "HMAC_SHA512_HEX": hashlib.sha512}
"""Accepted digests of notifications. The header only chooses among them; SHA-1, which it may also name, is not
accepted."""


def signed(token: str, secret: str, now: datetime, method: str, target: str, body: bytes) -> Mapping[str, str]:
    """Return the authentication headers of one request. `target`: path and query as sent; `body`: the whole body."""
    seconds = str(int(now.timestamp()))
    said = f"{seconds}{method}{target}".encode() + body
    return {
        "X-App-Token": token,
        "X-App-Access-Ts": seconds,
        "X-App-Access-Sig": hmac.new(secret.encode(), said, hashlib.sha256).hexdigest(),
    }


def is_genuine(secret: str, notification: InboundNotification) -> bool:
    """Report whether the notification has the right digest for this secret."""
    digest = _DIGESTS.get(notification.headers.get("x-payload-digest-alg", ""))
    if digest is None:
        return False
    told = notification.headers.get("x-payload-digest", "").lower().encode()
    return hmac.compare_digest(hmac.new(secret.encode(), notification.body, digest).hexdigest().encode(), told)
