"""Strict reading of bodies and query values. Invalid input becomes a documented refusal, never a 500 (docs/concepts.md
"Requests in general")."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ....core.domain.errors import shape_error
from .shape_faults import explain

T = TypeVar("T")

DEPTH = 20
PAGE_MAX = 250_000
PER_PAGE_MAX = 100

_UNREAD = "the body was not read: send it with Content-Type: application/json"
_WHOLE = re.compile(r"[0-9]{1,9}\Z")


def read_body(body: bytes, content_type: str | None, shape: type[T]) -> T:
    """Parse the body as `shape`. An empty body reads as `{}`. A body without `Content-Type: application/json` is not
    parsed: the refusal lists its required fields as missing, and such a body is refused even where no field is
    required.

    Raises: Refusal VALIDATION_ERROR with `details` of `{path, message}`.
    """
    media = (content_type or "").partition(";")[0].strip().lower()
    is_unread = media != "application/json" and bool(body.strip())
    if is_unread or not body.strip():
        body = b"{}"
    try:
        _refuse_deep_and_nul(body)
        found = msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        path, message = explain(str(error), shape)
        raise shape_error(path, f"{message}; {_UNREAD}" if is_unread else message) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise shape_error("$", "the body is not valid JSON in UTF-8") from None
    if is_unread:
        raise shape_error("$", _UNREAD)
    return found


def _refuse_deep_and_nul(body: bytes) -> None:
    """Refuse NUL characters and deep nesting. Walk the body only if it has an escaped NUL or many opening brackets."""
    if b"\\u0000" in body or body.count(b"[") + body.count(b"{") > DEPTH:
        _walk(msgspec.json.decode(body), 1)


def _walk(value: Any, depth: int) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise shape_error("$", "NUL characters are not allowed")
    elif isinstance(value, dict | list):
        if depth > DEPTH:
            raise shape_error("$", f"nested deeper than {DEPTH}")
        if isinstance(value, dict):
            for key in value:
                _walk(key, depth)
        for item in value.values() if isinstance(value, dict) else value:
            _walk(item, depth + 1)


def whole(query: Mapping[str, str], name: str, default: int, largest: int) -> int:
    """Return a whole number of the query from 1 to `largest`. Raises: Refusal VALIDATION_ERROR."""
    text = query.get(name)
    if text is None:
        return default
    value = int(text) if _WHOLE.match(text) else 0
    if not 1 <= value <= largest:
        raise shape_error(name, f"must be a whole number from 1 to {largest}")
    return value


def page_of(query: Mapping[str, str]) -> tuple[int, int]:
    """Return `page` and `per_page` (docs/concepts.md "Lists"). Raises: Refusal VALIDATION_ERROR."""
    return whole(query, "page", 1, PAGE_MAX), whole(query, "per_page", 20, PER_PAGE_MAX)
