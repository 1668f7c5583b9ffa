"""Mandates at a bank: a payer binds once, and later charges need no confirmation.

As in ports/bank.py: every writing call carries an operation id that the caller chose and stored before the call, a
repeat with the same id is the same operation, and the faults are those of ports/faults.py. A bank that is not a
MandateBank cannot bind; a MandateBank may state in its BankCapabilities that binding or charging is off at present.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec

from .bank import Bank, InvoiceKind, Notification, Transfer
from .receipts import Receipt


class BindingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a mandate from a payer. `operation` is the caller's id of this attempt, not the binding
    payment's."""

    operation: str
    first_charge_kopecks: int | None
    """Amount of the first charge, taken by the binding. None: the binding takes no money; the payer confirms a symbolic
    QR of 1 RUB that is not debited (docs/subscriptions.md "How the payer binds")."""
    purpose: str
    expires_at: datetime
    """A wish: if the payer has not confirmed by then, the binding becomes CLOSED."""
    return_url: str | None = None
    """Where a page of the provider sends the payer afterwards, confirmed or not: our page of the subscription."""
    account: str | None = None
    """Owner of the subscription, as in `InvoiceRequest`."""
    shop: str | None = None
    terminal: str | None = None
    receipt: Receipt | None = None
    """Receipt of the first charge, as in `InvoiceRequest`."""


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """A binding at the bank. `reference` is the bank's id of the binding and of the mandate that results from it."""

    reference: str
    link: str | None
    """Where the payer confirms. None: not issued yet (`BankCapabilities.mandate_links_later`)."""
    payload: str | None
    """Content of the QR code, if the link's `kind` has one; it is set whenever the link is."""
    kind: InvoiceKind = InvoiceKind.QR
    """Destination of the link."""
    check_after: float | None = None
    """Seconds until the first poll is worthwhile, for providers that send no notifications."""


class MandateStatus(StrEnum):
    """State of a binding, and then of its mandate, at the bank."""

    OPEN = "open"
    """Waiting for the link or for the payer."""
    ACTIVE = "active"
    """The payer confirmed: the mandate can be charged."""
    REFUSED = "refused"
    """The payer or the bank refused. The first charge may still have been paid: paid, but not bound."""
    CLOSED = "closed"
    """The payment system issued no link, or closed the binding before the payer confirmed."""
    LOST = "lost"
    """The bank no longer accepts the token: switched off, or the payer changed banks. It may become ACTIVE again."""
    ENDED = "ended"
    """The payer's consent ended, or we revoked the mandate. Final."""


class MandateState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the bank knows about a binding and its mandate.

    Mandate and first charge arrive independently, in any order: ACTIVE without transfers means that the money of a
    binding with a first charge is still to come; OPEN with transfers means that the mandate is.
    """

    reference: str
    status: MandateStatus
    link: str | None = None
    payload: str | None = None
    kind: InvoiceKind = InvoiceKind.QR
    """Destination of the link; `link`, `payload` and `kind` are as in `Binding`."""
    token: str | None = None
    """Token for charges of the mandate, set from ACTIVE on: a secret."""
    overdue: bool = False
    """A charge is overdue at the bank (docs/subscriptions.md "When the mandate is lost")."""
    transfers: tuple[Transfer, ...] = ()
    """Transfers of the first charge. `Bank.refund` returns this money, with `reference`."""
    failure: str | None = None
    """With REFUSED: a failure reason of docs/payments.md "What you get"."""
    check_after: float | None = None
    """Seconds until the next poll is worthwhile while the binding is open. None: `BankCapabilities.sends_notifications`
    decides."""

    def __repr__(self) -> str:
        # The token is a secret, and transfers name payers.
        return f"<{self.status} mandate {self.reference}>"


class ChargeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to charge a mandate. `operation` is the payment's row id at the caller. Providers use `reference` or
    `token`."""

    operation: str
    reference: str
    """Reference of the binding, from `Binding.reference`."""
    token: str
    """Token from `MandateState.token`."""
    amount_kopecks: int
    purpose: str
    receipt: Receipt | None = None
    """Receipt, as in `InvoiceRequest`."""

    def __repr__(self) -> str:
        return f"<charge {self.operation} of {self.amount_kopecks} kopecks by mandate {self.reference}>"


class ChargeStatus(StrEnum):
    """State of a charge at the bank."""

    PROCESSING = "processing"
    PAID = "paid"
    FAILED = "failed"
    """Final; no money moved."""


MANDATE_REVOKED = "mandate_revoked"
"""Failure of a charge whose mandate the bank no longer accepts (docs/subscriptions.md "When a charge is refused")."""


class ChargeState(msgspec.Struct, frozen=True, kw_only=True):
    """State of a charge. `Bank.refund` returns its money, with `reference`."""

    reference: str
    status: ChargeStatus
    failure: str | None = None
    """With FAILED: a failure reason of docs/payments.md "What you get"."""
    transfer: Transfer | None = None
    """Set with PAID."""
    check_after: float | None = None
    """Seconds until the next poll is worthwhile, for providers that send no notifications."""

    def __repr__(self) -> str:
        # The transfer names the payer.
        return f"<{self.status} charge {self.reference}>"


