"""Faults of the world and their frequencies: one record a plan, so that a shrinker can remove it piece by piece.

Every kind of fault has its own random source, so that adding or removing a kind leaves the draws of others unchanged.
"""

import random
from typing import Any

import msgspec


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """Probabilities of faults of one call or message, from 0 to 1. All zero: no faults."""

    storage_lost: float = 0.0
    """A commit or a read never reaches the database: `Unavailable`."""
    storage_unanswered: float = 0.0
    """A commit takes effect and its answer is lost: `Unavailable`."""
    storage_late: float = 0.0
    """An answer takes up to some seconds."""
    provider_refused: float = 0.0
    """No connection to a provider: `Unavailable`."""
    provider_lost: float = 0.0
    """A request is lost on its way; a write then raises `OutcomeUnknown`."""
    provider_unanswered: float = 0.0
    """The provider did it, and its answer is lost."""
    provider_late: float = 0.0
    """A request is carried out up to minutes after the caller gave it up."""
    provider_doubled: float = 0.0
    """A request arrives twice."""
    notification_lost: float = 0.0
    notification_doubled: float = 0.0
    notification_late: float = 0.0
    """A notification is up to minutes late, so that notifications arrive in another order."""
    wake_up_lost: float = 0.0
    wake_up_late: float = 0.0
    request_lost: float = 0.0
    """A merchant's request is lost before it reaches the service."""
    answer_lost: float = 0.0
    """To a merchant, after we did it."""
    webhook_lost: float = 0.0
    """A receiver that cannot be connected to."""
    webhook_unanswered: float = 0.0
    """A receiver took it, and its answer is lost."""
    webhook_refused: float = 0.0
    """A receiver answers 500."""
    webhook_late: float = 0.0
    """A receiver takes its time: up to 12 s, of which 10 are waited for."""
    dropped: float = 0.0
    """A transfer that was handed to the chain gets into no block for a while, or ever."""
    reorganised: float = 0.0
    """A block with a transfer is taken back."""


KINDS = Weather.__struct_fields__
FINE = Weather()


class Chance:
    """Sources of chance of one seed, by name."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._sources: dict[str, random.Random] = {}

    def of(self, name: str) -> random.Random:
        """The source of this name, always the same one."""
        if name not in self._sources:
            self._sources[name] = random.Random(f"{self._seed}/{name}")
        return self._sources[name]


def drawn_weather(chance: random.Random) -> Weather:
    """Some kinds of faults, rare or frequent; the others never."""
    drawn: dict[str, Any] = {}
    for kind in KINDS:
        if chance.random() < 0.5:
            drawn[kind] = round(chance.choice((0.01, 0.03, 0.1, 0.3)), 3)
    for kind in ("storage_lost", "storage_unanswered", "storage_late"):
        # Every request and job makes a dozen such calls.
        if kind in drawn:
            drawn[kind] = round(drawn[kind] / 10, 4)
    return Weather(**drawn)
