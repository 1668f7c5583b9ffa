"""What comes after an attempt to deliver an event (docs/webhooks.md "When you do not answer")."""

from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from .events import Attempt, Delivery, DeliveryStatus

FAST_LADDER = tuple(timedelta(seconds=1 << rung) for rung in range(9))
"""The pauses after the 1st to the 9th attempt: 1, 2, 4, ... 256 s, 511 s in all. The 10th is the last of it."""

SLOW_LADDER = tuple(timedelta(hours=hours) for hours in (1, 5, 17, 41))
"""When a money event that its receiver alone does not take is tried again after the fast ladder, from the first
attempt."""

LIFETIME = timedelta(days=7)
"""How long a delivery is tried at all, whatever a breaker made it wait. It counts from when it could be sent."""

MONEY = frozenset({"payment", "withdrawal", "exchange", "refund"})
"""What the types of money events begin with, up to the dot."""

PUT_OFF = timedelta(hours=1)
"""Until what cannot be read is tried again."""

AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)
"""The `due` of what waits for nothing but its turn: past by every clock, also one that is behind another machine's."""


TIMEOUT = "timeout"
"""The `answer` of an outcome where none came in time: the notifier's word (ports/notifier.py)."""


D = TypeVar("D", bound=Delivery)


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of one webhook. `answer`, `status` and `note` are those of the notifier's result."""

    answer: str
    status: int | None
    note: str
    sent_at: datetime
    ended_at: datetime
    took_ms: int = 0
    probe: bool = False
    retry_after: int | None = None
    """Seconds that the receiver asks us to wait."""

    def due_after(self, pause: timedelta) -> datetime:
        """Return when to send again: after `pause`, or later when the receiver asks for it."""
        return self.ended_at + max(pause, timedelta(seconds=self.retry_after or 0))

    @property
    def good(self) -> bool:
        """Any 2xx closes a delivery. A redirect, any other status and no answer at all (None) are failures."""
        return self.status is not None and 200 <= self.status <= 299


def is_money(event_type: str) -> bool:
    """Whether events of this type are given more than the fast ladder."""
    return event_type.partition(".")[0] in MONEY


def next_number(delivery: Delivery) -> int:
    """The X-Webhook-Attempt of the next webhook."""
    return delivery.attempts + 1


def attempt_id(delivery: Delivery, webhook: int) -> str:
    """The id of the row of its n-th webhook."""
    return f"{delivery.id}:{webhook:06d}"


def last_attempt_id(delivery: Delivery) -> str:
    """The id of the row of its last webhook; of none where none was sent."""
    return attempt_id(delivery, delivery.attempts + delivery.probes)


def attempt_of(delivery: Delivery, outcome: Outcome) -> Attempt:
    """The row of a webhook that was sent when `delivery` stood as it is."""
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


def ends_fast_ladder(delivery: Delivery, outcome: Outcome) -> bool:
    """Whether this outcome is the last, bad one of the fast ladder of a money event that still is to be delivered."""
    last = delivery.attempts - delivery.ladder_start == len(FAST_LADDER)
    pending = delivery.status is DeliveryStatus.PENDING
    return last and pending and is_money(delivery.type) and not outcome.good and not outcome.probe


def after_attempt(delivery: Delivery, outcome: Outcome, *, receiver_away: bool = False) -> Delivery:
    """Enter a webhook's outcome into `delivery`: what it is now, and when it is due again.

    `receiver_away`: the outcome ends a ladder and says nothing about the event. It stays pending then, with a whole
    ladder for the day on which the receiver is back.

    An address that was never posted to counts as an attempt like any other. A probe only ever delivers. What is not
    pending stays what it is, unless the answer was good: two workers may send one event, and the slower one may fail;
    and a late 2xx delivers what had failed.
    """
    probe, good, status, delivered_at = outcome.probe, outcome.good, delivery.status, delivery.delivered_at
    still = status is DeliveryStatus.PENDING and not good
    if good:
        delivered_at = delivered_at if status is DeliveryStatus.DELIVERED else outcome.ended_at
        status = DeliveryStatus.DELIVERED
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
    if probe or not still:
        return entered
    if receiver_away:
        soon = outcome.due_after(FAST_LADDER[0])
        return msgspec.structs.replace(entered, due=soon, ladder_start=entered.attempts, first_attempt_at=None)
    due = _next_rung(entered, outcome)
    return _ended(entered, DeliveryStatus.FAILED) if due is None else msgspec.structs.replace(entered, due=due)


def _next_rung(entered: Delivery, outcome: Outcome) -> datetime | None:
    made = entered.attempts - entered.ladder_start
    if made <= len(FAST_LADDER):
        return outcome.due_after(FAST_LADDER[made - 1])
    if entered.first_attempt_at is None or not is_money(entered.type):
        return None
    # A breaker may have held it up: what is over then is left out.
    moments = (entered.first_attempt_at + after for after in SLOW_LADDER)
    moment = next((moment for moment in moments if moment > outcome.ended_at), None)
    return None if moment is None else max(moment, outcome.due_after(timedelta()))


def _ended(delivery: D, status: DeliveryStatus) -> D:
    return msgspec.structs.replace(delivery, status=status, due=None, give_up_at=None)


def is_too_old(delivery: Delivery, now: datetime) -> bool:
    """Whether a pending delivery is to be given up."""
    return delivery.give_up_at is not None and delivery.give_up_at <= now


def given_up(delivery: Delivery) -> Delivery:
    """Too old: failed, and not tried any more unless it is sent again by hand."""
    return _ended(delivery, DeliveryStatus.FAILED)


def put_off(delivery: Delivery, now: datetime) -> Delivery:
    """Not to be sent now, because its event cannot be read: a later version of the program may, and until then it holds
    up no others."""
    return msgspec.structs.replace(delivery, due=now + PUT_OFF)


def held(delivery: D) -> D:
    """There is no receiver (any more), or it is switched off: it waits for one."""
    return _ended(delivery, DeliveryStatus.HELD)


def sent_anew(delivery: D, *, receives: bool, now: datetime) -> D:
    """Due at once, at the foot of a new ladder; held where the account has no receiver."""
    if not receives:
        return held(delivery)
    return msgspec.structs.replace(
        delivery,
        status=DeliveryStatus.PENDING,
        due=AT_ONCE,
        give_up_at=now + LIFETIME,
        ladder_start=delivery.attempts,
        first_attempt_at=None,
    )
