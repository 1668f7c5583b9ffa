"""RUB from the service to a person's phone and bank by SBP, in the words of a bank.

Not every Bank remits. Who does is a RemittanceBank and says so in its BankCapabilities, with the most that one
remittance may be; more than that goes in several, each an operation of its own.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, TypeGuard, runtime_checkable

import msgspec

from .bank import Bank, Notice
from .faults import NotSupported


class RemittanceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Send money to a person. `operation` is the caller's id of it. Its repr hides the phone."""

    operation: str
    phone: str
    """E.164: `+` and 10 to 15 digits."""
    bank_id: str
    """`bank<digits>`: the bank where the phone's owner shall get it."""
    amount_kopecks: int

    def __repr__(self) -> str:
        return f"<remittance {self.operation} of {self.amount_kopecks} kopecks>"


class RemittanceStatus(StrEnum):
    """How the bank sees a remittance."""

    PROCESSING = "processing"
    DONE = "done"
    """The person has the money."""
    FAILED = "failed"
    """For good; the money did not go."""


class RemittanceState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a remittance stands. `failure` is the provider's reason, with FAILED."""

    status: RemittanceStatus
    failure: str | None = None
    check_after: float | None = None
    """Seconds after which asking again is worthwhile, for providers that send no notice."""


@runtime_checkable
class RemittanceBank(Bank, Protocol):
    """A bank that also sends RUB to people. Its `Notice` may name a remittance's operation."""

    async def remit(self, request: RemittanceRequest) -> RemittanceState:
        """Send the money. Idempotent by `request.operation`: a repeat answers with the present state and moves no
        second money.

        Raises: Refused, no money moved: `amount` (not above zero, or above `remittance_max_kopecks`), `recipient`
        (no such phone or bank), `operation` (the repeat asks for something else), or another word of the provider's;
        OutcomeUnknown; Unavailable; NotConfigured; NotSupported. That our own balance at the provider is too small, or
        a receiver's limit of the day is reached, is Unavailable, with `retry_after` where it is known: the client did
        nothing wrong, and the money goes once there is some (docs/adapters.md "When the provider fails").
        """
        ...

    async def find_remittance(self, operation: str) -> RemittanceState | None:
        """Where the remittance of this operation id stands now, or None when the bank never saw the operation, or
        refused it. A read."""
        ...


@runtime_checkable
class RemittanceSimulator(RemittanceBank, Protocol):
    """A bank without money whose remittances can be told what to do."""

    async def pretend_remittance(
        self, operation: str, status: RemittanceStatus, failure: str | None = None
    ) -> Sequence[Notice]:
        """Let a remittance stand so, and return the notices that a real bank would now send. PROCESSING holds it
        there; one that is done or failed stays so.

        Raises: Refused when there is no such remittance.
        """
        ...


def remits(bank: Bank) -> TypeGuard[RemittanceBank]:
    """Whether the bank sends money to people at present."""
    return bank.capabilities.remittances and isinstance(bank, RemittanceBank)


def remitting(bank: Bank) -> RemittanceBank:
    """The bank as one that remits. Raises: NotSupported when it is none, or says that it does not at present."""
    if not remits(bank):
        raise NotSupported(f"{bank.name} sends no money to people")
    return bank
