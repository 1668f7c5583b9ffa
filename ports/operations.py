"""Operation ids for providers that take short ones only (docs/adapters.md "Operation ids").

Each is made of the whole id, so two operations never share one, whatever their forms have in common.
"""

from base64 import b32encode
from hashlib import sha256
from uuid import UUID


def short_operation(operation: str) -> str:
    """36 characters of `[0-9a-f-]`, a UUID: 122 bits of a digest of the operation id."""
    number = int.from_bytes(_digest(operation)[:16], "big") & ~(0xF << 76) & ~(0b11 << 62)
    return str(UUID(int=number | 0x8 << 76 | 0b10 << 62))


def tiny_operation(operation: str) -> str:
    """20 characters of `[a-z2-7]`: 100 bits of a digest of the operation id. Of a billion operations two are the
    same with a chance below 10^-12."""
    return b32encode(_digest(operation))[:20].decode().lower()


def _digest(operation: str) -> bytes:
    return sha256(f"operation\0{operation}".encode()).digest()
