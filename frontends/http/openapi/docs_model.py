"""Content of the page `/docs`, built only from the OpenAPI document and the catalogue of refusals."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ....core.domain.errors import CATALOGUE, Retry
from .samples import Call, Sample, pretty, samples

Json = Mapping[str, Any]

_ADVICE = {
    Retry.NEVER: "Change the request.",
    Retry.SAME_KEY: "Try again later, with the same key.",
    Retry.NEW_KEY: "Try again with a new key.",
}
_DEEPEST = 3
"""Depth to which nested objects are listed."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter, or a field of a body. Fields of nested objects have dots in their names."""

    name: str
    where: str
    kind: str
    required: bool
    meaning: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal of the operation."""

    status: str
    code: str
    meaning: str
    advice: str
    example: str


class Good(msgspec.Struct, frozen=True, kw_only=True):
    """A successful answer."""

    status: str
    meaning: str
    example: str


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One operation or one webhook."""

    id: str
    name: str
    """Short name, for headings and the sidebar."""
    method: str
    path: str
    summary: str
    parameters: tuple[Field, ...]
    body: tuple[Field, ...]
    calls: tuple[Sample, ...]
    """The call in each language; empty for webhooks."""
    tried: str
    """First content of the form for trying the operation, as JSON."""
    is_keyed: bool
    creates: bool
    """Whether it takes an Idempotency-Key."""
    request: str
    good: tuple[Good, ...]
    answer: tuple[Field, ...]
    problems: tuple[Problem, ...]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Operations about one subject."""

    name: str
    id: str
    shown: tuple[Shown, ...]


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """The whole page."""

    title: str
    version: str
    description: str
    base_url: str
    groups: tuple[Group, ...]


def reference(document: Json) -> Reference:
    """Return the page of this document."""
    reader = _Reader(document)
    groups = []
    for tag in document["tags"]:
        shown = tuple(
            reader.operation(path, method, operation)
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
            if tag["name"] in operation["tags"]
        )
        groups.append(Group(name=tag["name"], id=tag["name"].lower(), shown=shown))
    webhooks = tuple(reader.webhook(event, webhook["post"]) for event, webhook in document["webhooks"].items())
    groups.append(Group(name="Webhooks", id="webhooks", shown=webhooks))
    info = document["info"]
    return Reference(
        title=info["title"],
        version=info["version"],
        description=info["description"],
        base_url=document["servers"][0]["url"],
        groups=tuple(groups),
    )


class _Reader:
    """Reader of one document."""

    def __init__(self, document: Json) -> None:
        self._components = document["components"]
        self._base_url = document["servers"][0]["url"]

    def operation(self, path: str, method: str, operation: Json) -> Shown:
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        call = self._call(path, method, operation, body)
        answers, problems = self._answers(operation["responses"])
        good = next((each for each in operation["responses"].values() if "example" in _json(each)), None)
        return Shown(
            id=operation["operationId"],
            name=_short(operation["summary"]),
            method=method.upper(),
            path=path,
            summary=operation["summary"],
            parameters=self._parameters(operation["parameters"]),
            body=tuple(self._fields(body.get("schema", {}))),
            calls=samples(call),
            tried=_pretty(body.get("example")),
            is_keyed=call.is_keyed,
            creates=call.creates,
            request=_pretty(body.get("example")),
            good=answers,
            answer=tuple(self._fields(_json(good)["schema"])) if good is not None else (),
            problems=problems,
        )

    def webhook(self, event: str, operation: Json) -> Shown:
        body = operation["requestBody"]["content"]["application/json"]
        return Shown(
            id=operation["operationId"],
            name=event,
            method="EVENT",
            path=event,
            summary="Posted to your webhook_url; any 2xx within 10 seconds takes it.",
            parameters=self._parameters(operation["parameters"]),
            body=tuple(self._fields(body["schema"])),
            calls=(),
            tried="",
            is_keyed=False,
            creates=False,
            request=_pretty(body["example"]),
            good=(),
            answer=(),
            problems=(),
        )

    def _parameters(self, parameters: list[Json]) -> tuple[Field, ...]:
        return tuple(
            Field(
                name=each["name"],
                where=each["in"],
                kind=self._kind(each["schema"]),
                required=each.get("required", False),
                meaning=each.get("description", ""),
            )
            for each in parameters
        )

    def _answers(self, responses: Json) -> tuple[tuple[Good, ...], tuple[Problem, ...]]:
        good, problems = [], []
        for status, response in responses.items():
            content = _json(response)
            if "examples" not in content:
                example = _pretty(content.get("example"))
                good.append(Good(status=status, meaning=response["description"], example=example))
            for code in content.get("examples", ()):
                entry = CATALOGUE[code]
                example = _pretty(self._components["examples"][code]["value"])
                advice = _ADVICE[entry.retry_at(int(status))]
                problems.append(
                    Problem(status=status, code=code, meaning=entry.meaning, advice=advice, example=example)
                )
        return tuple(good), tuple(problems)

    def _call(self, path: str, method: str, operation: Json, body: Json) -> Call:
        parameters = operation["parameters"]
        return Call(
            operation_id=operation["operationId"],
            method=method.upper(),
            url=f"{self._base_url}{path}",
            is_keyed=operation.get("security") != [],
            creates=any(each["name"] == "Idempotency-Key" for each in parameters),
            body=body.get("example"),
        )

    def _fields(self, schema: Json, prefix: str = "", depth: int = 0) -> Iterator[Field]:
        schema = self._resolved(schema)
        if schema.get("type") == "array":
            schema = self._resolved(schema["items"])
        required = schema.get("required", ())
        for name, field in schema.get("properties", {}).items():
            found = self._resolved(field)
            yield Field(
                name=prefix + name,
                where="",
                kind=self._kind(field),
                required=name in required,
                meaning=field.get("description", ""),
            )
            inner = found.get("items", found)
            if depth < _DEEPEST and self._resolved(inner).get("properties"):
                dots = f"{prefix}{name}[]." if "items" in found else f"{prefix}{name}."
                yield from self._fields(inner, dots, depth + 1)

    def _resolved(self, schema: Json) -> Json:
        """Return the schema behind a reference, or behind a nullable reference."""
        if "$ref" in schema:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            found = self._components["schemas"][schema["$ref"].rpartition("/")[2]]
            return {**found, "properties": {**found.get("properties", {}), **rest.get("properties", {})}}
        wanted = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
        return self._resolved(wanted[0]) if len(wanted) == 1 else schema

    def _kind(self, schema: Json) -> str:
        """Return the type as text: `string (uuid) or null`, `paid, failed`, `array of object`."""
        if "const" in schema:
            return f"`{schema['const']}`"
        if "enum" in schema:
            return ", ".join("null" if each is None else f"`{each}`" for each in schema["enum"])
        if "anyOf" in schema or "oneOf" in schema:
            return " or ".join(dict.fromkeys(map(self._kind, schema.get("anyOf") or schema["oneOf"])))
        if "$ref" in schema:
            return self._kind({"type": "object", **self._resolved(schema)})
        kinds = schema.get("type", "any")
        kind = " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
        if kind == "array":
            return f"array of {self._kind(schema['items'])}"
        return f"{kind} ({schema['format']})" if "format" in schema else kind


def _short(summary: str) -> str:
    """Return the beginning of a summary, up to its first comma or semicolon."""
    return re.split("[,;]", summary.replace("`", ""), maxsplit=1)[0]


def _json(response: Json) -> Json:
    # A file has a schema, too, but no example.
    content: Json = response["content"].get("application/json") or next(iter(response["content"].values()))
    return content


def _pretty(value: Any) -> str:
    return "" if value is None else pretty(value)
