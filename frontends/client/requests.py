"""Requests as values: built without network, sent by either client, and decoded by their own reader.

request = Payments.create.request(amount_rub="100.00")
payment = client.send(request)
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote
from uuid import UUID, uuid4

import msgspec

T = TypeVar("T")
Amount = Decimal | str | int
"""An amount of money. Never a float: `0.1` is not exactly a tenth of a rouble."""

API = "/api/v1"
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
"""One decoder per type, kept for ever, because creating one takes longer than decoding."""
JSON = "application/json"


class Request(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One complete call. Sending it again repeats its Idempotency-Key. The repr shows neither body nor query."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    """Path below `/api/v1`, or a whole URL, which then gets no keys."""
    read: Callable[[bytes], T]
    """Decodes the body of a good answer."""
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = JSON
    more_headers: Mapping[str, str] = {}
    """Headers in addition to the common ones."""
    key: str | None = None
    """The Idempotency-Key, or None if the call takes none."""
    own_key: bool = False
    """The client generated the key, not the caller."""
    repeatable: bool = False
    """A repeat has no further effect, so the request may be sent again after an unknown outcome."""
    renewable: bool = False
    """If a key is bound to an error, another key may be used (POST /payments; see Retries.new_key)."""

    def __repr__(self) -> str:
        return f"Request({self.method} {self.path.partition('?')[0]}, key={self.key!r})"

    @property
    def is_keyed(self) -> bool:
        """Whether the request goes to the service itself and needs the key pair."""
        return self.path.startswith("/")

    @property
    def headers(self) -> dict[str, str]:
        """All headers except the key pair."""
        headers = dict(self.more_headers)
        if self.body is not None:
            headers["Content-Type"] = self.content_type
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        return headers

    @property
    def target(self) -> str:
        """The path below the service's address, or the whole URL."""
        return f"{API}{self.path}" if self.is_keyed else self.path

    def url(self, base_url: str) -> str:
        """Return the URL. A whole URL keeps its query."""
        return base_url + self.target if self.is_keyed else self.target


def at(*parts: str) -> str:
    """Return a path of these parts, each quoted. Raises: ValueError for a part that would lead elsewhere."""
    for part in parts:
        if not part or part in (".", ".."):
            raise ValueError("an id may not be empty or a dot segment")
    return "/" + "/".join(quote(part, safe="") for part in parts)


def amount(value: Amount) -> str:
    """Return the decimal string of an amount. Raises: TypeError for a float; ValueError for text that is not a
    number."""
    if isinstance(value, bool) or not isinstance(value, (Decimal, str, int)):
        raise TypeError(f"an amount is a Decimal, a str or an int, not a {type(value).__name__}")
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("an amount is a finite number")
        return format(value, "f")
    return str(value)


def amount_or_none(value: Amount | None) -> str | None:
    """Return `amount`, or None for None."""
    return None if value is None else amount(value)


def get(path: str, answer: type[T], **query: Any) -> Request[T]:
    """Return a read request. None values are left out of the query; a trailing `_` of a name is dropped (`from_`)."""
    return Request(method="GET", path=path, read=reader(answer), query=_query(query), repeatable=True)


def get_csv(path: str, **query: Any) -> Request[str]:
    """Return a request for a list as one CSV file. Query values as for `get`."""
    return Request(
        method="GET",
        path=path,
        query=_query({**query, "format": "csv"}),
        read=lambda body: body.decode("utf-8"),
        repeatable=True,
    )


def post(
    path: str,
    answer: type[T],
    body: Mapping[str, Any] | None = None,
    *,
    query: Mapping[str, Any] | None = None,
    repeatable: bool = False,
) -> Request[T]:
    """Return a request that creates no object and therefore has no Idempotency-Key."""
    return Request(
        method="POST",
        path=path,
        read=reader(answer),
        query=_query(query or {}),
        body=_body(body),
        repeatable=repeatable,
    )


def create(
    path: str,
    answer: type[T],
    body: Mapping[str, Any] | None,
    key: str | UUID | None,
    *,
    renewable: bool = False,
) -> Request[T]:
    """Return a request that creates an object, with `key` or a new key."""
    return Request(
        method="POST",
        path=path,
        read=reader(answer),
        body=_body(body),
        key=new_key() if key is None else str(key),
        own_key=key is None,
        repeatable=True,
        renewable=renewable,
    )


def new_key() -> str:
    """Return a new Idempotency-Key."""
    return str(uuid4())


def reader(answer: type[T]) -> Callable[[bytes], T]:
    """Return a decoder of a type. Raises: msgspec.DecodeError."""
    kept = _DECODERS.get(answer)
    if kept is None:
        kept = _DECODERS[answer] = msgspec.json.Decoder(answer)
    read: Callable[[bytes], T] = kept.decode
    return read


def _body(fields: Mapping[str, Any] | None) -> bytes | None:
    """Encode the fields without None values: the service treats null as absent. An explicit null needs UNSET as its
    default."""
    if fields is None:
        return None
    given = {name: value for name, value in fields.items() if value is not None}
    return msgspec.json.encode(given)


def _query(values: Mapping[str, Any]) -> dict[str, str]:
    return {name.rstrip("_"): _text(name, value) for name, value in values.items() if value is not None}


def _text(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} needs a time zone")
        return value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return str(value)
