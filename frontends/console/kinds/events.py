"""Webhook events: delivery state, attempts, body, and resending."""

from typing import Any

import msgspec

from ....core.domain import ids
from ....core.domain.webhooks.breaker import Breaker
from ....core.domain.webhooks.delivery import AT_ONCE
from ....core.domain.webhooks.events import DeliveryStatus, Event, EventType
from ....core.usecases.accounts.accounts import storable
from ....core.usecases.browse.events import TrackedEvent, browse_events, track_event
from ....core.usecases.browse.timeline import Moment, event_moments, read_actions
from ....core.usecases.common.encrypted import open_event_body
from ....core.usecases.webhooks.resends import resend_event
from ....ports.bundle import Ports
from ...terminal_texts import json_text
from ..columns import Column, when
from ..texts import moment
from .kinds import ACCOUNT, MODE, Change, ConsoleAction, Doing, Filter, Kind, Wish
from .wishes import wanted

PERSONAL = ("payer_name", "client_phone", "phone", "metadata")
"""Body fields with personal data. Metadata counts too, because a merchant may put anything there."""

_KINDS = {
    "payment": "payment",
    "subscription": "subscription",
    "refund": "refund",
    "withdrawal": "withdrawal",
    "exchange": "exchange",
    "kyc": "client",
    "gateway": "gateway",
}
"""Kind of an event's object, by the first word of the event type."""

_WAITS = DeliveryStatus.PENDING


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """An event with the breaker of its receiver."""

    id: str
    version: int
    account_id: str
    event: Event
    body: bytes
    """The payload in plain text."""
    tracked: TrackedEvent
    breaker: Breaker | None

    @property
    def status(self) -> DeliveryStatus:
        return self.tracked.delivery.status


async def _read(ports: Ports, wish: Wish, after: TrackedEvent | None, limit: int) -> list[TrackedEvent]:
    asked = wanted(wish)
    if wish.order == "next attempt":
        asked = msgspec.structs.replace(asked, status=_WAITS)
    kind = wish.of("type")
    return await browse_events(ports, asked, after, limit, kind=None if kind is None else EventType(kind))


async def _get(ports: Ports, event_id: str) -> _Shown | None:
    is_one = storable(event_id) and ids.is_prefixed(ids.EVENT, event_id.partition("/")[0])
    found = await track_event(ports, event_id) if is_one else None
    if found is None:
        return None
    tracked, breaker = found
    return _Shown(
        id=tracked.id,
        version=tracked.version,
        account_id=tracked.account_id,
        event=tracked.event,
        body=open_event_body(ports.vault, tracked.event),
        tracked=tracked,
        breaker=breaker,
    )


def _endpoint(tracked: TrackedEvent) -> str | None:
    """Return the id of the additional endpoint, or None for the account's own."""
    return tracked.id.partition("/")[2] or None


def _answer(tracked: TrackedEvent) -> str | None:
    last = tracked.last
    return None if last is None else str(last.status or last.answer)


def _due(tracked: TrackedEvent) -> Any:
    due = tracked.delivery.due
    return "at once" if due == AT_ONCE else due


def _facts(shown: _Shown) -> list[tuple[str, Any]]:
    event, delivery, breaker = shown.event, shown.tracked.delivery, shown.breaker
    last = shown.tracked.last
    return [
        ("status", delivery.status),
        ("event", event.type),
        ("of", event.object_id),
        ("endpoint", _endpoint(shown.tracked)),
        ("attempts", delivery.attempts),
        ("next attempt", _due(shown.tracked)),
        ("given up at", delivery.give_up_at if delivery.status is _WAITS else None),
        ("delivered", delivery.delivered_at),
        ("last answer", _answer(shown.tracked)),
        ("note", None if last is None else last.note or None),
        ("receiver", receiver_state(breaker)),
        ("sequence", event.sequence),
        ("mode", event.mode),
        ("account", event.account_id),
        ("created", event.created_at),
    ]


def receiver_state(breaker: Breaker | None) -> str:
    """Return the state of a receiver in one line."""
    if breaker is None or not breaker.failures:
        return "answers"
    if not breaker.is_open:
        return f"{breaker.failures} failures in a row"
    return f"does not answer; next asked {next_probe(breaker)}"


def next_probe(breaker: Breaker) -> str:
    """Return when a receiver with an open breaker is probed next."""
    return "-" if breaker.next_probe_at is None else moment(breaker.next_probe_at)


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: "***" if name in PERSONAL and each else _masked(each) for name, each in value.items()}
    return [_masked(each) for each in value] if isinstance(value, list) else value


def _body(shown: _Shown) -> str:
    return json_text(_masked(msgspec.json.decode(shown.body)))


def _private(_ports: Ports, shown: _Shown) -> dict[str, str]:
    return {"body": json_text(msgspec.json.decode(shown.body))}


async def _timeline(ports: Ports, shown: _Shown) -> list[Moment]:
    """Return the timeline: a link to the object, then every webhook and all operator actions."""
    event = shown.event
    async with ports.storage.snapshot() as seen:
        told = await event_moments(seen, ports.vault, event)
        actions = [action for each in dict.fromkeys((event.id, shown.id)) for action in await read_actions(seen, each)]
    of = _KINDS.get(event.type.partition(".")[0], "")
    subject = msgspec.structs.replace(told[0], detail=event.object_id, of=of, object_id=event.object_id)
    return sorted([subject, *told[1:], *actions], key=lambda each: each.at)


async def _resend(doing: Doing) -> str:
    tracked = doing.record.tracked
    told = await resend_event(doing.ports, None, tracked.event.id, _endpoint(tracked))
    is_held = told.delivery.status is DeliveryStatus.HELD
    return "Held: there is no receiver yet, or it is switched off." if is_held else "It is sent again."


EVENTS = Kind(
    name="event",
    title="Webhooks",
    key="8",
    columns=(
        when("created", lambda each: each.event.created_at),
        Column(title="event", cell=lambda each: each.event.type, width=27),
        Column(title="delivery", cell=lambda each: each.delivery.status, width=9),
        Column(title="tries", cell=lambda each: each.delivery.attempts, width=5, right=True),
        Column(title="answer", cell=_answer, width=10),
        Column(title="mode", cell=lambda each: each.event.mode, width=4, wide=True),
        Column(title="next attempt", cell=_due, width=16, wide=True),
        Column(title="of", cell=lambda each: each.event.object_id, width=26, ends=True, wide=True),
        Column(title="endpoint", cell=_endpoint, width=12, ends=True, wide=True),
        Column(title="merchant", cell=lambda each: each.account_id, width=11, wide=True, names=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    body=_body,
    filters=(
        MODE,
        Filter(name="status", choices=tuple(DeliveryStatus)),
        Filter(name="type", choices=tuple(EventType), walked=(EventType.PAYMENT_STATUS_CHANGED,)),
        ACCOUNT,
    ),
    orders=("newest", "oldest", "next attempt"),
    private=_private,
    timeline=_timeline,
    actions=(
        ConsoleAction(
            name="event.resend",
            title="Send again",
            key="s",
            changes=lambda each: [
                Change("delivery", each.status, "pending, at once"),
                Change("attempts", str(each.tracked.delivery.attempts), "numbered on, a new backoff"),
                Change("id, body", "-", "the same"),
            ],
            run=_resend,
        ),
    ),
)
