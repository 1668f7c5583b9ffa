"""A verifier that checks nobody: what it finds is what somebody tells it. Its files lie in the storage."""

import msgspec

from ...ports.clock import Clock
from ...ports.faults import Refused, Unavailable
from ...ports.kyc import Check, CheckStatus
from ...ports.storage import Storage
from ..notebook import Notebook


class _File(msgspec.Struct, frozen=True):
    status: CheckStatus


class SimulatedVerifier:
    """Fills the port KycVerifier."""

    def __init__(self, name: str, storage: Storage, clock: Clock) -> None:
        self._files = Notebook(name, _File, storage, clock)
        self.away = False
        """While true every call is Unavailable."""

    @property
    def name(self) -> str:
        """As given; part of every file's id."""
        return self._files.provider

    async def check_state(self, reference: str) -> Check:
        """Where the check stands. Raises: Refused when there is none of this reference; Unavailable while away."""
        if self.away:
            raise Unavailable("the simulated verifier is away")
        file = await self._files.read(reference)
        if file is None:
            raise Refused(f"{self.name} has no check {reference}", reason="not_found")
        return Check(reference=reference, status=file.status)

    async def pretend(self, reference: str, status: CheckStatus) -> None:
        """Let a check stand so, from now on; one that nobody began is begun."""
        await self._files.put(reference, _File(status))
