"""Input and form of authentication tags."""

from ...ports.vault import VaultError

TAG_BYTES = 33
"""One byte key id, and an HMAC-SHA256."""


def placed(said: bytes, aad: str) -> bytes:
    """Encode aad and content unambiguously: no other pair gives the same bytes."""
    where = aad.encode()
    return len(where).to_bytes(4, "big") + where + said


def tag_key(tag: bytes) -> int:
    """Return the key id of a tag. Raises: VaultError for a malformed tag."""
    if len(tag) != TAG_BYTES:
        raise VaultError("a tag has another length")
    return tag[0]
