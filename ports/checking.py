"""A provider that can be asked whether it takes our credentials, before a merchant's payment finds out."""

from typing import Protocol, runtime_checkable


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
