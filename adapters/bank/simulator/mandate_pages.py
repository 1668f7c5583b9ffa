"""Binding and charge parts of a simulated bank's records. pages.py defines the fields that all records share."""

from datetime import datetime

import msgspec

from ....ports.mandates import MandateStatus


class NextCharge(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one future charge (`MandateSimulator.simulate_next_charge`)."""

    result: str
    executed: bool = True
    taken_by: str | None = None
    """Operation of the first charge that used this result. Its repeats get the same result; other charges do not."""


class BindingPart(msgspec.Struct, frozen=True, kw_only=True):
    """A binding and its mandate. The record's money is the first charge's, and its expiry is the binding's."""

    token: str
    link_at: datetime | None
    """When the link is issued by itself; None: only after a simulated event."""
    status: MandateStatus = MandateStatus.OPEN
    was_bound: bool = False
    """The binding was ACTIVE once, so its token has been handed out."""
    revoked: bool = False
    failure: str | None = None
    overdue: bool = False
    paid_before: str | None = None
    """Used with `overdue`: the last charge that was paid when the mandate became overdue. Only a later paid charge
    clears the flag."""
    last_charge: str | None = None
    """Operation of the charge that was begun last. That charge may have no record."""
    next_charge: NextCharge | None = None

    def __repr__(self) -> str:
        # The token is a secret.
        return f"<{self.status} mandate>"


class ChargePart(msgspec.Struct, frozen=True, kw_only=True):
    """A charge by a mandate. The record's money is the debited amount."""

    binding: str
    """Operation of the binding that created the mandate."""
    paid_at: datetime | None = None
    """When a charge in processing is paid by itself; None: only after a simulated event."""
