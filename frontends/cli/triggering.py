"""Makes the calls of a recipe over HTTP in order: the work of `cambist trigger`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import aiohttp
import msgspec

from ...core.domain.errors import Refusal
from ...ports.clock import Ids
from ...ports.faults import Unavailable
from .listening import cause, refusal
from .recipes import Call, filled

_ANSWER = aiohttp.ClientTimeout(total=30, connect=10)
_MOST = 1_000_000
"""Largest size of an answer, in bytes."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Address and credentials for the calls. Its repr hides the secret."""

    base_url: str
    api_key: str
    api_secret: str
    ids: Ids
    """Source of idempotency keys."""

    def __repr__(self) -> str:
        return f"<caller of {self.base_url}>"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An answered call."""

    path: str
    status: int


async def perform(
    caller: Caller, recipe: Sequence[Call], given: Mapping[str, str], tell: Callable[[Told], None]
) -> dict[str, str]:
    """Make the calls in order. Return all known values by name.

    Raises: Refusal with the API's own code and message, or with the name of a value missing in an answer; Unavailable.
    """
    known = dict(given)
    headers = {"X-Api-Key": caller.api_key, "X-Api-Secret": caller.api_secret}
    async with aiohttp.ClientSession(timeout=_ANSWER, headers=headers) as http:
        for call in recipe:
            wanted = filled(call, known)
            answer = await _post(http, caller, wanted, tell)
            if wanted.keeps is not None:
                value = answer.get(wanted.keeps)
                if not isinstance(value, str):
                    raise Refusal("INVALID_STATE", f"the answer of POST {wanted.path} has no {wanted.keeps}")
                known[wanted.keeps] = value
    return known


async def _post(
    http: aiohttp.ClientSession, caller: Caller, call: Call, tell: Callable[[Told], None]
) -> dict[str, Any]:
    keys = {"Idempotency-Key": caller.ids.uuid()} if call.keyed else {}
    address = f"{caller.base_url}/api/v1{call.path}"
    try:
        async with http.post(address, json=dict(call.body), headers=keys, allow_redirects=False) as answer:
            body = await answer.content.read(_MOST)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Unavailable(f"{caller.base_url} did not answer: {cause(error)}") from None
    tell(Told(path=call.path, status=answer.status))
    if answer.status >= 400:
        refused = refusal(answer.status, body)
        if not isinstance(refused, Refusal) or refused.code != call.refused:
            raise refused
        return {}
    try:
        return msgspec.json.decode(body or b"{}", type=dict[str, Any])
    except msgspec.MsgspecError:
        raise Unavailable(f"{caller.base_url} answered {answer.status}, and no JSON object") from None
