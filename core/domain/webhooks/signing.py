"""Webhook signatures (docs/webhooks.md "The signature"). This file is complete and needs only the standard library, so
a receiver can import it or copy it unchanged.

Every attempt carries two signatures:

- `X-Webhook-Signature`: `sha256=<hex>`, HMAC-SHA256 over `<timestamp>.<raw body>`, keyed with the secret's text in
  UTF-8. It does not cover `X-Webhook-Id`.
- `webhook-signature`: `v1,<base64>`, HMAC-SHA256 over `<id>.<timestamp>.<raw body>` as in Standard Webhooks, so
  it also proves the id by which a receiver recognizes duplicates.

For a Standard Webhooks library, `standard_secret(secret)` is right for every secret. The plain secret works as well if
it is base64, bare (64 hex characters are) or after `whsec_`: such a library uses the decoded bytes as the key, and the
header then also contains that signature.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

TOLERANCE = 300
"""Largest difference between an attempt's timestamp and the receiver's clock, in seconds: the limit of Standard
Webhooks."""

_STANDARD_PREFIX = "whsec_"
_BLOCK = 64
"""Bytes in a block of SHA-256, to which HMAC pads its key (RFC 2104)."""
_INNER_PAD = bytes(byte ^ 0x36 for byte in range(256))
_OUTER_PAD = bytes(byte ^ 0x5C for byte in range(256))
_TIMESTAMP = re.compile(r"[0-9]{1,12}\Z", re.ASCII)


class _Key:
    """HMAC-SHA256 with a prepared key.

    OpenSSL spends more time on key setup than on hashing 600 bytes, so the two keyed states are created once and copied
    for each signature: about half the time of `hmac.digest`.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        if len(key) > _BLOCK:
            key = hashlib.sha256(key).digest()
        padded = key.ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(padded.translate(_INNER_PAD))
        self._outer = hashlib.sha256(padded.translate(_OUTER_PAD))

    def sign(self, head: bytes, body: bytes) -> "hashlib._Hash":
        """Return the finished hash over `head` and `body`, which are not copied into one message."""
        inner = self._inner.copy()
        inner.update(head)
        inner.update(body)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer


def _base64(digest: bytes) -> str:
    return binascii.b2a_base64(digest, newline=False).decode("ascii")


class Signer:
    """Signs with one secret. Creating one costs as much as several signatures, so keep it; its repr does not show the
    secret."""

    __slots__ = ("_key", "_standard_keys")

    def __init__(self, secret: str) -> None:
        """Raises ValueError for an empty secret, which would let everybody sign."""
        if not secret:
            raise ValueError("a webhook secret may not be empty")
        self._key = _Key(secret.encode())
        self._standard_keys = tuple(_Key(key) for key in _standard_keys(secret))

    def signature(self, timestamp: int, body: bytes) -> str:
        """Return the value of X-Webhook-Signature. `timestamp` is in Unix seconds."""
        return "sha256=" + self._key.sign(b"%d." % timestamp, body).hexdigest()

    def standard_signature(self, event_id: str, timestamp: int, body: bytes) -> str:
        """Return the value of webhook-signature: one `v1,<base64>`, or two separated by a space if the secret's text is
        bare base64, which a library may read either way."""
        head = f"{event_id}.{timestamp}.".encode()
        signed = "v1," + _base64(self._standard_keys[0].sign(head, body).digest())
        for key in self._standard_keys[1:]:
            signed += " v1," + _base64(key.sign(head, body).digest())
        return signed


def standard_secret(secret: str) -> str:
    """Return the secret for a Standard Webhooks library: the secret itself if it has that form (`whsec_<base64>`),
    otherwise `whsec_` and the base64 of its UTF-8."""
    if secret.startswith(_STANDARD_PREFIX) and _decoded(secret):
        return secret
    return _STANDARD_PREFIX + base64.b64encode(secret.encode()).decode("ascii")


def _standard_keys(secret: str) -> tuple[bytes, ...]:
    decoded = _decoded(secret)
    if decoded and secret.startswith(_STANDARD_PREFIX):
        return (decoded,)
    return (secret.encode(), decoded) if decoded else (secret.encode(),)


def _decoded(secret: str) -> bytes:
    """Return the decoded bytes of a base64 secret, padded or not, bare or after `whsec_`; empty if it is not base64."""
    text = secret.removeprefix(_STANDARD_PREFIX)
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return b""


