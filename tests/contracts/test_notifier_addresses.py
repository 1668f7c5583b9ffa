"""Where no notifier ever posts to (docs/webhooks.md "Your address").

The ways in are tried on a real loopback socket: not a connection may reach it.
"""

import asyncio
import re
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.notifier import resolver as resolver_rules
from cambist.adapters.notifier.guard import BadAddress, check_url, is_loopback, is_public, request_target
from cambist.adapters.notifier.resolver import ThreadResolver
from cambist.ports.notifier import Answer
from tests.contracts.webhooks import Names, notifier, post, webhook
from tests.patience import HANGS
from tests.receivers import Receiver, redirect, reply, tls_pair
from tests.tables import table

LITERALS = [
    "127.0.0.1", "127.8.9.10", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254",
    "192.168.0.1", "192.168.255.255", "169.254.169.254", "169.254.0.1", "100.64.0.1", "100.100.100.200",
    "100.127.255.254", "198.18.0.1", "198.19.255.254", "192.0.0.8", "192.0.0.9", "192.0.0.192", "192.0.2.1",
    "198.51.100.1", "203.0.113.1", "192.88.99.1", "168.63.129.16", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:ffff:127.0.0.1",
    "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::169.254.169.254", "64:ff9b::8.8.8.8", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
    "2001:0:7f00:1::", "2001::1", "2001:2::1", "2001:20::1", "2001:db8::1", "3fff::1", "5f00::1", "100::1", "fe80::1",
    "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "ff0e::1",
]  # fmt: skip
"""Numeric addresses, in URL form, that are not public or may hide one that is not."""

OPEN = [
    "8.8.8.8", "1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1",
    "192.169.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1",
    "2001:4860:4860::8888", "2003::1", "::ffff:8.8.8.8",
]  # fmt: skip

SPELLINGS = [
    "2130706433", "0x7f000001", "0X7F000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "00000177.0.0.1", "127.1",
    "127.0.1", "0x7f.1", "127.0.0.1.", "127.0.0.01", "2130706433.", "0", "127.0.0.0x1", "127。0。0。1", "①②⑦.0.0.1",
    "１２７.０.０.１", "1２７.0.0.1", "127%2e0%2e0%2e1", "[::1", "::1", "[127.0.0.1]", "[::1]x", "[fe80::1%25lo]",
]  # fmt: skip
"""The loopback address written so that some parser somewhere reads it as something else."""

URLS = [
    "https://user@127.0.0.1:{port}/", "https://user:pw@receiver.example:{port}/", "https://:@inside.example:{port}/",
    "https://public.example@127.0.0.1:{port}/", "https://public.example:443@127.0.0.1:{port}/",
    "https://127.0.0.1:{port}#@public.example/", "https://127.0.0.1:{port}\\@public.example/",
    "https://public.example\\@127.0.0.1:{port}/", "https:\\\\127.0.0.1:{port}/", "https:/127.0.0.1:{port}/",
    "https:127.0.0.1:{port}", "https:///127.0.0.1:{port}/", "//127.0.0.1:{port}/", "127.0.0.1:{port}", "/hook", "",
    "https://", "https://:{port}/", "https://.:{port}/", "https://inside..example:{port}/",
    "https://127.0.0.1:{port}\x00.public.example/", "https://127.0.0.1\t:{port}/", " https://127.0.0.1:{port}/",
    "https://127.0.0.1:{port}/\r\nHost: public.example", "https://127.0.0.1:{port}/\x7f", "https://127.0.0.1:0/",
    "https://127.0.0.1:99999/", "https://127.0.0.1:-1/", "https://127.0.0.1:x/", "http://127.0.0.1:{port}/",
    "http://public.example:{port}/", "ftp://127.0.0.1:{port}/", "file:///etc/passwd", "ws://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_POST", "unix:///run/docker.sock", "javascript:alert(1)", "data:,x",
    "https://" + "a" * 64 + ".example:{port}/", "https://" + "a." * 130 + "example:{port}/",
    "https://receiver.example:{port}/" + "a" * 2100,
]  # fmt: skip
"""Whole addresses that are not sent to, most of them with our receiver's port in them."""

