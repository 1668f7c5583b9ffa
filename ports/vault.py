"""The vault encrypts values that must not be readable in the database, fingerprints values that are only compared, and
tags values that only the service may write there."""

from typing import Protocol


class Vault(Protocol):
    """Keys are in the settings, never in the storage. The current one encrypts; older ones still decrypt."""

    @property
    def current(self) -> int:
        """The id of the key that encrypts."""
        ...

    @property
    def keys(self) -> frozenset[int]:
        """The ids of all keys that decrypt."""
        ...

    def key_of(self, sealed: bytes) -> int:
        """Return the id of the key that encrypted a value, even if the vault does not have that key. Raises
        VaultError."""
        ...

    def encrypt(self, plain: bytes, aad: str) -> bytes:
        """Encrypt and authenticate. `aad` (table, column, row) is the associated data: a value moved elsewhere
        fails."""
        ...

    def decrypt(self, sealed: bytes, aad: str) -> bytes:
        """Return the plain bytes. Raises VaultError when the value was altered, moved, or encrypted with a lost key."""
        ...

    def fingerprint(self, secret: str) -> bytes:
        """Return a keyed digest of a high-entropy secret, to store instead of it and to compare in constant time."""
        ...

    def tag(self, said: bytes, aad: str) -> bytes:
        """Return a keyed digest of `said` with the associated data `aad`, by the current key: 33 bytes, the key's id
        first. It cannot be made without a key of the vault, and does not match another aad or other bytes."""
        ...

    def fits(self, tag: bytes, said: bytes, aad: str) -> bool:
        """Return whether any key of the vault made `tag` for exactly these bytes with the associated data `aad`; in
        constant time. Raises VaultError for a tag that is too short, or by a key that the vault does not have."""
        ...


class VaultError(Exception):
    """An encrypted value cannot be decrypted."""


class VaultMisfit(VaultError):
    """The vault's pepper or keys do not match the database."""
