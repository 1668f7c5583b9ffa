"""What an operation asks for, as a value: made without any network, sent by either client, and read by its own decoder.

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
"""Of money. Never a float: `0.1` is no tenth of a rouble."""

API = "/api/v1"
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
"""One per type, for ever: making one takes longer than decoding."""
JSON = "application/json"


class Request(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One call, whole. Sending it again sends the same Idempotency-Key again. The repr shows no body and no query."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    """Below `/api/v1`; or a whole address, which then gets no keys."""
    read: Callable[[bytes], T]
    """The body of a good answer, typed."""
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = JSON
    more_headers: Mapping[str, str] = {}
    """Beside those that every request has."""
    key: str | None = None
    """The Idempotency-Key; None where the call takes none."""
    own_key: bool = False
    """The key was made here, not by the caller."""
    repeatable: bool = False
    """Twice is as good as once, so it may be sent again when nobody knows whether it arrived."""
    renewable: bool = False
    """Where a key keeps a bad answer, nothing speaks against another key (POST /payments; see Retries.new_key)."""

    def __repr__(self) -> str:
        return f"Request({self.method} {self.path.partition('?')[0]}, key={self.key!r})"

    @property
    def is_keyed(self) -> bool:
        """It goes to the service itself, so the key pair goes along."""
        return self.path.startswith("/")

    @property
    def headers(self) -> dict[str, str]:
        """All but the key pair."""
        headers = dict(self.more_headers)
        if self.body is not None:
            headers["Content-Type"] = self.content_type
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        return headers

    @property
    def target(self) -> str:
        """The path from the service's address on, or the whole address."""
        return f"{API}{self.path}" if self.is_keyed else self.path

    def url(self, base_url: str) -> str:
        """Where it goes. A query in a whole address stays."""
        return base_url + self.target if self.is_keyed else self.target


def at(*parts: str) -> str:
    """A path of these parts, each as one. Raises: ValueError for a part that would lead elsewhere."""
    for part in parts:
        if not part or part in (".", ".."):
            raise ValueError("an id may not be empty or a dot segment")
    return "/" + "/".join(quote(part, safe="") for part in parts)


def amount(value: Amount) -> str:
    """The decimal string of the wire. Raises: TypeError for a float; ValueError for what is no number."""
    if isinstance(value, bool) or not isinstance(value, (Decimal, str, int)):
        raise TypeError(f"an amount is a Decimal, a str or an int, not a {type(value).__name__}")
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("an amount is a finite number")
        return format(value, "f")
    return str(value)


def amount_or_none(value: Amount | None) -> str | None:
    """`amount`, where None is left out."""
    return None if value is None else amount(value)


def get(path: str, answer: type[T], **query: Any) -> Request[T]:
    """A read. Query values that are None are left out; a name may end in `_` where Python keeps it (`from_`)."""
    return Request(method="GET", path=path, read=reader(answer), query=_query(query), repeatable=True)


def get_csv(path: str, **query: Any) -> Request[str]:
    """A read of a list as one CSV file; query values as `get` takes them."""
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
    """A call that makes no resource, so it has no Idempotency-Key."""
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
    """A call that makes a resource, under `key` or a fresh one."""
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
    """A fresh Idempotency-Key."""
    return str(uuid4())


def reader(answer: type[T]) -> Callable[[bytes], T]:
    """A decoder to a type. Raises: msgspec.DecodeError."""
    kept = _DECODERS.get(answer)
    if kept is None:
        kept = _DECODERS[answer] = msgspec.json.Decoder(answer)
    read: Callable[[bytes], T] = kept.decode
    return read


def _body(fields: Mapping[str, Any] | None) -> bytes | None:
    """What is None is left out: the service takes null for absent. UNSET is how a null is told from it."""
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
