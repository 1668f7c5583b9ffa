"""Reading a price from a source over HTTP. Any failure of a read is Unavailable."""

from collections.abc import Mapping
from decimal import Decimal
from http import HTTPStatus
from typing import TypeVar

from ...ports.faults import NotConfigured, Unavailable
from ..provider_http import ProviderHttp

T = TypeVar("T")

_WAIT_MAX = 3600.0
"""Maximum wait, because a price is needed within the hour."""
_PRICE_MAX = Decimal(1_000_000_000)


async def read(http: ProviderHttp, path: str, shape: type[T], headers: Mapping[str, str] | None = None) -> T:
    """Return the decoded JSON answer. Raises: NotConfigured for 401; Unavailable for any other answer that is
    incomplete or malformed."""
    answer = await http.call("GET", path, writes=False, headers=headers)
    if answer.status == HTTPStatus.UNAUTHORIZED:
        raise NotConfigured(f"{http.name}: the key is not taken")
    if answer.status != HTTPStatus.OK:
        wait = answer.retry_after()
        wait = None if wait is None else min(wait, _WAIT_MAX)
        raise Unavailable(f"{http.name}: status {answer.status}", retry_after=wait)
    return answer.decoded(shape)


def price(name: str, value: Decimal) -> Decimal:
    """Return the price if it is valid. Raises: Unavailable for zero, a negative value, no number, or an impossibly
    large one."""
    if not (value.is_finite() and 0 < value < _PRICE_MAX):
        raise Unavailable(f"{name}: not a price")
    return value
