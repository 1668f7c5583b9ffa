"""Banks that give a list of what they booked: what reconciliation compares ours with (docs/reconciliation.md).

Optional: a bank without it is compared with nobody's list, and `cambist reconcile` says so.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec

from .bank import Bank


class ReportedKind(StrEnum):
    """What an entry is about."""

    PAYMENT = "payment"
    """Money from a payer: of an invoice, of a binding's first charge, or of a charge."""
    REFUND = "refund"
    """Money back to a payer."""
    PAYOUT = "payout"
    """A remittance: money to a person."""


class ReportedState(StrEnum):
    """How the bank sees it."""

    OPEN = "open"
    """Neither of the others yet."""
    DONE = "done"
    """The money moved, and stays where it went."""
    FAILED = "failed"
    """No money moved, or what moved is back."""


class ReportedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One operation in the bank's list."""

    id: str
    """The bank's; no two of one kind have the same."""
    kind: ReportedKind
    state: ReportedState
    moment: datetime
    """When the bank took it up, by its clock: an entry that ends later keeps its place in the list."""
    amount_kopecks: int
    """DONE: what came in all, or went. Else what was asked for."""
    operation: str | None = None
    """The caller's; None: the entry does not say, or is none of the caller's."""
    reference: str | None = None
    """Of a payment: `reference` as the adapter gave it out with the invoice, binding or charge. By it a second payment
    of one operation is told from the first; None where the bank can have no second."""
    fee_kopecks: int | None = None
    """What the provider keeps of it, where the list says so."""


class ReportedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the list."""

    entries: tuple[ReportedEntry, ...]
    next_cursor: str | None = None
    """Gives the next part; None: this was the last."""


@runtime_checkable
class ReportingBank(Bank, Protocol):
    """A bank that lists what it booked, of each owner of credentials by itself."""

    def owners(self) -> Sequence[str]:
        """Whose credentials there are: "" for the installation's own, else the account, shop or terminal that has some
        (docs/adapters.md "Credentials of several merchants"). Asks nobody."""
        ...

    def owner_of(self, reference: str) -> str:
        """In whose list an invoice, binding or charge of this reference is. Payouts are in that of "". Asks nobody."""
        ...

    async def entries(self, owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        """What the bank took up with an owner's credentials, `since <= moment < until`, in whatever order, in whatever
        state it is by now; with the cursor of a page, the next one. What has no amount (a binding that takes no money)
        may be missing. A read.

        Raises: Unavailable; NotConfigured where the bank does not take the owner's credentials (any more).
        """
        ...
