"""Feed of an account's test events, which `GET /sandbox/letters` reads. domain/webhooks/feed.py explains why no event
is lost."""

import base64
from collections.abc import Iterable, Sequence
from datetime import timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import AtLeast, Between, OneOf, Unit
from ....ports.vault import Vault
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.errors import shape_error
from ...domain.webhooks.events import Event, EventType
from ...domain.webhooks.feed import KEPT, Feed, FeedEntry
from ...domain.webhooks.signing import Signer, headers
from ..common.schedule import reschedule_at
from ..common.units import retrying
from .signing import Signers, opened

TIDY = "feed.tidy"

BEGINNING = "beginning"
NOW = "now"

BATCH = 100
"""Maximum number of events in one answer, and of positions assigned in one unit of work."""

_EVERY = timedelta(days=1)


class FedLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An event as it would be posted now. Its body is exactly the signed text."""

    cursor: str
    """Cursor to continue after this event."""
    event: Event
    body: bytes
    """The unencrypted payload."""
    resent: bool
    headers: dict[str, str]


class Fed(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the feed. Continue at `cursor`, which also skips events of other types."""

    letters: Sequence[FedLetter]
    cursor: str
    more: bool
    """More events exist: read on at once."""


def note_letters(ports: Ports, unit: Unit, events: Iterable[tuple[str, str, Mode]], *, resent: bool = False) -> None:
    """Add events, given by id, account and mode, to their accounts' feeds. Call it in the unit that writes or resends
    them. Live events are in no feed."""
    now = ports.clock.now()
    for event_id, account_id, mode in events:
        if mode is Mode.TEST:
            entry_id = ports.ids.uuid()
            unit[FeedEntry].add(
                FeedEntry(id=entry_id, account_id=account_id, event_id=event_id, created_at=now, resent=resent)
            )


def read_types(text: str | None) -> frozenset[EventType] | None:
    """Parse a comma-separated list of types. None means all. Raises: Refusal VALIDATION_ERROR."""
    if text is None:
        return None
    try:
        return frozenset(EventType(name.strip()) for name in text.split(","))
    except ValueError:
        raise shape_error("types", f"must be some of: {', '.join(EventType)}") from None


async def read_feed(ports: Ports, caller: Caller, after: str, types: frozenset[EventType] | None) -> Fed:
    """Return the events after a cursor, or from BEGINNING. After NOW there are no events yet.

    Raises: Refusal VALIDATION_ERROR for an invalid cursor; VaultError.
    """
    last = await _give_positions(ports, caller.account_id)
    if after == NOW:
        return Fed(letters=(), cursor=str(last), more=False)
    start = _position(after, last)
    async with ports.storage.unit() as unit:
        entries = await unit[FeedEntry].find(
            account_id=caller.account_id,
            position=Between(start + 1, last + 1),
            order="position",
            limit=BATCH,
            readable=True,
        )
        wanted = OneOf(tuple({entry.event_id for entry in entries}))
        found = await unit[Event].find(id=wanted, limit=BATCH, readable=True) if entries else []
        account = await unit[Account].get(caller.account_id) or caller.account
    events = {event.id: event for event in found if types is None or event.type in types}
    bodies = {event.id: event.body for event in opened(ports.vault, events.values())}
    sign = _Signing(ports, account)
    letters = [
        sign.letter(entry, events[entry.event_id], bodies[entry.event_id])
        for entry in entries
        if entry.event_id in bodies
    ]
    more = len(entries) == BATCH
    cursor = entries[-1].position if more else last
    return Fed(letters=letters, cursor=str(cursor), more=more)


def _position(after: str, last: int) -> int:
    if after == BEGINNING:
        return 0
    if not (after.isascii() and after.isdigit() and len(after) <= 15):
        raise shape_error("after", f"must be a cursor of this feed, {BEGINNING} or {NOW}")
    if int(after) > last:
        # The cursor is from another database. Waiting for its position would skip all events before it.
        raise shape_error("after", "lies beyond the end of this feed")
    return int(after)


async def _give_positions(ports: Ports, account_id: str) -> int:
    """Assign every committed entry its position, in the order of ids. Return the last assigned position."""

    async def work(unit: Unit) -> tuple[int, bool]:
        feed = await unit[Feed].get(account_id)
        last = 0 if feed is None else feed.last
        fresh = await unit[FeedEntry].find(account_id=account_id, position=None, order="id", limit=BATCH, readable=True)
        for number, entry in enumerate(fresh, last + 1):
            unit[FeedEntry].save(msgspec.structs.replace(entry, position=number))
        last += len(fresh)
        if fresh and feed is None:
            unit[Feed].add(Feed(id=account_id, last=last))
        elif fresh and feed is not None:
            unit[Feed].save(msgspec.structs.replace(feed, last=last))
        return last, len(fresh) == BATCH

    while True:
        # When two readers run at once, one of them gets Stale or a conflict on the new record's id, and reads again.
        last, more = await retrying(ports.storage, work, again_on=("feeds_id",))
        if not more:
            return last


def listening_secret(vault: Vault, account_id: str) -> str:
    """Return the secret that signs the feed of an account without a webhook secret. It is derived, so it is always the
    same and is not stored."""
    return "whsec_" + base64.b64encode(vault.fingerprint(f"listening:{account_id}")).decode("ascii")


class _Signing:
    """Signs events as they would be posted to the account's receiver now."""

    def __init__(self, ports: Ports, account: Account) -> None:
        now = ports.clock.real()
        signers = Signers(ports.vault)
        old, until = account.previous_secret, account.previous_secret_until
        rotating = old is not None and until is not None and now < until
        self._timestamp = int(now.timestamp())
        self._previous = signers.of(account.id, old) if rotating and old is not None else None
        self._signer = (
            Signer(listening_secret(ports.vault, account.id))
            if account.webhook_secret is None
            else signers.of(account.id, account.webhook_secret)
        )

    def letter(self, entry: FeedEntry, event: Event, body: bytes) -> FedLetter:
        return FedLetter(
            cursor=str(entry.position),
            event=event,
            body=body,
            resent=entry.resent,
            headers=headers(
                self._signer,
                previous=self._previous,
                event_id=event.id,
                event=event.type,
                sequence=event.sequence,
                attempt=1,
                timestamp=self._timestamp,
                body=body,
                retry_of=event.retry_of,
            ),
        )


def first_tidying(ports: Ports) -> Job:
    """Return the daily job that deletes old entries. A worker writes it at its start (jobs.py)."""
    now = ports.clock.now()
    return Job(id=TIDY, kind=TIDY, argument="", due=now, created_at=now)


async def tidy(ports: Ports, job: Job) -> None:
    """Delete entries older than KEPT. Ids rise with time, so it stops at the first younger entry."""
    before = ports.clock.now() - KEPT

    async def work(unit: Unit) -> bool:
        found = await unit[FeedEntry].find(id=AtLeast(""), order="id", limit=BATCH, readable=True)
        old = [entry for entry in found if entry.created_at < before]
        for entry in old:
            unit[FeedEntry].remove(entry)
        return bool(old) and len(old) == len(found)

    while await retrying(ports.storage, work):
        pass
    await reschedule_at(ports, job, ports.clock.now() + _EVERY, anew=True)
