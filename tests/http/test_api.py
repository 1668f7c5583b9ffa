"""Operations are answered as their rows say, and as routes of the framework would answer them."""

import inspect
import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from litestar.types import ASGIApp, Message

from cambist.core.domain.accounts.accounts import Caller
from cambist.core.usecases.accounts.accounts import KeyPair
from cambist.core.usecases.accounts.written_bytes import ByteCounter
from cambist.frontends.http.api import Api
from cambist.frontends.http.edge.answers import Answer
from cambist.frontends.http.edge.edge import Edge
from cambist.frontends.http.edge.operation import ApiRequest, AppContext, Operation
from cambist.frontends.http.edge.streams import WindowStreams
from cambist.frontends.http.health import Doctor
from cambist.frontends.http.operations import OPERATIONS
from cambist.frontends.server.app import create_app
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from tests.apps import TestApp
from tests.framework_way import framework_way, in_order
from tests.tables import table

BODY = b'{"amount_rub":"100.00"}'
Answered = tuple[int, dict[bytes, bytes], bytes]


class Ways:
    """Two applications over one set of ports: ours, and one whose operations are routes of the framework."""

    def __init__(self, ports: Ports, pair: KeyPair) -> None:
        self.ports = ports
        self.pair = pair
        short = create_app(ports)
        assert isinstance(short, Edge)
        self.short = short
        self.long = framework_way(ports)
        self._came = 0

    async def ask(
        self, asgi: ASGIApp, method: str, path: str, headers: Mapping[str, str | None], *parts: bytes, **scope: Any
    ) -> Answered:
        """Return the answer, without the parts that differ each time."""
        given = {"x-api-key": self.pair.api_key, "x-api-secret": self.pair.api_secret, "x-request-id": "one", **headers}
        messages: list[Message] = []
        bodies = iter(parts or (b"",))
        left = len(parts or (b"",))

        async def receive() -> Any:
            nonlocal left
            left -= 1
            return {"type": "http.request", "body": next(bodies), "more_body": left > 0}

        async def send(message: Message) -> None:
            messages.append(message)

        self._came += 1
        asked: Any = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value is not None],
            "client": (f"10.0.{self._came // 250}.{self._came % 250}", 5),
            "server": ("127.0.0.1", 80),
            "scheme": "http",
            "root_path": "",
            "state": {},
            **scope,
        }
        await asgi(asked, receive, send)
        start: Any = messages[0]
        sent = {
            name.lower(): in_order(name, value) for name, value in start["headers"] if b"ratelimit" not in name.lower()
        }
        return start["status"], sent, b"".join(message.get("body", b"") for message in messages[1:])  # type: ignore[misc]

    async def both(self, method: str, path: str, headers: Mapping[str, str | None], *parts: bytes) -> Answered:
        """Return the answer of both ways, which must be the same."""
        short, long = [await self.ask(asgi, method, path, headers, *parts) for asgi in (self.short, self.long)]
        assert short == long
        return short


@pytest.fixture
def ways(app: TestApp) -> Ways:
    return Ways(app.ports, app.account.test)


def keyed(key: str | None = None, **more: str | None) -> dict[str, str | None]:
    return {"idempotency-key": key or str(uuid4()), "content-type": "application/json", **more}


async def test_a_repeat_and_a_reading_are_the_same_on_both_ways(ways: Ways) -> None:
    headers = keyed()
    status, sent, body = await ways.ask(ways.short, "POST", "/api/v1/payments", headers, BODY)
    assert (status, sent[b"content-type"]) == (201, b"application/json")
    repeated = await ways.both("POST", "/api/v1/payments", headers, BODY)
    assert (repeated[0], repeated[1][b"idempotent-replayed"], repeated[2]) == (200, b"true", body)
    shown = await ways.both("GET", f"/api/v1/payments/{msgspec.json.decode(body)['id']}", {})
    assert (shown[0], shown[2]) == (200, body)


async def test_a_body_in_parts_is_one_body(ways: Ways) -> None:
    parts = BODY[:5], BODY[5:9], BODY[9:]
    length = {"content-length": str(len(BODY))}
    status, _, body = await ways.ask(ways.short, "POST", "/api/v1/payments", keyed(**length), *parts)
    assert (status, msgspec.json.decode(body)["amount_rub"]) == (201, "100.00")


