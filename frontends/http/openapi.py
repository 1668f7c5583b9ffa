"""`GET /openapi.json`: the interface and its webhooks as OpenAPI 3.1 (DECISIONS 7, SPEC "Versioning").

It is made of what the service itself uses: the views, the bodies, the payloads of events and the catalogue of refusals.
It needs no key and is not counted, like the health check.
"""

import functools
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from ...core.domain.clients import ClientStatus, DocumentState
from ...core.domain.errors import CATALOGUE
from ...core.domain.events import DeliveryStatus, EventType
from ...core.domain.gateways import GatewayReason, GatewayStatus
from ...core.domain.kyc import CONTENT_TYPES, UserType
from ...core.domain.payloads import EVENT_PAYLOADS
from ...core.domain.payments import FailureReason, PaymentStatus
from ...core.domain.periods import Interval
from ...core.domain.proofs import ProofNetwork, ProofStatus, RejectionReason
from ...core.domain.subscriptions import BindingCharge, SubscriptionStatus
from ...ports.bundle import Ports
from .openapi_examples import with_examples
from .openapi_headers import LETTER_HEADERS, RATE_HEADERS
from .openapi_model import API, Operation, Refusals
from .openapi_operations import OPERATIONS

VERSION = "1"
"""Of the interface (the path's `/v1`) and of the description of its webhooks (SPEC "Versioning", 1)."""

Json = dict[str, Any]

_REF = "#/components/schemas/"
_NAMES = {"TestView": "TestReport", "EndpointView": "WebhookEndpoint", "ShopDayView": "ShopDay"}
_PARAMETER = re.compile(r"\{(\w+)\}")

_ALWAYS: Refusals = {
    400: ("VALIDATION_ERROR",),
    401: ("Unauthorized",),
    429: ("RATE_LIMIT_EXCEEDED",),
    500: ("INTERNAL_ERROR",),
    503: ("PROVIDER_UNAVAILABLE",),
}
_OF_POSTS: Refusals = {413: ("PAYLOAD_TOO_LARGE",)}
_OF_CREATING: Refusals = {400: ("MISSING_IDEMPOTENCY_KEY",), 409: ("IDEMPOTENCY_KEY_REUSED",)}

_RUB = {"type": "string", "pattern": r"^[0-9]{1,10}(\.[0-9]{1,2})?$", "examples": ["1500.00"]}
_RUSSIAN_PHONE = {"type": "string", "pattern": r"^\+7[0-9]{10}$", "examples": ["+79001234567"]}
_KNOWN_VALUES: Mapping[tuple[str, str], Json] = {
    ("PaymentOrder", "amount_rub"): _RUB,
    ("ProofOrder", "network"): {"enum": [*ProofNetwork]},
    ("ProofOrder", "tx_hash"): {"type": "string", "minLength": 1, "maxLength": 200},
    ("GatewaySimulation", "status"): {"enum": [*GatewayStatus]},
    ("Review", "outcome"): {"enum": ["paid", "failed"]},
    ("Payment", "status"): {"enum": [*PaymentStatus]},
    ("SubscriptionOrder", "amount_rub"): _RUB,
    ("SubscriptionOrder", "interval"): {"enum": [*Interval]},
    ("Subscription", "status"): {"enum": [*SubscriptionStatus]},
    ("Subscription", "interval"): {"enum": [*Interval]},
    ("Subscription", "binding_charge"): {"enum": [*BindingCharge]},
    ("Payment", "failure_reason"): {"enum": [*FailureReason]},
    ("Proof", "status"): {"enum": [*ProofStatus]},
    ("Proof", "reason"): {"enum": [*RejectionReason]},
    ("Event", "type"): {"enum": [*EventType]},
    ("Event", "delivery_status"): {"enum": [*DeliveryStatus]},
    ("WholeEvent", "type"): {"enum": [*EventType]},
    ("WholeEvent", "delivery_status"): {"enum": [*DeliveryStatus]},
    ("Letter", "type"): {"enum": [*EventType]},
    ("CheckOrder", "phone"): _RUSSIAN_PHONE,
    ("RegisterOrder", "phone"): _RUSSIAN_PHONE,
    ("RegisterOrder", "user_type"): {"enum": [*UserType, None]},
    ("UploadOrder", "content_type"): {"enum": [*CONTENT_TYPES]},
    ("Check", "status"): {"enum": ["not_required", "required", "processing", "verified", "failed"]},
    ("Registration", "status"): {"enum": ["required", "processing", "verified", "failed"]},
    ("Client", "kyc_status"): {"enum": [*ClientStatus]},
    ("ClientSimulation", "kyc_status"): {"enum": [*ClientStatus]},
    ("KycDetails", "passport_state"): {"enum": [*DocumentState, None]},
    ("KycDetails", "address_state"): {"enum": [*DocumentState, None]},
    ("Gateway", "status"): {"enum": [*GatewayStatus]},
    ("Gateway", "reason"): {"enum": [*GatewayReason, None]},
}
"""What is plain text in the code, because rules and not shapes refuse it, or because an enum made it."""