NAMES = {
    "localhost": [["127.0.0.1"]],
    "inside.example": [["127.0.0.1"]],
    "six.example": [["::1"]],
    "mapped.example": [["::ffff:127.0.0.1"]],
    "scoped.example": [["fe80::1%lo"]],
    "several.example": [["10.0.0.1", "127.0.0.1", "::1", "169.254.169.254"]],
    "metadata.example": [["169.254.169.254"]],
    "text.example": [["localhost"]],
}


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as entered:
        yield entered


@pytest.fixture(scope="module")
def trusted() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return tls_pair("inside.example")


def in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


@table(
    "url",
    [
        *(f"https://{in_url(address)}:{{port}}/hook" for address in LITERALS),
        *(f"https://{host}:{{port}}/hook" for host in SPELLINGS),
        *(f"https://{name}:{{port}}/hook" for name in [*NAMES, "LOCALHOST", "localhost.", "Inside.Example."]),
        *URLS,
    ],
)
async def test_live_webhook_goes_only_to_a_public_address_over_https(
    receiver: Receiver, url: str, trusted: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    """Not one byte may reach a forbidden address."""
    url = url.replace("{port}", str(receiver.port))
    result = await post(webhook(url, open_network=False), resolver=Names(NAMES), tls=trusted[1], limit=5)
    assert result.answer is Answer.BLOCKED
    assert result.note
    assert receiver.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "inside.example", "mapped.example"])
async def test_test_mode_webhook_may_go_to_plain_http_and_loopback(receiver: Receiver, host: str) -> None:
    """Test mode may use http and loopback (docs/webhooks.md "Your address"). It proves, too, that these ways in are
    real ones."""
    result = await post(webhook(receiver.url_at(host)), resolver=Names(NAMES))
    assert (result.answer, result.status) == (Answer.RESPONDED, 200)


@table("odd", ["\t", "\n", "\r\nX-Webhook-Id: evt_2", " ", "\x00", "\x1f", "\x7f", "\\", "a" * 2048])
async def test_odd_or_overlong_address_is_blocked_not_mended(receiver: Receiver, odd: str) -> None:
    """Parsers differ in the characters that they drop or quote. In test mode the address is shown, because its host is
    allowed."""
    result = await post(webhook(f"{receiver.url}?x={odd}"))
    assert result.answer is Answer.BLOCKED
    assert not receiver.connections


@table(
    "url",
    [
        "http://127.0.0.1:0/",
        "http://me@127.0.0.1/",
        "http://:pw@127.0.0.1/",
        "ws://127.0.0.1/",
        "http://[2606:4700::1%é]/",
    ],
)
async def test_test_mode_opens_hosts_and_http_but_no_other_form_of_address(url: str) -> None:
    assert (await post(webhook(url))).answer is Answer.BLOCKED


@table("scheme", ["http", "https"])
@table("address", [address for address in LITERALS if not is_loopback(ip_address(address))])
async def test_test_mode_webhook_goes_to_no_other_private_address(scheme: str, address: str) -> None:
    result = await post(webhook(f"{scheme}://{in_url(address)}/"), limit=5)
    assert result.answer is Answer.BLOCKED


async def test_a_name_that_turns_inside_after_it_was_set_is_blocked(receiver: Receiver) -> None:
    """DNS rebinding: an earlier lookup returned a public address, but the address of the connection counts."""
    names = Names({"turning.example": [["93.184.216.34"], ["127.0.0.1"]]})
    [before] = await names.resolve("turning.example")
    assert is_public(ip_address(before["host"]))
    result = await post(webhook(receiver.url_at("turning.example", "https"), open_network=False), resolver=names)
    assert result.answer is Answer.BLOCKED
    assert receiver.connections == 0


async def test_a_name_of_test_mode_that_turns_to_the_metadata_address_is_blocked(receiver: Receiver) -> None:
    receiver.answer_with(reply(200, headers={"Connection": "close"}))
    names = Names({"turning.example": [["127.0.0.1"], ["169.254.169.254"]]})
    async with notifier(resolver=names) as made:
        first = await made.send(webhook(receiver.url_at("turning.example")))
        second = await made.send(webhook("http://turning.example/latest/meta-data/"))
    assert (first.answer, second.answer) == (Answer.RESPONDED, Answer.BLOCKED)


async def test_a_redirect_to_the_metadata_address_goes_nowhere(receiver: Receiver) -> None:
    receiver.answer_with(redirect("http://169.254.169.254/latest/meta-data/"))
    result = await post(webhook(receiver.url))
    assert (result.answer, result.status) == (Answer.RESPONDED, 302)


