"""What an operation of the interface is to its document: one row, put together in operations.py."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ..door.bodies import PAGE_MAX, PER_PAGE_MAX

Refusals = Mapping[int, tuple[str, ...]]
"""Codes by HTTP status."""


class Query(msgspec.Struct, frozen=True):
    """A query value."""

    name: str
    meaning: str
    schema: Mapping[str, Any] | None = None
    """None: text."""


class Operation(msgspec.Struct, frozen=True):
    """One method of one path."""

    method: str
    path: str
    tag: str
    summary: str
    answer: Any = None
    """The type of a good answer; None: there is none."""
    status: int = 200
    body: type | None = None
    query: tuple[Query, ...] = ()
    refusals: Refusals = {}
    """Beside those that every call may meet."""
    creates: bool = False
    """Takes an Idempotency-Key; 201, and 200 for a repeat."""
    keyed: bool = True
    """Needs a key pair, and is counted."""
    also_as: str | None = None
    """A further media type of a good answer, of which nothing but that it is text is said."""
    failing: int | None = None
    """A further status that has the same answer."""


API = "/api/v1"
TAGS = (
    "Payments", "Refunds", "Subscriptions", "Exchanges", "KYC", "Money", "Gateways", "Events", "Sandbox", "Health",
)  # fmt: skip
"""In the order of the document."""
PAGES = (
    Query("page", "From 1.", {"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": 1}),
    Query("per_page", "Elements per page.", {"type": "integer", "minimum": 1, "maximum": PER_PAGE_MAX, "default": 20}),
)
MOMENT = {"type": "string", "format": "date-time"}
DAY = {"type": "string", "format": "date"}
UUID = {"type": "string", "format": "uuid"}
