"""The rate limits, rule by rule (docs/limits.md "Requests")."""

from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from litestar import Litestar, post

from cambist.adapters.counters.memory import MemoryCounters
from cambist.core.domain.accounts.rate_limit import (
    API,
    GENERAL,
    MONEY,
    WINDOW,
    Bucket,
    api_path,
    bucket,
    client_ip,
    headers,
    is_trusted,
    limits,
    networks,
    normalise_path,
    verdict,
    window,
)
from cambist.ports.counters import Counter
from tests.tables import table

NOW = 1_786_190_413
"""13 seconds after a whole minute of Unix time."""

IP, KEY = "203.0.113.7", "svc_test_0123456789abcdef"


class TestBuckets:
    @table("path", ["/payments", "/exchanges", "/subscriptions", "/subscriptions/sub_1/charges"])
    def test_money_endpoints_are_exactly_these(self, path: str) -> None:
        assert bucket("POST", path) is MONEY
        for method in ("GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"):
            assert bucket(method, path) is GENERAL

    @table(
        "path",
        [
            "/refunds",
            "/refunds/ref_1/cancel",
            "/subscriptions/sub_1/cancel",
            "/kyc/register",
            "/exchanges/exch_1/cancel",
            "/payments/pay_1",
            "/payments/pay_1/delivery-proof",
            "/subscriptions/charges",
            "/subscriptions/sub_1/charges/1",
            "/subscriptions/sub_1/x/charges",
            "/subscriptions/sub_1/rebind",
            "/sandbox/payments/pay_1/simulate",
            "/sandbox/subscriptions/sub_1/charges",
            "/withdrawals",
            "/",
            "/no/such/path",
        ],
    )
    def test_everything_else_is_general(self, path: str) -> None:
        assert bucket("POST", path) is GENERAL

    @table(("of", "ip", "key"), [(MONEY, 120, 120), (GENERAL, 300, 60)], ids=["money", "general"])
    def test_thresholds(self, of: Bucket, ip: int, key: int) -> None:
        assert (of.per_ip.number, of.per_key.number) == (ip, key)
        assert WINDOW == 60

    def test_the_messages_word_for_word(self) -> None:
        assert GENERAL.per_key.message == "Too many requests. Limit: 60 per minute."
        assert GENERAL.per_ip.message == "Too many requests for API. Limit: 300 per minute per IP."
        assert (
            MONEY.per_key.message
            == "Too many payment requests. Limit: 120 per minute. Retry with the same Idempotency-Key."
        )
        assert (
            MONEY.per_ip.message
            == "Too many payment requests from this IP. Limit: 120 per minute. Retry with the same Idempotency-Key."
        )


class TestPaths:
    @table(
        ("spelling", "path"),
        [
            ("/payments", "/payments"),
            ("//payments", "/payments"),
            ("/payments/", "/payments"),
            ("///payments//", "/payments"),
            ("payments", "/payments"),
            ("/", "/"),
            ("", "/"),
            ("//", "/"),
            ("/api//v1///payments/", "/api/v1/payments"),
            # These stay as they are, because the router treats them as other paths, too, and answers 404.
            ("/payments/.", "/payments/."),
            ("/./payments", "/./payments"),
            ("/x/../payments", "/x/../payments"),
            ("/%70ayments", "/%70ayments"),
            ("/Payments", "/Payments"),
            ("/payments;x=1", "/payments;x=1"),
            ("/payments ", "/payments "),
            ("/pay\\ments", "/pay\\ments"),
        ],
    )
    def test_only_slashes_are_normalised(self, spelling: str, path: str) -> None:
        assert normalise_path(spelling) == path

    @given(st.text(st.sampled_from("/.ab%")))
    def test_normalising_twice_changes_nothing(self, path: str) -> None:
        once = normalise_path(path)
        assert normalise_path(once) == once
        assert once.startswith("/")
        assert "//" not in once
        assert once == "/" or not once.endswith("/")

    @table(
        ("path", "relative"),
        [
            ("/api/v1/payments", "/payments"),
            ("/api/v1", "/"),
            ("/api/v1x/payments", None),
            ("/api/v10", None),
            ("/api", None),
            ("/", None),
            ("/p/pay_1", None),
            ("/x/api/v1/payments", None),
        ],
    )
    def test_api_path_is_the_part_under_the_prefix(self, path: str, relative: str | None) -> None:
        assert api_path(path) == relative


