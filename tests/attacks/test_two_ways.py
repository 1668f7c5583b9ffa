"""The short way in front of the framework and the framework itself answer the same to whatever is sent: two houses of
the same beginning, one asked by each way, whose answers are held against each other whole.

A thousand requests in the suite; `nox -s attacks` sends ten thousand.
"""

import os
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from litestar.types import ASGIApp

from cambist.frontends.http.api import ShortWay
from cambist.frontends.http.app import create_app
from cambist.frontends.http.door.edge import Edge
from tests.houses import TestHouse, open_test_house

COUNT = 10_000 if os.environ.get("CAMBIST_ATTACKS") == "full" else 1000
IN_A_WINDOW = 250
"""Requests between two windows of the rate limits: some are over them, most are not."""

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
    """One house, asked by one application."""

    def __init__(self, house: TestHouse, app: ASGIApp) -> None:
        self.house = house
        self._app = app

    async def ask(self, scope: dict[str, Any], parts: Sequence[bytes]) -> Answered:
        messages: list[Any] = []
        left = list(parts)

        async def receive() -> Any:
            return {"type": "http.request", "body": left.pop(0) if left else b"", "more_body": bool(left)}

        async def send(message: Any) -> None:
            messages.append(message)

        asked: Any = {**scope, "headers": list(scope["headers"]), "state": {}}
        await self._app(asked, receive, send)
        sent = sorted((name.lower(), _in_order(name, value)) for name, value in messages[0]["headers"])
        return messages[0]["status"], sent, b"".join(message.get("body", b"") for message in messages[1:])


def _in_order(name: bytes, value: bytes) -> bytes:
    """The framework lists the methods of a path in any order."""
    return b", ".join(sorted(value.split(b", "))) if name.lower() == b"allow" else value


class Made:
    """Requests made up of what is usual and what is odd."""

    def __init__(self, seed: int, house: TestHouse) -> None:
        self._chance = random.Random(seed)
        self._house = house
        self.ids: list[str] = ["pay_00000000-0000-7000-8000-000000000000"]
        self._number = 0

    def _one(self, usual: Any, *odd: Any, odds: float = 0.2) -> Any:
        return self._chance.choice(odd) if odd and self._chance.random() < odds else usual

    def _path(self) -> tuple[str, str]:
        one = self._chance.choice(self.ids)
        usual = self._chance.choice(("POST /api/v1/payments", f"GET /api/v1/payments/{one}"))
        odd = (
            "GET /api/v1/payments",
            f"PUT /api/v1/payments/{one}",
            f"HEAD /api/v1/payments/{one}",
            "POST /api/v1/payments/",
            "POST //api/v1//payments",
            f"GET /api/v1/payments/{one}/",
            f"GET /api/v1/payments/{one}/x",
            "GET /api/v1/payments/pay_",
            "GET /api/v1/payments/pay_é",
            "GET /api/v1/payments/pay_\x00",
            "GET /api/v1/payments/PAY_1",
            f"OPTIONS /api/v1/payments/{one}",
            "DELETE /api/v1/payments",
            "GET /api/v1/payments/pay_..",
            "POST /api/v1/payments/pay_1",
            "TRACE /api/v1/payments",
            "GET /api/v1/payments/pay_" + "x" * 5000,
            "POST /api/v1/Payments",
            "GET /api/v1/payments/pay_%31",
            "GET /nothing",
            "GET /",
        )
        method, _, path = self._one(usual, *odd).partition(" ")
        return method, path

    def _headers(self, body: bytes) -> list[Header]:
        pair = self._house.account.test
        self._number += 1
        key = f"00000000-0000-4000-8000-{self._chance.randrange(200):012x}"
        given: list[Header] = [
            (b"x-api-key", self._one(pair.api_key, pair.api_key[:-1], "", "é", "x" * 300, odds=0.1).encode()),
            (b"x-api-secret", self._one(pair.api_secret, "wrong", "", odds=0.05).encode()),
            (b"idempotency-key", self._one(key, *UUIDS).encode()),
            (b"content-type", self._one(b"application/json", *TYPES)),
            (b"x-request-id", self._one(b"one", b"\xff", b"x" * 200, b"a b", b"")),
        ]
        if self._chance.random() < 0.9:
            host = self._chance.choice(GOOD_HOSTS if self._chance.random() < 0.7 else BAD_HOSTS)
            given.append((b"host", host))
        if self._chance.random() < 0.5:
            length = b"%d" % len(body)
            given.append((b"content-length", self._one(length, b"-1", b"x", b"999999999", b"1" * 30, odds=0.1)))
        else:
            given.append((b"transfer-encoding", b"chunked"))
        if self._chance.random() < 0.1:  # twice
            given.append(self._chance.choice([*given, (b"host", b"localhost?"), (b"x-forwarded-for", b"10.0.0.1")]))
        if self._chance.random() < 0.1:
            given.pop(self._chance.randrange(len(given)))
        self._chance.shuffle(given)
        return given

    def request(self) -> tuple[dict[str, Any], list[bytes]]:
        method, path = self._path()
        body = self._one(BODIES[0], *BODIES, b"x" * 102_401, odds=0.4) if method != "GET" else b""
        cut = self._chance.randrange(len(body) + 1)
        parts = self._one([body], [body[:cut], body[cut:]], [b"", body])
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": self._one(b"", b"a=1", b"\xff", b"page=x"),
            "headers": self._headers(body),
            "client": (f"10.0.{self._number % 250}.1", 5),
            "server": ("127.0.0.1", 80),
            "scheme": "http",
            "root_path": "",
        }
        return scope, parts


@pytest.mark.parametrize("seed", [11])
async def test_both_ways_answer_the_same_to_whatever_is_sent(seed: int) -> None:
    async with open_test_house() as short_house, open_test_house() as long_house:
        app: Any = create_app(short_house.ports)
        framework: Any = create_app(long_house.ports)
        assert isinstance(app, Edge)
        assert isinstance(app._app, ShortWay)
        short, long = Way(short_house, app), Way(long_house, Edge(framework._app._app, long_house.ports, ()))
        made, statuses = Made(seed, short_house), set()
        for number in range(COUNT):
            scope, parts = made.request()
            told = await short.ask(scope, parts)
            assert told == await long.ask(scope, parts), (number, scope["method"], scope["path"][:99], scope["headers"])
            statuses.add(told[0])
            if told[0] == 201:
                made.ids.append(msgspec.json.decode(told[2])["id"])
            if number % IN_A_WINDOW == IN_A_WINDOW - 1:
                for way in (short, long):
                    await way.house.clock.advance(60)
    assert statuses >= {200, 201, 400, 401, 404, 405, 413, 429}


@pytest.mark.parametrize(
    "path", ["/api/v1/payments/pay_1", "/api/v1/rates", "/p/pay_1", "/health", "/nothing", "/docs"]
)
@pytest.mark.parametrize("host", BAD_HOSTS, ids=ascii)
async def test_a_malformed_host_is_refused_wherever_it_is_sent(house: TestHouse, path: str, host: bytes) -> None:
    way = Way(house, create_app(house.ports))
    keys = [(name.lower().encode(), value.encode()) for name, value in house.headers().items()]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [*keys, (b"host", host)],
        "client": ("10.0.0.1", 5),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "root_path": "",
    }
    status, _, body = await way.ask(scope, [b""])
    assert (status, msgspec.json.decode(body)["error"]["code"]) == (400, "VALIDATION_ERROR")
