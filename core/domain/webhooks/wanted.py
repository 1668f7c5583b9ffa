"""Which events a receiver wants, by type (docs/webhooks.md "The events you want")."""

from collections.abc import Sequence

from .delivery import is_money
from .events import EventType

_CAN_BE_OFF = frozenset({EventType.DELIVERY_PROOF_REMINDER})
"""What is about a payment, and moves no money."""

ALWAYS = tuple(
    each for each in EventType if each is EventType.CHARGE_EXHAUSTED or (is_money(each) and each not in _CAN_BE_OFF)
)
"""Types that no receiver can switch off: those that tell of money, and the end of a period's attempts
(docs/decisions.md "Events a receiver wants")."""


def read_wanted(names: Sequence[str]) -> tuple[str, ...]:
    """The types that a receiver wants, each once, in the order of the documentation. Raises: ValueError that says what
    is wrong, with the types that are missing and cannot be switched off."""
    if not set(names) <= set(EventType):
        raise ValueError(f"must be some of: {', '.join(EventType)}")
    missing = [each for each in ALWAYS if each not in names]
    if missing:
        raise ValueError(f"must have {', '.join(missing)}: these events cannot be switched off")
    return tuple(each.value for each in EventType if each in names)


def wants(wanted: Sequence[str] | None, event_type: str) -> bool:
    """Whether a receiver that wants these types (None: all) gets events of this one. What cannot be switched off it
    gets whatever its list says, which may be of a version that knew fewer types."""
    return wanted is None or event_type in wanted or event_type in ALWAYS
