"""RUB from the service to a person's phone and bank by SBP.

Not every Bank remits. A bank that does is a RemittanceBank and says so in its BankCapabilities, with the largest amount
of one remittance; a larger sum is split into several, each an operation of its own.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, TypeGuard, runtime_checkable

import msgspec

from .bank import Bank, Notification
from .faults import NotSupported


class RemittanceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to send money to a person. `operation` is the caller's id of it. Its repr hides the phone."""

    operation: str
    phone: str
    """E.164: `+` and 10 to 15 digits."""
    bank_id: str
    """`bank<digits>`: the bank at which the phone's owner receives the money."""
    amount_kopecks: int

    def __repr__(self) -> str:
        return f"<remittance {self.operation} of {self.amount_kopecks} kopecks>"


class RemittanceStatus(StrEnum):
    """State of a remittance at the bank."""

    PROCESSING = "processing"
    DONE = "done"
    """The person has the money."""
    FAILED = "failed"
    """Final; the money did not move."""


class RemittanceState(msgspec.Struct, frozen=True, kw_only=True):
    """State of a remittance. With FAILED, `failure` is the provider's reason."""

    status: RemittanceStatus
    failure: str | None = None
    check_after: float | None = None
    """Seconds until the next poll is worthwhile, for providers that send no notifications."""


@runtime_checkable
class RemittanceBank(Bank, Protocol):
    """A bank that also sends RUB to people. Its `Notification` may name a remittance's operation."""

    async def remit(self, request: RemittanceRequest) -> RemittanceState:
        """Send the money. Idempotent by `request.operation`: a repeat returns the present state and never moves money
        again.

        Raises: Refused, no money moved: `amount` (not above zero, or above `remittance_max_kopecks`), `recipient` (no
        such phone or bank), `operation` (the repeat has different data), or another reason of the provider;
        OutcomeUnknown; Unavailable; NotConfigured; NotSupported. If our own balance at the provider is too small, or
        the recipient's daily limit is reached, it raises Unavailable, with `retry_after` if known: the client did
        nothing wrong, and the money is sent later (docs/adapters.md "When the provider fails").
        """
        ...

    async def find_remittance(self, operation: str) -> RemittanceState | None:
        """Return the present state of the remittance with this operation id, or None when the bank never saw the
        operation or refused it. A read."""
        ...


@runtime_checkable
class RemittanceSimulator(RemittanceBank, Protocol):
    """A simulated bank without money, whose remittances tests control."""

    async def simulate_remittance(
        self, operation: str, status: RemittanceStatus, failure: str | None = None
    ) -> Sequence[Notification]:
        """Put a remittance into this state, and return the notifications that a real bank would now send. PROCESSING
        keeps it there; a finished remittance does not change.

        Raises: Refused when there is no such remittance.
        """
        ...


def remits(bank: Bank) -> TypeGuard[RemittanceBank]:
    """Return whether the bank sends money to people at present."""
    return bank.capabilities.remittances and isinstance(bank, RemittanceBank)


def remitting(bank: Bank) -> RemittanceBank:
    """Return the bank as a RemittanceBank. Raises: NotSupported when it is not one, or does not remit at present."""
    if not remits(bank):
        raise NotSupported(f"{bank.name} sends no money to people")
    return bank
