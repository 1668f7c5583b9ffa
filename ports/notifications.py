"""Notifications that a provider posts to us, and their translation by the adapter: an optional protocol of banks
(remitting banks included) and of verifiers.

A notification is a hint, never the truth: it names an operation, and the core then reads the state.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from .bank import Notification
from .kyc import CheckNotification


class InboundNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A request from a provider, as received. Its repr hides headers, query and body, which contain signatures and
    personal data."""

    headers: Mapping[str, str]
    """Names are in lower case; the first header counts if a name repeats."""
    body: bytes
    """Raw, 64 KB at most: signatures cover exactly these bytes."""
    query: Mapping[str, str]
    """Parameters of the query string; the last one counts if a name repeats."""
    address: str
    """IP address of the peer, behind the trusted proxies; empty if unknown."""

    def __repr__(self) -> str:
        return f"<notification of {len(self.body)} bytes from {self.address}>"

    def __rich_repr__(self) -> list[tuple[str, int | str]]:
        return [("bytes", len(self.body)), ("address", self.address)]


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a genuine request, and the response that the provider expects once we have stored it.

    A request about nothing of ours (another event, another shop) has no notifications.
    """

    notifications: tuple[Notification | CheckNotification, ...] = ()
    """Identified by our operation ids. Beyond 100, and for ids that cannot be ours, the rest is ignored."""
    status: int = 200
    body: bytes = b""
    """Exact response body: some providers repeat a notification for a month unless they read `OK`."""
    content_type: str = "text/plain"


@runtime_checkable
class Notifications(Protocol):
    """An adapter that receives its provider's notifications at the URL that `cambist doctor` prints
    (docs/adapters.md "Notifications")."""

    @property
    def name(self) -> str: ...

    @property
    def notification_networks(self) -> Sequence[str]:
        """Networks and addresses that the provider publishes as the source of its notifications; empty: any source.
        Operators can configure others."""
        ...

    async def receive(self, notification: InboundNotification) -> Received:
        """Verify that the request is the provider's, and return the operations it names. Takes at most 8 seconds, and
        has no lasting effect: the same request may arrive again, out of order, early, and from anybody who has the URL.

        Raises: Forged for any bytes that the provider did not send; Unavailable when the adapter cannot verify the
        request now, or does not know the operation yet: the provider then repeats it.
        """
        ...
