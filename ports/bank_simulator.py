"""The port of banks without money that are told what happens (docs/adapters.md)."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from .bank import Bank, InvoiceStatus, Notice, RefundStatus


class Pretence(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulated payer or bank shall do to an invoice."""

    status: InvoiceStatus
    amount_kopecks: int | None = None
    """With PAID: what comes in; None: what was asked."""
    failure: str | None = None
    payer_name: str | None = None
    silent: bool = False
    """The bank sends no notice: the service must find out by itself."""
    doubled: bool = False
    """The bank sends its notice twice."""
    again: bool = False
    """With PAID: a further transfer for an invoice that was paid already (else a repeat changes nothing)."""
    taken_back: bool = False
    """With PAID: what came is taken away again, and nothing comes."""


@runtime_checkable
class BankSimulator(Bank, Protocol):
    """A bank without money that can be told what to do."""

    async def pretend(self, operation: str, pretence: Pretence, *, reference: str | None = None) -> Sequence[Notice]:
        """Make it so, and return the notices that a real bank would now send. `reference`: the invoice's, where it is
        known; by it alone the bank hears of one that was drawn.

        Raises: Refused when there is no such invoice.
        """
        ...

    async def pretend_refund(
        self, operation: str, status: RefundStatus, failure: str | None = None
    ) -> Sequence[Notice]:
        """Let a refund stand so, and return the notices that a real bank would now send. PROCESSING holds it there.

        Raises: Refused when there is no such refund.
        """
        ...
