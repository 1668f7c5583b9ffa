"""An account's feed of test webhooks, which `cambist listen` follows: every test event as it comes, and again whenever
it is sent again.

An entry is written in the unit that makes its event or sends it again, without a position. Positions are given later,
one after another under the account's Feed record, to entries that are committed already: so no position ever comes to
be below one that somebody has read past, however late a unit commits.
"""

from datetime import datetime, timedelta

import msgspec

KEPT = timedelta(days=30)
"""How long an entry is kept, as the events are (docs/webhooks.md "Looking, and sending again")."""


class FeedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A test event's place in its account's feed. Ids follow time, so the oldest come first."""

    id: str
    account_id: str
    event_id: str
    created_at: datetime
    resent: bool = False
    position: int | None = None
    """Null until somebody reads the feed."""
    version: int = 0


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """How many positions of an account's feed are given. Its id is the account's."""

    id: str
    last: int = 0
    version: int = 0
