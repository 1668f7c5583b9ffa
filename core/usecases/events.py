"""What merchants see of their events, and how one is sent again (SPEC "Events", 3; DECISIONS 7)."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from ...ports.bundle import Ports
from ...ports.jobs import Job
from ...ports.storage import AtLeast, Between, OneOf, Snapshot, Unit
from ..domain import ids
from ..domain.accounts import Account, Caller, Mode
from ..domain.days import read_moment
from ..domain.delivery import last_attempt_id, sent_anew
from ..domain.errors import Refusal, shape_error
from ..domain.events import Attempt, Delivery, DeliveryStatus, Event, EventType
from .feed import note_letters
from .outbox import ask_to_deliver
from .units import retrying

RESEND = "webhook.resend"
RETAIN = "webhook.retain"

KEPT = timedelta(days=30)
"""How long an event that is delivered or failed is kept (DECISIONS 7)."""

_OF_ONE_OBJECT = 1000
"""Events of one object at most that are listed: far more than one ever has."""
_BATCH = 100
"""Events in one unit. Its statements keep others waiting, so it stays a matter of milliseconds."""
_PORTION = 20
"""Batches that the retention deletes before it lets other jobs go first."""
_EVERY = timedelta(days=1)

T = TypeVar("T", bound=StrEnum)


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, as it came; None: not given. `since` with it, `until` without."""

    type: str | None = None
    object_id: str | None = None
    delivery_status: str | None = None
    since: str | None = None
    until: str | None = None


class EventRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /events/resend."""

    since: str = msgspec.field(name="from")
    until: str = msgspec.field(name="to")
    type: str | None = None
    delivery_status: str | None = None

    @property
    def query(self) -> EventQuery:
        return EventQuery(type=self.type, delivery_status=self.delivery_status, since=self.since, until=self.until)


class Told(msgspec.Struct, frozen=True):
    """An event, how its delivery stands, and the last letter."""

    event: Event
    delivery: Delivery
    last: Attempt | None


class ToldWhole(msgspec.Struct, frozen=True):
    """An event with all its letters, in the order sent."""

    told: Told
    attempts: list[Attempt]


class EventPage(msgspec.Struct, frozen=True):
    """A page of events, newest first, and how many there are in all."""

    events: list[Told]
    number: int
    size: int
    total: int


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A query that was read; also the argument of the job that sends a range again."""

    owner: dict[str, str]
    type: EventType | None = None
    object_id: str | None = None
    status: DeliveryStatus | None = None
    low: datetime | None = None
    high: datetime | None = None
    done: int = 0
    """Events at exactly `low` that are done already."""

    def events(self) -> dict[str, Any]:
        """Criteria for events; the delivery's status is none of theirs."""
        kind = {} if self.type is None else {"type": self.type}
        return {**self.owner, **kind, "created_at": Between(self.low, self.high)}

    def deliveries(self) -> dict[str, Any]:
        """Criteria for deliveries of the wanted status. Only pending ones have a `due`; that the others have none lets
        the index give the order."""
        due = {} if self.status is DeliveryStatus.PENDING else {"due": None}
        return {**self.events(), **due, "status": self.status}

    def takes(self, event: Event) -> bool:
        """Whether an event found otherwise is one of them, but for its delivery's status."""
        return (
            all(getattr(event, name) == value for name, value in self.owner.items())
            and self.type in (None, event.type)
            and (self.low is None or self.low <= event.created_at)
            and (self.high is None or event.created_at < self.high)
        )


def _read(owner: dict[str, str], asked: EventQuery) -> _Wanted:
    return _Wanted(
        owner=owner,
        type=_one_of("type", asked.type, EventType),
        object_id=asked.object_id,
        status=_one_of("delivery_status", asked.delivery_status, DeliveryStatus),
        low=None if asked.since is None else read_moment("from", asked.since),
        high=None if asked.until is None else read_moment("to", asked.until),
    )


def _one_of(name: str, text: str | None, kind: type[T]) -> T | None:
    if text is None:
        return None
    try:
        return kind(text.lower())
    except ValueError:
        raise shape_error(name, f"must be one of: {', '.join(kind)}") from None


def _owner(account_id: str | None, mode: Mode | None) -> dict[str, str]:
    owner = {"account_id": account_id, "mode": mode}
    return {name: value for name, value in owner.items() if value is not None}


async def list_events(ports: Ports, caller: Caller, asked: EventQuery, number: int, size: int) -> EventPage:
    """A page of the caller's events, newest first. Raises: Refusal VALIDATION_ERROR."""
    wanted = _read(_owner(caller.account_id, caller.mode), asked)
    async with ports.storage.snapshot() as seen:
        total, events = await _page(seen, wanted, (number - 1) * size, size)
    return EventPage(events, number, size, total)


