"""The short way for the two requests that make up nearly all traffic: `POST /payments` and `GET /payments/{id}`.

It stands between the edge and the framework and calls the same functions as the framework's own routes do, which stay
for all other methods of these paths. It is worth its room: by samples (py-spy), the framework was 36 % of what a GET
cost inside the application, and some 15 % of a POST. Whatever is unusual (another spelling, a mounted application) goes
the long way; tests/http/test_hot.py holds the two against each other.
"""

from typing import Final

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from ...core.domain.accounts.quota import API
from ...ports.bundle import Ports
from .door.access import enter
from .door.answers import Answer
from .door.errors import refusal_of, refused
from .door.headers import headers_of
from .payments import create_one, read_one

_HTTP: Final = ScopeType.HTTP
_ALL = f"{API}/payments"
_ONE = f"{API}/payments/pay_"
_CUT = len(_ALL) + 1


class HotPaths:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, ports: Ports) -> None:
        self._app = app
        self._ports = ports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != _HTTP or not _is_hot(scope):
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._answer(scope, receive)
        except ConnectionResetError:
            return
        except Exception as error:  # noqa: BLE001 - as the framework's handlers have it: everything is answered
            answer = refused(refusal_of(error))
        await answer.write(send)

    async def _answer(self, scope: HTTPScope, receive: Receive) -> Answer:
        """Raises: what the use cases raise; ConnectionResetError when the client went away."""
        path, ports = scope["path"], self._ports
        known = headers_of(scope)
        scope["path_template"] = _ALL if path == _ALL else f"{_ALL}/{{payment_id:str}}"
        api_key, secret = known.get(b"x-api-key", b""), known.get(b"x-api-secret", b"")
        caller = await enter(ports, scope, api_key.decode("latin-1"), secret.decode("latin-1"))
        if path != _ALL:
            return await read_one(ports, caller, path[_CUT:])
        body = await _body(receive)
        key, content_type = known.get(b"idempotency-key"), known.get(b"content-type")
        return await create_one(ports, caller, _text(key), _text(content_type), body)


def _is_hot(scope: HTTPScope) -> bool:
    path, method = scope["path"], scope["method"]
    if scope.get("root_path"):
        return False
    if method == "GET":
        return path.startswith(_ONE) and "/" not in path[_CUT:]
    return method == "POST" and path == _ALL


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")


async def _body(receive: Receive) -> bytes:
    """The whole body. Raises: ConnectionResetError."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionResetError
        if not message.get("more_body"):
            return b"".join([*parts, message["body"]]) if parts else message["body"]
        parts.append(message["body"])