def _router() -> Litestar:
    """The money endpoints in the framework that serves them."""

    @post(["/payments", "/exchanges", "/subscriptions", "/subscriptions/{subscription_id:str}/charges"])
    async def money() -> None:
        """Reached."""

    @post("/refunds")
    async def other() -> None:
        """Not money."""

    return Litestar([money, other], path=API, openapi_config=None, logging_config=None)


async def _is_routed(app: Litestar, path: str) -> bool:
    """Whether POST `path` reaches an endpoint."""
    seen: list[int] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            seen.append(message["status"])

    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "surrogatepass"),
        "root_path": "",
        "query_string": b"",
        "headers": [],
        "client": (IP, 1),
        "server": ("test", 80),
        "state": {},
    }
    await app(scope, receive, send)
    return seen == [201]


_PARTS = st.sampled_from(
    [
        *("payments", "exchanges", "subscriptions", "charges", "sub_1", "api", "v1"),
        *("Payments", "PAYMENTS", "payments.", "payments;a=1", "%70ayments", "a%2Fb", "charges/"),
        *("", ".", "..", "/", "%2e", "%20", "\\"),
    ]
)
_MONEY_SPELLINGS = st.builds(
    lambda parts, slashes, end: "".join(slash + part for slash, part in zip(slashes, parts, strict=False)) + end,
    st.sampled_from(
        [
            ["api", "v1", "payments"],
            ["api", "v1", "exchanges"],
            ["api", "v1", "subscriptions"],
            ["api", "v1", "subscriptions", "sub_1", "charges"],
            ["%61pi", "v1", "%70ayment%73"],
            ["api", "v1", "%2fpayments"],
            ["api", "v1", "subscriptions", "a%2Fb", "charges"],
        ]
    ),
    st.lists(st.sampled_from(["/", "//", "///", "/./", "%2F", ""]), min_size=5, max_size=5),
    st.sampled_from(["", "/", "//", "/.", "%2F", " ", "\t"]),
)


class TestNoSpellingEscapes:
    app = _router()

    @settings(max_examples=500)
    @given(st.one_of(_MONEY_SPELLINGS, st.lists(_PARTS, max_size=6).map("/".join)))
    @example("/api/v1//payments")
    @example("/api/v1/payments/")
    @example("/api/v1/%70ayments")
    @example("//api/v1/subscriptions/x/charges//")
    async def test_path_routed_to_a_money_endpoint_is_counted_as_one(self, spelling: str) -> None:
        """One spelling for each path (docs/limits.md "Requests"). The server decodes percents once; the router sees
        that path, or our normalised one."""
        path = unquote(spelling)
        normal = normalise_path(path)
        relative = api_path(normal)
        is_money = relative is not None and bucket("POST", relative) is MONEY
        is_refund = relative == "/refunds"
        assert await _is_routed(self.app, normal) is (is_money or is_refund)
        assert await _is_routed(self.app, path) is (is_money or is_refund)

    async def test_the_router_of_this_test_does_route(self) -> None:
        assert await _is_routed(self.app, "/api/v1/payments")
        assert not await _is_routed(self.app, "/api/v1/payment")


def pair(name: str, limit: int) -> tuple[str, int]:
    return name, limit