def headers(
    signer: Signer,
    *,
    previous: Signer | None = None,
    event_id: str,
    event: str,
    sequence: int,
    attempt: int,
    timestamp: int,
    body: bytes,
    retry_of: str | None = None,
) -> dict[str, str]:
    """Return all headers of one attempt. `timestamp` is that of the attempt, in Unix seconds; `attempt` counts from 1.

    `previous` is the secret before a rotation while it is still valid (24 hours): it then signs X-Webhook-Signature,
    and webhook-signature contains both signatures (docs/webhooks.md "Changing the secret").
    """
    moment = str(timestamp)
    standard = signer.standard_signature(event_id, timestamp, body)
    if previous is not None:
        standard = f"{previous.standard_signature(event_id, timestamp, body)} {standard}"
    return {
        "Content-Type": "application/json",
        "User-Agent": "cambist/1",
        "X-Webhook-Id": event_id,
        "X-Webhook-Timestamp": moment,
        "X-Webhook-Signature": (previous or signer).signature(timestamp, body),
        "X-Webhook-Event": event,
        "X-Webhook-Attempt": str(attempt),
        "X-Webhook-Sequence": str(sequence),
        **({} if retry_of is None else {"X-Webhook-Retry-Of": retry_of}),
        "webhook-id": event_id,
        "webhook-timestamp": moment,
        "webhook-signature": standard,
    }


class Flaw(StrEnum):
    """Why a request is not accepted as our webhook."""

    MISSING_HEADER = "missing_header"
    MALFORMED_HEADER = "malformed_header"
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    WRONG_SIGNATURE = "wrong_signature"
    """A different secret, or a changed body: for example parsed and serialized again."""
    WRONG_ID = "wrong_id"
    """Body and time are genuine, the id is not: a captured request sent again under another id."""


class NotVerified(Exception):
    """The request cannot be trusted; answer 4xx and do nothing. `flaw` is for code, the message for people."""

    def __init__(self, flaw: Flaw, message: str) -> None:
        super().__init__(message)
        self.flaw = flaw

    def __reduce__(self) -> tuple[type["NotVerified"], tuple[Flaw, str]]:
        """Pickle both arguments."""
        return type(self), (self.flaw, str(self))


def verify_signature(
    headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: float, tolerance: float = TOLERANCE
) -> str:
    """Return the id of a genuine event, which identifies duplicates (docs/webhooks.md "What a receiver does"). Raises:
    NotVerified.

    `body` is the raw body as received, not parsed and serialized again; `secrets` the webhook secret, and during a
    rotation the old and the new one in any order; `now` the receiver's clock in Unix seconds. Both signatures must be
    valid, because the first alone does not cover the id. So a request from which a proxy removed the Standard Webhooks
    headers is refused.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    event_id = _header(lowered, "X-Webhook-Id")
    moment = _header(lowered, "X-Webhook-Timestamp")
    given = _header(lowered, "X-Webhook-Signature").encode()
    standard = [part.encode() for part in _header(lowered, "webhook-signature").split(" ")]

    if not _TIMESTAMP.match(moment):
        raise NotVerified(Flaw.MALFORMED_HEADER, "X-Webhook-Timestamp is not a number of Unix seconds")
    timestamp = int(moment)
    if timestamp < now - tolerance:
        raise NotVerified(Flaw.TOO_OLD, f"sent more than {tolerance:g} s ago, or a clock is wrong")
    if timestamp > now + tolerance:
        raise NotVerified(Flaw.TOO_NEW, f"sent more than {tolerance:g} s in the future, or a clock is wrong")

    signers = [Signer(secret) for secret in secrets]
    if not any(hmac.compare_digest(signer.signature(timestamp, body).encode(), given) for signer in signers):
        raise NotVerified(Flaw.WRONG_SIGNATURE, "X-Webhook-Signature holds for none of the secrets")
    expected = [
        part.encode() for signer in signers for part in signer.standard_signature(event_id, timestamp, body).split(" ")
    ]
    if not any(hmac.compare_digest(ours, theirs) for ours in expected for theirs in standard):
        raise NotVerified(Flaw.WRONG_ID, "webhook-signature does not hold for X-Webhook-Id")
    return event_id


def _header(lowered: Mapping[str, object], name: str) -> str:
    """Return one header as text. It must be ASCII, as ours are, so that encoding it for the comparison cannot fail."""
    value = lowered.get(name.lower())
    if value is None:
        raise NotVerified(Flaw.MISSING_HEADER, f"no header {name}")
    if not isinstance(value, str) or not value.isascii():
        raise NotVerified(Flaw.MALFORMED_HEADER, f"header {name} is not plain text")
    return value
