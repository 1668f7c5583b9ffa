"""The port that speaks WebAuthn: options for browsers, and the check of their replies."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class PasskeyRefused(Exception):
    """A reply that is malformed, or does not prove what it should."""


class PasskeyReply(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a reply that are needed to find whom it is about. Nothing of it is verified yet."""

    credential_id: str
    challenge: bytes
    user_handle: str | None


class NewPasskey(msgspec.Struct, frozen=True, kw_only=True):
    """A verified new credential."""

    credential_id: str
    public_key: bytes
    sign_count: int
    is_synced: bool
    """Whether it is on several devices of the person."""


class UsedPasskey(msgspec.Struct, frozen=True, kw_only=True):
    """A verified use of a credential."""

    sign_count: int
    is_synced: bool


class PasskeyVerifier(Protocol):
    """Passkeys of one installation: its host is fixed by `app_url`, never by a request."""

    @property
    def rp_id(self) -> str | None:
        """The host that passkeys belong to; None if browsers offer none there, as at an IP address."""
        ...

    def creation_options(self, *, challenge: bytes, user_id: str, user_name: str, known: Sequence[str]) -> str:
        """Return the options for a new passkey, as JSON for browsers. `known`: credentials that the person has."""
        ...

    def request_options(self, *, challenge: bytes) -> str:
        """Return the options for a sign-in without a name, as JSON for browsers."""
        ...

    def read(self, reply: str) -> PasskeyReply:
        """Read a browser's reply. Raises: PasskeyRefused."""
        ...

    def register(self, reply: str, challenge: bytes) -> NewPasskey:
        """Verify the reply to `creation_options`. Raises: PasskeyRefused."""
        ...

    def check(self, reply: str, challenge: bytes, *, public_key: bytes, sign_count: int) -> UsedPasskey:
        """Verify the reply to `request_options`. Raises: PasskeyRefused, also for a counter that does not grow."""
        ...
