"""An account's feed of test webhooks, which `cambist listen` follows: every test event when it is created, and again
with every resend.

The unit that creates or resends an event also writes an entry, without a position. Positions are assigned later, in
sequence under the account's Feed record, to entries that are already committed. So no position ever appears below one
that a reader has passed, however late a unit commits.
"""

from datetime import datetime, timedelta

import msgspec

KEPT = timedelta(days=30)
"""Retention of an entry, equal to that of events (docs/webhooks.md "Looking, and sending again")."""


class FeedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Entry of a test event in its account's feed. Ids are ordered by time, so the oldest come first."""

    id: str
    account_id: str
    event_id: str
    created_at: datetime
    resent: bool = False
    position: int | None = None
    """Null until the feed is read."""
    version: int = 0


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """The last assigned position of an account's feed. Its id is the account's."""

    id: str
    last: int = 0
    version: int = 0
