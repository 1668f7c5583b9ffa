"""Alarms: each trouble is told once, and once when it is over, in digests (docs/alarms.md "When a message comes")."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

SETTLED = timedelta(minutes=2)
"""For which a trouble must be gone to be over: what comes and goes every minute is one trouble."""
MOST_KNOWN = 2000
"""Troubles that one recipient is told of at a time; further ones when some of them are over."""
SAME_MESSAGE = timedelta(hours=1)
"""For which a message whose arrival nobody knows is sent again; then what is so by then is told anew."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that operators are told of. Its text has no amount and nothing personal."""

    id: str
    """The same for as long as it lasts."""
    source: str
    """Which look found it: where that cannot look, it is not over."""
    kind: str
    text: str
    urgent: bool = False
    """It may not wait for the morning."""
    since: datetime | None = None
    account_id: str | None = None
    """Whose it is, where it is a merchant's receiver's."""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """One look at everything."""

    troubles: tuple[Trouble, ...]
    blind: tuple[str, ...] = ()
    """Sources that could not be looked at."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A trouble that a recipient was told of, and not of its end."""

    trouble: Trouble
    told_at: datetime
    gone_since: datetime | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be told, kept until it has arrived."""

    id: str
    at: datetime
    begun: tuple[Trouble, ...] = ()
    over: tuple[Trouble, ...] = ()
    silent: bool = False
    """Within quiet hours, with nothing that is urgent in it."""


class AlarmRecipient(msgspec.Struct, frozen=True, kw_only=True):
    """One who is told: all operators by a channel, or one merchant by it. Written by the one job that tells him."""

    id: str
    """`recipient_id`."""
    known: tuple[Known, ...] = ()
    sending: Message | None = None
    """On its way since `sending.at`; null: nothing is."""
    told_at: datetime | None = None
    """When a message last arrived."""
    failures: int = 0
    """Messages in a row that did not arrive."""
    failing_since: datetime | None = None
    fault: str | None = None
    """What the channel said last, for operators; null while it works."""
    version: int = 0


def recipient_id(channel: str, account_id: str | None = None) -> str:
    """What names a recipient, and the job that tells him."""
    return channel if account_id is None else f"{channel}/{account_id}"


def recipient_of(text: str) -> tuple[str, str | None]:
    """The channel and the merchant's account, if it is one, behind a `recipient_id`."""
    channel, _, account_id = text.partition("/")
    return channel, account_id or None


def as_it_stands(known: Sequence[Known], looked: Looked, now: datetime) -> tuple[Known, ...]:
    """What was told, with since when each is gone. What cannot be looked at is as it was."""
    present = {trouble.id for trouble in looked.troubles}

    def gone_since(each: Known) -> datetime | None:
        if each.trouble.id in present:
            return None
        if each.trouble.source in looked.blind:
            return each.gone_since
        return now if each.gone_since is None else min(each.gone_since, now)

    return tuple(msgspec.structs.replace(each, gone_since=gone_since(each)) for each in known)


def news(
    known: Sequence[Known],
    looked: Looked,
    now: datetime,
    *,
    told_at: datetime | None,
    is_quiet: bool,
    gathering: timedelta,
) -> Message | None:
    """What is to be told now, without an id; None: nothing yet. `known` is `as_it_stands`.

    What is urgent is told at once, as is its end; in quiet hours nothing else is, but goes along. All else waits until
    `gathering` has passed since the message before.
    """
    urgent = {each.trouble.id: each.trouble.urgent for each in known}
    begun = [each for each in looked.troubles if each.urgent > urgent.get(each.id, -1)]
    room = MOST_KNOWN - len(known) + sum(each.id in urgent for each in begun)
    begun = sorted(begun, key=lambda each: not each.urgent)[: max(room, 0)]
    over = [each.trouble for each in known if each.gone_since is not None and now - each.gone_since >= SETTLED]
    wakes = any(each.urgent for each in begun)
    if not begun and not over:
        return None
    if not wakes and not any(each.urgent for each in over):
        is_early = told_at is not None and timedelta(0) <= now - told_at < gathering
        if is_quiet or is_early:
            return None
    return Message(id="", at=now, begun=tuple(begun), over=tuple(over), silent=is_quiet and not wakes)


def after(known: Sequence[Known], message: Message, now: datetime) -> tuple[Known, ...]:
    """What is known once the message has arrived."""
    gone = {trouble.id for trouble in (*message.begun, *message.over)}
    kept = [each for each in known if each.trouble.id not in gone]
    return (*kept, *(Known(trouble=trouble, told_at=now) for trouble in message.begun))
