"""S3 as far as uploads need it, and as strict: it recomputes every signature, and refuses what S3 refuses.

The verifier shares no line with the adapter (adapters/files/sigv4.py), so that neither can be wrong for both; boto3's
signer and AWS's published requests pass it (tests/providers/test_s3.py)."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from cambist.ports import Clock
from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest

ACCESS, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
BUCKET, REGION = "documents", "eu-central-1"
_SKEW = timedelta(minutes=15)
_DAY = 86400


class SignatureError(Exception):
    """An error answer of S3, with its code."""


def verify(
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
    *,
    region: str = REGION,
) -> None:
    """Raises: SignatureError with S3's code where the call is not permitted. `path` and `query` are decoded, names of
    `headers` in lower case."""
    if "X-Amz-Signature" in query:
        _presigned(method, path, query, headers, now, region)
    elif headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 "):
        _by_header(method, path, query, headers, body, now, region)
    else:
        raise SignatureError("AccessDenied")


def _presigned(
    method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], now: datetime, region: str
) -> None:
    try:
        given, names, stamp = query["X-Amz-Credential"], query["X-Amz-SignedHeaders"], query["X-Amz-Date"]
        lasts = int(query["X-Amz-Expires"])
    except (KeyError, ValueError):
        raise SignatureError("AuthorizationQueryParametersError") from None
    if query.get("X-Amz-Algorithm") != "AWS4-HMAC-SHA256" or not 0 < lasts <= 7 * _DAY:
        raise SignatureError("AuthorizationQueryParametersError")
    began = _moment(stamp)
    if now < began - _SKEW:
        raise SignatureError("AccessDenied")
    rest = {name: value for name, value in query.items() if name != "X-Amz-Signature"}
    _compare(method, path, rest, headers, names, "UNSIGNED-PAYLOAD", given, stamp, region, query["X-Amz-Signature"])
    if now >= began + timedelta(seconds=lasts):
        raise SignatureError("AccessDenied")


def _by_header(
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
    region: str,
) -> None:
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
        headers["authorization"],
    )
    digest, stamp = headers.get("x-amz-content-sha256", ""), headers.get("x-amz-date", "")
    if found is None or not {"x-amz-content-sha256", "x-amz-date"} <= set(found[2].split(";")):
        raise SignatureError("AuthorizationHeaderMalformed")
    if digest not in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
        raise SignatureError("XAmzContentSHA256Mismatch")
    if abs(now - _moment(stamp)) > _SKEW:
        raise SignatureError("RequestTimeTooSkewed")
    _compare(method, path, query, headers, found[2], digest, found[1], stamp, region, found[3])


def _compare(
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    names: str,
    digest: str,
    credential: str,
    stamp: str,
    region: str,
    signature: str,
) -> None:
    access, _, scope = credential.partition("/")
    if access != ACCESS:
        raise SignatureError("InvalidAccessKeyId")
    if scope != f"{stamp[:8]}/{region}/s3/aws4_request":
        raise SignatureError("AuthorizationHeaderMalformed")
    signed = names.split(";")
    unsigned = [name for name in headers if name.startswith("x-amz-") and name not in signed]
    if signed != sorted(signed) or "host" not in signed or unsigned or any(name not in headers for name in signed):
        raise SignatureError("SignatureDoesNotMatch")
    canonical = "\n".join(
        (
            method,
            quote(path, safe="/-_.~"),
            "&".join(sorted(f"{_quoted(name)}={_quoted(value)}" for name, value in query.items())),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed),
            "",
            names,
            digest,
        )
    )
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = ("AWS4" + SECRET).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    if not hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), signature):
        raise SignatureError("SignatureDoesNotMatch")


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")


def _moment(stamp: str) -> datetime:
    try:
        return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise SignatureError("AccessDenied") from None


class FakeS3(FakeProvider):
    """One bucket, addressed by path."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(body_limit=16 * 1024 * 1024)
        self.files: dict[str, tuple[str, bytes]] = {}
        """By key: type and content."""
        self.ignores_conditions = False
        self.may_list = True
        self.origin: str | None = None
        """From which browsers may PUT: the bucket's one CORS rule."""
        self._clock = clock
        for method in ("PUT", "HEAD", "GET", "DELETE"):
            for path in ("/{bucket}/{key}", "/{bucket}/{folder}/{key}"):
                self.on(method, path, self._answer_to)
        for path in ("/{bucket}/{key}", "/{bucket}/{folder}/{key}"):
            self.on("OPTIONS", path, self._preflight)

    def _preflight(self, request: ProviderRequest) -> ProviderAnswer:
        asked = {name.strip() for name in request.headers.get("access-control-request-headers", "").split(",")}
        fits = request.headers.get("access-control-request-method") == "PUT"
        if request.headers.get("origin") != self.origin or not fits or not asked <= {"content-type", "if-none-match"}:
            return self._refused(request, 403, "AccessForbidden")
        more = {"Access-Control-Allow-Methods": "PUT", "Access-Control-Allow-Headers": ", ".join(sorted(asked))}
        return ProviderAnswer(status=200, headers={"Access-Control-Allow-Origin": str(self.origin), **more})

    def _answer_to(self, request: ProviderRequest) -> ProviderAnswer:
        try:
            verify(request.method, request.path, request.query, request.headers, request.body, self._clock.now())
        except SignatureError as refused:
            return self._refused(request, 403, str(refused))
        bucket, _, key = request.path.removeprefix("/").partition("/")
        if bucket != BUCKET:
            return self._refused(request, 404, "NoSuchBucket")
        if request.method == "PUT":
            return self._put(request, key)
        if request.method == "DELETE":
            self.files.pop(key, None)
            return ProviderAnswer(status=204)
        found = self.files.get(key)
        if found is None:
            return self._refused(
                request, 404 if self.may_list else 403, "NoSuchKey" if self.may_list else "AccessDenied"
            )
        return ProviderAnswer(status=200, body=found[1], headers={"Content-Type": found[0]})

    def _put(self, request: ProviderRequest, key: str) -> ProviderAnswer:
        if "content-length" not in request.headers:
            return self._refused(request, 411, "MissingContentLength")
        condition = request.headers.get("if-none-match")
        if condition not in (None, "*"):
            return self._refused(request, 501, "NotImplemented")
        if condition and key in self.files and not self.ignores_conditions:
            return self._refused(request, 412, "PreconditionFailed")
        self.files[key] = (request.headers.get("content-type", "binary/octet-stream"), request.body)
        shared = {} if self.origin is None else {"Access-Control-Allow-Origin": self.origin}
        etag = hashlib.md5(request.body).hexdigest()
        return ProviderAnswer(status=200, headers={"ETag": f'"{etag}"', **shared})

    @staticmethod
    def _refused(request: ProviderRequest, status: int, code: str) -> ProviderAnswer:
        body = b"" if request.method == "HEAD" else f"<Error><Code>{code}</Code></Error>".encode()
        return ProviderAnswer(status=status, body=body, headers={"Content-Type": "application/xml"})
