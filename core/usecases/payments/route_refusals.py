"""Refusals when no bank takes a payment (docs/payments.md "When the answer is an error")."""

from collections.abc import Sequence

from ....ports.bank import Bank
from ....ports.bundle import Ports
from ...domain.accounts.accounts import Mode
from ...domain.errors import Refusal
from ...domain.money import Rub

_ROUTE_RETRY_AFTER = 30


def routeless(ports: Ports, mode: Mode) -> Refusal:
    """Return the refusal when no bank can take the payment: permanent, or until one is connected if the mode has no
    bank at all.
    """
    if ports.banks.order.get(mode.value):
        return no_route(away=False)
    return Refusal("PROVIDER_NOT_CONFIGURED", f"No bank is connected in {mode} mode yet")


def outside_limits(routes: Sequence[Bank]) -> Refusal:
    """Return the refusal of an amount that none of these banks takes in one invoice; it states their limits."""
    return Refusal("INVALID_AMOUNT", f"No bank takes this amount: amount_rub is {' or '.join(map(_limits, routes))}")


def _limits(bank: Bank) -> str:
    least, most = Rub(bank.capabilities.min_kopecks), bank.capabilities.max_kopecks
    return f"at least {least}" if most is None else f"{least} to {Rub(most)}"


def no_route(*, away: bool) -> Refusal:
    """Return the refusal when no bank takes the payment. With `away` it is temporary: a bank is unreachable or out of
    service.
    """
    if away:
        return Refusal(
            "PAYMENT_ROUTE_UNAVAILABLE",
            "No route could be reached; try again with the same Idempotency-Key",
            status=503,
            retry_after=_ROUTE_RETRY_AFTER,
        )
    return Refusal("PAYMENT_ROUTE_UNAVAILABLE", "No working route for this payment")