async def find_events(
    ports: Ports, asked: EventQuery, *, account_id: str | None, mode: Mode | None, limit: int
) -> list[Told]:
    """The newest events of all accounts, of one, or of one mode. Raises: Refusal VALIDATION_ERROR."""
    wanted = _read(_owner(account_id, mode), asked)
    async with ports.storage.snapshot() as seen:
        _, events = await _page(seen, wanted, 0, limit)
    return events


async def _page(seen: Snapshot, wanted: _Wanted, offset: int, size: int) -> tuple[int, list[Told]]:
    if wanted.object_id is not None:
        return await _of_object(seen, wanted, wanted.object_id, offset, size)
    if wanted.status is not None:
        criteria = wanted.deliveries()
        total = await seen[Delivery].total(**criteria)
        deliveries = await seen[Delivery].find(order="-id", offset=offset, limit=size, **criteria)
        found = await seen[Event].find(id=OneOf(tuple(each.id for each in deliveries)), order="-id", limit=size)
        return total, await _joined(seen, found, deliveries)
    criteria = wanted.events()
    total = await seen[Event].total(**criteria)
    events = await seen[Event].find(order="-created_at", offset=offset, limit=size, **criteria)
    return total, await _joined(seen, events, await _deliveries_of(seen, events))


async def _of_object(seen: Snapshot, wanted: _Wanted, object_id: str, offset: int, size: int) -> tuple[int, list[Told]]:
    """One object has few events: they are all read, and judged here."""
    if not object_id or "\0" in object_id or not object_id.isascii():
        return 0, []
    found = await seen[Event].find(object_id=object_id, order="-created_at", limit=_OF_ONE_OBJECT)
    events = [event for event in found if wanted.takes(event)]
    deliveries = [each for each in await _deliveries_of(seen, events) if wanted.status in (None, each.status)]
    told = await _joined(seen, events, deliveries)
    return len(told), told[offset : offset + size]


async def _deliveries_of(seen: Snapshot | Unit, events: list[Event]) -> list[Delivery]:
    if not events:
        return []
    return await seen[Delivery].find(id=OneOf(tuple(event.id for event in events)), limit=len(events))


async def _joined(seen: Snapshot, events: list[Event], deliveries: list[Delivery]) -> list[Told]:
    """Each event that has one of the deliveries, with it and its last letter."""
    of_event = {delivery.id: delivery for delivery in deliveries}
    wanted = tuple(last_attempt_id(each) for each in deliveries)
    letters = await seen[Attempt].find(id=OneOf(wanted), limit=len(wanted)) if wanted else []
    last = {attempt.event_id: attempt for attempt in letters}
    return [Told(event, of_event[event.id], last.get(event.id)) for event in events if event.id in of_event]


async def get_event(ports: Ports, caller: Caller, event_id: str) -> ToldWhole:
    """One event of the caller's account and mode. Raises: Refusal EVENT_NOT_FOUND."""
    async with ports.storage.snapshot() as seen:
        told = await _told(seen, event_id, caller)
        return ToldWhole(told, await _attempts(seen, event_id))


async def _told(seen: Snapshot | Unit, event_id: str, caller: Caller | None) -> Told:
    event = delivery = None
    if ids.is_prefixed(ids.EVENT, event_id):
        event, delivery = await seen[Event].get(event_id), await seen[Delivery].get(event_id)
    if event is None or delivery is None or not (caller is None or _owns(caller, event)):
        raise Refusal("EVENT_NOT_FOUND", "No event of this id")
    return Told(event, delivery, await seen[Attempt].get(last_attempt_id(delivery)))


def _owns(caller: Caller, event: Event) -> bool:
    return event.account_id == caller.account_id and event.mode is caller.mode


async def _attempts(seen: Snapshot, event_id: str) -> list[Attempt]:
    return await seen[Attempt].find(id=Between(f"{event_id}:", f"{event_id};"), order="id")


async def resend_event(ports: Ports, caller: Caller | None, event_id: str) -> Told:
    """Send an event again now, whatever became of it: a new ladder, with its attempts numbered on. Without a caller
    the operator asks, for whichever account. Behind an open breaker it waits for that, and without a receiver it is
    held.

    Raises: Refusal EVENT_NOT_FOUND.
    """

    async def work(unit: Unit) -> Told:
        told = await _told(unit, event_id, caller)
        account = await unit[Account].get(told.event.account_id)
        [after] = _send_anew(ports, unit, account, told.event.mode, [told.delivery])
        return msgspec.structs.replace(told, delivery=after)

    return await retrying(ports.storage, work)


