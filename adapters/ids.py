"""Identifiers and secrets: from the operating system, or from a seed."""

import os
import random
import secrets
import threading
import time
from itertools import count

_TAIL_BITS = 74
"""A version 7 UUID holds 48 bits of milliseconds, 6 fixed bits, and these (RFC 9562, 5.7)."""
_LOW = (1 << 62) - 1
_VERSION_AND_VARIANT = 0x7 << 76 | 0b10 << 62
_POOL = 4000


def _uuid7(milliseconds: int, tail: int) -> str:
    """`tail` has 74 bits: 12 go before the variant, 62 behind it.

    Written without a `uuid.UUID`, which nobody needs: to make one takes three times as long as all else of it.
    """
    number = milliseconds << 80 | tail >> 62 << 64 | tail & _LOW | _VERSION_AND_VARIANT
    digits = number.to_bytes(16, "big").hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_from_bytes = int.from_bytes
"""Looked up once, as a method of a class."""


class _Chance:
    """Random bytes for identifiers, from the system some thousand at a time: each call of it costs as much as all else
    of an identifier. A process that was forked begins with none of its parent's. Secrets never come from here."""

    def __init__(self) -> None:
        self._bytes = b""
        self._taken = 0
        self._process = 0

    def take(self, count: int) -> bytes:
        """Bytes that nobody else was given."""
        end = self._taken + count
        if end > len(self._bytes) or self._process != os.getpid():
            self._bytes, self._taken, self._process = os.urandom(_POOL), 0, os.getpid()
            end = count
        taken = self._bytes[self._taken : end]
        self._taken = end
        return taken


class SystemIds:
    """Identifiers and secrets from the operating system. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = (0, 0)
        self._chance = _Chance()

    def uuid(self) -> str:
        """A version 7 UUID, greater than every one before it in this process (RFC 9562, 6.2, method 2).

        Within one millisecond, and after the machine's clock was set back, the tail grows by a random step of up to
        64 bits instead of being drawn anew: still in order, still not to be guessed from its neighbour.
        """
        now = time.time_ns() // 1_000_000
        with self._lock:
            chance = _from_bytes(self._chance.take(10), "big")
            milliseconds, tail = self._last
            if now > milliseconds:
                milliseconds, tail = now, chance % (1 << _TAIL_BITS)
            else:
                tail += 1 + chance % (1 << 64)
                if tail >> _TAIL_BITS:
                    milliseconds, tail = milliseconds + 1, chance % (1 << _TAIL_BITS)
            self._last = (milliseconds, tail)
        return _uuid7(milliseconds, tail)

    def secret(self, size: int) -> str:
        """`size` random bytes, as hex."""
        return secrets.token_hex(size)


class SeededIds:
    """The same identifiers and secrets on every run with the same seed: for tests and simulations only.

    They are in order like real ones, but every one can be foretold.
    """

    _EPOCH = 1_767_225_600_000
    """2026-01-01 in Unix milliseconds: the first identifier's time; each next one is a millisecond later."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - foretellable on purpose
        self._milliseconds = count(self._EPOCH)

    def uuid(self) -> str:
        """The next version 7 UUID of this seed."""
        return _uuid7(next(self._milliseconds), self._random.getrandbits(_TAIL_BITS))

    def secret(self, size: int) -> str:
        """The next `size` bytes of this seed, as hex."""
        return self._random.randbytes(size).hex()
