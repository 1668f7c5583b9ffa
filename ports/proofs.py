"""The port that signs what strangers can check with the public key."""

from typing import Protocol


class HeadSigner(Protocol):
    @property
    def public_key(self) -> bytes:
        """The public key of Ed25519, 32 bytes."""
        ...

    def sign(self, said: bytes, /) -> bytes:
        """Return the Ed25519 signature of these bytes, 64 bytes."""
        ...
