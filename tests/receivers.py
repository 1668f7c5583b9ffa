"""A merchant's webhook receiver for tests: a real one on a socket of its own, which answers as scripted.

async with Receiver() as receiver:
    receiver.answer_with(500, silence(), 200)   # in turn; the last one stays
    ... post to receiver.url ...
    [first, *_] = await receiver.arrived(3)
    assert first.headers["x-webhook-attempt"] == "1"
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.patience import HANGS
from tests.payload_checks import check_webhook


@dataclass(frozen=True)
class Request:
    """One request as it came: header names in lower case, the body's very bytes."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: int
    """Number of the connection that carried the request, from 1."""


Script = Callable[["Receiver", asyncio.StreamWriter], Awaitable[bool]]
"""Gives one answer; says whether the connection may serve another request."""


def reply(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Script:
    """A whole answer."""

    async def script(_receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        writer.write(_head(status, {"Content-Length": str(len(body)), **(headers or {})}) + body)
        await writer.drain()
        return True

    return script


def redirect(to: str, status: int = 302) -> Script:
    return reply(status, headers={"Location": to})


def raw(data: bytes) -> Script:
    """Any bytes, then the end of the connection."""

    async def script(_receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        writer.write(data)
        await writer.drain()
        return False

    return script


def half(status: int = 200) -> Script:
    """Half of the body that the head promises, then the end of the connection."""
    return raw(_head(status, {"Content-Length": "10"}) + b"12345")


def silence() -> Script:
    """Nothing, with the connection open until the receiver closes."""

    async def script(receiver: Receiver, _writer: asyncio.StreamWriter) -> bool:
        await receiver.closing.wait()
        return False

    return script


def reset() -> Script:
    """A connection reset in place of an answer."""

    async def script(_receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return False

    return script


def drip(data: bytes, pause: float = 0.01) -> Script:
    """`data` byte by byte, over and over, until the other side or the receiver closes. Starting with a whole head
    makes it a slow body, else a slow head."""

    async def script(receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        while not writer.is_closing():
            for byte in data:
                writer.write(bytes((byte,)))
                await writer.drain()
                with suppress(TimeoutError):
                    await asyncio.wait_for(receiver.closing.wait(), pause)
                    return False
        return False

    return script


def slow_body() -> Script:
    """A good head at once, then a body that never ends."""

    async def script(receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        writer.write(_head(200, {"Content-Length": str(10**9)}))
        return await drip(b".")(receiver, writer)

    return script


def flood(size: int, *, promised: int | None = None) -> Script:
    """A body of `size` bytes; where the head promises more, silence after them. `receiver.flooded` counts what the
    other side let us hand over."""

    async def script(receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        writer.write(_head(200, {"Content-Length": str(promised or size)}))
        piece = bytes(16 * 1024)
        for start in range(0, size, len(piece)):
            writer.write(piece[: size - start])
            await writer.drain()
            receiver.flooded += len(piece)
        return True if promised is None else await silence()(receiver, writer)

    return script


class Receiver:
    """Listens on a free loopback port while it is entered."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        """Number of accepted connections; under TLS, of completed handshakes."""
        self.most_at_once = 0
        """The largest number of connections that were open at one time."""
        self.flooded = 0
        self.port = 0
        self.closing = asyncio.Event()
        self._tls = tls
        self._scripts: list[Script] = [reply(200)]
        self._arrival = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return self.url_at("127.0.0.1")

    def url_at(self, host: str, scheme: str | None = None) -> str:
        """The receiver's address under another spelling of its host."""
        return f"{scheme or ('https' if self._tls else 'http')}://{host}:{self.port}/hook"

    def answer_with(self, *answers: int | Script) -> None:
        """Answer the next requests so, one after another; the last one stays. A number is a plain status."""
        self._scripts = [reply(each) if isinstance(each, int) else each for each in answers]

    async def arrived(self, count: int = 1, within: float = HANGS) -> list[Request]:
        """The requests so far, once there are `count` of them. Raises TimeoutError after `within` seconds."""
        async with asyncio.timeout(within), self._arrival:
            await self._arrival.wait_for(lambda: len(self.requests) >= count)
        return self.requests

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_exc: object) -> None:
        """Close. Where all went well, every event that came is held against its schema."""
        assert self._server is not None
        self._server.close()
        self.closing.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if kind is None:
            for request in self.requests:
                if "x-webhook-event" in request.headers:
                    check_webhook(request.headers, request.body)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        self.most_at_once = max(self.most_at_once, len(self._tasks))
        number = self.connections
        # The other side may go away at any moment, and so may the receiver: that ends the connection, not the test.
        # Cancelling ends here too, because the stream of Python 3.11 reports a cancelled task as an error.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._answer(reader, writer, number):
                pass
        writer.close()
        with suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.strip().split("\r\n")
        method, target, _version = line.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        async with self._arrival:
            self.requests.append(Request(method, target, headers, body, number))
            self._arrival.notify_all()
        return await script(self, writer)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Whatever\r\n{fields}\r\n".encode("latin-1")


def tls_pair(host: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS for a receiver that is named `host`, and for a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        file = Path(folder, "receiver.pem")  # the ssl module loads a chain from files only
        file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate)
        server.load_cert_chain(file)
    client = ssl.create_default_context(cadata=certificate.decode("ascii"))
    return server, client
