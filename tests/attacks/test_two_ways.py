"""The interface answers to whatever is sent what it would with routes of the framework (tests/framework_way.py): two
apps of the same beginning, one asked by each way, whose answers are held against each other whole.

Two thousand requests in the suite; `nox -s attacks` sends twenty thousand.
"""

import asyncio
import os
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from litestar.types import ASGIApp

from cambist.core.usecases.accounts import accounts
from cambist.frontends.http.edge.operation import Operation
from cambist.frontends.http.operations import OPERATIONS
from cambist.frontends.server.app import create_app
from tests.apps import TestApp, open_test_app
from tests.framework_way import framework_way, in_order
from tests.openapi_tour import EXAMPLES as RECORDED
from tests.tables import table

COUNT = 20_000 if os.environ.get("CAMBIST_ATTACKS") == "full" else 2000
IN_A_WINDOW = 100
"""Requests between two windows of the rate limits: some are over them, most are not."""

EXAMPLES: dict[str, Any] = msgspec.json.decode(RECORDED.read_bytes())["operations"]
_ODDS = {"create_payment": 4.0, "get_payment": 4.0, "delete_sandbox_data": 0.1}
WEIGHTS = [_ODDS.get(each.id, 1.0) for each in OPERATIONS]

_PARAMETER = re.compile(r"\{(\w+)\}")
_AN_ID = re.compile(rb'"((?:pay|ref|evt|sub|stl|wd|exch)_[0-9a-f-]{36})"')
_PREFIXES = {
    "payment_id": "pay",
    "refund_id": "ref",
    "event_id": "evt",
    "subscription_id": "sub",
    "settlement_id": "stl",
    "withdrawal_id": "wd",
    "exchange_id": "exch",
    "object_id": "pay",
}

Header = tuple[bytes, bytes]
Answered = tuple[int, list[Header], bytes]