class TestGauges:
    def test_the_address_comes_first_then_the_key(self) -> None:
        assert limits(MONEY, IP, KEY, pair) == ((f"money:ip:{IP}", 120), (f"money:key:{KEY}", 120))
        assert limits(GENERAL, IP, KEY, pair) == ((f"general:ip:{IP}", 300), (f"general:key:{KEY}", 60))

    @table("key", [None, ""])
    def test_address_alone_is_counted_without_a_key(self, key: str | None) -> None:
        assert limits(GENERAL, IP, key, pair) == ((f"general:ip:{IP}", 300),)

    def test_the_use_case_gets_its_own_words(self) -> None:
        assert limits(GENERAL, IP, KEY, Counter)[0] == Counter(f"general:ip:{IP}", 300)

    @given(st.text(st.characters(), min_size=1, max_size=3_000))
    @example("k" * 100_000)
    @example("\x00")
    @example("\ud800")
    @example("ключ")
    def test_the_name_of_a_counter_is_bounded(self, key: str) -> None:
        name = limits(GENERAL, IP, key, pair)[1][0]
        assert len(name) <= len("general:key:") + 65
        assert name.isascii()

    @given(st.lists(st.text(st.characters(), min_size=1, max_size=100), min_size=2, max_size=5, unique=True))
    @example(["k" * 65, "k" * 66])
    @example(["é" * 10, "é" * 11])
    def test_different_keys_have_different_counters(self, keys: list[str]) -> None:
        """Keys are counted by their text (docs/limits.md "Requests")."""
        assert len({limits(GENERAL, IP, key, pair)[1] for key in keys}) == len(keys)

    @table(
        ("key", "is_its_text"),
        [("k" * 64, True), ("k" * 65, False), ("é", False)],
        ids=ascii,
    )
    def test_long_or_non_ascii_key_is_counted_by_its_digest(self, key: str, is_its_text: bool) -> None:
        """Names stay small, and different keys different counters (docs/decisions.md "Requests")."""
        assert (limits(GENERAL, IP, key, pair)[1][0] == f"general:key:{key}") is is_its_text

    def test_key_equal_to_the_digest_of_another_has_its_own_counter(self) -> None:
        long = "k" * 65
        digest = limits(GENERAL, IP, long, pair)[1][0].removeprefix("general:key:")
        assert limits(GENERAL, IP, digest, pair)[1] != limits(GENERAL, IP, long, pair)[1]

    def test_buckets_and_kinds_share_no_counter(self) -> None:
        names = [name for of in (MONEY, GENERAL) for name, _ in limits(of, "x", "x", pair)]
        assert len(set(names)) == 4


class TestVerdict:
    def test_verdict_without_a_key_shows_the_address_limit(self) -> None:
        judged = verdict(GENERAL, [1], NOW)
        assert (judged.limit, judged.over, judged.remaining) == (GENERAL.per_ip, False, 299)

    def test_verdict_within_both_limits_shows_the_key_limit(self) -> None:
        judged = verdict(GENERAL, [299, 5], NOW)
        assert (judged.limit, judged.over, judged.remaining) == (GENERAL.per_key, False, 55)

    def test_verdict_over_the_address_limit_shows_that_limit(self) -> None:
        judged = verdict(MONEY, [121], NOW)
        assert (judged.limit, judged.over, judged.remaining) == (MONEY.per_ip, True, 0)

    def test_verdict_over_the_key_limit_shows_that_limit(self) -> None:
        judged = verdict(GENERAL, [61, 61], NOW)
        assert (judged.limit, judged.over, judged.remaining) == (GENERAL.per_key, True, 0)

    @table("of", [MONEY, GENERAL], ids=["money", "general"])
    def test_the_request_that_reaches_the_limit_passes_and_the_next_is_over(self, of: Bucket) -> None:
        for limit, before in ((of.per_ip, []), (of.per_key, [1])):
            last, following = (verdict(of, [*before, limit.number + more], NOW) for more in (0, 1))
            assert (last.limit, last.over, last.remaining) == (limit, False, 0)
            assert (following.limit, following.over, following.remaining) == (limit, True, 0)
            assert verdict(of, [*before, 10**9], NOW).remaining == 0

    @given(st.integers(0, 2**40))
    @example(0)
    @example(59)
    @example(60)
    def test_windows(self, now: int) -> None:
        judged = verdict(GENERAL, [1], now)
        assert 1 <= judged.wait <= WINDOW
        assert judged.reset == now + judged.wait
        assert judged.reset % WINDOW == 0
        assert window(judged.reset) == window(now) + 1, "whoever waits is in the next window"
        assert window(judged.reset - 1) == window(now)


