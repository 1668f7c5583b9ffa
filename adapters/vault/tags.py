"""What a tag is made over, and what one looks like."""

from ...ports.vault import VaultError

TAG_BYTES = 33
"""One byte key id, and HMAC-SHA256."""


def placed(said: bytes, place: str) -> bytes:
    """Place and content as one, so that no other pair reads the same."""
    where = place.encode()
    return len(where).to_bytes(4, "big") + where + said


def tag_key(tag: bytes) -> int:
    """The id of the key that a tag is by. Raises: VaultError for what is no tag."""
    if len(tag) != TAG_BYTES:
        raise VaultError("a tag has another length")
    return tag[0]
