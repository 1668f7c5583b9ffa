"""Notifications of providers: the secret in the URL that each posts to, and the accepted part of a notification
(docs/adapters.md "Notifications")."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

SECRET_BYTES = 32
OVERLAP = timedelta(hours=24)
"""How long the previous secret stays valid after a rotation: until the new URL is entered at the provider."""
MOST = 100
"""Accepted operations of one notification; further ones are ignored."""
NOTED_EVERY = timedelta(minutes=1)
"""Shortest interval between two updates of `received_at`."""
PATH = "/api/v1/notices/"
"""Followed by the adapter's name and the secret."""

_OPERATION = re.compile(r"[!-~]{1,512}\Z")
"""Characters of all our operation ids. Ids of money in suspense contain a bank's transfer id."""


def is_notification(method: str, path: str) -> bool:
    """Return whether a request counts as a provider's notification: a POST to a path with two parts below `PATH`."""
    return method == "POST" and path.startswith(PATH) and path.count("/") == PATH.count("/") + 1


class NotificationAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The secret of a provider's URL. The id is the adapter's name; both secrets are encrypted."""

    id: str
    secret: bytes
    former: bytes | None = None
    """The previous secret, valid until `former_until`."""
    former_until: datetime | None = None
    received_at: datetime | None = None
    """When the provider's last notification arrived, to within `NOTED_EVERY`."""
    created_at: datetime
    version: int = 0

    def former_at(self, now: datetime) -> bytes | None:
        """Return the previous secret while it is valid."""
        return None if self.former_until is None or self.former_until <= now else self.former

    def is_to_be_noted(self, now: datetime) -> bool:
        """Return whether a notification that arrives now should update `received_at`."""
        return self.received_at is None or self.received_at + NOTED_EVERY <= now


def rotated(address: NotificationAddress, secret: bytes, now: datetime) -> NotificationAddress:
    """Return the address with a new secret. After two rotations in a day the first secret is invalid."""
    return msgspec.structs.replace(address, secret=secret, former=address.secret, former_until=now + OVERLAP)


def believed(operations: Iterable[str]) -> tuple[list[str], int]:
    """Return the operations of a notification that may be ours, without repetition, at most `MOST`; and the number of
    the others."""
    named = list(dict.fromkeys(operations))
    ours = [each for each in named if _OPERATION.match(each)][:MOST]
    return ours, len(named) - len(ours)
