"""Files in a bucket that speaks S3: uploaded straight to it by signed addresses, so that no machine of ours shares a
folder with another (docs/providers/s3.md).

A bucket bounds no upload, but a signed `Content-Length` makes it take that size alone. Where the uploader does not say
the size, `stat` reports it, and counts only files of a granted type.
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
"""That are granted."""
MOST = 16 * 1024 * 1024
"""Bytes of a file that are read; `grant` allows less. Who has an address may replace the file after it was looked
at."""
_SKEW = 300.0
"""Seconds by which the bucket's clock may be off: it refuses what is signed by one that is off by 15 minutes."""
_PROBE = b"%PDF-cambist"


class S3Files:
    """Fills the port FileStore, and ElsewhereFiles."""

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
        """`endpoint`: other than Amazon's of the region. `by_path`: whether the bucket stands in the path; None: at
        others, and with a dot in its name. `prefix`: before each key. `single_use`: an address is taken with the
        header `If-None-Match: *` alone, and once.

        Raises: NotConfigured for an endpoint that is neither https nor http of this machine.
        """
        base = checked_base("s3", endpoint or f"https://s3.{credentials.region}.amazonaws.com")
        in_path = (endpoint is not None or "." in bucket) if by_path is None else by_path
        told = urlsplit(base)
        # As a browser sends it: without the port that goes without saying.
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
        """Return an address for a PUT of this type and, where it is given, this size.

        Raises: ValueError for a type that is never granted.
        """
        if content_type not in TYPES:
            raise ValueError("a type is one that is granted")
        now, path = self._clock.now(), self._path(key)
        # Both in whole seconds, as they are written: so it ends when it should.
        seconds = int(expires_at.timestamp()) - int(now.timestamp())
        signed = {"content-type": content_type, "host": self._host}
        if self._single_use:
            signed["if-none-match"] = "*"
        if size is not None:
            signed["content-length"] = str(size)
        query = presigned_query(self._credentials, "PUT", path, signed, now, max(1, min(seconds, LONGEST)))
        return f"{self.upload_origin}{path}?{query}"

    async def stat(self, key: str) -> StoredFile | None:
        """What lies under the key, where it is of a granted type. Raises: Unavailable; NotConfigured."""
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
        """The content, in parts. Raises: Unavailable; NotConfigured; Refused when there is none."""

        def judge(answer: Answer) -> None:
            if answer.status == HTTPStatus.NOT_FOUND and b"NoSuchBucket" not in answer.body:
                raise Refused("there is no such file", reason="not_found")
            self._require(answer)

        path = self._path(key)
        async for part in self._http.parts(path, headers=self._signed("GET", path), answer_max=MOST, judge=judge):
            yield part

    async def remove(self, key: str) -> None:
        """Take the file away. Raises: Unavailable; NotConfigured."""
        answer = await self._call("DELETE", key)
        # Of a bucket that is not there it has to be told; a key that is not there is 204.
        if answer.status == HTTPStatus.NOT_FOUND and b"NoSuchKey" in answer.body:
            return
        self._require(answer)

    async def check(self) -> None:
        """Write, find, read and take away a probe. Raises: NotConfigured, whose message says what is not taken;
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
        """A call without a body, which may be repeated."""
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
        """Raises: what a status that is no success means."""
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
