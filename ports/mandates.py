"""Mandates in the bank's own words: a payer binds once, and is then charged without being asked again.

As in ports/bank.py: every writing call carries an operation id chosen and stored by the caller before the call, a
repeat with the same id is the same operation, and the faults are those of ports/faults.py. A bank that is no
MandateBank binds nobody; one that is may say in its BankCapabilities that it does not bind, or not charge, at present.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec

from .bank import Bank, InvoiceKind, Notice, Transfer
from .receipts import Receipt


class BindingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ask a payer for a mandate. `operation` is the caller's own id of this attempt, not the binding payment's."""

    operation: str
    first_charge_kopecks: int | None
    """The binding takes this as its first charge. None: it takes nothing; the payer confirms a symbolic QR of 1 RUB
    that is not debited (docs/subscriptions.md "How the payer binds")."""
    purpose: str
    expires_at: datetime
    """A wish: who has not confirmed by then finds the binding CLOSED."""
    return_url: str | None = None
    """Where the payer comes back from a page of the provider, confirmed or not: our page of the subscription."""
    account: str | None = None
    """Whose subscription it is, as `InvoiceRequest` has it."""
    shop: str | None = None
    terminal: str | None = None
    receipt: Receipt | None = None
    """Of the first charge, as `InvoiceRequest` has it."""


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """A binding at the bank. `reference` is the bank's id of it, and of the mandate that it gives."""

    reference: str
    link: str | None
    """Where the payer confirms. None: not issued (`BankCapabilities.mandate_links_later`)."""
    payload: str | None
    """What the QR says, where the link's `kind` has one; there when the link is."""
    kind: InvoiceKind = InvoiceKind.QR
    """Where the link leads."""
    check_after: float | None = None
    """Seconds after which asking for the state is worthwhile, for providers that send no notice."""


class MandateStatus(StrEnum):
    """How the bank sees a binding, and then the mandate that it gave."""

    OPEN = "open"
    """It waits for the link, or for the payer."""
    ACTIVE = "active"
    """The payer confirmed: it can be charged."""
    REFUSED = "refused"
    """The payer or the bank would not. Money may have come all the same: paid, and not bound."""
    CLOSED = "closed"
    """The payment system gave no link, or closed the binding before the payer confirmed."""
    LOST = "lost"
    """The token is no longer accepted: switched off, bank changed. It may be ACTIVE again."""
    ENDED = "ended"
    """The payer's consent ended, or was revoked by us: for good."""


class MandateState(msgspec.Struct, frozen=True, kw_only=True):
    """All the bank knows of a binding and its mandate.

    Mandate and first charge come independently, in any order: ACTIVE without transfers means that the money of a
    binding with a first charge is still to come, OPEN with transfers that the mandate is.
    """

    reference: str
    status: MandateStatus
    link: str | None = None
    payload: str | None = None
    kind: InvoiceKind = InvoiceKind.QR
    """Of the link, as `Binding` has them."""
    token: str | None = None
    """What the mandate is charged by, from ACTIVE on: a secret."""
    overdue: bool = False
    """A charge is overdue at the bank (docs/subscriptions.md "When the mandate is lost")."""
    transfers: tuple[Transfer, ...] = ()
    """Of the first charge. Its money goes back by `Bank.refund`, with `reference`."""
    failure: str | None = None
    """With REFUSED: a failure reason of docs/payments.md "What you get"."""
    check_after: float | None = None
    """Seconds after which asking again is worthwhile, as long as the binding is open. None: as
    `BankCapabilities.sends_notices` says."""

    def __repr__(self) -> str:
        # The token is a secret, and transfers name payers.
        return f"<{self.status} mandate {self.reference}>"


class ChargeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Charge a mandate. `operation` is the payment's row id at the caller. Providers go by `reference` or `token`."""

    operation: str
    reference: str
    """The binding's, as `Binding.reference` gave it."""
    token: str
    """As `MandateState.token` gave it."""
    amount_kopecks: int
    purpose: str
    receipt: Receipt | None = None
    """As `InvoiceRequest` has it."""

    def __repr__(self) -> str:
        return f"<charge {self.operation} of {self.amount_kopecks} kopecks by mandate {self.reference}>"


class ChargeStatus(StrEnum):
    """How the bank sees a charge."""

    PROCESSING = "processing"
    PAID = "paid"
    FAILED = "failed"
    """For good; no money moved."""


MANDATE_REVOKED = "mandate_revoked"
"""The failure of a charge whose mandate the bank does not accept any more
(docs/subscriptions.md "When a charge is refused")."""