class TestHeaders:
    def test_the_seven_of_every_response(self) -> None:
        assert headers(verdict(GENERAL, [1, 5], NOW)) == [
            (b"x-ratelimit-limit", b"60"),
            (b"x-ratelimit-remaining", b"55"),
            (b"x-ratelimit-reset", b"1786190460"),
            (b"ratelimit-policy", b"60;w=60"),
            (b"ratelimit-limit", b"60"),
            (b"ratelimit-remaining", b"55"),
            (b"ratelimit-reset", b"47"),
        ]

    def test_retry_after_only_when_over(self) -> None:
        over = headers(verdict(MONEY, [121], NOW))
        assert over[-1] == (b"retry-after", b"47")
        assert dict(over)[b"ratelimit-remaining"] == b"0"
        assert len(over) == 8

    @given(st.sampled_from([MONEY, GENERAL]), st.lists(st.integers(1, 400), min_size=1, max_size=2), st.integers(0))
    def test_always_complete_and_of_one_voice(self, of: Bucket, counts: list[int], now: int) -> None:
        judged = verdict(of, counts, now)
        told = dict(headers(judged))
        assert told[b"x-ratelimit-limit"] == told[b"ratelimit-limit"] == b"%d" % judged.limit.number
        assert told[b"x-ratelimit-remaining"] == told[b"ratelimit-remaining"] == b"%d" % judged.remaining
        assert told[b"ratelimit-policy"] == b"%d;w=60" % judged.limit.number
        assert told[b"x-ratelimit-reset"] == b"%d" % judged.reset
        assert told[b"ratelimit-reset"] == b"%d" % judged.wait
        assert told.get(b"retry-after") == (b"%d" % judged.wait if judged.over else None)


class TestWithAMeter:
    """The domain and counters together, as admission uses them."""

    @staticmethod
    async def ask(counters: MemoryCounters, of: Bucket, ip: str, key: str | None, now: int = NOW) -> str | None:
        counts = await counters.count(window(now), limits(of, ip, key, Counter))
        judged = verdict(of, counts, now)
        return judged.limit.message if judged.over else None

    async def test_the_61st_general_request_of_a_key_is_stopped(self) -> None:
        counters = MemoryCounters()
        for _ in range(60):
            assert await self.ask(counters, GENERAL, IP, KEY) is None
        assert await self.ask(counters, GENERAL, IP, KEY) == GENERAL.per_key.message
        assert await self.ask(counters, GENERAL, IP, "svc_live_1") is None, "test and live are separate budgets"
        assert await self.ask(counters, MONEY, IP, KEY) is None, "buckets share no counter"
        assert await self.ask(counters, GENERAL, IP, KEY, NOW + WINDOW) is None

    async def test_request_over_the_address_limit_is_not_counted_for_the_key(self) -> None:
        counters = MemoryCounters()
        for number in range(300):
            assert await self.ask(counters, GENERAL, IP, f"svc_test_{number}") is None
        for _ in range(100):
            assert await self.ask(counters, GENERAL, IP, KEY) == GENERAL.per_ip.message
        for _ in range(60):
            assert await self.ask(counters, GENERAL, "203.0.113.8", KEY) is None

    async def test_the_121st_money_request_is_stopped_by_the_address_first(self) -> None:
        counters = MemoryCounters()
        for _ in range(120):
            assert await self.ask(counters, MONEY, IP, KEY) is None
        assert await self.ask(counters, MONEY, IP, KEY) == MONEY.per_ip.message
        assert await self.ask(counters, MONEY, "203.0.113.8", KEY) == MONEY.per_key.message


PROXIES = networks(["10.0.0.0/8", "192.0.2.1", "2001:db8:ffff::/48"])


