"""Tools made from the service's own OpenAPI document: one for each operation, with its JSON schema and hints."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from ..client.requests import API, JSON, Request, at

Json = Mapping[str, Any]

KEY = "idempotency_key"
_ADDITIVE = (
    "begin_",
    "check_",
    "create_",
    "rebind_",
    "register_",
    "resend_",
    "retry_",
    "simulate_",
    "submit_",
    "test_",
)
"""Operations that add something and destroy nothing. All other writing ones count as destructive."""
_REPEATABLE = ("archive_", "cancel_", "check_", "delete_", "resolve_", "set_", "simulate_", "update_")
"""Writing operations whose repeat has no further effect, besides those with an Idempotency-Key."""
_COMPONENT = "#/components/schemas/"
_DEFINITION = "#/$defs/"
_SANDBOX = f"{API}/sandbox/"
_CSV = "format"
"""Query parameter for a whole list as CSV. Tools lack it: such an answer has no limit."""


class BadArguments(ValueError):
    """Arguments that do not make a request; the text says why."""


class ApiTool(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as a tool. Its arguments are the path parameters, the query and the fields of the body in one
    object."""

    name: str
    title: str
    schema: Json
    """JSON schema of the arguments."""
    is_reading: bool
    is_additive: bool
    is_repeatable: bool
    right: str | None
    """Right that a key needs; None for operations without a key."""
    method: str
    path: str
    query: frozenset[str]
    is_creating: bool
    """Whether it takes an Idempotency-Key."""
    has_body: bool

    @property
    def is_of_live(self) -> bool:
        """Whether a live key gets it. The sandbox does not exist for live keys."""
        return self.is_reading and not self.path.startswith(_SANDBOX)

    def request(self, base_url: str, arguments: Mapping[str, Any]) -> Request[Any]:
        """Return the request of a call. Raises: BadArguments."""
        given = dict(arguments)
        strange = sorted(given.keys() - self.schema["properties"].keys())
        if strange:
            raise BadArguments(f"{self.name} has no argument {strange[0]}")
        missing = [name for name in self.schema["required"] if given.get(name) is None]
        if missing:
            raise BadArguments(f"{missing[0]} is required")
        path = self.path.removeprefix(API)
        try:
            path = at(*(_text(given.pop(part[1:-1])) if part[0] == "{" else part for part in path.split("/")[1:]))
            key = _text(given.pop(KEY)) if self.is_creating else None
            wanted = {name: given.pop(name) for name in self.query & given.keys()}
            query = {name: _text(value) for name, value in sorted(wanted.items()) if value is not None}
        except ValueError as error:
            raise BadArguments(str(error)) from None
        return Request(
            method=self.method,  # type: ignore[arg-type]  # one of the document's
            path=path if self.path.startswith(API) else f"{base_url}{path}",
            read=msgspec.json.decode,
            query=query,
            body=msgspec.json.encode(given) if self.has_body else None,
            key=key,
            repeatable=self.is_repeatable,
        )


def api_tools(document: Json, *, is_live: bool, rights: Collection[str] | None) -> dict[str, ApiTool]:
    """Return the tools of a key by name. A live key gets only reading tools outside the sandbox. `rights` of the key:
    None means all."""
    return {
        tool.name: tool
        for tool in _all(document)
        if (not is_live or tool.is_of_live) and (rights is None or tool.right is None or tool.right in rights)
    }


def _all(document: Json) -> Iterator[ApiTool]:
    components = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if not _is_file(operation):
                yield _tool(path, method, operation, components)


def _is_file(operation: Json) -> bool:
    """Return whether the answer is a file, which is nothing for a model to read."""
    content = operation["responses"].get("200", {}).get("content", {})
    return bool(content) and JSON not in content


def _tool(path: str, method: str, operation: Json, components: Json) -> ApiTool:
    name = operation["operationId"]
    properties: dict[str, Any] = {}
    required: list[str] = []
    query = set()
    is_creating = False
    for each in operation["parameters"]:
        argument = each["name"]
        if each["in"] == "header":
            is_creating, argument = True, KEY
        elif each["in"] == "query":
            if argument == _CSV:
                continue
            query.add(argument)
        properties[argument] = {**each["schema"], "description": each.get("description", "")}
        if each.get("required"):
            required.append(argument)
    content = operation.get("requestBody", {}).get("content", {})
    if JSON in content:
        body = _resolved(content[JSON]["schema"], components)
        properties |= body.get("properties", {})
        required += body.get("required", ())
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    definitions = _definitions(schema, components)
    if definitions:
        schema["$defs"] = definitions
    is_reading = method == "get"
    return ApiTool(
        name=name,
        title=operation["summary"].replace("`", ""),
        schema=_local(schema),
        is_reading=is_reading,
        is_additive=is_creating or name.startswith(_ADDITIVE),
        is_repeatable=is_reading or is_creating or name.startswith(_REPEATABLE),
        right=operation.get("x-required-right"),
        method=method.upper(),
        path=path,
        query=frozenset(query),
        is_creating=is_creating,
        has_body=JSON in content,
    )


def _resolved(schema: Json, components: Json) -> Json:
    found: Json = components[schema["$ref"].removeprefix(_COMPONENT)] if "$ref" in schema else schema
    return found


def _definitions(schema: Any, components: Json) -> dict[str, Any]:
    """Return the components that a schema refers to, directly or not."""
    found: dict[str, Any] = {}
    unread = [schema]
    while unread:
        for name in _references(unread.pop()):
            if name not in found:
                found[name] = _local(components[name])
                unread.append(components[name])
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].removeprefix(_COMPONENT)
        for each in schema.values():
            yield from _references(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _local(schema: Any) -> Any:
    """Point references to components of the document to the definitions beside the schema."""
    if isinstance(schema, dict):
        return {
            name: _DEFINITION + each.removeprefix(_COMPONENT) if name == "$ref" else _local(each)
            for name, each in schema.items()
        }
    return [_local(each) for each in schema] if isinstance(schema, list) else schema


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError("an argument of the path or the query is text or a number")
