"""The operations of the interface (operations.py) as an application answers them, by two ways of one answer.

The short one stands between the edge and the framework: by samples (py-spy), the framework was 36 % of what a GET cost
inside the application, and some 15 % of a POST. Whatever is unusual goes on to the framework's own routes: a path or
method that is not there, OPTIONS, a mounted application. tests/attacks/test_two_ways.py holds the two ways against each
other.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from litestar import Request, route
from litestar.enums import ScopeType
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from ...core.domain.accounts.quota import API
from ...ports.bundle import Ports
from .door.access import authorized, enter
from .door.errors import refusal_of, refused
from .door.headers import headers_of
from .door.operation import ApiRequest, AppContext, Operation
from .door.routing import Router

Row = Operation[Any]
Found = tuple[Row, Sequence[str]]
"""An operation, and the values of its path's parameters."""

_HTTP: Final = ScopeType.HTTP
_UNDER_API = f"{API}/"
_CUT = len(_UNDER_API)
_PARAMETER = re.compile(r"\{(\w+)\}")


class ShortWay:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, ports: Ports, context: AppContext, operations: Iterable[Row]) -> None:
        self._app = app
        self._ports = ports
        self._context = context
        self._table = _Table(operations)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = None
        if scope["type"] == _HTTP and not scope.get("root_path"):
            found = self._table.find(scope["method"], scope["path"])
        if found is None:
            await self._app(scope, receive, send)
            return
        asked: HTTPScope = scope  # type: ignore[assignment]  # by its type, above
        operation, values = found
        asked["path_template"] = operation.path
        try:
            known, shape = headers_of(asked), operation.body
            caller = await enter(self._ports, asked, known, operation.is_sandbox) if operation.keyed else None
            body = b"" if shape is None else await _whole(receive)
            request = ApiRequest(self._context, asked, known, shape, values, body)
            answer = await operation.handler(self._ports, caller, request)
        except _Gone:
            return
        except Exception as error:  # noqa: BLE001 - as the framework's handlers have it: everything is answered
            answer = refused(refusal_of(error))
        await answer(scope, receive, send)


def routes(ports: Ports, context: AppContext, operations: Iterable[Row]) -> list[Router]:
    """The same operations as routes of the framework: one for each path, so that it knows all methods of it."""
    groups: dict[tuple[bool, bool], dict[str, dict[str, Row]]] = {}
    for each in operations:
        group = groups.setdefault((each.keyed, each.is_sandbox), {})
        group.setdefault(each.path, {})[each.method.upper()] = each
    return [
        Router(
            "/",
            route_handlers=[_route(ports, context, path, rows) for path, rows in paths.items()],
            guards=[authorized(ports, sandbox=sandbox)] if keyed else [],
        )
        for (keyed, sandbox), paths in groups.items()
    ]


def _route(ports: Ports, context: AppContext, path: str, rows: Mapping[str, Row]) -> HTTPRouteHandler:
    @route(_PARAMETER.sub(r"{\1:str}", path), http_method=list(rows), status_code=200, include_in_schema=False)  # type: ignore[arg-type]  # methods are text in rows
    async def handle(request: Request[Any, Any, Any]) -> ASGIApp:
        operation = rows[request.method]
        body = b"" if operation.body is None else await request.body()
        values = [*request.path_params.values()]
        asked = ApiRequest(context, request.scope, headers_of(request.scope), operation.body, values, body)
        return await operation.handler(ports, request.scope.get("auth"), asked)

    return handle


class _Place(msgspec.Struct):
    """A part of paths: what may follow it, and the operations that end with it, by method."""

    named: dict[str, "_Place"] = msgspec.field(default_factory=dict)
    parameter: "_Place | None" = None
    operations: dict[str, Row] = msgspec.field(default_factory=dict)


class _Table:
    """Finds operations as the framework does: first a path without parameters, then, part by part, a name before a
    parameter. Only under /api/v1."""

    def __init__(self, operations: Iterable[Row]) -> None:
        self._whole: dict[str, dict[str, Row]] = {}
        self._below: dict[str, dict[str, Row]] = {}
        """By what stands before a parameter that ends the path, where no name can stand instead: most there are."""
        self._root = _Place()
        for each in operations:
            if each.path.startswith(_UNDER_API):
                ends = self._place(each.path) if "{" in each.path else self._whole.setdefault(each.path, {})
                ends[each.method.upper()] = each
        self._note(self._root, API)

    def _note(self, place: _Place, path: str) -> None:
        if place.parameter and not place.named:
            self._below[path] = place.parameter.operations
        for name, following in place.named.items():
            self._note(following, f"{path}/{name}")

    def _place(self, path: str) -> dict[str, Row]:
        place = self._root
        for part in path[_CUT:].split("/"):
            if part[0] == "{":
                place.parameter = place.parameter or _Place()
                place = place.parameter
            else:
                place = place.named.setdefault(part, _Place())
        return place.operations

    def find(self, method: str, path: str) -> Found | None:
        """The operation of a request whose path is normalised; None: it is the framework's."""
        operations = self._whole.get(path)
        if operations is not None:
            operation = operations.get(method)
            return None if operation is None else (operation, ())
        before, _, last = path.rpartition("/")
        operations = self._below.get(before)
        values = [last]
        if operations is None:
            if not path.startswith(_UNDER_API):
                return None
            place, values = self._root, []
            for part in path[_CUT:].split("/"):
                following = place.named.get(part)
                if following is None:
                    following = place.parameter
                    if following is None:
                        return None
                    values.append(part)
                place = following
            operations = place.operations
        operation = operations.get(method)
        return None if operation is None else (operation, values)


class _Gone(Exception):
    """The client went away in the middle of its body."""


async def _whole(receive: Receive) -> bytes:
    """The whole body. Raises: _Gone."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Gone
        if not message.get("more_body"):
            return b"".join([*parts, message["body"]]) if parts else message["body"]
        parts.append(message["body"])
