"""The circuit breaker of a receiver: while no webhook succeeds, webhooks wait, and a probe goes out now and then
(docs/webhooks.md "When you do not answer"). Each endpoint has one; its pauses do not count as attempts."""

from datetime import datetime, timedelta

import msgspec

from ..accounts.accounts import Mode
from .delivery import Outcome, after_attempt, ends_fast_backoff
from .events import Delivery

OPENS_AFTER = 10
"""Consecutive failures."""
FROM_EVENTS = 3
"""Different events among those failures: one event that its receiver cannot process never stops the others. A merchant
with few payments does not have three events in an outage of minutes: for such a merchant a whole failed schedule of one
event opens the breaker, unless another event was delivered meanwhile."""

PAUSES = tuple(timedelta(seconds=seconds) for seconds in (30, 60, 120, 300, 600, 1800, 3600))
"""Pauses before the 1st, 2nd, ... probe; the last one repeats."""


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """State of a receiver. Only the one worker that serves it, and operators who close it by hand, write this
    record."""

    id: str
    """Result of `endpoint_id`."""
    account_id: str
    mode: Mode
    failures: int = 0
    """Consecutive failures, until it opened."""
    failed_events: tuple[str, ...] = ()
    """Events of those failures, at most FROM_EVENTS."""
    opened_at: datetime | None = None
    next_probe_at: datetime | None = None
    """Null while it is closed."""
    probes: int = 0
    """Failed probes since it opened."""
    probed: str | None = None
    """The delivery of the last probe; the next probe sends another one, so that one bad event cannot keep it open."""
    reset_at: datetime | None = None
    """When it was last closed by hand; webhooks sent earlier say nothing about the present receiver."""
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    last_failed_event: str | None = None
    """Id of that event's delivery."""
    last_answer: str | None = None
    last_status: int | None = None
    last_note: str | None = None
    version: int = 0

    @property
    def is_open(self) -> bool:
        return self.next_probe_at is not None


def endpoint_id(account_id: str, mode: Mode, further: str | None = None) -> str:
    """Return the id of an account's endpoint in a mode, its own or a further one; the sending job has the same id."""
    return f"{account_id}:{mode}" if further is None else f"{account_id}:{mode}/{further}"


def outage_id(breaker: Breaker) -> str:
    """Return the id of an endpoint's present outage, by which people are notified of it once."""
    return f"{breaker.id}@{'' if breaker.opened_at is None else breaker.opened_at.timestamp()}"


def new_breaker(account_id: str, mode: Mode, further: str | None = None) -> Breaker:
    """Return a closed breaker, for a receiver without any deliveries."""
    return Breaker(id=endpoint_id(account_id, mode, further), account_id=account_id, mode=mode)


def counts_against(outcome: Outcome) -> bool:
    """Return whether a failure concerns the receiver and not the single event.

    No answer at all, a redirect, 408, 429 and 5xx do. Other 4xx do not: the receiver is up and rejects the event. A
    blocked address does, because no event can be delivered until it is changed: behind the breaker they wait for that
    up to a week, while their own schedules would end within minutes.
    """
    status = outcome.status
    if status is None:
        return True
    return not outcome.good and (status < 400 or status in (408, 429) or status >= 500)


def after_delivery(breaker: Breaker, delivery: Delivery, outcome: Outcome) -> tuple[Breaker, Delivery]:
    """Apply one outcome to both the receiver's state and the delivery.

    If a money event's fast schedule ends with failures of the receiver, the breaker opens and the event waits with it,
    instead of being given up. If the receiver accepted another event since this one's first attempt, the fault is the
    event's own: the breaker stays closed, and the event continues with the slow schedule.
    """
    if not (ends_fast_backoff(delivery, outcome) and counts_against(outcome)):
        return after_outcome(breaker, delivery.id, outcome), after_attempt(delivery, outcome)
    began_at = delivery.first_attempt_at or outcome.sent_at
    taken_since = breaker.last_success_at is not None and breaker.last_success_at > began_at
    moved = after_outcome(breaker, delivery.id, outcome, backoff_lost=not taken_since)
    away = moved.is_open or _is_of_before(moved, outcome)
    return moved, after_attempt(delivery, outcome, receiver_away=away)


def after_outcome(breaker: Breaker, event_id: str, outcome: Outcome, *, backoff_lost: bool = False) -> Breaker:
    """Apply one outcome. `backoff_lost`: no webhook of a whole schedule succeeded, which opens the breaker by
    itself."""
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
        # The receiver answers again, so the probe succeeded. The event itself continues with its own schedule.
        return closed(breaker) if outcome.probe else breaker
    # Failures of an earlier receiver say nothing about the present one.
    if _is_of_before(breaker, outcome):
        return breaker
    # While it is open, only a failed probe changes it.
    if breaker.is_open:
        return _probed_in_vain(breaker, event_id, outcome) if outcome.probe else breaker
    return _one_more(breaker, event_id, outcome, backoff_lost=backoff_lost)


def _is_of_before(breaker: Breaker, outcome: Outcome) -> bool:
    """Return whether the webhook went to an earlier receiver than the present one."""
    return breaker.reset_at is not None and outcome.sent_at < breaker.reset_at


def _probed_in_vain(breaker: Breaker, event_id: str, outcome: Outcome) -> Breaker:
    probes = breaker.probes + 1
    pause = PAUSES[min(probes, len(PAUSES) - 1)]
    return msgspec.structs.replace(breaker, probes=probes, probed=event_id, next_probe_at=outcome.due_after(pause))


def _one_more(breaker: Breaker, event_id: str, outcome: Outcome, *, backoff_lost: bool) -> Breaker:
    events = breaker.failed_events
    if event_id not in events and len(events) < FROM_EVENTS:
        events = (*events, event_id)
    failures = breaker.failures + 1
    opens = backoff_lost or (failures >= OPENS_AFTER and len(events) >= FROM_EVENTS)
    return msgspec.structs.replace(
        breaker,
        failures=failures,
        failed_events=events,
        opened_at=outcome.ended_at if opens else None,
        next_probe_at=outcome.due_after(PAUSES[0]) if opens else None,
    )


def closed(breaker: Breaker, *, by_hand_at: datetime | None = None) -> Breaker:
    """Return it closed, without counted failures; `by_hand_at`: the receiver is a different one from then on."""
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
    """Return an open one with its next probe at `moment`, on request."""
    return msgspec.structs.replace(breaker, next_probe_at=moment)


def room(breaker: Breaker, most: int) -> int:
    """Return how many webhooks may be in flight at once, given a normal limit of `most`: none while it is open; after
    failures only as many as are missing until it opens. So a receiver that is down gets ten webhooks, not a flood."""
    if breaker.is_open:
        return 0
    return max(1, min(most, OPENS_AFTER - breaker.failures))
