"""Requests to the fake provider, read from a connection."""

import asyncio
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec


class ProviderRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. Its repr hides query, headers and body, which contain credentials and personal data."""

    method: str
    target: str
    """Path and query without decoding, as some providers' signatures need them."""
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Header names are in lower case."""
    body: bytes
    parts: Mapping[str, str] = {}
    """Parts of the path that matched the `{name}`s of the route."""

    def __repr__(self) -> str:
        return f"<ProviderRequest {self.method} {self.path}>"


class TooLarge(Exception):
    """The body exceeds the limit."""


def any_call(_: ProviderRequest) -> bool:
    """Match every request."""
    return True


def is_read(request: ProviderRequest) -> bool:
    """Match GET and HEAD, the reads of a provider that follows HTTP."""
    return request.method in ("GET", "HEAD")


def is_write(request: ProviderRequest) -> bool:
    """Match every request except reads."""
    return not is_read(request)


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int) -> ProviderRequest:
    """Read a whole request. Raises: ValueError if it is malformed, TooLarge."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunks(reader, most)
    else:
        body = await _read_body(reader, int(headers.get("content-length", "0")), most)
    split = urlsplit(target)
    query = dict(parse_qsl(split.query, keep_blank_values=True))
    return ProviderRequest(
        method=method, target=target, path=unquote(split.path), query=query, headers=headers, body=body
    )


async def _read_chunks(reader: asyncio.StreamReader, most: int) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        body += await _read_body(reader, size, most - len(body))
        await reader.readexactly(2)
    if await reader.readuntil(b"\r\n") != b"\r\n":
        raise ValueError("trailers are not known here")
    return bytes(body)


async def _read_body(reader: asyncio.StreamReader, size: int, most: int) -> bytes:
    if size > most:
        raise TooLarge
    return await reader.readexactly(size)
