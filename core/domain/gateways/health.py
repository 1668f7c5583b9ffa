"""How a gateway does, judged from the answers of its bank (docs/webhooks.md "Gateways": `provider_errors`,
`provider_timeout`)."""

import msgspec

from .gateways import BY_HAND, GatewayReason, GatewayStatus

MINUTES = 3
"""How far back answers count. Only minutes with a fault are remembered, so that a bank that is well writes nothing."""
ENOUGH_CALLS = 10
"""Below so many calls nobody is judged."""
ENOUGH_GOOD = 3
"""Answers in a row, after all faults are too old, that show a quiet gateway to be back."""
DEGRADED_PERCENT = 20
"""Faults among the calls from which on a gateway is degraded."""
DOWN_PERCENT = 80
TRIALS = 5
"""Payments in a minute that are still tried at a gateway that was judged down, so that it is seen to be back."""
CERTAIN = 20
"""Faults of a minute that are each written down; beyond them, and of good answers, every tenth is enough."""


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway's calls came to in one minute, as far as it was written down."""

    number: int
    """Minutes since 1970."""
    calls: int = 0
    errors: int = 0
    timeouts: int = 0


Seen = tuple[Minute, ...]
"""The minutes that count, the oldest first."""


def with_counts(seen: Seen, minute: int, *, calls: int, errors: int = 0, timeouts: int = 0) -> Seen:
    """Take what was counted in a minute so far. Counts only rise, so those that come late change nothing."""
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
    """Whether the n-th fault of a minute, or the n-th call where somebody waits for good ones, is written down."""
    return count <= CERTAIN or count % 10 == 0


def judged(seen: Seen, minute: int) -> tuple[GatewayStatus, GatewayReason | None] | None:
    """How the gateway is; None while there is too little to tell by."""
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
    """What an operator says is not overruled by what is observed."""
    return status is not GatewayStatus.OPERATIONAL and reason in BY_HAND
