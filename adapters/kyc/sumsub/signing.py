"""Signatures of Sumsub: of our requests, over the very bytes that go out, and of its notices, over the bytes that came
(docs/providers/sumsub.md "Notices")."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime

from ....ports.notices import InboundNotice

_DIGESTS = {"HMAC_SHA256_HEX": hashlib.sha256, "HMAC_SHA512_HEX": hashlib.sha512}
"""What a notice may be signed by. The header only chooses among these: SHA-1, which it may name as well, is not."""


def signed(token: str, secret: str, now: datetime, method: str, target: str, body: bytes) -> Mapping[str, str]:
    """The headers that authenticate one request. `target`: path and query as they go out; `body`: all of it."""
    seconds = str(int(now.timestamp()))
    said = f"{seconds}{method}{target}".encode() + body
    return {
        "X-App-Token": token,
        "X-App-Access-Ts": seconds,
        "X-App-Access-Sig": hmac.new(secret.encode(), said, hashlib.sha256).hexdigest(),
    }


def is_genuine(secret: str, notice: InboundNotice) -> bool:
    """Whether the notice bears the digest of its bytes by this secret."""
    digest = _DIGESTS.get(notice.headers.get("x-payload-digest-alg", ""))
    if digest is None:
        return False
    told = notice.headers.get("x-payload-digest", "").lower().encode()
    return hmac.compare_digest(hmac.new(secret.encode(), notice.body, digest).hexdigest().encode(), told)