GOOD_HOSTS = (b"pay.example", b"PAY.example:443", b"127.0.0.1:8080", b"[::1]:8080", b"", b"a.b-c_d~e", b"x" * 300)
BAD_HOSTS = (
    b"localhost?",
    b"loca\xc3\xa9l",
    b"pay.example/",
    b"pay.example/../x",
    b"http://pay.example",
    b"pay example",
    b"pay\texample",
    b"pay.example#",
    b"user@pay.example",
    b"a,b/",
    b"<script>",
    b"pay.example\\evil",
    b'"pay"',
    b"{}",
    b"\x00",
    b"\xff\xfe",
    b"a\x7fb",
    b"^",
    b"|",
    b"`",
    b"pay.example\x85",
    b"\n",
    b"pay.example\n",
    b" pay.example",
)
FEATURES = {"refunds": "true", "exchange": "true", "direct_links": "true", "recurring": "true"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", "PROPFIND")
ODD_IDS = (
    "pay_",
    "pay_é",
    "pay_\x00",
    "PAY_1",
    "pay_..",
    "x" * 5000,
    "%31",
    "..",
    "resend",
    "x y",
    "pay_1;a=1",
    "{",
    "\udc80",
)
ODD_PATHS = (
    "{}/",
    "/{}",
    "{}/x",
    "//api//v1/payments",
    "/API/v1/payments",
    "/api/v1",
    "/api/v1/",
    "/api/v1/nothing",
    "/api/v1/events/resend",
    "/api/v1/shops",
    "/api/v1/sandbox",
    "/api/v1/sandbox/payments",
    "/nothing",
    "/",
)
USUAL_VALUES = {
    "page": "1",
    "per_page": "2",
    "status": "paid",
    "format": "csv",
    "wait": "0",
    "after": "beginning",
    "q": "000",
}
ODD_VALUES = ("", "0", "-1", "x", "%00", "%ff", "%D0%BF", "a+b", "99999999999", "json", "2026-01-01", "paid;x", "%3D")
ODD_QUERIES = (b"a=1", b"\xff", b"page=x", b"page=2&page=1", b"&&", b"=", b"page", b"page=1;per_page=2", b"x" * 3000)
ODD_FIELDS: tuple[Any, ...] = (None, "", 0, -1, True, [], {}, "x" * 300, "\0", "é", 1e300, "0.001", "9999999999999.99")
UUIDS = ("6f1c6f0e-8f0b-4a57-9d0e-0f0a5f3c2b11", "{6f1c6f0e-8f0b-4a57-9d0e-0f0a5f3c2b11}", "no", "", "é", "0" * 400)
BODIES = (
    b'{"amount_rub":"100.00"}',
    b'{"amount_rub":"1.00"}',
    b'{"amount_rub":100}',
    b'{"amount_rub":"100.00","x":1}',
    b"{}",
    b"[]",
    b"null",
    b"",
    b'{"amount_rub":"100.00"',
    b"\xff",
    b'{"amount_rub":"100.00","metadata":{"a":[1,{"b":null}]}}',
    b'{"amount_rub":"1e3"}',
    b"\x00",
    b'{"amount_rub":"100.00","webhook_url":"https://a@b"}',
    b'{"amount_rub":"100.00","amount_rub":"5.00"}',
    b"[" * 2000,
    b'"' + b"x" * 5000,
)
TYPES = (
    b"application/json",
    b"application/json; charset=utf-8",
    b"text/plain",
    b"",
    b"application/JSON",
    b"multipart/form-data",
    b"\xff",
)


class Way:
    """One app and the application that serves it."""

    def __init__(self, app: TestApp, asgi: ASGIApp) -> None:
        self.app = app
        self._app = asgi

    async def ask(self, scope: dict[str, Any], parts: Sequence[bytes]) -> Answered:
        messages: list[Any] = []
        left, over = list(parts), asyncio.Event()

        async def receive() -> Any:
            if not left:
                await over.wait()
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

        async def send(message: Any) -> None:
            messages.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                over.set()

        asked: Any = {**scope, "headers": list(scope["headers"]), "state": {}}
        await self._app(asked, receive, send)
        sent = sorted((name.lower(), in_order(name, value)) for name, value in messages[0]["headers"])
        return messages[0]["status"], sent, b"".join(message.get("body", b"") for message in messages[1:])


class Made:
    """Requests of usual and odd parts, for every operation of the interface."""

    def __init__(self, seed: int, app: TestApp) -> None:
        self._chance = random.Random(seed)
        self._app = app
        self._number = 0
        self._ids: dict[str, list[str]] = {}
        """Ids that were answered, by their prefix."""

    def learn(self, body: bytes) -> None:
        """Use the ids of this answer from now on."""
        for found in _AN_ID.findall(body):
            known = self._ids.setdefault(found.partition(b"_")[0].decode(), [])
            if found.decode() not in known:
                known.append(found.decode())

    def _one(self, usual: Any, *odd: Any, odds: float = 0.2) -> Any:
        return self._chance.choice(odd) if odd and self._chance.random() < odds else usual

    def _id(self, name: str) -> str:
        """Return an id of an object that a parameter or field of this name could mean."""
        if name == "gateway_id":
            return "simulator-test"
        known = self._ids.get(_PREFIXES.get(name, "pay"), [])[-8:]
        return self._chance.choice(known or [f"{_PREFIXES.get(name, 'pay')}_00000000-0000-7000-8000-000000000000"])

    def _path(self, operation: Operation[Any]) -> tuple[str, str]:
        path = _PARAMETER.sub(lambda found: self._one(self._id(found[1]), *ODD_IDS, odds=0.1), operation.path)
        method = self._one(operation.method.upper(), *METHODS, odds=0.08)
        return method, self._one(path, *(odd.format(path) for odd in ODD_PATHS), odds=0.08)

    def _query(self, operation: Operation[Any]) -> bytes:
        given = []
        for each in operation.query:
            if self._chance.random() < 0.25:
                usual = USUAL_VALUES.get(each.name) or self._id(each.name)
                given.append(f"{each.name}={self._one(usual, *ODD_VALUES, odds=0.3)}")
        self._chance.shuffle(given)
        return self._one("&".join(given).encode(), *ODD_QUERIES, odds=0.05)  # type: ignore[no-any-return]

    def _body(self, operation: Operation[Any]) -> bytes:
        """The recorded request of an operation, with ids of this app; or an odd one."""
        example = EXAMPLES.get(operation.id, {}).get("request", {"amount_rub": "100.00"})
        body = {name: self._id(name) if name in _PREFIXES else value for name, value in example.items()}
        body.pop("external_id", None)
        if body and self._chance.random() < 0.2:
            name = self._chance.choice(sorted(body))
            body[name] = self._chance.choice(ODD_FIELDS)
        usual = msgspec.json.encode(body)
        return self._one(usual, *BODIES, b"x" * 102_401, odds=0.2)  # type: ignore[no-any-return]

    def _headers(self, body: bytes) -> list[Header]:
        accounts = self._app.account
        pair = self._one(accounts.test, accounts.live, odds=0.1)
        self._number += 1
        key = f"00000000-0000-4000-8000-{self._chance.randrange(200):012x}"
        given: list[Header] = [
            (b"x-api-key", self._one(pair.api_key, pair.api_key[:-1], "", "é", "x" * 300, odds=0.05).encode()),
            (b"x-api-secret", self._one(pair.api_secret, "wrong", "", odds=0.03).encode()),
            (b"idempotency-key", self._one(key, *UUIDS, odds=0.1).encode()),
            (b"content-type", self._one(b"application/json", *TYPES, odds=0.1)),
            (b"x-request-id", self._one(b"one", b"\xff", b"x" * 200, b"a b", b"")),
        ]
        if self._chance.random() < 0.9:
            host = self._chance.choice(GOOD_HOSTS if self._chance.random() < 0.9 else BAD_HOSTS)
            given.append((b"host", host))
        if self._chance.random() < 0.5:
            length = b"%d" % len(body)
            given.append((b"content-length", self._one(length, b"-1", b"x", b"999999999", b"1" * 30, odds=0.1)))
        else:
            given.append((b"transfer-encoding", b"chunked"))
        if self._chance.random() < 0.1:  # twice
            given.append(self._chance.choice([*given, (b"host", b"localhost?"), (b"x-forwarded-for", b"10.0.0.1")]))
        if self._chance.random() < 0.05:
            given.pop(self._chance.randrange(len(given)))
        self._chance.shuffle(given)
        return given

    def request(self, operation: Operation[Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return a request for this operation, or for a similar path."""
        method, path = self._path(operation)
        body = self._body(operation) if method != "GET" else b""
        cut = self._chance.randrange(len(body) + 1)
        parts = self._one([body], [body[:cut], body[cut:]], [b"", body])
        headers = self._headers(body)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode("utf-8", "surrogatepass"),
            "query_string": self._query(operation),
            "headers": headers,
            "client": (f"10.0.{self._number % 250}.1", 5),
            "server": ("127.0.0.1", 80),
            "scheme": "http",
            "root_path": "",
        }
        return scope, parts


def unsigned(told: Answered) -> Answered:
    """Return an answer without the tags of links, which each app's vault makes with keys of its own."""
    status, headers, body = told
    return status, headers, re.sub(rb"(export-files/exp_[^.]+\.[0-9]+)\.[0-9a-f]+", rb"\1", body)


@pytest.mark.parametrize("seed", [11])
async def test_both_ways_answer_the_same_to_whatever_is_sent(seed: int) -> None:
    async with open_test_app() as short_app, open_test_app() as long_app:
        short = Way(short_app, create_app(short_app.ports))
        long = Way(long_app, framework_way(long_app.ports))
        for way in (short, long):
            await accounts.set_settings(way.app.ports, way.app.account.account_id, FEATURES)
            way.app.made_up = True  # the tests of each subject check the books
        made, order = Made(seed, short_app), random.Random(seed)
        statuses: Counter[int] = Counter()
        well: set[str] = set()
        for number in range(COUNT):
            operation = order.choices(OPERATIONS, WEIGHTS)[0]
            scope, parts = made.request(operation)
            told = await short.ask(scope, parts)
            other = await long.ask(scope, parts)
            assert unsigned(told) == unsigned(other), (
                number,
                scope["method"],
                scope["path"][:99],
                scope["headers"],
            )
            statuses[told[0]] += 1
            if told[0] < 300:
                well.add(operation.id)
                made.learn(told[2])
            if number % IN_A_WINDOW == IN_A_WINDOW - 1:
                for way in (short, long):
                    await way.app.clock.advance(60)
    assert statuses.keys() >= {200, 201, 400, 401, 404, 405, 413, 429}
    # Most operations succeeded at least once; the others need a state that chance seldom creates.
    assert len(well) > len(OPERATIONS) * 0.6, sorted(each.id for each in OPERATIONS if each.id not in well)


@table("path", ["/api/v1/payments/pay_1", "/api/v1/rates", "/p/pay_1", "/health", "/nothing", "/docs"])
@table("host", BAD_HOSTS, ids=ascii)
async def test_a_malformed_host_is_refused_wherever_it_is_sent(app: TestApp, path: str, host: bytes) -> None:
    way = Way(app, app.http._transport.app)  # type: ignore[attr-defined]
    await app.clock.advance(60)  # to stay below the rate limits
    keys = [(name.lower().encode(), value.encode()) for name, value in app.headers().items()]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode("utf-8", "surrogatepass"),
        "query_string": b"",
        "headers": [*keys, (b"host", host)],
        "client": ("10.0.0.1", 5),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "root_path": "",
    }
    status, _, body = await way.ask(scope, [b""])
    assert (status, msgspec.json.decode(body)["error"]["code"]) == (400, "VALIDATION_ERROR")
