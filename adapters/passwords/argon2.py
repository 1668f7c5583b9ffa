"""Passwords hashed with Argon2id in threads: OWASP's parameters, a bounded number of calls at once."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from ...ports.faults import Unavailable

if TYPE_CHECKING:
    import argon2

T = TypeVar("T")

AT_ONCE = 2
"""Calls that run at the same time. Each takes a processor and MEMORY."""
WAITING_MOST = 64
"""Calls that may wait for their turn; further ones are refused at once."""
MEMORY = 19_456
"""Memory of a call in KiB, with PASSES passes and one lane (OWASP Password Storage Cheat Sheet)."""
PASSES = 2
_LONGEST = 1024
"""Bytes of a password that are hashed; longer ones match nothing."""


class Argon2Passwords:
    """Implements the port PasswordHasher."""

    def __init__(self, *, memory: int = MEMORY, passes: int = PASSES) -> None:
        self._memory, self._passes = memory, passes
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def hash(self, password: str) -> str:
        """Return a hash. Raises: Unavailable."""
        return await self._run(lambda: self._hasher.hash(password.encode()))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Return whether the password belongs to the hash. Raises: Unavailable."""
        given = password.encode("utf-8", "replace")
        if len(given) > _LONGEST:
            given, stored = given[:_LONGEST], None
        return await self._run(lambda: self._fits(stored, given))

    def is_outdated(self, stored: str) -> bool:
        """Return whether the parameters changed since."""
        return self._hasher.check_needs_rehash(stored)

    def _fits(self, stored: str | None, given: bytes) -> bool:
        import argon2

        try:
            self._hasher.verify(self._dummy if stored is None else stored, given)
        except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
            return False
        return stored is not None

    async def _run(self, call: Callable[[], T]) -> T:
        if self._waiting >= WAITING_MOST:
            raise Unavailable("too many passwords are checked at once")
        self._waiting += 1
        try:
            async with self._slots:
                return await asyncio.to_thread(call)
        finally:
            self._waiting -= 1

    @cached_property
    def _hasher(self) -> "argon2.PasswordHasher":
        import argon2

        return argon2.PasswordHasher(time_cost=self._passes, memory_cost=self._memory, parallelism=1)

    @cached_property
    def _dummy(self) -> str:
        return self._hasher.hash(b"nobody has this password")
