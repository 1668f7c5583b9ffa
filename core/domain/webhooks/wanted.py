"""Types of events that a receiver wants (docs/webhooks.md "The events you want")."""

from collections.abc import Iterable, Sequence

from .delivery import is_money
from .events import EventType

_CAN_BE_OFF = frozenset({EventType.DELIVERY_PROOF_REMINDER})
"""Types about a payment that report no movement of money."""

ALWAYS = tuple(
    each for each in EventType if each is EventType.CHARGE_EXHAUSTED or (is_money(each) and each not in _CAN_BE_OFF)
)
"""Types that at least one endpoint of a mode must take: all types about money, and the end of a period's attempts
(docs/decisions.md "Events a receiver wants")."""


def read_wanted(names: Sequence[str]) -> tuple[str, ...]:
    """Return the types that an endpoint takes, without repetition, in the order of the documentation. Raises:
    ValueError with an explanation."""
    if not names:
        raise ValueError("must name at least one type of events")
    if not set(names) <= set(EventType):
        raise ValueError(f"must be some of: {', '.join(EventType)}")
    return tuple(each.value for each in EventType if each in names)


def wants(wanted: Sequence[str] | None, event_type: str) -> bool:
    """Return whether an endpoint that takes these types (None: all) takes this one."""
    return wanted is None or event_type in wanted


def untaken(endpoints: Iterable[Sequence[str] | None]) -> tuple[EventType, ...]:
    """Return the types of ALWAYS that none of these endpoints takes; each endpoint is given as its types."""
    lists = list(endpoints)
    return tuple(each for each in ALWAYS if not any(wants(wanted, each) for wanted in lists))
