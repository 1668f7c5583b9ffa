"""Health of a gateway, judged from the answers of its bank (docs/webhooks.md "Gateways": `provider_errors`,
`provider_timeout`)."""

import msgspec

from .gateways import BY_HAND, GatewayReason, GatewayStatus

MINUTES = 3
"""How far back answers count. Only minutes with a fault are stored, so that a healthy bank causes no writes."""
ENOUGH_CALLS = 10
"""Minimum number of calls for a judgement."""
ENOUGH_GOOD = 3
"""Good answers in a row, once all faults are too old, after which a quiet gateway counts as recovered."""
DEGRADED_PERCENT = 20
"""Share of faults from which on a gateway is degraded."""
DOWN_PERCENT = 80
TRIALS = 5
"""Payments per minute that still go to a gateway judged down, so that its recovery is noticed."""
CERTAIN = 20
"""Number of faults per minute that are each stored; above it, and for good answers, every tenth is enough."""


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of a gateway in one minute, as far as they were stored."""

    number: int
    """Minutes since 1970."""
    calls: int = 0
    errors: int = 0
    timeouts: int = 0


Seen = tuple[Minute, ...]
"""The minutes that count, the oldest first."""


def with_counts(seen: Seen, minute: int, *, calls: int, errors: int = 0, timeouts: int = 0) -> Seen:
    """Merge the counts of a minute so far. Counts only rise, so late ones change nothing."""
    young = [each for each in seen if each.number > minute - MINUTES]
    known = next((each for each in young if each.number == minute), Minute(number=minute))
    now = Minute(
        number=minute,
        calls=max(known.calls, calls),
        errors=max(known.errors, errors),
        timeouts=max(known.timeouts, timeouts),
    )
    others = [each for each in young if each.number != minute]
    return tuple(sorted([*others, now], key=lambda each: each.number))


def is_worth_writing(count: int) -> bool:
    """Return whether to store the n-th fault of a minute, or the n-th call while good ones are awaited."""
    return count <= CERTAIN or count % 10 == 0


def judged(seen: Seen, minute: int) -> tuple[GatewayStatus, GatewayReason | None] | None:
    """Return the gateway's state; None if there are too few calls to judge."""
    counted = [each for each in seen if each.number > minute - MINUTES]
    calls = sum(each.calls for each in counted)
    errors = sum(each.errors for each in counted)
    timeouts = sum(each.timeouts for each in counted)
    faults = errors + timeouts
    if not faults:
        return (GatewayStatus.OPERATIONAL, None) if calls >= ENOUGH_GOOD else None
    if calls < ENOUGH_CALLS:
        return None
    reason = GatewayReason.PROVIDER_TIMEOUT if timeouts > errors else GatewayReason.PROVIDER_ERRORS
    if 100 * faults >= DOWN_PERCENT * calls:
        return GatewayStatus.DOWN, reason
    if 100 * faults >= DEGRADED_PERCENT * calls:
        return GatewayStatus.DEGRADED, reason
    return GatewayStatus.OPERATIONAL, None


def is_set_by_hand(status: GatewayStatus, reason: GatewayReason | None) -> bool:
    """Return whether an operator set the status. Observations do not override it."""
    return status is not GatewayStatus.OPERATIONAL and reason in BY_HAND