@runtime_checkable
class MandateBank(Bank, Protocol):
    """A bank whose payers can bind. Every call raises NotSupported without `BankCapabilities.mandates`."""

    async def bind(self, request: BindingRequest) -> Binding:
        """Open a binding. Idempotent by `request.operation`; a repeat includes the link if it has been issued by then.

        Raises: Refused (`amount`: a first charge that is not above zero); OutcomeUnknown; Unavailable.
        """
        ...

    async def find_binding(self, operation: str) -> Binding | None:
        """Return the binding that this operation id created, or None when the bank never saw the operation. A read."""
        ...

    async def mandate_state(self, reference: str) -> MandateState:
        """Return the present state of the binding and its mandate. A read. Raises: Refused when there is none;
        Unavailable."""
        ...

    async def charge(self, request: ChargeRequest) -> ChargeState:
        """Charge the mandate. Idempotent by `request.operation`: a repeat returns the present state and never debits
        again, even if its other fields differ.

        If the payer's bank declines, the charge is FAILED, with the reason; if the mandate is LOST or ENDED, the reason
        is MANDATE_REVOKED.

        Raises: Refused, there is no charge: `not_found` (no such mandate, or a wrong token), `amount` (not above zero),
        or another reason of the provider; OutcomeUnknown, the debit may have happened; Unavailable; NotConfigured
        without `BankCapabilities.mandate_charges`.
        """
        ...

    async def find_charge(self, operation: str) -> ChargeState | None:
        """Return the present state of the charge with this operation id, or None when the bank never saw the operation
        or refused it. A read."""
        ...

    async def revoke(self, reference: str) -> None:
        """End the mandate, or a binding that is still open. Idempotent; a mandate that has ended does not change.

        A payer who was confirming at that moment may still have paid: read the state. For a provider without such a
        call the adapter records the revocation and refuses charges itself.

        Raises: Refused when there is none; OutcomeUnknown and Unavailable, after which the caller must repeat the call.
        """
        ...


class MandateEvent(StrEnum):
    """Actions of payers and banks on mandates. Actions that test mode simulates have the names of the sandbox's
    outcomes (docs/sandbox.md "The calls")."""

    CONFIRM = "confirm"
    """The payer confirms: the first charge is paid, and the mandate becomes ACTIVE."""
    REFUSE = "refuse"
    LINK_READY = "link_ready"
    """The payment system issues a delayed link."""
    NO_LINK = "no_link"
    """The payment system closes the binding; no link will come."""
    MANDATE_LOST = "mandate_lost"
    MANDATE_RESTORED = "mandate_restored"
    PAST_DUE = "past_due"
    PAST_DUE_CLEARED = "past_due_cleared"
    CONSENT_ENDED = "consent_ended"
    PAID = "paid"
    """First half of a confirmation: the money of the first charge came. PAID and BOUND, in any order, equal CONFIRM."""
    BOUND = "bound"
    """Second half of a confirmation: the mandate becomes ACTIVE."""
    PAID_NOT_BOUND = "paid_not_bound"
    """The payer paid the first charge and did not give the mandate."""


class MandateSimulation(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated action of the payer or bank on a binding or its mandate."""

    event: MandateEvent
    failure: str | None = None
    """Set with REFUSE."""
    payer_name: str | None = None
    """Set with money."""
    silent: bool = False
    """The bank sends no notification: the service must find out by polling."""
    doubled: bool = False
    """The bank sends each notification twice."""


class ChargeSimulation(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a charge in processing. PROCESSING keeps it there until the next call."""

    status: ChargeStatus
    failure: str | None = None
    """Set with FAILED."""
    payer_name: str | None = None
    """Set with PAID."""
    silent: bool = False
    doubled: bool = False


NEXT_PAID = "paid"
"""Briefly in processing, then paid."""
NEXT_PENDING = "pending"
"""In processing until a test changes it."""
NEXT_UNAVAILABLE = "unavailable"
"""OutcomeUnknown: the debit may have happened."""


@runtime_checkable
class MandateSimulator(MandateBank, Protocol):
    """A simulated bank without money, whose mandates tests control."""

    async def simulate_mandate(self, operation: str, simulation: MandateSimulation) -> Sequence[Notification]:
        """Apply the action to the binding of this operation, and return the notifications that a real bank would now
        send: one for the money and one for the mandate, if both result.

        Raises: Refused when there is no such binding; ValueError for money of a binding without a first charge.
        """
        ...

    async def simulate_next_charge(self, operation: str, result: str, *, executed: bool = True) -> None:
        """Set the bank's answer to the next charge by the mandate of this binding operation: NEXT_PAID, NEXT_PENDING,
        NEXT_UNAVAILABLE, or a failure reason. Only the last call counts, for one charge.

        `executed`: whether NEXT_UNAVAILABLE debits anyway, as a repeat and `find_charge` will then show. Raises:
        Refused when there is no such binding.
        """
        ...

    async def simulate_charge(self, operation: str, simulation: ChargeSimulation) -> Sequence[Notification]:
        """Put a charge in processing into this state, and return the notifications that a real bank would now send. A
        finished charge does not change. Raises: Refused when there is no such charge."""
        ...
