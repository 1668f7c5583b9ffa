"""Alarms: each problem is reported once when it begins and once when it ends, in digests
(docs/alarms.md "When a message comes")."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

SETTLED = timedelta(minutes=2)
"""How long a problem must be gone to count as over, so that a problem which flaps every minute is reported once."""
MOST_KNOWN = 2000
"""Largest number of problems known to one recipient; further ones are reported when some of them are over."""
SAME_MESSAGE = timedelta(hours=1)
"""How long a message with an unknown outcome is sent again; after that a new message describes the present state."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that operators must know. Its text contains no amounts and no personal data."""

    id: str
    """Constant while the problem lasts."""
    source: str
    """The check that found it: while that check cannot run, the problem does not count as over."""
    kind: str
    text: str
    urgent: bool = False
    """It cannot wait until morning."""
    since: datetime | None = None
    account_id: str | None = None
    """The merchant's account, if it is about a merchant's receiver."""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one round of all checks."""

    problems: tuple[Problem, ...]
    blind: tuple[str, ...] = ()
    """Sources whose check could not run."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A problem whose beginning, but not end, was reported to a recipient."""

    problem: Problem
    told_at: datetime
    gone_since: datetime | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message to send, stored until it has arrived."""

    id: str
    at: datetime
    begun: tuple[Problem, ...] = ()
    over: tuple[Problem, ...] = ()
    silent: bool = False
    """Created within quiet hours, without anything urgent."""


class AlarmRecipient(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient: all operators on a channel, or one merchant on it. Only the one job that notifies it writes this
    record."""

    id: str
    """Result of `recipient_id`."""
    known: tuple[Known, ...] = ()
    sending: Message | None = None
    """Being sent since `sending.at`; null: nothing is."""
    told_at: datetime | None = None
    """When a message last arrived."""
    failures: int = 0
    """Consecutive messages that did not arrive."""
    failing_since: datetime | None = None
    fault: str | None = None
    """Last fault of the channel, for operators; null while it works."""
    version: int = 0


def recipient_id(channel: str, account_id: str | None = None) -> str:
    """Return the id of a recipient and of the job that notifies it."""
    return channel if account_id is None else f"{channel}/{account_id}"


def recipient_of(text: str) -> tuple[str, str | None]:
    """Split a `recipient_id` into the channel and, for a merchant, the account."""
    channel, _, account_id = text.partition("/")
    return channel, account_id or None


def as_it_stands(known: Sequence[Known], looked: Looked, now: datetime) -> tuple[Known, ...]:
    """Return the known problems, each with the time since which it is gone. Problems of a check that could not run stay
    unchanged."""
    present = {problem.id for problem in looked.problems}

    def gone_since(each: Known) -> datetime | None:
        if each.problem.id in present:
            return None
        if each.problem.source in looked.blind:
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
    """Return the message to send now, without an id; None: nothing yet. `known` comes from `as_it_stands`.

    Urgent problems and their ends are reported immediately; in quiet hours nothing else is, except together with them.
    Everything else waits until `gathering` has passed since the previous message.
    """
    urgent = {each.problem.id: each.problem.urgent for each in known}
    begun = [each for each in looked.problems if each.urgent > urgent.get(each.id, -1)]
    room = MOST_KNOWN - len(known) + sum(each.id in urgent for each in begun)
    begun = sorted(begun, key=lambda each: not each.urgent)[: max(room, 0)]
    over = [each.problem for each in known if each.gone_since is not None and now - each.gone_since >= SETTLED]
    wakes = any(each.urgent for each in begun)
    if not begun and not over:
        return None
    if not wakes and not any(each.urgent for each in over):
        is_early = told_at is not None and timedelta(0) <= now - told_at < gathering
        if is_quiet or is_early:
            return None
    return Message(id="", at=now, begun=tuple(begun), over=tuple(over), silent=is_quiet and not wakes)


def after(known: Sequence[Known], message: Message, now: datetime) -> tuple[Known, ...]:
    """Return the known problems once the message has arrived."""
    gone = {problem.id for problem in (*message.begun, *message.over)}
    kept = [each for each in known if each.problem.id not in gone]
    return (*kept, *(Known(problem=problem, told_at=now) for problem in message.begun))
