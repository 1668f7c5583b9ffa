"""Idempotency of every command that creates a resource (docs/concepts.md "Idempotency")."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Conflict
from ....ports.storage import Unit
from ...domain.accounts.accounts import Caller
from ...domain.accounts.idempotency import IdempotencyKey, key_id
from ...domain.errors import Refusal
from ...domain.ids import canonical_uuid

T = TypeVar("T")
R = TypeVar("R")


class Lock(msgspec.Struct, frozen=True):
    """A key without a resource."""

    record_id: str
    """Id of the key's record, made of account, mode and key."""
    kind: str
    at: datetime

    def __call__(self, resource_id: str) -> IdempotencyKey:
        """Return the record that binds the key to the resource with this id."""
        return IdempotencyKey(id=self.record_id, kind=self.kind, resource_id=resource_id, created_at=self.at)


_MAKER_PAUSES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25)
_MAKER_PATIENCE = 22.0
"""Seconds that a repeat waits for the first request with its key, or for the recovery of a dead one. It is longer than
one call to a bank may take, and short enough to answer within 25."""

KEY_TAKEN = "idempotency_keys_id"
"""Unique rule of the storage. `make` may raise its Conflict itself when the key is taken."""
_TRIES = 20


class Made(msgspec.Struct, Generic[T], frozen=True):
    """A resource, and whether an earlier call created it (200) or this one did (201)."""

    resource: T
    replayed: bool


def read_key(header: str | None) -> str:
    """Return the canonical key. Raises: Refusal MISSING_IDEMPOTENCY_KEY, VALIDATION_ERROR."""
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
    """Create the resource of this key, or return the one it created, with any number of concurrent calls.

    `make(lock)` must add `lock(resource_id)` in the unit that adds the resource. It reads and checks the body, which a
    repeat never does. `recall(resource_id)` returns the resource in its current state, after waiting for its first
    request. It returns None when that request was refused and released the key. A Refusal from either is raised
    unchanged, and without a written record the key stays free. `id_rule`: the resource's unique rule, if its id follows
    from the key. The storage may refuse the later of two concurrent requests by either rule.
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
    """Call this before a refusal. If the same key created a resource meanwhile, that may be the reason, and the request
    is a repeat.

    Raises: Conflict, upon which `once` recalls the resource.
    """
    if await unit[IdempotencyKey].get(lock.record_id) is not None:
        raise Conflict(KEY_TAKEN) from None


async def once_made(ports: Ports, read: Callable[[], Awaitable[R | None]], is_made: Callable[[R], bool]) -> R | None:
    """Return the result of `read` when its first request has ended. None: the request was refused and its resource
    removed.

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
