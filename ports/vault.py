"""The vault seals what must not be readable in the database, and fingerprints what need only be compared."""

from typing import Protocol


class Vault(Protocol):
    """Keys live in settings, never in the storage. The current one seals; older ones still open what they sealed."""

    @property
    def current(self) -> int:
        """The id of the key that seals."""
        ...

    @property
    def keys(self) -> frozenset[int]:
        """The ids of all keys that open."""
        ...

    def key_of(self, sealed: bytes) -> int:
        """The id of the key with which a value was sealed, whether or not it is there. Raises VaultError."""
        ...

    def seal(self, plain: bytes, place: str) -> bytes:
        """Encrypt and authenticate. `place` (table, column, row) is bound in: a sealed value moved elsewhere fails."""
        ...

    def unseal(self, sealed: bytes, place: str) -> bytes:
        """The plain bytes. Raises VaultError when the value was altered, moved, or sealed with a lost key."""
        ...

    def fingerprint(self, secret: str) -> bytes:
        """A keyed digest of a high-entropy secret, to store instead of it and to compare in constant time."""
        ...


class VaultError(Exception):
    """A sealed value does not open."""
