"""The API and its webhooks as OpenAPI 3.1 (docs/versioning.md "The API").

It is built from the objects that the service itself uses: views, bodies, event payloads and the catalogue of refusals.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ....core.domain.accounts.rate_limit import API
from ....core.domain.errors import CATALOGUE
from ....core.domain.payloads import EVENT_PAYLOADS
from ....core.domain.webhooks.events import EventType
from ..edge.errors import ErrorEnvelope
from ..edge.operation import Operation, Refusals
from ..operations import OPERATIONS
from .examples import refusal_examples, with_examples
from .headers import HELP_HEADER, LETTER_HEADERS, RATE_HEADERS, RECEIPT_HEADER, RETRY_HEADER

TAGS = (
    "Payments", "Links", "Refunds", "Receipts", "Subscriptions", "Exchanges", "KYC", "Money", "Gateways",
    "Exports", "Reports", "Events", "Requests", "Account", "Sandbox", "Health",
)  # fmt: skip
"""Tags in the order of the document."""
VERSION = "1"
"""Version of the API (the path's `/v1`) and of its webhooks (docs/versioning.md "The API")."""

Json = dict[str, Any]

_REF = "#/components/schemas/"
_NAMES = {"TestView": "TestReport", "EndpointView": "WebhookEndpoint", "ShopDayView": "ShopDay"}
_PARAMETER = re.compile(r"\{(\w+)\}")
_PATH_VALUE = "As it was answered when it was created, or in a list."

_ALWAYS: Refusals = {
    400: ("VALIDATION_ERROR",),
    401: ("Unauthorized",),
    403: ("KEY_ADDRESS_NOT_ALLOWED", "KEY_RIGHT_MISSING"),
    429: ("RATE_LIMIT_EXCEEDED",),
    500: ("INTERNAL_ERROR",),
    503: ("PROVIDER_UNAVAILABLE", "ACCOUNT_MOVING"),
}
_OF_SANDBOX: Refusals = {404: ("NOT_FOUND",)}
"""These paths do not exist for live keys."""
_OF_POSTS: Refusals = {413: ("PAYLOAD_TOO_LARGE",)}
_OF_CREATING: Refusals = {400: ("MISSING_IDEMPOTENCY_KEY",), 409: ("IDEMPOTENCY_KEY_REUSED",)}


def openapi_document(base_url: str) -> Json:
    """Return the whole document of a service whose public address is `base_url`."""
    types = [*dict.fromkeys(EVENT_PAYLOADS.values())]
    types += [each.body for each in OPERATIONS if each.body not in (None, bytes)]
    answers = [each.answer for each in OPERATIONS if each.answer is not None]
    schemas, components = _schemas([*types, *answers, ErrorEnvelope])
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, schemas)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "cambist",
            "version": VERSION,
            "description": "Payments, subscriptions and exchanges for merchants. Amounts are decimal strings, times "
            "ISO 8601 in UTC. The prefix of the API key chooses live or test mode.",
        },
        "servers": [{"url": base_url}],
        "security": [{"ApiKey": [], "ApiSecret": []}],
        "tags": [{"name": name} for name in TAGS],
        "paths": paths,
        "webhooks": {event.value: _webhook(event, schemas) for event in EventType},
        "x-webhooks-version": VERSION,
        "components": {
            "schemas": components,
            "headers": {
                **{
                    name: {"description": meaning, "schema": {"type": "integer"}}
                    for name, meaning in RATE_HEADERS.items()
                },
                HELP_HEADER[0]: {"description": HELP_HEADER[1], "schema": {"type": "string"}},
            },
            "securitySchemes": {
                "ApiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
                "ApiSecret": {"type": "apiKey", "in": "header", "name": "X-Api-Secret"},
            },
        },
    }
    return with_examples(document)


def openapi_bytes(base_url: str) -> bytes:
    """Return the document as JSON."""
    return msgspec.json.encode(openapi_document(base_url))


def _schemas(types: list[Any]) -> tuple[Mapping[Any, Json], dict[str, Json]]:
    """Return a schema for each type, and the components that they refer to, without additional properties."""
    unique = list(dict.fromkeys(types))
    found, components = msgspec.json.schema_components(unique, ref_template=_REF + "{name}")
    renamed = {_name(name): _closed(_renamed(schema)) for name, schema in sorted(components.items())}
    bodies = [each.body for each in OPERATIONS if each.body not in (None, bytes)]
    for name in msgspec.json.schema_components(bodies)[1]:
        for each in renamed[_name(name)].get("properties", {}).values():
            # An absent field means null. Generated clients would require a field that has a default.
            if each.get("default", ...) is None:
                del each["default"]
    payloads = dict.fromkeys(payload.__name__ for payload in EVENT_PAYLOADS.values())
    sent = renamed["WholeEvent"]["properties"]
    any_payload = [{"$ref": _REF + name} for name in payloads]
    sent["payload"] = {"oneOf": any_payload, "description": sent["payload"]["description"]}
    return dict(zip(unique, map(_renamed, found), strict=True)), renamed


def _name(struct: str) -> str:
    return _NAMES.get(struct) or struct.removesuffix("View")


def _renamed(schema: Any) -> Any:
    """Replace references by the public names of components, everywhere in a schema. An `enum` says all about a
    value: drop what the type of the code says beside it."""
    if isinstance(schema, dict):
        dropped = {"title", "type", "anyOf"} if "enum" in schema else {"title"}
        return {key: _renamed(value) for key, value in schema.items() if key not in dropped}
    if isinstance(schema, list):
        return [_renamed(each) for each in schema]
    if isinstance(schema, str) and schema.startswith(_REF):
        return _REF + _name(schema.removeprefix(_REF))
    return schema


