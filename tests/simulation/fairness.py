"""Check fairness: while one merchant's receiver and one bank hang, all other merchants get their answers and webhooks
in time (docs/reliability.md "What is checked")."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.world import World

ANSWERED_IN = 25.5
"""Seconds in which every request is answered, a bank that hangs being waited for (docs/limits.md "Times")."""
TOLD_IN = timedelta(seconds=5)
"""From an event to its arrival at a receiver that answers."""


def judge_fairness(world: "World") -> None:
    """Find who waited for too long, where only one may."""
    if world.plan.victim is None:
        return
    for merchant in world.merchants:
        for path, seconds in merchant.waited:
            if seconds > ANSWERED_IN:
                world.fault(f"merchant {merchant.number} waited {seconds:.1f} s for the answer to {path}")
        if merchant.number in world.plan.victims:
            continue
        known_from = min((told.at for told in merchant.receiver.told.values()), default=world.now())
        for event_id, told in merchant.receiver.told.items():
            # Refund events have no timestamp, and unreadable events are postponed.
            if "timestamp" not in told.body or event_id in world.database.spoilt:
                continue
            # Until a receiver gets its first webhook, the service cannot know whether it hangs.
            if world.plan.crowd and datetime.fromisoformat(told.body["timestamp"]) <= known_from:
                continue
            late = told.at - datetime.fromisoformat(told.body["timestamp"])
            if late > TOLD_IN:
                world.fault(f"merchant {merchant.number} was told {event_id} ({told.event}) {late} late")
