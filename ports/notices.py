"""What a provider posts to us unasked, and what the adapter makes of it: an optional part of banks, those that remit
among them, and of verifiers.

A notice is a hint, never the truth: it says whose operation to ask about, and the core asks.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from .bank import Notice
from .kyc import CheckNotice


class InboundNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a provider, as it came. Its repr hides headers, query and body, which hold signatures and people."""

    headers: Mapping[str, str]
    """By name in lower case; of several with one name the first."""
    body: bytes
    """Raw, 64 KB at most: signatures are over these very bytes."""
    query: Mapping[str, str]
    """What follows the `?`; of several with one name the last."""
    address: str
    """The peer's IP address, beyond the proxies that are trusted; empty where it is not known."""

    def __repr__(self) -> str:
        return f"<notice of {len(self.body)} bytes from {self.address}>"

    def __rich_repr__(self) -> list[tuple[str, int | str]]:
        return [("bytes", len(self.body)), ("address", self.address)]


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What a genuine request says, and what the provider wants to read, once that is kept.

    A request that is about nothing of ours (another event, another shop's) has no notices.
    """

    notices: tuple[Notice | CheckNotice, ...] = ()
    """By our operation ids. Of more than 100, and of ids that none of ours can be, the rest is ignored."""
    status: int = 200
    body: bytes = b""
    """Exactly this: some providers repeat the notice for a month unless they read `OK`."""
    content_type: str = "text/plain"


@runtime_checkable
class Notices(Protocol):
    """An adapter that hears its provider at the address that `cambist doctor` prints (docs/adapters.md "Notices")."""

    @property
    def name(self) -> str: ...

    @property
    def notice_networks(self) -> Sequence[str]:
        """Where the provider posts from, as it publishes them: networks and addresses. None of them: from anywhere. An
        operator may name others."""
        ...

    async def hear(self, notice: InboundNotice) -> Heard:
        """Tell whether the request is the provider's, and whose operations it names. Within 8 seconds, and without a
        lasting effect: the same request may come again, in any order, early, and from whoever has the address.

        Raises: Forged for what the provider did not send, whatever bytes it is; Unavailable when that cannot be told
        now, or the operation is not known yet: the provider repeats it.
        """
        ...
