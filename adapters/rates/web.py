"""Reading a price from a source over HTTP. Everything that can go wrong with a read is Unavailable."""

from collections.abc import Mapping
from decimal import Decimal
from http import HTTPStatus
from typing import TypeVar

from ...ports.faults import NotConfigured, Unavailable
from ..provider_http import ProviderHttp

T = TypeVar("T")

_WAIT_MAX = 3600.0
"""A price is wanted again within the hour, whatever a source says."""
_PRICE_MAX = Decimal(1_000_000_000)


async def read(http: ProviderHttp, path: str, shape: type[T], headers: Mapping[str, str] | None = None) -> T:
    """The answer's JSON. Raises: NotConfigured for 401; Unavailable for everything else that is no whole answer of this
    shape."""
    answer = await http.call("GET", path, writes=False, headers=headers)
    if answer.status == HTTPStatus.UNAUTHORIZED:
        raise NotConfigured(f"{http.name}: the key is not taken")
    if answer.status != HTTPStatus.OK:
        wait = answer.retry_after()
        wait = None if wait is None else min(wait, _WAIT_MAX)
        raise Unavailable(f"{http.name}: status {answer.status}", retry_after=wait)
    return answer.decoded(shape)


def price(name: str, value: Decimal) -> Decimal:
    """A price as it came, when it is one. Raises: Unavailable for zero, less, no number, or one beyond all prices."""
    if not (value.is_finite() and 0 < value < _PRICE_MAX):
        raise Unavailable(f"{name}: not a price")
    return value
