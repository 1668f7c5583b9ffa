"""How often a provider is asked by itself about what waits for a payer, and how many such looks a minute it gets
(docs/adapters.md "How often a provider is asked")."""

from datetime import datetime, timedelta
from typing import NamedTuple

SHORTEST = timedelta(seconds=3)
LONGEST = timedelta(seconds=30)
_PART = 15
"""A look comes after a fifteenth of the time that has passed: a payer who is still there will mostly pay soon."""

_BACKUP = ((timedelta(minutes=1), timedelta(seconds=30)), (timedelta(minutes=5), timedelta(minutes=1)))
"""Until which age, and how often, an invoice is polled although its bank sends notifications: one may be lost, or its
address was never entered at the bank."""
_BACKUP_LATER, _UNPROVEN = timedelta(minutes=5), timedelta(minutes=1)
"""The same after that: once a notification of the bank was verified, and before."""

_LATE_SHORTEST = timedelta(minutes=1)
_LATE_PART = 6

_SLOT, _MINUTE = 10, 60
"""Seconds over which a provider's looks are spread evenly; a minute where it takes fewer than six."""
_KEPT = (2, 5)
"""Of all looks, the part that is kept for those that somebody waits for."""


def poll_pause(age: timedelta) -> timedelta:
    """How long after a look at something that was opened `age` ago, and is still open, the next one comes."""
    return min(max(age / _PART, SHORTEST), LONGEST)


def backup_poll_age(age: timedelta, *, is_proven: bool) -> timedelta:
    """Return the age at which an open invoice of a bank that sends notifications is polled next. `is_proven`: a
    notification of this bank was verified before."""
    later = _BACKUP_LATER if is_proven else _UNPROVEN
    step = next((step for until, step in _BACKUP if age < until), later)
    return (age // step + 1) * step


def late_poll_pause(age: timedelta) -> timedelta:
    """The same once it is over for us, and its money may still come."""
    return max(age / _LATE_PART, _LATE_SHORTEST)


class Slot(NamedTuple):
    """The stretch of time in which looks at one provider are counted together."""

    begin: datetime
    seconds: int
    kept: int
    """How many looks are kept in it for those that somebody waits for."""
    common: int
    """How many are for all: one at least."""

    def turn_after(self, number: int) -> datetime:
        """When to come back, as the look of this `number`, above `common`, of the slot: those that are too many are
        spread over the slots to come, as many in each as may be asked."""
        later, place = divmod(number - self.common - 1, self.common)
        return self.begin + timedelta(seconds=self.seconds * (1 + later + place / self.common))


def slot_at(now: datetime, looks_per_minute: int) -> Slot:
    """The slot of this moment at a provider that may be looked at so often."""
    seconds = _MINUTE if looks_per_minute < _MINUTE // _SLOT else _SLOT
    looks = max(looks_per_minute * seconds // _MINUTE, 1)
    kept = looks * _KEPT[0] // _KEPT[1]
    passed = timedelta(seconds=now.second % seconds, microseconds=now.microsecond)
    return Slot(now - passed, seconds, kept, looks - kept)
