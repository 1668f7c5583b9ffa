"""Examples of the OpenAPI document: real answers of the service (recorded by `docs/generate.py`), and for every refusal
its envelope with the catalogue's message."""

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ....core.domain.errors import CATALOGUE

Json = dict[str, Any]

_FILE = Path(__file__).parent / "examples.json"
_DETAILS: Mapping[str, Any] = {
    "VALIDATION_ERROR": [{"path": "amount_rub", "message": "is required"}],
    "PAYER_DATA_REQUIRED": {"missing_fields": ["client_phone"]},
    "CHARGE_BEFORE_WINDOW": {"next_allowed_at": "2026-12-01T00:00:00+03:00"},
    "RECURRING_CHARGE_EXHAUSTED": {"next_allowed_at": "2026-12-01T00:00:00+03:00"},
}


@functools.cache
def _recorded() -> Json:
    recorded: Json = msgspec.json.decode(_FILE.read_bytes())
    return recorded


def refusal_example(code: str) -> Json:
    """Return the envelope of a refusal."""
    details = {"details": _DETAILS[code]} if code in _DETAILS else {}
    return {"error": {"code": code, "message": CATALOGUE[code].meaning, **details}}


def refusal_examples(codes: Iterable[str]) -> Json:
    """Return references to the envelopes of these codes, which list the codes that an answer may have."""
    return {code: {"$ref": f"#/components/examples/{code}"} for code in codes}


def with_examples(document: Json) -> Json:
    """Add the examples to the operations and webhooks of the document, and return it."""
    for operations in document["paths"].values():
        for operation in operations.values():
            _add(operation, _recorded()["operations"].get(operation["operationId"], {}))
    document["components"]["examples"] = {code: {"value": refusal_example(code)} for code in CATALOGUE}
    for event, webhook in document["webhooks"].items():
        webhook["post"]["requestBody"]["content"]["application/json"]["example"] = _recorded()["webhooks"][event]
    return document


def _add(operation: Json, recorded: Json) -> None:
    if "requestBody" in operation and "request" in recorded:
        content = operation["requestBody"]["content"]
        content["application/json"] = {**content["application/json"], "example": recorded["request"]}
    for status, response in operation["responses"].items():
        if status in recorded.get("responses", {}):
            content = {**response["content"]["application/json"], "example": recorded["responses"][status]}
            # A new dict for each, because 200 and 201 share theirs.
            response["content"] = {**response["content"], "application/json": content}