def openapi_document(base_url: str) -> Json:
    """The whole document for a service that is reached at `base_url`."""
    types = [*dict.fromkeys(EVENT_PAYLOADS.values())]
    types += [each.body for each in OPERATIONS if each.body is not None]
    answers = [each.answer for each in OPERATIONS if each.answer is not None]
    schemas, components = _schemas([*types, *answers])
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
        "tags": [{"name": name} for name in dict.fromkeys(each.tag for each in OPERATIONS)],
        "paths": paths,
        "webhooks": {event.value: _webhook(event, schemas) for event in EventType},
        "x-webhooks-version": VERSION,
        "components": {
            "schemas": components,
            "headers": {
                name: {"description": meaning, "schema": {"type": "integer"}} for name, meaning in RATE_HEADERS.items()
            },
            "securitySchemes": {
                "ApiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
                "ApiSecret": {"type": "apiKey", "in": "header", "name": "X-Api-Secret"},
            },
        },
    }
    return with_examples(document)


def _schemas(types: list[Any]) -> tuple[Mapping[Any, Json], dict[str, Json]]:
    """A schema for each type, and the components that they refer to, all of them closed."""
    unique = list(dict.fromkeys(types))
    found, components = msgspec.json.schema_components(unique, ref_template=_REF + "{name}")
    renamed = {_name(name): _closed(_renamed(schema)) for name, schema in sorted(components.items())}
    for (name, field), values in _KNOWN_VALUES.items():
        properties = renamed[name]["properties"]
        kept = {key: value for key, value in properties[field].items() if key in ("description", "default")}
        properties[field] = {**kept, **values}
    payloads = dict.fromkeys(payload.__name__ for payload in EVENT_PAYLOADS.values())
    renamed["WholeEvent"]["properties"]["payload"] = {"oneOf": [{"$ref": _REF + name} for name in payloads]}
    return dict(zip(unique, map(_renamed, found), strict=True)), renamed


def _name(struct: str) -> str:
    return _NAMES.get(struct) or struct.removesuffix("View")


def _renamed(schema: Any) -> Any:
    """Refers to components by their public names, everywhere in a schema."""
    if isinstance(schema, dict):
        return {key: _renamed(value) for key, value in schema.items() if key != "title"}
    if isinstance(schema, list):
        return [_renamed(each) for each in schema]
    if isinstance(schema, str) and schema.startswith(_REF):
        return _REF + _name(schema.removeprefix(_REF))
    return schema


def _closed(schema: Json) -> Json:
    """No field beyond those listed. Free objects (metadata) list none and stay open."""
    return {**schema, "additionalProperties": False} if "properties" in schema else schema


