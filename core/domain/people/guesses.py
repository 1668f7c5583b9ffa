"""Budgets of wrong passwords and codes (docs/dashboard.md "Wrong attempts"), and of mails that a person causes to
addresses of others."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec


class Budget(msgspec.Struct, frozen=True):
    """Number of wrong attempts allowed within a period."""

    most: int
    within: timedelta


BUDGETS: Mapping[str, Budget] = {
    "known": Budget(10, timedelta(minutes=15)),
    "unknown": Budget(10, timedelta(hours=1)),
    "stranger": Budget(10, timedelta(hours=1)),
    "confirm": Budget(5, timedelta(minutes=15)),
    "code": Budget(5, timedelta(minutes=15)),
    "email": Budget(5, timedelta(hours=1)),
    "link": Budget(30, timedelta(hours=1)),
    "confirmation": Budget(5, timedelta(days=1)),
    "recipient": Budget(10, timedelta(days=1)),
    "ask": Budget(10, timedelta(hours=1)),
}
"""By the kind of attempt: a browser in which the person signed in before, all other browsers together, addresses that
nobody has, confirmations by a signed-in person, one-time codes, requests for a new e-mail address, payment links by
mail, confirmations of one payment by mail, those to one address, and requests for a second person that write
to the others."""


class GuessCount(msgspec.Struct, frozen=True, kw_only=True):
    """Wrong attempts of one budget since its time began."""

    id: str
    """Kind and person: `unknown:usr_…`."""
    count: int
    until: datetime
    """When the count starts over."""
    version: int = 0

    def is_spent(self, budget: Budget, now: datetime) -> bool:
        """Return whether no further attempt is allowed now."""
        return now < self.until and self.count >= budget.most


def budget_of(name: str) -> Budget:
    """Return the budget of a count's id."""
    return BUDGETS[name.partition(":")[0]]


def counted(found: GuessCount | None, name: str, now: datetime) -> GuessCount:
    """Return the count with one more wrong attempt."""
    budget = budget_of(name)
    if found is None:
        return GuessCount(id=name, count=1, until=now + budget.within)
    if now >= found.until:
        return msgspec.structs.replace(found, count=1, until=now + budget.within)
    return msgspec.structs.replace(found, count=found.count + 1)
