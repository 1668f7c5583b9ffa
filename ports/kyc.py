"""The verifier of end clients, in its own words: a check of one person, and where it stands."""

from enum import StrEnum
from typing import Protocol

import msgspec


class CheckStatus(StrEnum):
    """Where a check stands."""

    PROCESSING = "processing"
    VERIFIED = "verified"
    FAILED = "failed"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check at the verifier. `reference` is the verifier's id of it."""

    reference: str
    status: CheckStatus


class KycVerifier(Protocol):
    """A provider that verifies people."""

    @property
    def name(self) -> str:
        """Stored with every client it checks; stable for ever."""
        ...

    async def check_state(self, reference: str) -> Check:
        """Where the check stands now. A read. Raises: Unavailable, Refused for an unknown reference."""
        ...