@table(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/api/v1/payments", {"x-api-secret": "wrong"}, 401),
        ("POST", "/api/v1/payments", {"x-api-key": None}, 401),
        ("POST", "/api/v1/payments", {"idempotency-key": None}, 400),
        ("POST", "/api/v1/payments", {"idempotency-key": "no uuid"}, 400),
        ("POST", "/api/v1/payments", {"content-type": "text/plain"}, 400),
        ("POST", "/api/v1//payments/", {"content-type": "text/plain"}, 400),
        ("GET", "/api/v1/payments/pay_1", {}, 404),
        ("GET", "/api/v1/payments/pay_00000000-0000-7000-8000-000000000000", {}, 404),
        ("GET", "/api/v1/payments/pay_00000000-0000-7000-8000-000000000000/", {}, 404),
        ("GET", "/api/v1/payments/pay_é", {}, 404),
        ("GET", "/api/v1/payments/pay_1", {"x-api-secret": "wrong"}, 401),
        ("DELETE", "/api/v1/payments", {}, 405),
        ("PUT", "/api/v1/payments/pay_1", {}, 405),
        ("POST", "/health", {}, 405),
        ("OPTIONS", "/api/v1/payments", {}, 204),
        ("OPTIONS", "/api/v1/payments/pay_1", {"x-api-key": None}, 401),
        ("OPTIONS", "/api/v1/sandbox/payments/pay_1/simulate", {}, 204),
        ("OPTIONS", "/health", {"x-api-key": None}, 204),
        ("OPTIONS", "/api/v1/sandbox", {}, 404),
    ],
)
async def test_refusals_are_the_same_on_both_ways(
    ways: Ways, method: str, path: str, headers: dict[str, str | None], status: int
) -> None:
    assert (await ways.both(method, path, keyed(**headers), BODY))[0] == status


@table(
    ("path", "status"),
    [
        ("/shop/api/v1/gateways", 200),
        ("/api/v1/gateways", 200),
        ("/shop/api/v1/payments/pay_1", 404),
        ("/shop/api/v1/nothing", 404),
    ],
)
async def test_root_path_of_the_server_is_no_part_of_the_path(app: TestApp, path: str, status: int) -> None:
    ways = Ways(app.ports, app.account.test)
    for asgi in (ways.short, ways.long):
        assert (await ways.ask(asgi, "GET", path, {}, root_path="/shop"))[0] == status


async def test_an_outage_is_the_same_on_both_ways(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise Unavailable("the storage is away")

    monkeypatch.setattr(ways.ports.storage, "recent", away)
    status, sent, _ = await ways.both("GET", "/api/v1/payments/pay_1", {})
    assert (status, sent[b"retry-after"]) == (503, b"30")


async def test_our_own_fault_is_the_same_on_both_ways(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a secret word")

    monkeypatch.setattr(ways.ports.storage, "recent", broken)
    status, _, body = await ways.both("GET", "/api/v1/payments/pay_1", {})
    assert status == 500
    assert b"secret" not in body


async def test_a_client_that_goes_away_in_its_body_gets_no_answer(ways: Ways) -> None:
    sent: list[Message] = []

    async def gone() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Any = {"type": "http", "method": "POST", "path": "/api/v1/payments", "headers": [], "root_path": ""}
    scope["headers"] = [
        (b"x-api-key", ways.pair.api_key.encode()),
        (b"x-api-secret", ways.pair.api_secret.encode()),
    ]
    await ways.short._app(scope, gone, send)
    assert sent == []


@table("operation", OPERATIONS, ids=lambda each: each.id)
def test_a_row_says_of_body_and_caller_what_its_handler_takes(operation: Operation[Any]) -> None:
    taken = inspect.get_annotations(operation.handler, eval_str=True)
    ports, caller, request = (each for name, each in taken.items() if name != "return")
    assert (ports, caller) == (Ports, Caller if operation.keyed else None)
    assert request == ApiRequest[operation.body]  # type: ignore[name-defined]  # a value


def test_names_of_operations_are_verb_and_object_and_none_is_used_twice() -> None:
    names = [each.id for each in OPERATIONS]
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+)+", name)] == []
    assert len(set(names)) == len(names)


async def take(_: Ports, __: None, request: ApiRequest[bytes]) -> ASGIApp:
    return Answer(
        b" ".join([*(each.encode() for each in request.values), request.read()]), 202, media_type=b"text/plain"
    )


RAW = Operation(
    "take_raw", "post", "/api/v1/raw/{name}/{secret}", "Raw", "Takes it as it is", take, body=bytes, keyed=False
)


@pytest.mark.parametrize("content_type", ["text/xml", "application/json", "", None])
async def test_an_operation_may_take_a_body_of_any_type_from_whoever_sends_it(
    ways: Ways, content_type: str | None
) -> None:
    context = AppContext(WindowStreams(), (), Doctor(ways.ports).degraded, ByteCounter())
    ways.long = framework_way(ways.ports, [RAW])
    ways.short = Edge(Api(ways.long._app, ways.ports, context, [RAW]), ways.ports, ())
    headers = {"content-type": content_type, "x-api-key": None, "x-api-secret": None}
    status, sent, body = await ways.both("POST", "/api/v1/raw/bank/a-secret", headers, b"<not", b" json>")
    assert (status, sent[b"content-type"], body) == (202, b"text/plain", b"bank a-secret <not json>")
    assert (await ways.both("POST", "/api/v1/raw/bank", headers))[0] == 404
