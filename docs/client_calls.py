"""The Python client's call for every operation of the API, with the arguments of its example (docs/generate.py)."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import unquote

import msgspec

from cambist.client import Client
from cambist.frontends.client.operations import Group, Operation
from cambist.frontends.client.requests import API, Request

Json = Mapping[str, Any]

_WIRE = {"since": "from", "until": "to"}
"""Fields that the client calls otherwise, since `from` is a word of Python's."""


def client_calls(document: Json) -> dict[str, str]:
    """Return the client's calls by operation id. Raises: ValueError if a call would not send the document's example."""
    known = dict(_calls())
    found = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            call = known.get((method, path.removeprefix(API)))
            if call is not None:
                found[operation["operationId"]] = _written(*call, path, operation)
    return found


def _calls() -> Iterator[tuple[tuple[str, str], tuple[str, Operation[Any, Any], Callable[..., Any]]]]:
    """Yield each operation's method and path with the client's name and function for it."""
    from tests.client.test_interface import whole

    with Client("https://pay.example", "svc_x", "x") as client:
        groups = {name: each for name, each in vars(client).items() if isinstance(each, Group)}
    for name, group in groups.items():
        for called, operation in vars(type(group)).items():
            # The file of a list is the list in another form.
            if isinstance(operation, Operation) and not called.endswith("csv"):
                request = whole(operation)
                yield (
                    (request.method.lower(), unquote(request.path)),
                    (f"{name}.{called}", operation, getattr(group, called)),
                )


def _written(name: str, operation: Operation[Any, Any], call: Callable[..., Any], path: str, described: Json) -> str:
    body = described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example", {})
    hints = get_type_hints(call)
    positional, named = [], []
    given: dict[str, Any] = {}
    for parameter in inspect.signature(call).parameters.values():
        if f"{{{parameter.name}}}" in path:
            positional.append(parameter.name)
            given[parameter.name] = parameter.name
        elif (wire := _WIRE.get(parameter.name, parameter.name)) in body:
            text, value = _literal(body[wire], hints[parameter.name])
            named.append(f"{parameter.name}={text}")
            given[parameter.name] = value
    _check(operation.request(**given), path, body)
    arguments = [*positional, *named]
    if len(arguments) < 2:
        return f"client.{name}({', '.join(arguments)})"
    return f"client.{name}(\n" + "".join(f"    {each},\n" for each in arguments) + ")"


def _literal(value: Any, hint: Any) -> tuple[str, Any]:
    """Return a value of the example as the client's source code, and as the client's object."""
    kinds = [each for each in (hint, *get_args(hint)) if isinstance(each, type) and get_origin(each) is None]
    struct = next((each for each in kinds if issubclass(each, msgspec.Struct)), None)
    if struct is not None and isinstance(value, dict):
        fields = ", ".join(f"{name}={_quoted(each)}" for name, each in value.items())
        return f"{struct.__name__}({fields})", msgspec.convert(value, struct)
    if datetime in kinds and isinstance(value, str):
        return f'datetime.fromisoformat("{value}")', datetime.fromisoformat(value)
    return _quoted(value), value


def _quoted(value: Any) -> str:
    """A value as Python writes it, with double quotes."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_quoted(name)}: {_quoted(each)}' for name, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_quoted, value))}]"
    return msgspec.json.encode(value).decode() if isinstance(value, str) else repr(value)


def _check(request: Request[Any], path: str, body: Json) -> None:
    target = unquote(request.target)
    sent = {} if request.body is None else msgspec.json.decode(request.body)
    if (target, sent) != (path.replace("{", "").replace("}", ""), body):
        raise ValueError(f"{path}: the client asks {target} with {sent}, and not with {body}")
