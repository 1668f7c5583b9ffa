"""What comes after an attempt to deliver an event (SPEC "Events", 1 and 3; DECISIONS 7)."""

from datetime import datetime, timedelta

import msgspec

from .events import Delivery, DeliveryStatus

FAST_LADDER = tuple(timedelta(seconds=1 << rung) for rung in range(9))
"""The pauses after the 1st to the 9th attempt: 1, 2, 4, ... 256 s, 511 s in all; the 10th attempt is the last."""


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt led to: the delivery as it is to be stored, and when to try again; None: not any more."""

    delivery: Delivery
    again_at: datetime | None


def is_good(status: int | None) -> bool:
    """Any 2xx closes a delivery. A redirect, any other status and no answer at all (None) are failures."""
    return status is not None and 200 <= status <= 299


def after_attempt(delivery: Delivery, *, answer: str, status: int | None, note: str, now: datetime) -> Next:
    """Enter one more attempt, which ended at `now`, into `delivery`, and decide what comes next.

    `answer`, `status` and `note` are those of the notifier's receipt; an address that was never posted to counts as an
    attempt like any other. What was delivered stays delivered: two workers may send the same event, and the slower one
    may fail.
    """
    made = delivery.attempts + 1
    delivered_at = delivery.delivered_at
    again_at = None
    if delivered_at is not None or is_good(status):
        delivered_at = delivered_at or now
        outcome = DeliveryStatus.DELIVERED
    elif made <= len(FAST_LADDER):
        again_at = now + FAST_LADDER[made - 1]
        outcome = DeliveryStatus.PENDING
    else:
        outcome = DeliveryStatus.FAILED
    moved = msgspec.structs.replace(
        delivery,
        status=outcome,
        attempts=made,
        last_attempt_at=now,
        last_status=status,
        last_answer=answer,
        last_note=note,
        delivered_at=delivered_at,
    )
    return Next(delivery=moved, again_at=again_at)