class TestClientAddress:
    @table(
        ("peer", "source"),
        [
            ("203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:0DB8:0001:0002::9", "2001:db8:1:2::/64"),
            ("fe80::1%eth0", "fe80::/64"),
            ("::1", "::/64"),
            (None, "unknown"),
            ("", "unknown"),
            ("no:address", "unknown"),
        ],
    )
    def test_the_socket_counts_and_headers_do_not(self, peer: str | None, source: str) -> None:
        for forwarded in (None, "198.51.100.1", "garbage"):
            assert client_ip(peer, forwarded, ()) == source

    @table("peer", ["203.0.113.7", "10.0.0.1.example", "2001:db8::1", None, ""])
    def test_a_header_from_an_untrusted_peer_is_ignored(self, peer: str | None) -> None:
        assert client_ip(peer, "198.51.100.1", PROXIES) == client_ip(peer, None, PROXIES) != "198.51.100.1"

    @table(
        ("forwarded", "source"),
        [
            (None, "10.0.0.1"),
            ("", "10.0.0.1"),
            ("198.51.100.1", "198.51.100.1"),
            (" 198.51.100.1 ", "198.51.100.1"),
            ("1.1.1.1, 198.51.100.1", "198.51.100.1"),
            ("1.1.1.1,198.51.100.1,10.2.3.4", "198.51.100.1"),
            ("1.1.1.1, 198.51.100.1, 192.0.2.1, 10.2.3.4", "198.51.100.1"),
            ("10.9.9.9", "10.9.9.9"),
            ("10.9.9.9, 10.8.8.8", "10.9.9.9"),
            ("198.51.100.1:4711", "198.51.100.1"),
            ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
            ("[2001:db8:1:2::7]:443", "2001:db8:1:2::/64"),
            ("[2001:db8:1:2::7]", "2001:db8:1:2::/64"),
            ("198.51.100.1, 2001:db8:ffff::5", "198.51.100.1"),
            ("198.51.100.1, ::ffff:10.0.0.9", "198.51.100.1"),
            ("::ffff:198.51.100.1", "198.51.100.1"),
            # Garbage ends the walk at the proxy that vouches for it.
            ("unknown", "10.0.0.1"),
            ("198.51.100.1, unknown", "10.0.0.1"),
            ("198.51.100.1, unknown, 10.2.3.4", "10.2.3.4"),
            ("198.51.100.1,,10.2.3.4", "10.2.3.4"),
            ("198.51.100.1, 010.2.3.4", "10.0.0.1"),
            ("198.51.100.1, 300.1.1.1", "10.0.0.1"),
            ("x" * 60_000, "10.0.0.1"),
            ("garbage, 198.51.100.1", "198.51.100.1"),
        ],
    )
    def test_behind_a_trusted_proxy_the_last_untrusted_hop_counts(self, forwarded: str | None, source: str) -> None:
        assert client_ip("10.0.0.1", forwarded, PROXIES) == source
        assert client_ip("::ffff:10.0.0.1", forwarded, PROXIES) == source

    @table(
        ("peer", "trusted"),
        [
            ("10.0.0.1", True),
            ("::ffff:10.0.0.1", True),
            ("192.0.2.1", True),
            ("2001:db8:ffff::5", True),
            ("192.0.2.2", False),
            ("2001:db8::5", False),
            ("no:address", False),
            ("", False),
            (None, False),
        ],
    )
    def test_only_an_address_of_a_trusted_proxy_is_trusted(self, peer: str | None, trusted: bool) -> None:
        assert is_trusted(peer, PROXIES) is trusted
        assert not is_trusted(peer, ())

    @given(st.text(st.sampled_from("0123456789abcdef.:,[]% \x00я"), max_size=100), st.ip_addresses())
    def test_header_written_by_a_client_never_changes_its_counter(self, written: str, client: object) -> None:
        """Left of the hop that our proxy wrote, a client may write what it likes."""
        if any(client in network for network in PROXIES):
            return
        honest = client_ip("10.0.0.1", str(client), PROXIES)
        assert client_ip("10.0.0.1", f"{written}, {client}", PROXIES) == honest

    @given(st.one_of(st.none(), st.text(max_size=40)), st.one_of(st.none(), st.text(max_size=80)))
    def test_never_raises(self, peer: str | None, forwarded: str | None) -> None:
        assert client_ip(peer, forwarded, PROXIES)

    @given(st.ip_addresses(v=6))
    def test_a_whole_64_is_one_source(self, address: Any) -> None:
        neighbour = ip_address(int(address) ^ (1 << 63))
        if address.ipv4_mapped is None and neighbour.version == 6 and not address.is_unspecified:
            same = ip_network(f"{address}/64", strict=False)
            assert client_ip(str(address), None, ()) == str(same)

    def test_networks_that_are_none_are_refused(self) -> None:
        assert networks([" 10.0.0.0/8 ", "::1"]) == (ip_network("10.0.0.0/8"), ip_network("::1"))
        for text in ("", "example.org", "10.0.0.1/8", "10.0.0.0/33"):
            with pytest.raises(ValueError, match=r".+"):
                networks([text])