async def test_live_webhook_never_uses_a_connection_of_test_mode(
    trusted: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, client = trusted
    async with Receiver(tls=server) as secure, notifier(tls=client, resolver=Names(NAMES)) as made:
        url = secure.url_at("inside.example")
        assert (await made.send(webhook(url))).status == 200
        live = await made.send(webhook(url, open_network=False))
        assert (await made.send(webhook(url))).status == 200
        assert live.answer is Answer.BLOCKED
        assert secure.connections == 1
        assert len(secure.requests) == 2


@table("address", OPEN)
def test_addresses_of_the_open_network_are_public(address: str) -> None:
    """A guard that refused everything would pass all tests above."""
    assert is_public(ip_address(address))


@given(st.ip_addresses())
def test_address_not_global_by_the_standard_library_is_never_public(address: IPv4Address | IPv6Address) -> None:
    """A second opinion on our lists, drawn mostly from the special ranges."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        assert not is_public(address) or (mapped is not None and is_public(mapped))


async def test_names_are_looked_up_as_the_system_does() -> None:
    resolver = ThreadResolver(threads=1)
    found = await resolver.resolve("localhost", 81, socket.AF_UNSPEC)
    assert found
    assert all(ip_address(each["host"]).is_loopback and each["port"] == 81 for each in found)
    await resolver.close()


class DeadServers:
    """The system's resolver, which answers for names on request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answer: dict[str, threading.Event] = {}
        """Names that hang, until this is set."""
        self.asked: list[str] = []
        monkeypatch.setattr(socket, "getaddrinfo", self._getaddrinfo)

    def hang(self, *names: str) -> None:
        self.answer.update({name: threading.Event() for name in names})

    def end(self) -> None:
        for event in self.answer.values():
            event.set()

    def _getaddrinfo(self, host: str, port: int, **_options: Any) -> list[Any]:
        self.asked.append(host)
        if host.startswith("gone"):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        event = self.answer.get(host)
        if event is not None:
            event.wait(10)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


async def test_a_name_that_was_found_before_is_known_while_its_servers_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    system = DeadServers(monkeypatch)
    resolver = ThreadResolver(threads=4, patience=0.01)
    first = await resolver.resolve("a.example", 443)
    system.hang("a.example")
    for _ in range(3):
        assert await resolver.resolve("a.example", 443) == first
    assert system.asked == ["a.example"] * 2, "one lookup at a time, whoever waits for it"
    system.end()
    await resolver.close()


async def test_names_that_hang_leave_threads_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once they are found out: half of the threads are theirs."""
    system = DeadServers(monkeypatch)
    dead = [f"dead{number}.example" for number in range(4)]
    resolver = ThreadResolver(threads=4, patience=0.01)
    system.hang(*dead)
    waiting = [asyncio.create_task(resolver.resolve(name)) for name in dead]
    while len(resolver._slow) < 4:
        await asyncio.sleep(0.001)
    system.end()
    await asyncio.gather(*waiting)
    resolver._known.clear()
    system.asked.clear()
    system.hang(*dead)
    waiting = [asyncio.create_task(resolver.resolve(name)) for name in dead]
    assert await asyncio.wait_for(resolver.resolve("well.example"), HANGS)
    assert len([name for name in system.asked if name in dead]) == 2
    for task in waiting:
        task.cancel()
    system.end()
    await resolver.close()


async def test_a_name_that_is_gone_is_not_known_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    DeadServers(monkeypatch)
    resolver = ThreadResolver(threads=4, patience=HANGS)
    resolver._known["gone.example", 443, socket.AF_INET] = await resolver.resolve("well.example", 443)
    with pytest.raises(OSError, match="no such name"):
        await resolver.resolve("gone.example", 443)
    assert ("gone.example", 443, socket.AF_INET) not in resolver._known
    assert not resolver._under_way
    await resolver.close()


async def test_lookup_abandoned_by_one_caller_serves_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    system = DeadServers(monkeypatch)
    system.hang("a.example")
    resolver = ThreadResolver(threads=1, patience=0.01)
    first = asyncio.create_task(resolver.resolve("a.example"))
    while not system.asked:
        await asyncio.sleep(0.001)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(resolver.resolve("a.example"))
    await asyncio.sleep(0)
    system.end()
    assert await second
    assert system.asked == ["a.example"]
    await resolver.close()


async def test_lookup_without_a_thread_ends_with_its_last_waiting_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dead names that nobody asks for any more stand in nobody's way."""
    system = DeadServers(monkeypatch)
    system.hang("dead.example")
    resolver = ThreadResolver(threads=2, patience=0.01)
    resolver._slow.update({("dead.example", 0, socket.AF_INET): None, ("b.example", 0, socket.AF_INET): None})
    first = asyncio.create_task(resolver.resolve("dead.example"))
    waiting = [asyncio.create_task(resolver.resolve("b.example")) for _ in range(2)]
    while not system.asked:
        await asyncio.sleep(0.001)
    for task in waiting:
        assert ("b.example", 0, socket.AF_INET) in resolver._under_way
        task.cancel()
        await asyncio.wait([task])
    assert list(resolver._under_way) == [("dead.example", 0, socket.AF_INET)]
    system.end()
    assert await first
    assert await resolver.resolve("b.example")
    await resolver.close()


async def test_closing_ends_the_wait_for_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a name that is not found, not as if the webhook's own task were cancelled."""
    system = DeadServers(monkeypatch)
    system.hang("a.example")
    resolver = ThreadResolver(threads=1, patience=0.01)
    waits = asyncio.create_task(resolver.resolve("a.example"))
    while not system.asked:
        await asyncio.sleep(0.001)
    await resolver.close()
    with pytest.raises(OSError, match="closed"):
        await waits
    system.end()


async def test_remembered_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    DeadServers(monkeypatch)
    monkeypatch.setattr(resolver_rules, "_REMEMBERED", 3)
    resolver = ThreadResolver(threads=1)
    for number in range(9):
        await resolver.resolve(f"r{number}.example")
    assert len(resolver._known) == 3
    assert not resolver._slow
    await resolver.close()


# TLS: a receiver must prove its name


async def test_the_certificate_must_be_trusted_and_name_the_host(
    trusted: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, client = trusted
    names = Names({"inside.example": [["127.0.0.1"]], "other.example": [["127.0.0.1"]]})
    async with Receiver(tls=server) as secure:
        good = await post(webhook(secure.url_at("inside.example")), tls=client, resolver=names)
        assert (good.answer, good.status) == (Answer.RESPONDED, 200)
        other = await post(webhook(secure.url_at("other.example")), tls=client, resolver=names)
        untrusted = await post(webhook(secure.url_at("inside.example")), resolver=names)
        assert len(secure.requests) == 1
    assert other.answer is untrusted.answer is Answer.TLS
    assert "mismatch" in other.note
    assert "self-signed" in untrusted.note


async def test_a_port_that_speaks_no_tls_is_a_tls_failure(receiver: Receiver) -> None:
    async def no_tls(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(no_tls, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        result = await post(webhook(f"https://127.0.0.1:{port}/"))
    assert result.answer is Answer.TLS


PIECES = st.sampled_from([
    "http://", "HTTPS://", "https:", "//", "/", "\\", "@", ":", "#", "?", "%", "%2f", "%40", "%00", "[", "]", "[::1]",
    "[::ffff:7f00:1]", "::1", "127.0.0.1", "0x7f.1", "2130706433", "a.example", "b.example", "A.EXAMPLE", ":80", ":443",
    ":0", ".", "..", "\t", "\n", " ", "\x00", "ı", "。", "xn--e1afmkfd.xn--p1ai", "пример.рф", "user:pw@", "%lo",
    "|", "'",
])  # fmt: skip


@given(st.lists(PIECES, max_size=8), st.sampled_from(["http://", "https://", "HTTP://", ""]))
def test_an_accepted_address_reads_alike_in_every_parser(pieces: list[str], start: str) -> None:
    """The check, the connection and the request use the same host and target."""
    text = start + "".join(pieces)
    try:
        url = check_url(text, plain_http=True)
    except BadAddress:
        return
    read, target = urlsplit(text), request_target(text)
    assert read.username is None
    assert read.password is None
    assert (url.raw_host, url.scheme, url.raw_user) == (read.hostname, read.scheme, None)
    assert url.port == (read.port or {"http": 80, "https": 443}[read.scheme])
    assert url.raw_path_qs in (target, target.removesuffix("?"))
    assert target.startswith("/")
    assert target in (text if "/" in text.split("//", 1)[1].split("?")[0].split("#")[0] else f"{read.netloc}{target}")
    assert re.fullmatch(r"[!-~]+", target)
