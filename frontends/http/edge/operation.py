"""An operation of the API: one row that defines both its route and its OpenAPI description. Also the request that its
handler gets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec
from litestar.types import ASGIApp, HTTPScope

from ....core.domain.accounts.key_terms import Right
from ....core.domain.accounts.rate_limit import API, Network
from ....core.usecases.accounts.written_bytes import ByteCounter
from ....ports.bundle import Ports
from .bodies import PAGE_MAX, PER_PAGE_MAX, read_body
from .origin import address_of
from .streams import WindowStreams

Body = TypeVar("Body")
T = TypeVar("T", bound=msgspec.Struct)

_SANDBOX = f"{API}/sandbox/"

Refusals = Mapping[int, tuple[str, ...]]
"""Codes by HTTP status."""


class Query(msgspec.Struct, frozen=True):
    """A query parameter."""

    name: str
    meaning: str
    schema: Mapping[str, Any] | None = None
    """None: text."""


class AppContext(msgspec.Struct, frozen=True):
    """Objects that an application shares among all its requests, besides the ports."""

    streams: WindowStreams
    trusted_proxies: Sequence[Network]
    degraded: Callable[[], Awaitable[list[str]]]
    """Returns the names of degraded parts."""
    written: ByteCounter
    """Counts the bytes that accounts write in a day."""


class ApiRequest(msgspec.Struct, Generic[Body]):
    """A request of the API as handlers get it."""

    context: AppContext
    scope: HTTPScope
    headers: Mapping[bytes, bytes]
    """Headers by lower-case name. If a name repeats, the first value counts."""
    shape: type[Body] | None
    """Type of the body."""
    values: Sequence[str]
    """Values of the path's parameters, in order."""
    body: bytes = b""
    """The raw body; empty if the operation takes none."""

    @property
    def id(self) -> str:
        """Id of the object that the path names."""
        return self.values[0]

    @property
    def query(self) -> Mapping[str, str]:
        """Values of the query. If a name repeats, the first value counts."""
        text = self.scope["query_string"]
        return dict(reversed(parse_qsl(text.decode("latin-1"), keep_blank_values=True))) if text else {}

    def asked(self, kind: type[T]) -> T:
        """Return the query as a filter: a struct whose fields have the names of the parameters. Unknown parameters are
        ignored (docs/concepts.md "Requests in general")."""
        query, names = self.query, zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
        return kind(**{field: query[name] for field, name in names if name in query})

    @property
    def key(self) -> str | None:
        """The header Idempotency-Key."""
        value = self.headers.get(b"idempotency-key")
        return None if value is None else value.decode("latin-1")

    @property
    def address(self) -> str:
        """The client's address, as reported by trusted proxies."""
        return address_of(self.scope, self.headers, self.context.trusted_proxies)

    def read(self) -> Body:
        """Return the body parsed as the operation's shape. Use cases call this at the point where body errors come in
        the order of refusals.

        Raises: Refusal VALIDATION_ERROR.
        """
        if self.shape is None:
            raise TypeError("this operation takes no body")
        if self.shape is bytes:
            return self.body  # type: ignore[return-value]  # that is its type
        return read_body(self.body, self.headers.get(b"content-type", b"").decode("latin-1"), self.shape)


Handler = Callable[[Ports, Any, ApiRequest[Body]], Awaitable[ASGIApp]]
"""A handler gets the ports, the Caller (None where no key pair is required) and the request, and returns the answer: an
`Answer` or another ASGI application. errors.py turns the exceptions it raises into refusals."""


class Operation(msgspec.Struct, Generic[Body], frozen=True):
    """One method of one path."""

    id: str
    """Name of the operation in the OpenAPI document: verb and object."""
    method: str
    path: str
    """Path from the root, with `{parameters}`."""
    tag: str
    summary: str
    handler: Handler[Body]
    answer: Any = None
    """Type of a successful answer; None: no body."""
    status: int = 200
    body: type[Body] | None = None
    """Type that the handler parses the body as; `bytes`: the raw body of any content type; None: no body."""
    query: tuple[Query, ...] = ()
    refusals: Refusals = {}
    """Refusals besides those common to every operation."""
    creates: bool = False
    """Whether it takes an Idempotency-Key: 201, and 200 for a repeat."""
    keyed: bool = True
    """Whether it requires a key pair and is counted."""
    also_as: str | None = None
    """A further media type of a successful answer, described only as text; without `answer`, a file of any type."""
    failing: int | None = None
    """A further status that has the same answer."""

    right: Right | None = None
    """Right that a key needs for an operation that changes something. Reads need `read`; all other sandbox operations
    need `sandbox`."""

    is_sandbox: bool = False
    """Whether it is hidden from live keys. Derived from its path."""
    needs: Right = Right.READ
    """The right that the operation needs, given or derived."""

    def __post_init__(self) -> None:
        is_sandbox = self.path.startswith(_SANDBOX)
        follows = Right.READ if self.method == "get" or not self.keyed else Right.SANDBOX if is_sandbox else None
        needs = self.right or follows
        if needs is None:
            raise TypeError(f"{self.id}: its row says no right")
        msgspec.structs.force_setattr(self, "is_sandbox", is_sandbox)
        msgspec.structs.force_setattr(self, "needs", needs)


PAGES = (
    Query("page", "Page number, from 1.", {"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": 1}),
    Query("per_page", "Elements per page.", {"type": "integer", "minimum": 1, "maximum": PER_PAGE_MAX, "default": 20}),
)
FORMATS = ("json", "csv")
FORMAT = Query("format", "`csv` returns all lines in one file, without pages.", {"enum": [*FORMATS], "default": "json"})
MOMENT = {"type": "string", "format": "date-time"}
DAY = {"type": "string", "format": "date"}
UUID = {"type": "string", "format": "uuid"}
MADE = (
    Query("created_from", "Created at this time or later.", MOMENT),
    Query("created_to", "Created before this time.", MOMENT),
)
"""Filter of every list by time of creation (core/usecases/common/paging.py: MomentFilter)."""
FOUND_BY = (Query("external_id", "Exact match."), *MADE)
"""The same filter for objects that have a merchant's external id (ListFilter)."""
