"""How often the service polls a provider about open payments, and the limit of such polls per minute
(docs/adapters.md "How often a provider is asked")."""

from datetime import datetime, timedelta
from typing import NamedTuple

SHORTEST = timedelta(seconds=3)
LONGEST = timedelta(seconds=30)
_PART = 15
"""The next poll comes after a fifteenth of the time that has passed: a payer who is still there will mostly pay
soon."""

_BACKUP = ((timedelta(minutes=1), timedelta(seconds=30)), (timedelta(minutes=5), timedelta(minutes=1)))
"""Ages, and the pauses up to them, for polls of an invoice although its bank sends notifications: one may be lost, or
the URL was never entered at the bank."""
_BACKUP_LATER, _UNPROVEN = timedelta(minutes=5), timedelta(minutes=1)
"""The pauses after that: once a notification of the bank was verified, and before."""

_LATE_SHORTEST = timedelta(minutes=1)
_LATE_PART = 6

_SLOT, _MINUTE = 10, 60
"""Seconds over which a provider's polls are spread evenly; a minute if it accepts fewer than six polls per minute."""
_KEPT = (2, 5)
"""Share of all polls that is reserved for urgent ones, for which somebody waits."""


def poll_pause(age: timedelta) -> timedelta:
    """Return the pause before the next poll of an object that was opened `age` ago and is still open."""
    return min(max(age / _PART, SHORTEST), LONGEST)


def backup_poll_age(age: timedelta, *, is_proven: bool) -> timedelta:
    """Return the age at which an open invoice of a bank that sends notifications is polled next. `is_proven`: a
    notification of this bank was verified before."""
    later = _BACKUP_LATER if is_proven else _UNPROVEN
    step = next((step for until, step in _BACKUP if age < until), later)
    return (age // step + 1) * step


def late_poll_pause(age: timedelta) -> timedelta:
    """Return the pause for an object that is over for us, but whose money may still come."""
    return max(age / _LATE_PART, _LATE_SHORTEST)


class Slot(NamedTuple):
    """The period in which polls of one provider are counted together."""

    begin: datetime
    seconds: int
    kept: int
    """Number of polls in it that are reserved for urgent ones."""
    common: int
    """Number for all polls: at least one."""

    def turn_after(self, number: int) -> datetime:
        """Return when to retry poll `number` of the slot, which is above `common`: the excess is spread evenly over the
        following slots, up to the limit of each."""
        later, place = divmod(number - self.common - 1, self.common)
        return self.begin + timedelta(seconds=self.seconds * (1 + later + place / self.common))


def slot_at(now: datetime, polls_per_minute: int) -> Slot:
    """Return the slot of this moment for a provider with this limit of polls per minute."""
    seconds = _MINUTE if polls_per_minute < _MINUTE // _SLOT else _SLOT
    polls = max(polls_per_minute * seconds // _MINUTE, 1)
    kept = polls * _KEPT[0] // _KEPT[1]
    passed = timedelta(seconds=now.second % seconds, microseconds=now.microsecond)
    return Slot(now - passed, seconds, kept, polls - kept)
