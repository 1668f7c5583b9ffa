"""Providers that can verify our credentials before a merchant's payment fails because of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec


@runtime_checkable
class Checkable(Protocol):
    """An adapter of any provider that can be checked (docs/adapters.md "When the provider fails")."""

    async def check(self) -> None:
        """Make a small authenticated read as the account itself: it moves nothing and costs nothing. Called when a
        process starts, and by `cambist doctor`.

        Raises: NotConfigured, whose message tells an operator what the provider rejects (401, 403, a key of the other
        mode); Unavailable when it does not answer.
        """
        ...


@runtime_checkable
class TellsTime(Protocol):
    """An adapter that reads the provider's clock from the `Date` header of its answers. Some providers refuse
    signatures by a clock that is a minute wrong."""

    @property
    def clock_skew(self) -> float | None:
        """Seconds by which the provider's clock was ahead of ours at its last answer; None: no answer yet."""
        ...


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """Fewer sources of a provider answer than must agree, so money waits."""

    of: str
    """The network, or another subject of the sources."""
    since: datetime
    """When this process noticed it."""
    told: str
    """Description for operators."""


@runtime_checkable
class CountsSources(Protocol):
    """An adapter that requires several sources to agree (docs/providers/chains.md "Nodes")."""

    async def shortages(self) -> Sequence[Shortage]:
        """Return the subjects for which too few sources answer now. A read; it raises nothing."""
        ...
