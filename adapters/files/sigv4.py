"""AWS Signature Version 4 for S3, in presigned addresses and in headers (docs.aws.amazon.com, "Authenticating Requests:
AWS Signature Version 4"). Pure, without another library."""

import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import quote

import msgspec

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
"""Replaces the body's digest in an address, which is signed before the body is known."""
LONGEST = 7 * 24 * 3600
"""Maximum lifetime of an address, in seconds."""


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Signing credentials. The repr hides both keys."""

    access_key: str
    secret_key: str
    region: str
    service: str = "s3"

    def __repr__(self) -> str:
        return f"<Credentials for {self.service} in {self.region}>"


def presigned_query(
    credentials: Credentials, method: str, path: str, headers: Mapping[str, str], at: datetime, seconds: int
) -> str:
    """Return the query of an address that permits this call until `seconds` after `at`. `path` is the encoded path as
    it is sent. The caller must send the signed `headers`, including `host`, unchanged. Raises: ValueError if `seconds`
    is out of range."""
    if not 0 < seconds <= LONGEST:
        raise ValueError(f"an address lasts from 1 to {LONGEST} seconds")
    moment = _moment(at)
    terms = {
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key}/{_scope(credentials, moment)}",
        "X-Amz-Date": moment,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": _names(headers),
    }
    signature = signature_of(credentials, canonical_request(method, path, terms, headers, UNSIGNED), moment)
    return f"{_encoded(terms)}&X-Amz-Signature={signature}"


def signed_headers(
    credentials: Credentials, method: str, path: str, headers: Mapping[str, str], at: datetime, body: bytes = b""
) -> dict[str, str]:
    """Return the headers of a call without a query, including the signature. `headers` must contain `host`."""
    moment, digest = _moment(at), sha256(body).hexdigest()
    every = {**headers, "x-amz-content-sha256": digest, "x-amz-date": moment}
    names = _names(every)
    signature = signature_of(credentials, canonical_request(method, path, {}, every, digest), moment)
    every["authorization"] = (
        f"{ALGORITHM} Credential={credentials.access_key}/{_scope(credentials, moment)},"
        f"SignedHeaders={names},Signature={signature}"
    )
    return every


def canonical_request(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], digest: str) -> str:
    """Return the canonical request, whose digest is signed. `query` is not encoded yet; names of `headers` are in lower
    case."""
    lines = "".join(f"{name}:{' '.join(value.split())}\n" for name, value in sorted(headers.items()))
    return "\n".join((method, path, _encoded(query), lines, _names(headers), digest))


def signature_of(credentials: Credentials, request: str, moment: str) -> str:
    """Return the hexadecimal signature of a canonical request. `moment`: `20130524T000000Z`."""
    text = "\n".join((ALGORITHM, moment, _scope(credentials, moment), sha256(request.encode()).hexdigest()))
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (moment[:8], credentials.region, credentials.service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), sha256).hexdigest()


def encoded(text: str, *, safe: str = "") -> str:
    """Encode text for a URI as S3 requires: all but letters, digits and `-._~`."""
    return quote(text, safe=f"-._~{safe}")


def _encoded(query: Mapping[str, str]) -> str:
    return "&".join(sorted(f"{encoded(name)}={encoded(value)}" for name, value in query.items()))


def _names(headers: Mapping[str, str]) -> str:
    return ";".join(sorted(headers))


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _scope(credentials: Credentials, moment: str) -> str:
    return f"{moment[:8]}/{credentials.region}/{credentials.service}/aws4_request"
