"""Banks that list their booked operations, with which reconciliation compares ours (docs/reconciliation.md).

Optional: payments at a bank without a list are not compared, and `cambist reconcile` says so.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec

from .bank import Bank


class ReportedKind(StrEnum):
    """Kind of an entry."""

    PAYMENT = "payment"
    """Money from a payer: an invoice, the first charge of a binding, or a charge."""
    REFUND = "refund"
    """Money back to a payer."""
    PAYOUT = "payout"
    """A remittance: money sent to a person."""


class ReportedState(StrEnum):
    """State of an entry at the bank."""

    OPEN = "open"
    """Neither done nor failed yet."""
    DONE = "done"
    """The money moved, and has not come back."""
    FAILED = "failed"
    """No money moved, or it came back."""


class ReportedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One operation in the bank's list."""

    id: str
    """The bank's id, unique among entries of one kind."""
    kind: ReportedKind
    state: ReportedState
    moment: datetime
    """When the bank accepted the operation, by its clock: the entry keeps its position in the list, however late it
    ends."""
    amount_kopecks: int
    """With DONE: the total that was paid in or out. Otherwise the requested amount."""
    operation: str | None = None
    """The caller's operation id; None: the entry has none, or belongs to somebody else."""
    reference: str | None = None
    """For a payment: the `reference` that the adapter returned with the invoice, binding or charge. It distinguishes a
    second payment of one operation from the first; None if the bank cannot have a second one."""
    fee_kopecks: int | None = None
    """The provider's fee, if the list contains it."""


class ReportedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the list."""

    entries: tuple[ReportedEntry, ...]
    next_cursor: str | None = None
    """Cursor of the next page; None: this was the last one."""


class BookedList(Protocol):
    """The operations that a bank booked, separately for each owner of credentials."""

    @property
    def name(self) -> str:
        """Name of the bank."""
        ...

    def owners(self) -> Sequence[str]:
        """Return the owners of credentials: "" for the installation's own, otherwise the account, shop or terminal that
        has credentials (docs/adapters.md "Credentials of several merchants"). Makes no request."""
        ...

    def owner_of(self, reference: str) -> str:
        """Return the owner whose list contains an invoice, binding or charge of this reference. Payouts are in the list
        of "". Makes no request."""
        ...

    async def entries(self, owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        """Return the operations that the bank accepted with an owner's credentials, `since <= moment < until`, in any
        order and in their present state; with the cursor of a page, the next one. Entries without an amount (a binding
        that takes no money) may be missing. A read.

        Raises: Unavailable; NotConfigured when the bank does not accept the owner's credentials (any more).
        """
        ...


@runtime_checkable
class ReportingBank(BookedList, Bank, Protocol):
    """A bank that lists its booked operations itself."""