def _send_anew(
    ports: Ports, unit: Unit, account: Account | None, mode: Mode, deliveries: list[Delivery]
) -> list[Delivery]:
    receives = account is not None and account.receives
    now = ports.clock.now()
    if account is not None and receives and deliveries:
        ask_to_deliver(ports, unit, account.id, mode)
    note_letters(ports, unit, [(each.id, each.account_id, mode) for each in deliveries], resent=True)
    return [unit[Delivery].save(sent_anew(each, receives=receives, now=now)) for each in deliveries]


async def resend_range(ports: Ports, account_id: str, mode: Mode, asked: EventQuery) -> int:
    """Have all events of a range sent again, and say how many there are. A job does it, some at a time.

    Raises: Refusal VALIDATION_ERROR.
    """
    wanted = _read(_owner(account_id, mode), asked)
    if wanted.low is None or wanted.high is None or wanted.low >= wanted.high:
        raise shape_error("to", "must be later than from")
    now = ports.clock.now()
    # Not what comes while it runs.
    wanted = msgspec.structs.replace(wanted, high=min(wanted.high, now + timedelta(microseconds=1)))
    async with ports.storage.unit() as unit:
        if wanted.status is None:
            total = await unit[Event].total(**wanted.events())
        else:
            total = await unit[Delivery].total(**wanted.deliveries())
        if total:
            argument = msgspec.json.encode(wanted).decode()
            job_id = f"{RESEND}:{ports.ids.uuid()}"
            unit[Job].add(Job(id=job_id, kind=RESEND, argument=argument, due=now, created_at=now))
            await unit.commit()
    return total


async def resend_batch(ports: Ports, job: Job) -> None:
    """The job of `resend_range`: the next batch, in the order of age. How far it is stands in its argument, saved with
    the batch, so that none is sent again twice."""

    async def work(unit: Unit) -> None:
        present = await unit[Job].get(job.id)
        if present is None:
            return
        wanted = msgspec.json.decode(present.argument, type=_Wanted)
        events = await unit[Event].find(order="created_at", offset=wanted.done, limit=_BATCH, **wanted.events())
        deliveries = [each for each in await _deliveries_of(unit, events) if wanted.status in (None, each.status)]
        account = await unit[Account].get(wanted.owner["account_id"])
        _send_anew(ports, unit, account, Mode(wanted.owner["mode"]), deliveries)
        if len(events) < _BATCH:
            unit[Job].remove(present)
            return
        argument = msgspec.json.encode(_after(wanted, events)).decode()
        unit[Job].save(msgspec.structs.replace(present, argument=argument, leased_until=None, attempts=0))

    await retrying(ports.storage, work)


def _after(wanted: _Wanted, events: list[Event]) -> _Wanted:
    """What is left when these are done."""
    last = events[-1].created_at
    done = sum(event.created_at == last for event in events)
    return msgspec.structs.replace(wanted, low=last, done=done + (wanted.done if last == wanted.low else 0))


def first_retention(now: datetime) -> Job:
    """The job that deletes old events, every day; a worker writes it when it starts (jobs.py)."""
    return Job(id=RETAIN, kind=RETAIN, argument="", due=now, created_at=now)


async def retain(ports: Ports, job: Job) -> None:
    """Delete what was delivered or failed, with its attempts, once it is old enough. What waits to be sent stays.

    It walks the deliveries in the order of their ids, which is that of time, and keeps its place in the argument.
    """
    after: str | None = job.argument
    for _ in range(_PORTION):
        if after is None:
            break
        after = await _delete_batch(ports, after)
    now = ports.clock.now()
    async with ports.storage.unit() as unit:
        due = now + _EVERY if after is None else now
        unit[Job].save(msgspec.structs.replace(job, argument=after or "", due=due, leased_until=None, attempts=0))
        await unit.commit()


async def _delete_batch(ports: Ports, after: str) -> str | None:
    """Delete what is to go among the next deliveries. The last of their ids; None when the young ones are reached."""
    before = ports.clock.now() - KEPT

    async def work(unit: Unit) -> str | None:
        found = await unit[Delivery].find(id=AtLeast(f"{after}!"), limit=_BATCH)
        if not found:
            return None
        gone = {each.id: each for each in found if each.created_at < before and _is_over(each)}
        letters = sum(each.attempts + each.probes for each in found)
        span = Between(f"{found[0].id}:", f"{found[-1].id};")
        for attempt in await unit[Attempt].find(id=span, limit=letters):
            if attempt.event_id in gone:
                unit[Attempt].remove(attempt)
        for event in await unit[Event].find(id=OneOf(tuple(gone)), limit=_BATCH):
            unit[Event].remove(event)
        for delivery in gone.values():
            unit[Delivery].remove(delivery)
        over = len(found) < _BATCH or found[-1].created_at >= before
        return None if over else found[-1].id

    return await retrying(ports.storage, work)


def _is_over(delivery: Delivery) -> bool:
    return delivery.status in (DeliveryStatus.DELIVERED, DeliveryStatus.FAILED)
