"""A provider that can be asked whether it takes our credentials, before a merchant's payment finds out."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec


@runtime_checkable
class Checkable(Protocol):
    """An adapter of any provider that can be checked (docs/adapters.md "When the provider fails")."""

    async def check(self) -> None:
        """Read something small with the credentials, as the account itself: it moves nothing and costs nothing. Asked
        when a process starts, and by `cambist doctor`.

        Raises: NotConfigured, whose message says to an operator what the provider does not take (401, 403, a key of the
        other mode); Unavailable when it does not answer.
        """
        ...


@runtime_checkable
class TellsTime(Protocol):
    """An adapter that saw the provider's clock, by the `Date` of its answers. Some providers refuse what is signed by a
    clock that is a minute wrong."""

    @property
    def clock_skew(self) -> float | None:
        """Seconds by which the provider's clock was ahead of ours at its last answer; None: it has not answered yet."""
        ...


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """Fewer sources of a provider answer than have to agree, so money waits."""

    of: str
    """The network, or whatever else the sources tell of."""
    since: datetime
    """When the process that asks noticed."""
    told: str
    """For operators."""


@runtime_checkable
class CountsSources(Protocol):
    """An adapter that believes none of several sources alone (docs/providers/chains.md "Nodes")."""

    async def shortages(self) -> Sequence[Shortage]:
        """Where too few sources answer now; nothing where each has enough. A read; it raises nothing."""
        ...
