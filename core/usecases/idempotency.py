"""Idempotency, in one place that every creating command passes (docs/concepts.md "Idempotency")."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from ...ports.bundle import Ports
from ...ports.faults import Conflict
from ...ports.storage import Unit
from ..domain.accounts.accounts import Caller
from ..domain.accounts.idempotency import IdempotencyKey, key_id
from ..domain.errors import Refusal
from ..domain.ids import canonical_uuid

T = TypeVar("T")
R = TypeVar("R")


class Lock(msgspec.Struct, frozen=True):
    """A key that has no resource yet."""

    record_id: str
    """Of the record that keeps it: it says account, mode and key."""
    kind: str
    at: datetime

    def __call__(self, resource_id: str) -> IdempotencyKey:
        """The record that keeps the key for the resource of this id."""
        return IdempotencyKey(id=self.record_id, kind=self.kind, resource_id=resource_id, created_at=self.at)


_MAKER_PAUSES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25)
_MAKER_PATIENCE = 22.0
"""Seconds a repeat waits for the request that holds its key, or for the recovery of one that died: longer than one call
to a bank may take, and short enough to answer within 25."""

KEY_TAKEN = "idempotency_keys_id"
"""The storage's unique rule. A `make` may raise its Conflict itself, when it finds the key taken."""
_TRIES = 20


class Made(msgspec.Struct, Generic[T], frozen=True):
    """A resource and whether this call made it (201) or an earlier one did (200)."""

    resource: T
    replayed: bool


def read_key(header: str | None) -> str:
    """The canonical key. Raises: Refusal MISSING_IDEMPOTENCY_KEY, VALIDATION_ERROR."""
    if not header:
        raise Refusal("MISSING_IDEMPOTENCY_KEY", "The header Idempotency-Key is required")
    key = canonical_uuid(header)
    if key is None:
        raise Refusal("VALIDATION_ERROR", "Idempotency-Key must be a valid UUID")
    return key


async def once(
    ports: Ports,
    caller: Caller,
    header: str | None,
    kind: str,
    *,
    make: Callable[[Lock], Awaitable[T]],
    recall: Callable[[str], Awaitable[T | None]],
    id_rule: str = KEY_TAKEN,
) -> Made[T]:
    """Make the resource of this key, or recall the one it made, however many ask at once.

    `make(lock)` must add `lock(resource_id)` in the unit that adds the resource; it reads and checks the body, which
    a repeat never does. `recall(resource_id)` gives the resource in its present state, waiting for its maker where
    that is still at work; None when the maker was refused and took the key back. A Refusal from either goes out as
    it is: what was not written does not lock the key. `id_rule`: the resource's, where its id follows from the key: of
    two that make it at once the storage may refuse the later one for either.
    """
    record_id = key_id(caller.account_id, caller.mode, read_key(header))
    lock = Lock(record_id, kind, ports.clock.now())
    for _ in range(_TRIES):
        known = await ports.storage.get(IdempotencyKey, record_id)
        if known is not None:
            if known.kind != kind:
                raise Refusal("IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key belongs to a resource of another kind")
            resource = await recall(known.resource_id)
            if resource is None:
                continue
            return Made(resource, replayed=True)
        try:
            return Made(await make(lock), replayed=False)
        except Conflict as conflict:
            if conflict.rule not in (KEY_TAKEN, id_rule):
                raise
    raise Refusal("PROVIDER_UNAVAILABLE", "Other requests with this key keep failing; try again", retry_after=30)


async def yield_to_maker(unit: Unit, lock: Lock) -> None:
    """Call it where a request is refused. What this very key made meanwhile may be the reason: then it is a repeat.

    Raises: Conflict, upon which `once` recalls it.
    """
    if await unit[IdempotencyKey].get(lock.record_id) is not None:
        raise Conflict(KEY_TAKEN) from None


async def once_made(ports: Ports, read: Callable[[], Awaitable[R | None]], is_made: Callable[[R], bool]) -> R | None:
    """What `read` gives, once its first request has come to an end; None: it was taken back.

    Raises: Refusal PROVIDER_UNAVAILABLE when that takes too long.
    """
    waited, tried = 0.0, 0
    while True:
        found = await read()
        if found is None or is_made(found):
            return found
        if waited >= _MAKER_PATIENCE:
            raise Refusal(
                "PROVIDER_UNAVAILABLE", "The first request with this key is still at work; try again", retry_after=5
            )
        pause = _MAKER_PAUSES[min(tried, len(_MAKER_PAUSES) - 1)]
        await ports.clock.sleep(pause)
        waited, tried = waited + pause, tried + 1
