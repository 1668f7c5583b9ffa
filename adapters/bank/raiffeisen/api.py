"""Calls of Raiffeisenbank's API: reads and writes, each ending in a result or one of the port's faults."""

from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from ....ports.clock import Clock
from ....ports.faults import Fault, NotConfigured, Unavailable
from ...provider_http import Answer, ProviderHttp
from .errors import code_of, is_absence, is_good, of_question, of_write
from .merchants import Pair, PayoutPair
from .wire import encoded

T = TypeVar("T")

_SECONDS = 15.0
"""Timeout of one exchange, below the 20 seconds after which the app gives up."""


class RaiffeisenApi:
    """Connections to the bank and decoding of its answers. The repr hides the address."""

    def __init__(self, name: str, base_url: str, clock: Clock) -> None:
        self._http = ProviderHttp(name, base_url, limit=_SECONDS, clock=clock)

    def __repr__(self) -> str:
        return "<RaiffeisenApi>"

    @property
    def clock_skew(self) -> float | None:
        return self._http.clock_skew

    async def ask(self, who: Pair | PayoutPair, shape: type[T], *path: str) -> T | None:
        """Read an object, or return None when the bank says that it does not exist.

        Raises: NotConfigured; Unavailable for any other answer that has not this shape.
        """
        answer = await self._http.call("GET", _joined(path), writes=False, headers=_headers(who))
        code = code_of(answer)
        if is_absence(code):
            return None
        if not is_good(answer, code):
            raise _owned(who, of_question(answer, code))
        return answer.decoded(shape)

    async def send(
        self, who: Pair | PayoutPair, shape: type[T], body: dict[str, Any], *path: str, payout: bool = False
    ) -> T:
        """POST a change. Raises: BankRefused; NotConfigured; Unavailable; OutcomeUnknown."""
        told = {**_headers(who), "Content-Type": "application/json"}
        answer = await self._http.call("POST", _joined(path), writes=True, body=encoded(body), headers=told)
        code = code_of(answer)
        if not is_good(answer, code):
            raise _owned(who, of_write(answer, code, payout=payout))
        return answer.decoded(shape)

    async def put(self, who: Pair, shape: type[T], *path: str) -> T:
        """PUT the change that the path names. Raises: the same as `send`."""
        answer = await self._http.call("PUT", _joined(path), writes=True, headers=_headers(who))
        code = code_of(answer)
        if not is_good(answer, code):
            raise _owned(who, of_write(answer, code))
        return answer.decoded(shape)

    async def delete(self, who: Pair | PayoutPair, *path: str) -> None:
        """DELETE an object. The bank answers with an empty body or an object. Raises: the same as `send`."""
        answer = await self._http.call("DELETE", _joined(path), writes=True, headers=_headers(who))
        code = code_of(answer)
        if not is_good(answer, code) or not _is_empty(answer):
            raise _owned(who, of_write(answer, code))

    async def close(self) -> None:
        await self._http.close()


def _owned(who: Pair | PayoutPair, fault: Fault) -> Fault:
    """Turn NotConfigured into Unavailable for a merchant's own credentials, so that they do not disable the gateway for
    all merchants."""
    if isinstance(fault, NotConfigured) and not who.is_shared:
        return Unavailable(str(fault))
    return fault


def _is_empty(answer: Answer) -> bool:
    if not answer.body.strip():
        return True
    try:
        msgspec.json.decode(answer.body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _joined(path: tuple[str, ...]) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in path)


def _headers(who: Pair | PayoutPair) -> dict[str, str]:
    return {"Authorization": f"Bearer {who.secret_key}", "Accept": "application/json"}