def _operation(operation: Operation, schemas: Mapping[Any, Json]) -> Json:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(operation.path)
    ]
    parameters += [
        {"name": each.name, "in": "query", "schema": each.schema or {"type": "string"}, "description": each.meaning}
        for each in operation.query
    ]
    if operation.creates:
        key = {"type": "string", "format": "uuid"}
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": key})
    document: Json = {
        "operationId": _operation_id(operation),
        "tags": [operation.tag],
        "summary": operation.summary,
        "parameters": parameters,
        "responses": _responses(operation, schemas),
    }
    if operation.body is not None:
        content = {"application/json": {"schema": schemas[operation.body]}}
        document["requestBody"] = {"required": True, "content": content}
    if not operation.keyed:
        document["security"] = []
    return document


def _operation_id(operation: Operation) -> str:
    words = re.findall(r"[a-z0-9_]+", operation.path)
    return "_".join((operation.method, *words))


def _responses(operation: Operation, schemas: Mapping[Any, Json]) -> Json:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in RATE_HEADERS}
    counted = {"headers": headers} if operation.path.startswith(API) else {}
    responses: Json = {}
    if operation.answer is not None:
        content: Json = {"application/json": {"schema": schemas[operation.answer]}}
        if operation.also_as is not None:
            content[operation.also_as] = {"schema": {"type": "string"}}
        good: Json = {"content": content, **counted}
        if operation.creates:
            responses["201"] = {"description": "Created", **good}
            responses["200"] = {
                "description": "A repeat of the same Idempotency-Key: the original as it is now",
                **good,
            }
        else:
            responses["200"] = {"description": "Done", **good}
        if operation.failing is not None:
            responses[str(operation.failing)] = {"description": "It does not work", **good}
    for status, codes in sorted(_refusals(operation).items()):
        meanings = "\n".join(f"- `{code}`: {CATALOGUE[code].meaning}." for code in codes)
        responses.setdefault(
            str(status),
            {
                "description": meanings,
                "content": {"application/json": {"schema": _envelope(codes)}},
                **counted,
            },
        )
    return responses


def _refusals(operation: Operation) -> dict[int, tuple[str, ...]]:
    """All refusals of an operation, those that every call may meet included."""
    if not operation.keyed:
        return {429: ("RATE_LIMIT_EXCEEDED",)} if operation.path.startswith(API) else {}
    groups = [operation.refusals, _ALWAYS]
    if operation.method == "post":
        groups.append(_OF_POSTS)
    if operation.creates:
        groups.append(_OF_CREATING)
    statuses = {status for group in groups for status in group}
    return {
        status: tuple(dict.fromkeys(code for group in groups for code in group.get(status, ()))) for status in statuses
    }


def _envelope(codes: tuple[str, ...]) -> Json:
    details = {"type": ["object", "array"], "description": "Only where there are any; see the interface's description."}
    error = {
        "type": "object",
        "properties": {"code": {"enum": [*codes]}, "message": {"type": "string"}, "details": details},
        "required": ["code", "message"],
        "additionalProperties": False,
    }
    return {"type": "object", "properties": {"error": error}, "required": ["error"], "additionalProperties": False}


def _webhook(event: EventType, schemas: Mapping[Any, Json]) -> Json:
    return {
        "post": {
            "operationId": event.value.replace(".", "_"),
            "summary": event.value,
            "security": [],
            "parameters": [
                {"name": name, "in": "header", "required": True, "schema": {"type": "string"}, "description": meaning}
                for name, meaning in LETTER_HEADERS.items()
            ],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": _payload_of(event, schemas)}},
            },
            "responses": {"2XX": {"description": "Taken, within 10 seconds. All else is a failure and is sent again."}},
        }
    }


def _payload_of(event: EventType, schemas: Mapping[Any, Json]) -> Json:
    """The payload's schema, narrowed to this event: one struct serves all four refund events."""
    return {**schemas[EVENT_PAYLOADS[event]], "properties": {"event": {"const": event.value}}}


def openapi_handler(ports: Ports) -> HTTPRouteHandler:
    """GET /openapi.json."""

    @functools.cache
    def document() -> bytes:
        return msgspec.json.encode(openapi_document(ports.places.base_url))

    @get("/openapi.json")
    async def openapi() -> Response[bytes]:
        return Response(document(), media_type="application/json")

    return openapi
