"""The vault seals what must not be readable in the database, fingerprints what need only be compared, and tags what
nobody but the service may have written there."""

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

    def tag(self, said: bytes, place: str) -> bytes:
        """A keyed digest of `said` at this place, by the current key: 33 bytes, the key's id first. Who has no key of
        the vault cannot make one; a tag of another place, or of other bytes, does not fit."""
        ...

    def fits(self, tag: bytes, said: bytes, place: str) -> bool:
        """Whether `tag` was made by the vault of just this, by whichever of its keys; in constant time. Raises
        VaultError for what is too short to be a tag, and for one by a key that the vault does not have."""
        ...


class VaultError(Exception):
    """A sealed value does not open."""


class VaultMisfit(VaultError):
    """The vault's pepper or keys are not those of the database."""
