"""The port of simulated banks without money (docs/adapters.md)."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from .bank import Bank, InvoiceStatus, Notification, RefundStatus


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated action of the payer or bank on an invoice."""

    status: InvoiceStatus
    amount_kopecks: int | None = None
    """Set with PAID: the amount that comes in; None: the requested amount."""
    failure: str | None = None
    payer_name: str | None = None
    silent: bool = False
    """The bank sends no notification: the service must find out by polling."""
    doubled: bool = False
    """The bank sends its notification twice."""
    again: bool = False
    """With PAID: a further transfer for an invoice that is already paid (otherwise a repeat changes nothing)."""
    taken_back: bool = False
    """With PAID: the payer's bank takes the earlier transfer back, and no new one comes."""


@runtime_checkable
class BankSimulator(Bank, Protocol):
    """A simulated bank without money that tests control."""

    async def simulate(
        self, operation: str, simulation: Simulation, *, reference: str | None = None
    ) -> Sequence[Notification]:
        """Apply the action, and return the notifications that a real bank would now send. `reference`: the invoice's,
        if known; the bank needs it for an invoice that was created without a request.

        Raises: Refused when there is no such invoice.
        """
        ...

    async def simulate_refund(
        self, operation: str, status: RefundStatus, failure: str | None = None
    ) -> Sequence[Notification]:
        """Put a refund into this state, and return the notifications that a real bank would now send. PROCESSING keeps
        it there.

        Raises: Refused when there is no such refund.
        """
        ...
