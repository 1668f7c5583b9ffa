"""Identifiers and secrets: from the operating system, or from a seed."""

import os
import random
import secrets
import threading
import time
from collections.abc import Iterator
from itertools import chain, count, repeat

_TAIL_BITS = 74
"""Random bits of a version 7 UUID, beside 48 bits of milliseconds and 6 fixed bits (RFC 9562, 5.7)."""
_LOW = (1 << 62) - 1
_VARIANT = 0b10 << 62
_POOL = 4096
"""Random bytes that are drawn at a time."""


def _head(milliseconds: int) -> str:
    """Format the part before the tail: the time and the version."""
    digits = f"{milliseconds:012x}"
    return f"{digits[:8]}-{digits[8:]}-7"


def _whole(head: str, tail: int) -> str:
    """Format the identifier. 12 of the tail's 74 bits go before the variant, 62 after it.

    This creates no `uuid.UUID`, which would take three times as long as all the rest.
    """
    digits = (tail >> 62 << 64 | _VARIANT | tail & _LOW).to_bytes(10, "big").hex()
    return f"{head}{digits[1:4]}-{digits[4:8]}-{digits[8:]}"


def _uuid7(milliseconds: int, tail: int) -> str:
    return _whole(_head(milliseconds), tail)


def _drawn() -> Iterator[int]:
    """Yield random 64-bit numbers, drawn from the system some hundred at a time, because one system call costs as much
    as the rest of an identifier. Secrets never come from here."""
    return chain.from_iterable(memoryview(os.urandom(_POOL)).cast("Q") for _ in repeat(None))


class _Forks:
    """Number of forks between this process and its first ancestor. Asking the system for the process id would take
    longer than the rest of an identifier."""

    count = 0

    @classmethod
    def note(cls) -> None:
        cls.count += 1


os.register_at_fork(after_in_child=_Forks.note)


class SystemIds:
    """Identifiers and secrets from the operating system, safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._milliseconds = 0
        self._head = ""
        self._tail = 0
        self._chance = _drawn()
        self._forks = _Forks.count

    def uuid(self) -> str:
        """Return a version 7 UUID, greater than every earlier one of this process (RFC 9562, 6.2, method 2).

        Within one millisecond, and after the machine's clock was set back, the tail grows by a random step of up to 64
        bits instead of being drawn again. The identifiers stay in order and cannot be guessed from their neighbours.
        """
        now = time.time_ns() // 1_000_000
        with self._lock:
            if self._forks != _Forks.count:  # a forked child must not reuse its parent's random numbers
                self._chance, self._forks = _drawn(), _Forks.count
            if now > self._milliseconds:
                self._begin(now)
            else:
                self._tail += 1 + next(self._chance)
                if self._tail >> _TAIL_BITS:
                    self._begin(self._milliseconds + 1)
            return _whole(self._head, self._tail)

    def _begin(self, milliseconds: int) -> None:
        self._milliseconds, self._head = milliseconds, _head(milliseconds)
        self._tail = (next(self._chance) << 64 | next(self._chance)) >> 128 - _TAIL_BITS

    def secret(self, size: int) -> str:
        """Return `size` random bytes as hex."""
        return secrets.token_hex(size)


class SeededIds:
    """The same identifiers and secrets on every run with the same seed, for tests and simulations only.

    They are in order like real ones, but predictable.
    """

    _EPOCH = 1_767_225_600_000
    """2026-01-01 in Unix milliseconds: the time of the first identifier. Each further one is a millisecond later."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - predictable on purpose
        self._milliseconds = count(self._EPOCH)

    def uuid(self) -> str:
        """Return the next version 7 UUID of this seed."""
        return _uuid7(next(self._milliseconds), self._random.getrandbits(_TAIL_BITS))

    def secret(self, size: int) -> str:
        """Return the next `size` bytes of this seed as hex."""
        return self._random.randbytes(size).hex()
