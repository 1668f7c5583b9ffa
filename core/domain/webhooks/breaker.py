"""The circuit breaker of a receiver: when nobody answers well, webhooks wait, and one asks now and then
(docs/webhooks.md "When you do not answer"). One per endpoint; the pauses it adds are no attempts."""

from datetime import datetime, timedelta

import msgspec

from ..accounts.accounts import Mode
from .delivery import Outcome, after_attempt, ends_fast_ladder
from .events import Delivery

OPENS_AFTER = 10
"""Failures in a row."""
FROM_EVENTS = 3
"""Different events that they must come from: one event that its receiver cannot take never stops the others. A
merchant with few payments has no three events in an outage of minutes: for him the whole ladder of one counts as much,
unless another event was taken meanwhile."""

PAUSES = tuple(timedelta(seconds=seconds) for seconds in (30, 60, 120, 300, 600, 1800, 3600))
"""Before the 1st, 2nd, ... probe; the last one repeats."""


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """How a receiver does. Only the one worker that serves it writes here, and whoever closes it by hand."""

    id: str
    """`endpoint_id`."""
    account_id: str
    mode: Mode
    failures: int = 0
    """In a row, until it opened."""
    failed_events: tuple[str, ...] = ()
    """Whose they were; no more than it takes."""
    opened_at: datetime | None = None
    next_probe_at: datetime | None = None
    """Null while it is closed."""
    probes: int = 0
    """How many failed since it opened."""
    probed: str | None = None
    """The delivery that was last sent as a probe; the next one takes another, lest one bad event keep it open."""
    reset_at: datetime | None = None
    """When it was last closed by hand; webhooks sent before say nothing about the receiver of now."""
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    last_failed_event: str | None = None
    """Its delivery's id."""
    last_answer: str | None = None
    last_status: int | None = None
    last_note: str | None = None
    version: int = 0

    @property
    def is_open(self) -> bool:
        return self.next_probe_at is not None


def endpoint_id(account_id: str, mode: Mode, further: str | None = None) -> str:
    """What names an account's endpoint in a mode, its own or a further one, and the work of sending to it."""
    return f"{account_id}:{mode}" if further is None else f"{account_id}:{mode}/{further}"


def new_breaker(account_id: str, mode: Mode, further: str | None = None) -> Breaker:
    """A closed one, for a receiver that was never posted to."""
    return Breaker(id=endpoint_id(account_id, mode, further), account_id=account_id, mode=mode)


def counts_against(outcome: Outcome) -> bool:
    """Whether a failure says something about the receiver and not about the one event.

    No answer at all, a redirect, 408, 429 and 5xx do. Other 4xx do not: somebody is there and judges. A blocked
    address does, because no event can pass until it is changed: behind the breaker they wait for that, up to a week,
    where their ladders would end in minutes.
    """
    status = outcome.status
    if status is None:
        return True
    return not outcome.good and (status < 400 or status in (408, 429) or status >= 500)


def after_delivery(breaker: Breaker, delivery: Delivery, outcome: Outcome) -> tuple[Breaker, Delivery]:
    """Enter one outcome into both: how the receiver does, and what becomes of the delivery, which stood as it is.

    A money event whose fast ladder ends in failures that count opens the breaker and waits with it, instead of being
    given up. Where its receiver took another event since its first attempt, the fault is the event's own: the breaker
    stays closed, and the event goes on by the slow ladder.
    """
    if not (ends_fast_ladder(delivery, outcome) and counts_against(outcome)):
        return after_outcome(breaker, delivery.id, outcome), after_attempt(delivery, outcome)
    began_at = delivery.first_attempt_at or outcome.sent_at
    taken_since = breaker.last_success_at is not None and breaker.last_success_at > began_at
    moved = after_outcome(breaker, delivery.id, outcome, ladder_lost=not taken_since)
    away = moved.is_open or _is_of_before(moved, outcome)
    return moved, after_attempt(delivery, outcome, receiver_away=away)


def after_outcome(breaker: Breaker, event_id: str, outcome: Outcome, *, ladder_lost: bool = False) -> Breaker:
    """Enter one outcome. `ladder_lost`: no webhook of a whole ladder was answered well, which opens it by itself."""
    if outcome.good:
        return closed(msgspec.structs.replace(breaker, last_success_at=outcome.ended_at))
    breaker = msgspec.structs.replace(
        breaker,
        last_failure_at=outcome.ended_at,
        last_failed_event=event_id,
        last_answer=outcome.answer,
        last_status=outcome.status,
        last_note=outcome.note,
    )
    if not counts_against(outcome):
        # Somebody answers again: that is what a probe asks for. The event itself goes on by its ladder.
        return closed(breaker) if outcome.probe else breaker
    if _is_of_before(breaker, outcome):
        return breaker
    if breaker.is_open:
        return _probed_in_vain(breaker, event_id, outcome) if outcome.probe else breaker
    return _one_more(breaker, event_id, outcome, ladder_lost=ladder_lost)


def _is_of_before(breaker: Breaker, outcome: Outcome) -> bool:
    """Whether the webhook went to the receiver that was there before the present one."""
    return breaker.reset_at is not None and outcome.sent_at < breaker.reset_at


def _probed_in_vain(breaker: Breaker, event_id: str, outcome: Outcome) -> Breaker:
    probes = breaker.probes + 1
    pause = PAUSES[min(probes, len(PAUSES) - 1)]
    return msgspec.structs.replace(breaker, probes=probes, probed=event_id, next_probe_at=outcome.due_after(pause))


def _one_more(breaker: Breaker, event_id: str, outcome: Outcome, *, ladder_lost: bool) -> Breaker:
    events = breaker.failed_events
    if event_id not in events and len(events) < FROM_EVENTS:
        events = (*events, event_id)
    failures = breaker.failures + 1
    opens = ladder_lost or (failures >= OPENS_AFTER and len(events) >= FROM_EVENTS)
    return msgspec.structs.replace(
        breaker,
        failures=failures,
        failed_events=events,
        opened_at=outcome.ended_at if opens else None,
        next_probe_at=outcome.due_after(PAUSES[0]) if opens else None,
    )


def closed(breaker: Breaker, *, by_hand_at: datetime | None = None) -> Breaker:
    """Closed, with no failure counted; `by_hand_at`: because the receiver is another one from then on."""
    if not breaker.failures and by_hand_at is None:
        return breaker
    return msgspec.structs.replace(
        breaker,
        failures=0,
        failed_events=(),
        opened_at=None,
        next_probe_at=None,
        probes=0,
        probed=None,
        reset_at=by_hand_at or breaker.reset_at,
    )


def asked_at(breaker: Breaker, moment: datetime) -> Breaker:
    """An open one whose next probe is at `moment`, because somebody asks for it."""
    return msgspec.structs.replace(breaker, next_probe_at=moment)


def room(breaker: Breaker, most: int) -> int:
    """How many webhooks may be under way at once, of `most` at other times: none while it is open, and after failures
    no more than it may still take until it opens. So a receiver that is away gets ten webhooks, not a swarm."""
    if breaker.is_open:
        return 0
    return max(1, min(most, OPENS_AFTER - breaker.failures))
