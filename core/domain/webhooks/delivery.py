"""The state of a delivery after each attempt (docs/webhooks.md "When you do not answer")."""

from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from .events import Attempt, Delivery, DeliveryStatus, FirstAnswer

FAST_BACKOFF = tuple(timedelta(seconds=1 << rung) for rung in range(9))
"""The pauses after the 1st to the 9th attempt: 1, 2, 4, ... 256 s, 511 s in all. The 10th attempt is the last."""

SLOW_BACKOFF = tuple(timedelta(hours=hours) for hours in (1, 5, 17, 41))
"""Times of the retries of a money event after the fast schedule, counted from the first attempt, if the receiver
rejects only this event."""

LIFETIME = timedelta(days=7)
"""Total time in which a delivery is attempted, including breaker pauses. It counts from when it could be sent."""

MONEY = frozenset({"payment", "withdrawal", "exchange", "refund"})
"""Prefixes of the types of money events, up to the dot."""

PUT_OFF = timedelta(hours=1)
"""Pause before an unreadable event is tried again."""

AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)
"""The `due` of deliveries that only wait for their turn: in the past by every clock, even if clocks differ."""


TIMEOUT = "timeout"
"""The `answer` of an outcome without a timely answer, as in ports/notifier.py."""


D = TypeVar("D", bound=Delivery)


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Outcome of one webhook. `answer`, `status` and `note` come from the notifier's result."""

    answer: str
    status: int | None
    note: str
    sent_at: datetime
    ended_at: datetime
    took_ms: int = 0
    probe: bool = False
    retry_after: int | None = None
    """Pause that the receiver requests, in seconds."""

    def due_after(self, pause: timedelta) -> datetime:
        """Return when to send again: after `pause`, or later if the receiver requests it."""
        return self.ended_at + max(pause, timedelta(seconds=self.retry_after or 0))

    @property
    def good(self) -> bool:
        """Whether the webhook succeeded: any 2xx. A redirect, any other status and no answer at all (None) are
        failures."""
        return self.status is not None and 200 <= self.status <= 299


def is_money(event_type: str) -> bool:
    """Return whether events of this type get more than the fast schedule."""
    return event_type.partition(".")[0] in MONEY


def next_number(delivery: Delivery) -> int:
    """Return the X-Webhook-Attempt of the next webhook."""
    return delivery.attempts + 1


def attempt_id(delivery: Delivery, webhook: int) -> str:
    """Return the id of the row of its n-th webhook."""
    return f"{delivery.id}:{webhook:06d}"


def last_attempt_id(delivery: Delivery) -> str:
    """Return the id of the row of its last webhook; if none was sent, no such row exists."""
    return attempt_id(delivery, delivery.attempts + delivery.probes)


def attempt_of(delivery: Delivery, outcome: Outcome) -> Attempt:
    """Return the row of a webhook that was sent while `delivery` was in this state."""
    return Attempt(
        id=attempt_id(delivery, delivery.attempts + delivery.probes + 1),
        event_id=delivery.event_id,
        number=next_number(delivery),
        probe=outcome.probe,
        sent_at=outcome.sent_at,
        answer=outcome.answer,
        status=outcome.status,
        note=outcome.note,
        took_ms=outcome.took_ms,
    )


def first_attempt(delivery: Delivery) -> Attempt | None:
    """Return the first webhook of a delivery if it succeeded: then no row has it."""
    first = delivery.first_answer
    if first is None or delivery.first_sent_at is None:
        return None
    return Attempt(
        id=attempt_id(delivery, 1),
        event_id=delivery.event_id,
        number=1,
        probe=False,
        sent_at=delivery.first_sent_at,
        answer=first.answer,
        status=first.status,
        note=first.note,
        took_ms=first.took_ms,
    )


def is_first_success(delivery: Delivery, outcome: Outcome) -> bool:
    """Return whether this outcome is that of the first webhook, and good, so that the delivery stores it itself."""
    return outcome.good and not outcome.probe and not delivery.attempts and not delivery.probes


def ends_fast_backoff(delivery: Delivery, outcome: Outcome) -> bool:
    """Return whether this outcome is the last failure of the fast schedule of a pending money event."""
    last = delivery.attempts - delivery.backoff_start == len(FAST_BACKOFF)
    pending = delivery.status is DeliveryStatus.PENDING
    return last and pending and is_money(delivery.type) and not outcome.good and not outcome.probe


