"""Short operation ids for providers that do not accept long ones (docs/adapters.md "Operation ids").

Each is derived from the whole id, so two operations never share one, even if parts of their ids are equal.
"""

from base64 import b32encode
from hashlib import sha256
from uuid import UUID


def short_operation(operation: str) -> str:
    """Return 36 characters of `[0-9a-f-]`, a UUID: 122 bits of a digest of the operation id."""
    number = int.from_bytes(_digest(operation)[:16], "big") & ~(0xF << 76) & ~(0b11 << 62)
    return str(UUID(int=number | 0x8 << 76 | 0b10 << 62))


def tiny_operation(operation: str) -> str:
    """Return 20 characters of `[a-z2-7]`: 100 bits of a digest of the operation id. Among a billion operations, two
    collide with a probability below 10^-12."""
    return b32encode(_digest(operation))[:20].decode().lower()


def _digest(operation: str) -> bytes:
    return sha256(f"operation\0{operation}".encode()).digest()
