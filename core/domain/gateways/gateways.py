"""Gateways: the service's routes to banks, and their state (docs/webhooks.md "Gateways").

A gateway is a bank route; its id is the bank's name, which never changes.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

HELD_FOR = timedelta(seconds=60)
"""How long a change must last before it is announced: a shorter outage is not announced."""


class GatewayStatus(StrEnum):
    OPERATIONAL = "operational"
    DEGRADED = "degraded"
    DOWN = "down"


class GatewayReason(StrEnum):
    PROVIDER_ERRORS = "provider_errors"
    PROVIDER_TIMEOUT = "provider_timeout"
    MAINTENANCE = "maintenance"
    OPERATOR = "operator"


BY_HAND = (GatewayReason.MAINTENANCE, GatewayReason.OPERATOR)
"""Reasons that an operator sets. A gateway that is down for one of them gets no new payments."""


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """State of a gateway, once it was ever set. Its id is the bank's name; for a state that one account simulates in
    test mode see `own_id`: other accounts never see that."""

    id: str
    status: GatewayStatus = GatewayStatus.OPERATIONAL
    reason: GatewayReason | None = None
    since: datetime | None = None
    """When it last changed; null if it never did."""
    announced: GatewayStatus = GatewayStatus.OPERATIONAL
    """Last status sent to receivers."""
    sequence: int = 0
    """Rises by one with every announcement."""
    version: int = 0

    @property
    def takes_payments(self) -> bool:
        """A gateway that an operator marked down gets no payments. One marked down because of observed failures still
        does. Otherwise its recovery would go unnoticed."""
        return self.status is not GatewayStatus.DOWN or self.reason not in BY_HAND


class GatewayCount(msgspec.Struct, frozen=True, kw_only=True):
    """Number of events about a gateway sent to an account: X-Webhook-Sequence of the last. Its id is `own_id`; it
    exists from the first event on."""

    id: str
    told: int
    version: int = 0


def own_id(account_id: str, gateway_id: str) -> str:
    """Return the id of an account's own records about a gateway: its simulated state in test mode, and the count of
    events."""
    return f"{account_id}/{gateway_id}"


def changed(gateway: Gateway, status: GatewayStatus, reason: GatewayReason | None, now: datetime) -> Gateway:
    """Return the gateway with another status, or the same one with another reason. Operational has no reason."""
    if status is GatewayStatus.OPERATIONAL:
        reason = None
    since = gateway.since if status is gateway.status else now
    return msgspec.structs.replace(gateway, status=status, reason=reason, since=since)


def announced(gateway: Gateway) -> Gateway:
    """Return the gateway after receivers were notified of its status."""
    return msgspec.structs.replace(gateway, announced=gateway.status, sequence=gateway.sequence + 1)
