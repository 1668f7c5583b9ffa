"""Gateways: the service's ways to a payer's bank, and how each is (docs/webhooks.md "Gateways").

A gateway is a bank route; its id is the bank's name, which never changes.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

HELD_FOR = timedelta(seconds=60)
"""How long a change must hold before it is announced: what comes back sooner is announced to nobody."""


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
"""The reasons that an operator gives. A gateway that is down for one of them gets no new payments."""


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """How a gateway is, once it was ever set. Its id is the bank's name; of what one account simulates in test mode,
    see `own_id`, which nobody else ever meets."""

    id: str
    status: GatewayStatus = GatewayStatus.OPERATIONAL
    reason: GatewayReason | None = None
    since: datetime | None = None
    """When it last changed; null while it never did."""
    announced: GatewayStatus = GatewayStatus.OPERATIONAL
    """What receivers were last told."""
    sequence: int = 0
    """Rises by one with every announcement."""
    version: int = 0

    @property
    def takes_payments(self) -> bool:
        """Down by hand it does not. Down by what was observed it still does: how else would it be seen to be back."""
        return self.status is not GatewayStatus.DOWN or self.reason not in BY_HAND


class GatewayCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many events about a gateway an account was told: X-Webhook-Sequence of the last. Its id is `own_id`, once the
    account was told the first."""

    id: str
    told: int
    version: int = 0


def own_id(account_id: str, gateway_id: str) -> str:
    """The id of what is one account's of a gateway: how it simulates it in test mode, and the count of its events."""
    return f"{account_id}/{gateway_id}"


def changed(gateway: Gateway, status: GatewayStatus, reason: GatewayReason | None, now: datetime) -> Gateway:
    """The gateway in another status, or in the same one for another reason. Operational has no reason."""
    if status is GatewayStatus.OPERATIONAL:
        reason = None
    since = gateway.since if status is gateway.status else now
    return msgspec.structs.replace(gateway, status=status, reason=reason, since=since)


def announced(gateway: Gateway) -> Gateway:
    """The gateway once receivers are told how it is."""
    return msgspec.structs.replace(gateway, announced=gateway.status, sequence=gateway.sequence + 1)