def after_attempt(delivery: Delivery, outcome: Outcome, *, receiver_away: bool = False) -> Delivery:
    """Apply a webhook's outcome to `delivery`: its new state, and when it is due again.

    `receiver_away`: the outcome ends a schedule but says nothing about the event. The delivery then stays pending, with
    a new schedule for the time when the receiver is back.

    A blocked address counts as an attempt like any other. A probe can only deliver. A delivery that is not pending
    keeps its status, unless the answer is good: two workers may send one event, and the slower one may fail; and a late
    2xx delivers an event that had failed.
    """
    probe, good, status, delivered_at = outcome.probe, outcome.good, delivery.status, delivery.delivered_at
    still = status is DeliveryStatus.PENDING and not good
    if good:
        delivered_at = delivered_at if status is DeliveryStatus.DELIVERED else outcome.ended_at
        status = DeliveryStatus.DELIVERED
    # Count the webhook; a finished delivery has no due time.
    entered = msgspec.structs.replace(
        delivery,
        status=status,
        due=delivery.due if still else None,
        give_up_at=delivery.give_up_at if still else None,
        attempts=delivery.attempts + (not probe),
        probes=delivery.probes + probe,
        first_attempt_at=delivery.first_attempt_at if probe else delivery.first_attempt_at or outcome.sent_at,
        delivered_at=delivered_at,
    )
    if is_first_success(delivery, outcome):
        answer = FirstAnswer(outcome.answer, outcome.status, outcome.note, outcome.took_ms)
        return msgspec.structs.replace(entered, first_sent_at=outcome.sent_at, first_answer=answer)
    # Only an attempt of a pending delivery advances the schedule.
    if probe or not still:
        return entered
    if receiver_away:
        soon = outcome.due_after(FAST_BACKOFF[0])
        return msgspec.structs.replace(entered, due=soon, backoff_start=entered.attempts, first_attempt_at=None)
    due = _next_rung(entered, outcome)
    return _ended(entered, DeliveryStatus.FAILED) if due is None else msgspec.structs.replace(entered, due=due)


def _next_rung(entered: Delivery, outcome: Outcome) -> datetime | None:
    made = entered.attempts - entered.backoff_start
    if made <= len(FAST_BACKOFF):
        return outcome.due_after(FAST_BACKOFF[made - 1])
    if entered.first_attempt_at is None or not is_money(entered.type):
        return None
    # A breaker may have delayed it: skip the times that have passed.
    moments = (entered.first_attempt_at + after for after in SLOW_BACKOFF)
    moment = next((moment for moment in moments if moment > outcome.ended_at), None)
    return None if moment is None else max(moment, outcome.due_after(timedelta()))


def _ended(delivery: D, status: DeliveryStatus) -> D:
    return msgspec.structs.replace(delivery, status=status, due=None, give_up_at=None)


def is_too_old(delivery: Delivery, now: datetime) -> bool:
    """Return whether a pending delivery must be given up."""
    return delivery.give_up_at is not None and delivery.give_up_at <= now


def given_up(delivery: Delivery) -> Delivery:
    """Return the delivery as failed, because it is too old; only a manual resend sends it again."""
    return _ended(delivery, DeliveryStatus.FAILED)


def put_off(delivery: Delivery, now: datetime) -> Delivery:
    """Return the delivery postponed, because its event cannot be read: a later version of the program may be able to,
    and until then it blocks no others."""
    return msgspec.structs.replace(delivery, due=now + PUT_OFF)


def held(delivery: D) -> D:
    """Return the delivery as held: the receiver does not exist (any more) or is switched off."""
    return _ended(delivery, DeliveryStatus.HELD)


def sent_anew(delivery: D, *, receives: bool, now: datetime) -> D:
    """Return the delivery due at once with a new schedule; held if the account has no receiver."""
    if not receives:
        return held(delivery)
    return msgspec.structs.replace(
        delivery,
        status=DeliveryStatus.PENDING,
        due=AT_ONCE,
        give_up_at=now + LIFETIME,
        backoff_start=delivery.attempts,
        first_attempt_at=None,
    )
