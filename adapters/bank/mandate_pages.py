"""What the pages of a simulated bank's pages hold of bindings and charges, beside what every page holds (pages.py)."""

from datetime import datetime

import msgspec

from ...ports.mandates import MandateStatus


class NextCharge(msgspec.Struct, frozen=True, kw_only=True):
    """What the bank answers to one charge (`MandateSimulator.pretend_next_charge`)."""

    result: str
    executed: bool = True
    taken_by: str | None = None
    """The operation of the charge that it is for, once there is one: a repeat meets the same answer, no other does."""


class BindingPart(msgspec.Struct, frozen=True, kw_only=True):
    """A binding and its mandate. The page's money is the first charge's; its end is the binding's."""

    token: str
    link_at: datetime | None
    """When the link is issued by itself; None: when somebody says so."""
    status: MandateStatus = MandateStatus.OPEN
    was_bound: bool = False
    """It was ACTIVE once, so the token was given out."""
    revoked: bool = False
    failure: str | None = None
    overdue: bool = False
    paid_before: str | None = None
    """With `overdue`: the charge that was paid before it; only another one clears it."""
    last_charge: str | None = None
    """The operation of the charge that was begun last; it may have got no page."""
    next_charge: NextCharge | None = None

    def __repr__(self) -> str:
        # The token is a secret.
        return f"<{self.status} mandate>"


class ChargePart(msgspec.Struct, frozen=True, kw_only=True):
    """A charge by a mandate. The page's money is what it debited."""

    binding: str
    """The operation of the binding that gave the mandate."""
    paid_at: datetime | None = None
    """When it is paid by itself, while in processing; None: when somebody says so."""
