"""An operation of the interface: one row, of which its place in the table and its description are made; and the request
that its handler gets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec
from litestar.types import ASGIApp, HTTPScope

from ....core.domain.accounts.key_terms import Right
from ....core.domain.accounts.quota import API, Network
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
    """A query value."""

    name: str
    meaning: str
    schema: Mapping[str, Any] | None = None
    """None: text."""


class AppContext(msgspec.Struct, frozen=True):
    """What an application has for all its requests, beside the ports."""

    streams: WindowStreams
    trusted_proxies: Sequence[Network]
    degraded: Callable[[], Awaitable[list[str]]]
    """Names what does not work as it should."""
    written: ByteCounter
    """Counts what accounts write in a day."""


class ApiRequest(msgspec.Struct, Generic[Body]):
    """A request of the interface as handlers get it."""

    context: AppContext
    scope: HTTPScope
    headers: Mapping[bytes, bytes]
    """By lower-case name; of several of a name the first."""
    shape: type[Body] | None
    """Of the body."""
    values: Sequence[str]
    """Of the path's parameters, in their order."""
    body: bytes = b""
    """As it came; empty where the operation takes none."""

    @property
    def id(self) -> str:
        """The object that the path names."""
        return self.values[0]

    @property
    def query(self) -> Mapping[str, str]:
        """The query's values; of several of a name the first counts."""
        text = self.scope["query_string"]
        return dict(reversed(parse_qsl(text.decode("latin-1"), keep_blank_values=True))) if text else {}

    def asked(self, kind: type[T]) -> T:
        """The query's values as a filter, a struct whose fields are named as they are. What it has no field for is
        left aside (docs/concepts.md "Requests in general")."""
        query, names = self.query, zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
        return kind(**{field: query[name] for field, name in names if name in query})

    @property
    def key(self) -> str | None:
        """The header Idempotency-Key."""
        value = self.headers.get(b"idempotency-key")
        return None if value is None else value.decode("latin-1")

    @property
    def address(self) -> str:
        """The client's, beyond the proxies that are trusted."""
        return address_of(self.scope, self.headers, self.context.trusted_proxies)

    def read(self) -> Body:
        """The body, read as the operation's shape: use cases call this when its turn comes in the order of refusals.

        Raises: Refusal VALIDATION_ERROR.
        """
        if self.shape is None:
            raise TypeError("this operation takes no body")
        if self.shape is bytes:
            return self.body  # type: ignore[return-value]  # that is its type
        return read_body(self.body, self.headers.get(b"content-type", b"").decode("latin-1"), self.shape)


Handler = Callable[[Ports, Any, ApiRequest[Body]], Awaitable[ASGIApp]]
"""Given the ports, the Caller (None where no key pair is asked for) and the request, makes the answer: an `Answer`, or
whatever else can send itself. Raises: what becomes a refusal in errors.py."""


class Operation(msgspec.Struct, Generic[Body], frozen=True):
    """One method of one path."""

    id: str
    """Its name in the description: verb and object."""
    method: str
    path: str
    """From the root on, with `{parameters}`."""
    tag: str
    summary: str
    handler: Handler[Body]
    answer: Any = None
    """The type of a good answer; None: there is none."""
    status: int = 200
    body: type[Body] | None = None
    """What the handler reads the body as; `bytes`: as it came, of any content type; None: it takes none."""
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

    right: Right | None = None
    """What a key has to have the right to, of an operation that changes something. Reads need `read`, all else of the
    sandbox `sandbox`."""

    is_sandbox: bool = False
    """Whether it is not there for live keys: by its path."""
    needs: Right = Right.READ
    """The right that it needs, wherever that is said."""

    def __post_init__(self) -> None:
        is_sandbox = self.path.startswith(_SANDBOX)
        follows = Right.READ if self.method == "get" or not self.keyed else Right.SANDBOX if is_sandbox else None
        needs = self.right or follows
        if needs is None:
            raise TypeError(f"{self.id}: its row says no right")
        msgspec.structs.force_setattr(self, "is_sandbox", is_sandbox)
        msgspec.structs.force_setattr(self, "needs", needs)


PAGES = (
    Query("page", "From 1.", {"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": 1}),
    Query("per_page", "Elements per page.", {"type": "integer", "minimum": 1, "maximum": PER_PAGE_MAX, "default": 20}),
)
FORMATS = ("json", "csv")
FORMAT = Query("format", "`csv`: all lines in one file, without pages.", {"enum": [*FORMATS], "default": "json"})
MOMENT = {"type": "string", "format": "date-time"}
DAY = {"type": "string", "format": "date"}
UUID = {"type": "string", "format": "uuid"}
MADE = (
    Query("created_from", "Made at this moment or later.", MOMENT),
    Query("created_to", "Made before this moment.", MOMENT),
)
"""How every list of what is made at some moment is narrowed (core/usecases/paging.py: MomentFilter)."""
FOUND_BY = (Query("external_id", "Exactly this."), *MADE)
"""The same of what merchants give an id of theirs (ListFilter)."""
