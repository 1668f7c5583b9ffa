"""Ed25519 signatures (RFC 8032) by the library cryptography."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Ed25519Signer:
    """Implements the port HeadSigner."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    def _key(self) -> "Ed25519PrivateKey":
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (
            Ed25519PrivateKey,
        )

        return Ed25519PrivateKey.from_private_bytes(self._seed)

    @property
    def public_key(self) -> bytes:
        """Return the public key, 32 bytes."""
        return self._key().public_key().public_bytes_raw()

    def sign(self, said: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return self._key().sign(said)