class ChargeState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a charge stands. Its money goes back by `Bank.refund`, with `reference`."""

    reference: str
    status: ChargeStatus
    failure: str | None = None
    """With FAILED: a failure reason of docs/payments.md "What you get"."""
    transfer: Transfer | None = None
    """With PAID."""
    check_after: float | None = None
    """Seconds after which asking again is worthwhile, for providers that send no notice."""

    def __repr__(self) -> str:
        # The transfer names the payer.
        return f"<{self.status} charge {self.reference}>"


@runtime_checkable
class MandateBank(Bank, Protocol):
    """A bank whose payers can bind. Every call raises NotSupported without `BankCapabilities.mandates`."""

    async def bind(self, request: BindingRequest) -> Binding:
        """Open a binding. Idempotent by `request.operation`; a repeat has the link if it was issued by then.

        Raises: Refused (`amount`: a first charge of not more than nothing); OutcomeUnknown; Unavailable.
        """
        ...

    async def find_binding(self, operation: str) -> Binding | None:
        """The binding that this operation id made, or None when the bank never saw the operation. A read."""
        ...

    async def mandate_state(self, reference: str) -> MandateState:
        """Where the binding and its mandate stand now. A read. Raises: Refused when there is none; Unavailable."""
        ...

    async def charge(self, request: ChargeRequest) -> ChargeState:
        """Charge the mandate. Idempotent by `request.operation`: a repeat answers with the present state and never
        debits again, whatever else it says.

        What the payer's bank will not do is FAILED, with its reason; a mandate that is LOST or ENDED fails with
        MANDATE_REVOKED.
        Raises: Refused, there is no charge: `not_found` (no such mandate, or not its token), `amount` (not above
        zero), or another word of the provider's; OutcomeUnknown, the debit may have passed; Unavailable; NotConfigured
        without `BankCapabilities.mandate_charges`.
        """
        ...

    async def find_charge(self, operation: str) -> ChargeState | None:
        """Where the charge of this operation id stands now, or None when the bank never saw the operation, or refused
        it. A read."""
        ...

    async def revoke(self, reference: str) -> None:
        """End the mandate, or a binding that is still open. Idempotent; over what is at an end it changes nothing.

        A payer who was confirming may have paid all the same: the state tells. Providers without such a call remember
        it, and refuse charges themselves.
        Raises: Refused when there is none; OutcomeUnknown and Unavailable, after which it is to be repeated.
        """
        ...


class MandateEvent(StrEnum):
    """What payers and banks do to mandates. What test mode plays is spelled as the sandbox's outcomes
    (docs/sandbox.md "The calls")."""

    CONFIRM = "confirm"
    """The payer confirms: the first charge is paid, and the mandate ACTIVE."""
    REFUSE = "refuse"
    LINK_READY = "link_ready"
    """A link that was to come later is issued."""
    NO_LINK = "no_link"
    """The payment system closes the binding; no link will come."""
    MANDATE_LOST = "mandate_lost"
    MANDATE_RESTORED = "mandate_restored"
    PAST_DUE = "past_due"
    PAST_DUE_CLEARED = "past_due_cleared"
    CONSENT_ENDED = "consent_ended"
    PAID = "paid"
    """Of a confirmation the first half: the first charge's money came. With BOUND, in any order, it is CONFIRM."""
    BOUND = "bound"
    """Of a confirmation the second half: the mandate is ACTIVE."""
    PAID_NOT_BOUND = "paid_not_bound"
    """The payer paid the first charge and did not give the mandate."""


class MandatePretence(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulated payer or bank shall do to a binding or its mandate."""

    event: MandateEvent
    failure: str | None = None
    """With REFUSE."""
    payer_name: str | None = None
    """With money."""
    silent: bool = False
    """The bank sends no notice: the service must find out by itself."""
    doubled: bool = False
    """The bank sends its notices twice."""


class ChargePretence(msgspec.Struct, frozen=True, kw_only=True):
    """What shall become of a charge in processing. PROCESSING holds it there until told otherwise."""

    status: ChargeStatus
    failure: str | None = None
    """With FAILED."""
    payer_name: str | None = None
    """With PAID."""
    silent: bool = False
    doubled: bool = False


NEXT_PAID = "paid"
"""In processing for a moment, then paid."""
NEXT_PENDING = "pending"
"""In processing until told otherwise."""
NEXT_UNAVAILABLE = "unavailable"
"""OutcomeUnknown: the debit may have passed."""


@runtime_checkable
class MandateSimulator(MandateBank, Protocol):
    """A bank without money whose mandates can be told what to do."""

    async def pretend_mandate(self, operation: str, pretence: MandatePretence) -> Sequence[Notice]:
        """Make it so with the binding of this operation, and return the notices that a real bank would now send: one
        for the money and one for the mandate, where both come.

        Raises: Refused when there is no such binding; ValueError for money of a binding without a first charge.
        """
        ...

    async def pretend_next_charge(self, operation: str, result: str, *, executed: bool = True) -> None:
        """What the bank answers to the next charge by the mandate of this binding operation: NEXT_PAID, NEXT_PENDING,
        NEXT_UNAVAILABLE, or the failure reason that it fails with. The last wish counts, and once.

        `executed`: whether NEXT_UNAVAILABLE debits all the same, as a repeat and `find_charge` then tell.
        Raises: Refused when there is no such binding.
        """
        ...

    async def pretend_charge(self, operation: str, pretence: ChargePretence) -> Sequence[Notice]:
        """Let a charge in processing stand so, and return the notices that a real bank would now send. One that has
        ended stays as it is. Raises: Refused when there is no such charge."""
        ...
