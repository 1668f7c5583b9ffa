"""Dispatch of API operations (operations.py) without the framework. In profiles (py-spy) the framework was 36 % of the
cost of a GET inside the application, and some 15 % of a POST. With a framework route for each operation, building an
application took three times as long and 1.5 MB more.

tests/attacks/test_two_ways.py compares it with an application that registers the same rows as framework routes.
"""

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.rate_limit import API, normalise_path
from ...core.usecases.accounts.access import require_right
from ...ports.bundle import Ports
from .edge.access import enter
from .edge.answers import NoContent
from .edge.errors import method_not_allowed, refusal_of, refused
from .edge.headers import headers_of
from .edge.operation import ApiRequest, AppContext, Operation

Row = Operation[Any]
Methods = Mapping[str, Row]
"""The operations of one path."""

_HTTP: Final = ScopeType.HTTP
_UNDER_API = f"{API}/"
_CUT = len(_UNDER_API)
_OPTIONS: Final = "OPTIONS"
_WRITING: Final = frozenset(("POST", "PUT", "PATCH"))
"""Methods that count against the daily write limit. DELETE does not: it frees space."""


class Api:
    """ASGI application that answers API operations and passes every other path (pages, files, 404) to the next one."""

    def __init__(self, app: ASGIApp, ports: Ports, context: AppContext, operations: Iterable[Row]) -> None:
        self._app = app
        self._ports = ports
        self._context = context
        self._table = _Table(operations)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._table.find(_path_of(scope)) if scope["type"] == _HTTP else None
        if found is None:
            await self._app(scope, receive, send)
            return
        asked: HTTPScope = scope  # type: ignore[assignment]  # by its type, above
        methods, values = found
        operation = methods.get(asked["method"])
        try:
            if operation is None:
                answer: ASGIApp = await self._of_no_operation(asked, methods)
            else:
                asked["path_template"] = operation.path
                asked["path_values"] = values  # type: ignore[typeddict-unknown-key]  # for the log of requests
                known, shape = headers_of(asked), operation.body
                caller = await self._enter(asked, known, operation) if operation.keyed else None
                if caller is not None and caller.terms.rights is not None:
                    require_right(caller, operation.needs)
                body = b"" if shape is None else await _whole(receive)
                if caller is not None and asked["method"] in _WRITING:
                    self._context.written.take(self._ports, caller, body)
                request = ApiRequest(self._context, asked, known, shape, values, body)
                answer = await operation.handler(self._ports, caller, request)
        except _Gone:
            return
        except Exception as error:  # noqa: BLE001 - everything is answered
            answer = refused(refusal_of(error))
        await answer(scope, receive, send)

    async def _of_no_operation(self, scope: HTTPScope, methods: Methods) -> ASGIApp:
        """Return the answer to a method that the path does not support. Raises: Refusal, for OPTIONS without keys."""
        allow = (b"allow", ", ".join(sorted([*methods, _OPTIONS])).encode())
        if scope["method"] != _OPTIONS:
            return refused(method_not_allowed(), allow)
        row = next(iter(methods.values()))
        scope["path_template"] = row.path
        if row.keyed:
            await self._enter(scope, headers_of(scope), row)
        return NoContent((allow,))

    def _enter(self, scope: HTTPScope, known: dict[bytes, bytes], row: Row) -> Coroutine[Any, Any, Caller]:
        return enter(self._ports, scope, known, row.is_sandbox, self._context.trusted_proxies)


def _path_of(scope: Scope) -> str:
    """Return the path below the application's root. The edge has normalised the path together with the root."""
    path, root = scope["path"], scope.get("root_path")
    return normalise_path(path.split(root, maxsplit=1)[-1]) if root else path


class _Place(msgspec.Struct):
    """A path segment: the segments that may follow it, and the operations that end with it, by method."""

    named: dict[str, "_Place"] = msgspec.field(default_factory=dict)
    parameter: "_Place | None" = None
    operations: dict[str, Row] = msgspec.field(default_factory=dict)


class _Table:
    """Route table with the framework's order of matching: first paths without parameters, then, segment by segment, a
    name before a parameter. Only paths under /api/v1 have parameters."""

    def __init__(self, operations: Iterable[Row]) -> None:
        self._whole: dict[str, dict[str, Row]] = {}
        self._below: dict[str, dict[str, Row]] = {}
        """Operations by the path before a final parameter, where no name can stand instead. Most operations are here.
        """
        self._root = _Place()
        for each in operations:
            ends = self._place(each.path) if "{" in each.path else self._whole.setdefault(each.path, {})
            ends[each.method.upper()] = each
            if each.method == "get" and not each.keyed:  # monitors send HEAD, and the server omits the body
                ends["HEAD"] = each
        self._note(self._root, API)

    def _note(self, place: _Place, path: str) -> None:
        if place.parameter and not place.named:
            self._below[path] = place.parameter.operations
        for name, following in place.named.items():
            self._note(following, f"{path}/{name}")

    def _place(self, path: str) -> dict[str, Row]:
        if not path.startswith(_UNDER_API):
            raise ValueError(f"{path}: only paths under {API} have parameters")
        place = self._root
        for part in path[_CUT:].split("/"):
            if part[0] == "{":
                place.parameter = place.parameter or _Place()
                place = place.parameter
            else:
                place = place.named.setdefault(part, _Place())
        return place.operations

    def find(self, path: str) -> tuple[Methods, Sequence[str]] | None:
        """Return the operations of a normalised path and the values of its parameters; None: no operation has this
        path."""
        operations = self._whole.get(path)
        if operations is not None:
            return operations, ()
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
        return (operations, values) if operations else None


class _Gone(Exception):
    """The client disconnected in the middle of its body."""


async def _whole(receive: Receive) -> bytes:
    """Return the whole body. Raises: _Gone."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Gone
        if not message.get("more_body"):
            return b"".join([*parts, message["body"]]) if parts else message["body"]
        parts.append(message["body"])