def _closed(schema: Json) -> Json:
    """Forbid other fields; free objects (metadata) stay open.

    The docstrings of the code are for developers, so they are left out.
    """
    plain = {key: value for key, value in schema.items() if key != "description"}
    if "properties" not in plain:
        return plain
    fields = {field: _meaning_last(each) for field, each in plain["properties"].items()}
    return {**plain, "properties": fields, "additionalProperties": False}


def _meaning_last(schema: Json) -> Json:
    """Return the schema of a field as people read it: what it is, then what it means."""
    plain = {key: value for key, value in schema.items() if key != "description"}
    return plain if len(plain) == len(schema) else {**plain, "description": schema["description"]}


def _operation(operation: Operation[Any], schemas: Mapping[Any, Json]) -> Json:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "description": _PATH_VALUE}
        for name in _PARAMETER.findall(operation.path)
    ]
    parameters += [
        {"name": each.name, "in": "query", "schema": each.schema or {"type": "string"}, "description": each.meaning}
        for each in operation.query
    ]
    if operation.creates:
        key = {"type": "string", "format": "uuid"}
        named = {"name": "Idempotency-Key", "description": "A UUID that you keep beside your order."}
        parameters.append({**named, "in": "header", "required": True, "schema": key})
    document: Json = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "parameters": parameters,
        "responses": _responses(operation, schemas),
    }
    if operation.body is not None:
        json = operation.body is not bytes
        content = {"application/json": {"schema": schemas[operation.body]}} if json else {"*/*": {}}
        document["requestBody"] = {"required": True, "content": content}
    if operation.keyed:
        document["description"] = f"The key needs the right `{operation.needs}`."
        document["x-required-right"] = operation.needs.value
    else:
        document["security"] = []
    return document


def _responses(operation: Operation[Any], schemas: Mapping[Any, Json]) -> Json:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in RATE_HEADERS}
    counted = {"headers": headers} if operation.path.startswith(API) else {}
    name, _ = HELP_HEADER
    helping = {"headers": {**counted.get("headers", {}), name: {"$ref": f"#/components/headers/{name}"}}}
    responses: Json = {}
    content: Json = {}
    if operation.answer is not None:
        content["application/json"] = {"schema": schemas[operation.answer]}
    if operation.also_as is not None:
        kind = {"type": "string"} if content else {"type": "string", "format": "binary"}
        content[operation.also_as] = {"schema": kind}
    if content:
        good: Json = {"content": content, **counted}
        if operation.creates:
            responses["201"] = {"description": "Created", **good}
            responses["200"] = {
                "description": "A repeat of the same Idempotency-Key: the original as it is now",
                **good,
            }
        else:
            responses[str(operation.status)] = {"description": "Created" if operation.status == 201 else "Done", **good}
        if operation.failing is not None:
            responses[str(operation.failing)] = {"description": "It does not work", **good}
    for status, codes in sorted(_refusals(operation).items()):
        meanings = "\n".join(f"- `{code}`: {CATALOGUE[code].meaning}." for code in codes)
        responses.setdefault(
            str(status),
            {
                "description": meanings,
                "content": {
                    "application/json": {"schema": schemas[ErrorEnvelope], "examples": refusal_examples(codes)}
                },
                **helping,
            },
        )
    return responses


def _refusals(operation: Operation[Any]) -> dict[int, tuple[str, ...]]:
    """Return all refusals of an operation, including those common to every operation."""
    if not operation.keyed:
        return {**operation.refusals, 429: ("RATE_LIMIT_EXCEEDED",)} if operation.path.startswith(API) else {}
    groups = [operation.refusals, _ALWAYS]
    if operation.method == "post":
        groups.append(_OF_POSTS)
    if operation.creates:
        groups.append(_OF_CREATING)
    if operation.is_sandbox:
        groups.append(_OF_SANDBOX)
    statuses = {status for group in groups for status in group}
    return {
        status: tuple(dict.fromkeys(code for group in groups for code in group.get(status, ()))) for status in statuses
    }


def _header(name: str, meaning: str, *, required: bool = True) -> Json:
    return {"name": name, "in": "header", "required": required, "schema": {"type": "string"}, "description": meaning}


def _webhook(event: EventType, schemas: Mapping[Any, Json]) -> Json:
    return {
        "post": {
            "operationId": event.value.replace(".", "_"),
            "summary": event.value,
            "security": [],
            "parameters": [
                *(_header(name, meaning) for name, meaning in LETTER_HEADERS.items()),
                *(
                    [_header(*each, required=False) for each in (RETRY_HEADER, RECEIPT_HEADER)]
                    if event is EventType.PAYMENT_STATUS_CHANGED
                    else ()
                ),
            ],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": _payload_of(event, schemas)}},
            },
            "responses": {"2XX": {"description": "Taken, within 10 seconds. All else is a failure and is sent again."}},
        }
    }


def _payload_of(event: EventType, schemas: Mapping[Any, Json]) -> Json:
    """Return the payload's schema, narrowed to this event: one struct serves all four refund events."""
    return {**schemas[EVENT_PAYLOADS[event]], "properties": {"event": {"const": event.value}}}
