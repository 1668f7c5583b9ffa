"""Notices of providers: the secret of the address that each posts to, and what of a notice is believed
(docs/adapters.md "Notices")."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

SECRET_BYTES = 32
OVERLAP = timedelta(hours=24)
"""How long the former secret counts after a rotation: until the new address is entered at the provider."""
MOST = 100
"""Operations of one notice; further ones are ignored."""
NOTED_EVERY = timedelta(minutes=1)
"""How often at most it is written down when a provider was last heard."""
PATH = "/api/v1/notices/"
"""Followed by adapter and secret."""

_OPERATION = re.compile(r"[!-~]{1,512}\Z")
"""What all our operation ids are made of: those of money in suspense hold a transfer's id of the bank."""


def is_notice(method: str, path: str) -> bool:
    """Whether a request is taken for a provider's notice, and counted as one: a POST to two parts below `PATH`."""
    return method == "POST" and path.startswith(PATH) and path.count("/") == PATH.count("/") + 1


class NoticeAddress(msgspec.Struct, frozen=True, kw_only=True):
    """By what secret a provider reaches us. The id is the adapter's name; both secrets are sealed."""

    id: str
    secret: bytes
    former: bytes | None = None
    """The one before, which counts until `former_until`."""
    former_until: datetime | None = None
    heard_at: datetime | None = None
    """When the provider was last heard, to within `NOTED_EVERY`."""
    created_at: datetime
    version: int = 0

    def former_at(self, now: datetime) -> bytes | None:
        """The former secret as long as it counts."""
        return None if self.former_until is None or self.former_until <= now else self.former

    def is_to_be_noted(self, now: datetime) -> bool:
        """Whether a notice that is heard now is to be written down."""
        return self.heard_at is None or self.heard_at + NOTED_EVERY <= now


def rotated(address: NoticeAddress, secret: bytes, now: datetime) -> NoticeAddress:
    """The address with a new secret. Of two rotations in a day the first secret counts no more."""
    return msgspec.structs.replace(address, secret=secret, former=address.secret, former_until=now + OVERLAP)


def believed(operations: Iterable[str]) -> tuple[list[str], int]:
    """The operations of a notice that may be ours, each once, `MOST` at most; and how many others it named."""
    named = list(dict.fromkeys(operations))
    ours = [each for each in named if _OPERATION.match(each)][:MOST]
    return ours, len(named) - len(ours)
