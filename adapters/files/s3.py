"""Files in an S3-compatible bucket, uploaded directly by signed addresses, so that our machines need no shared folder
(docs/providers/s3.md).

A signed `Content-Length` makes the bucket accept only an upload of this size. Without one the bucket limits nothing;
`stat` then reports the size. It ignores files of types that are not allowed.
"""

import secrets
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

from ...ports.clock import Clock
from ...ports.faults import NotConfigured, OutcomeUnknown, Refused, Unavailable
from ...ports.files import StoredFile
from ..provider_http import Answer, ProviderHttp, checked_base
from .sigv4 import LONGEST, Credentials, encoded, presigned_query, signed_headers

TYPES = frozenset(("image/jpeg", "image/png", "application/pdf"))
"""Allowed types."""
MOST = 16 * 1024 * 1024
"""Maximum bytes read of a file; `grant` allows less. The owner of an address may replace the file after its check."""
_SKEW = 300.0
"""Tolerated clock difference to the bucket in seconds. The bucket refuses signatures that are off by 15 minutes."""
_PROBE = b"%PDF-cambist"


class S3Files:
    """Implement the ports FileStore and ElsewhereFiles."""

    name = "s3"

    def __init__(
        self,
        *,
        bucket: str,
        credentials: Credentials,
        clock: Clock,
        endpoint: str | None = None,
        by_path: bool | None = None,
        prefix: str = "",
        single_use: bool = False,
        limit: float = 15.0,
    ) -> None:
        """`endpoint`: replaces Amazon's endpoint of the region. `by_path`: whether the path contains the bucket; None:
        yes for other providers and for bucket names with a dot. `prefix`: prepended to each key. `single_use`: an
        address works only once, and only with the header `If-None-Match: *`.

        Raises: NotConfigured unless the endpoint uses https, or http on this machine.
        """
        base = checked_base("s3", endpoint or f"https://s3.{credentials.region}.amazonaws.com")
        in_path = (endpoint is not None or "." in bucket) if by_path is None else by_path
        told = urlsplit(base)
        # Browsers leave out the default port.
        place = told.netloc.removesuffix(":443" if told.scheme == "https" else ":80")
        self._host = place if in_path else f"{bucket}.{place}"
        self._root = f"{told.path}/{bucket}" if in_path else told.path
        self._prefix = prefix
        self._credentials = credentials
        self._clock = clock
        self._single_use = single_use
        self.upload_origin = f"{told.scheme}://{self._host}"
        self.upload_headers: Mapping[str, str] = {"If-None-Match": "*"} if single_use else {}
        self._http = ProviderHttp("s3", self.upload_origin, limit=limit, clock=clock)

    def __repr__(self) -> str:
        return f"<S3Files at {self.upload_origin}>"

    def grant(
        self,
        key: str,
        content_type: str,
        max_bytes: int,  # noqa: ARG002 - see `stat`
        expires_at: datetime,
        *,
        size: int | None = None,
    ) -> str:
        """Return an address for a PUT of this type and, if given, this size.

        Raises: ValueError for a type that is not allowed.
        """
        if content_type not in TYPES:
            raise ValueError("a type is one that is granted")
        now, path = self._clock.now(), self._path(key)
        # Subtract whole seconds, as both times are written, so that the address expires at the right time.
        seconds = int(expires_at.timestamp()) - int(now.timestamp())
        signed = {"content-type": content_type, "host": self._host}
        if self._single_use:
            signed["if-none-match"] = "*"
        if size is not None:
            signed["content-length"] = str(size)
        query = presigned_query(self._credentials, "PUT", path, signed, now, max(1, min(seconds, LONGEST)))
        return f"{self.upload_origin}{path}?{query}"

    async def stat(self, key: str) -> StoredFile | None:
        """Return the file under the key if its type is allowed, else None. Raises: Unavailable; NotConfigured."""
        answer = await self._call("HEAD", key)
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        self._require(answer)
        length = answer.headers.get("content-length", "")
        if answer.headers.get("content-type", "") not in TYPES:
            return None
        if not (length.isascii() and length.isdigit() and len(length) < 16):
            raise Unavailable("s3: an answer without a length")
        return StoredFile(key=key, size=int(length))

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the content in parts. Raises: Unavailable; NotConfigured; Refused if the file does not exist."""

        def judge(answer: Answer) -> None:
            if answer.status == HTTPStatus.NOT_FOUND and b"NoSuchBucket" not in answer.body:
                raise Refused("there is no such file", reason="not_found")
            self._require(answer)

        path = self._path(key)
        async for part in self._http.parts(path, headers=self._signed("GET", path), answer_max=MOST, judge=judge):
            yield part

    async def remove(self, key: str) -> None:
        """Delete the file. Raises: Unavailable; NotConfigured."""
        answer = await self._call("DELETE", key)
        # A missing bucket must be reported. A missing key usually answers 204.
        if answer.status == HTTPStatus.NOT_FOUND and b"NoSuchKey" in answer.body:
            return
        self._require(answer)

    async def check(self) -> None:
        """Write, find, read and delete a test file. Raises: NotConfigured, whose message names the failing step;
        Unavailable."""
        key = f"probe-{secrets.token_hex(16)}"
        if (await self._call("HEAD", key)).status == HTTPStatus.FORBIDDEN:
            raise NotConfigured("s3: a file that is not there is 403: the key needs s3:ListBucket, or is not taken")
        self._require(await self._put(key))
        try:
            if self._single_use and (await self._put(key)).status != HTTPStatus.PRECONDITION_FAILED:
                raise NotConfigured("s3: the store ignores If-None-Match: set CAMBIST_S3_SINGLE_USE=false")
            found = await self.stat(key)
            if found is None or found.size != len(_PROBE):
                raise NotConfigured("s3: what was written is not there: is the address that of the bucket?")
            if b"".join([part async for part in self.read(key)]) != _PROBE:
                raise NotConfigured("s3: what was written is read as something else")
        finally:
            await self.remove(key)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    def _path(self, key: str) -> str:
        return f"{self._root}/{encoded(self._prefix + key, safe='/')}"

    def _signed(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> dict[str, str]:
        given = {"host": self._host, **(headers or {})}
        return signed_headers(self._credentials, method, path, given, self._clock.now(), body)

    async def _call(self, method: str, key: str) -> Answer:
        """Make a call without a body, which may be repeated."""
        path = self._path(key)
        return await self._http.call(method, path, writes=False, headers=self._signed(method, path))

    async def _put(self, key: str) -> Answer:
        path = self._path(key)
        headers = {"content-type": "application/pdf", **({"if-none-match": "*"} if self._single_use else {})}
        signed = self._signed("PUT", path, headers, _PROBE)
        try:
            return await self._http.call("PUT", path, writes=True, body=_PROBE, headers=signed)
        except OutcomeUnknown as fault:
            raise Unavailable(str(fault)) from None

    def _require(self, answer: Answer) -> None:
        """Raises: the fault of a status that is not a success."""
        status = answer.status
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            why = "our clock and the bucket's differ" if self._is_skewed(answer) else "the key is not taken, or may not"
            raise NotConfigured(f"s3: status {status}: {why}")
        if status == HTTPStatus.NOT_FOUND:
            raise NotConfigured("s3: there is no such bucket")
        raise Unavailable(f"s3: status {status}", retry_after=answer.retry_after())

    def _is_skewed(self, answer: Answer) -> bool:
        try:
            theirs = parsedate_to_datetime(answer.headers.get("date", ""))
            return abs((theirs - self._clock.now()).total_seconds()) > _SKEW
        except (ValueError, TypeError):
            return False
