"""Mandates of the simulated bank: bindings that payers confirm through simulated events, and charges by them.

A binding is one record that includes the money of its first charge. Each further charge is a record of its own. Both
are refunded in the same way as invoices.
"""

from collections.abc import Sequence
from datetime import timedelta

from ....ports.bank import InvoiceStatus, Notification
from ....ports.faults import NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.mandates import (
    NEXT_UNAVAILABLE,
    Binding,
    BindingRequest,
    ChargeRequest,
    ChargeSimulation,
    ChargeState,
    ChargeStatus,
    MandateEvent,
    MandateSimulation,
    MandateState,
)
from ...script import begin_read, begin_write, end_write
from .core import SimulatorCore
from .mandate_events import (
    charge_begun,
    charge_simulated,
    has_link,
    mandate_simulated,
    new_charge,
    next_wished,
    page_as_of,
    revoked,
    wait_of,
)
from .mandate_pages import BindingPart, NextCharge
from .pages import LINK_LATER, OUTCOME_UNKNOWN, InvoiceEntry

_SYMBOLIC = 1_00
"""Kopecks that the QR of a binding without a first charge shows. They are not debited."""

_MONEY_AND_MANDATE = (MandateEvent.CONFIRM, MandateEvent.PAID_NOT_BOUND)


class MandateCore(SimulatorCore):
    """Implement the ports MandateBank and MandateSimulator, except for the methods that every bank has."""

    _links_after: timedelta | None

    async def bind(self, request: BindingRequest) -> Binding:
        """Open a binding, or return the binding that this operation opened before.

        Raises: the errors of the port; OutcomeUnknown also at the first call for a first charge of 404.04, and when the
        storage lost its answer; any error that the script sets.
        """
        self._must_bind()
        twist = await begin_write(self._clock, self._script.bind)
        if request.first_charge_kopecks is not None and request.first_charge_kopecks <= 0:
            raise Refused("a charge is of more than nothing", reason="amount")
        if request.first_charge_kopecks is not None:
            self._check_receipt(request.receipt, request.first_charge_kopecks)
        entry, is_new = await self._start(self._new_binding(request))
        await end_write(self._clock, twist)
        if entry.binding is None:
            raise Refused(f"{request.operation} began as no binding", reason="operation")
        if is_new and request.first_charge_kopecks == OUTCOME_UNKNOWN:
            raise OutcomeUnknown("the bank's answer was lost")
        return self._binding(entry)

    async def find_binding(self, operation: str) -> Binding | None:
        """Return the binding of this operation, or None. Raises: NotSupported; errors that the script sets."""
        self._must_bind()
        await begin_read(self._clock, self._script.find_binding)
        entry = await self._page(operation)
        return None if entry is None or entry.binding is None else self._binding(entry)

    async def mandate_state(self, reference: str) -> MandateState:
        """Return the binding's state at the current clock time. Raises: the errors of the port; errors that the script
        sets."""
        self._must_bind()
        await begin_read(self._clock, self._script.mandate_state)
        entry = await self._page(self._operation(reference))
        if entry is None or entry.binding is None:
            raise self._missing(f"binding {reference}")
        part, issued = entry.binding, has_link(entry, self._clock.now())
        return MandateState(
            reference=reference,
            status=part.status,
            link=entry.payload if issued else None,
            payload=entry.payload if issued else None,
            token=part.token if part.was_bound else None,
            overdue=part.overdue and await self._last_paid(part) in (None, part.paid_before),
            transfers=entry.transfers,
            failure=part.failure,
        )

    async def charge(self, request: ChargeRequest) -> ChargeState:
        """Charge the mandate, or return the state of this operation's charge.

        Raises: the errors of the port; Refused `operation` when the operation began as something else; OutcomeUnknown
        also at the first call for 404.04, and when the storage lost its answer; any error that the script sets.
        """
        self._must_bind()
        twist = await begin_write(self._clock, self._script.charge)
        entry, is_lost = await self._charge(request)
        await end_write(self._clock, twist)
        if is_lost:
            raise OutcomeUnknown("the bank's answer was lost")
        return self._charge_state(entry)

    async def find_charge(self, operation: str) -> ChargeState | None:
        """Return the charge of this operation at the current clock time, or None. Raises: NotSupported; errors that the
        script sets."""
        self._must_bind()
        await begin_read(self._clock, self._script.find_charge)
        entry = await self._page(operation)
        return None if entry is None or entry.charge is None else self._charge_state(entry)

    async def revoke(self, reference: str) -> None:
        """End the mandate or the open binding. Raises: the errors of the port; errors that the script sets."""
        self._must_bind()
        twist = await begin_write(self._clock, self._script.revoke)
        operation, now = self._operation(reference), self._clock.now()
        if not await self._has_binding(operation):
            raise self._missing(f"binding {reference}")
        try:
            await self._pages.change(operation, lambda entry: revoked(page_as_of(entry, now), now))
        except Unavailable as fault:
            raise OutcomeUnknown("the bank's pages did not answer") from fault
        await end_write(self._clock, twist)

    async def simulate_mandate(self, operation: str, simulation: MandateSimulation) -> Sequence[Notification]:
        """Apply a simulated event to the record, and return the notifications that the bank sends.

        Raises: Refused when the binding does not exist; ValueError for money when the binding has no first charge.
        """
        now, before = self._clock.now(), await self._page(operation)
        if before is None or before.binding is None:
            raise self._missing(f"binding of {operation}")
        paid_before = await self._last_paid(before.binding)
        entry = await self._pages.change(
            operation,
            lambda entry: mandate_simulated(page_as_of(entry, now), simulation, now, paid_before=paid_before),
        )
        both = entry is not None and entry.amount_kopecks > 0 and simulation.event in _MONEY_AND_MANDATE
        return _notifications(operation, simulation, 2 if both else 1)

    async def simulate_next_charge(self, operation: str, result: str, *, executed: bool = True) -> None:
        """Set the result of the next charge. Raises: Refused when the binding does not exist."""
        if not await self._has_binding(operation):
            raise self._missing(f"binding of {operation}")
        wish = NextCharge(result=result, executed=executed or result != NEXT_UNAVAILABLE)
        await self._pages.change(operation, lambda entry: next_wished(entry, wish))

    async def simulate_charge(self, operation: str, simulation: ChargeSimulation) -> Sequence[Notification]:
        """Apply a simulated status to the charge, and return the notifications that the bank sends. Raises: Refused
        when the charge does not exist."""
        now = self._clock.now()
        entry = await self._pages.change(
            operation, lambda entry: charge_simulated(page_as_of(entry, now), simulation, now)
        )
        if entry is None or entry.charge is None:
            raise self._missing(f"charge of {operation}")
        return _notifications(operation, simulation, 1)

    def _must_bind(self) -> None:
        if not self._capabilities.mandates:
            raise NotSupported(f"{self.name} binds no payers")

    def _new_binding(self, request: BindingRequest) -> InvoiceEntry:
        now = self._clock.now()
        is_told = request.first_charge_kopecks == LINK_LATER
        return InvoiceEntry(
            operation=request.operation,
            amount_kopecks=request.first_charge_kopecks or 0,
            purpose=request.purpose,
            payload=self._payload(request.first_charge_kopecks or _SYMBOLIC),
            created_at=now,
            expires_at=request.expires_at,
            binding=BindingPart(
                token=self._ids.uuid().replace("-", ""),
                link_at=None if self._links_after is None or is_told else now + self._links_after,
            ),
        )

    async def _charge(self, request: ChargeRequest) -> tuple[InvoiceEntry, bool]:
        """Return the operation's charge, creating it if needed, and whether to lose the answer. Raises: Refused,
        OutcomeUnknown, Unavailable."""
        entry, is_lost = await self._page(request.operation), False
        if entry is None:
            if not self._capabilities.mandate_charges:
                raise NotConfigured(f"{self.name} charges no mandates")
            if request.amount_kopecks <= 0:
                raise Refused("a charge is of more than nothing", reason="amount")
            self._check_receipt(request.receipt, request.amount_kopecks)
            entry, is_lost = await self._new_charge(request)
        if entry.charge is None:
            raise Refused(f"{request.operation} began as no charge", reason="operation")
        return entry, is_lost

    async def _new_charge(self, request: ChargeRequest) -> tuple[InvoiceEntry, bool]:
        now, plan = self._clock.now(), NextCharge(result=NEXT_UNAVAILABLE)

        def begin(entry: InvoiceEntry) -> InvoiceEntry:
            nonlocal plan
            entry, plan = charge_begun(page_as_of(entry, now), request)
            return entry

        try:
            found = await self._pages.change(self._operation(request.reference), begin)
        except Unavailable as fault:
            raise OutcomeUnknown("the bank's pages did not answer") from fault
        if found is None:
            raise self._missing(f"binding {request.reference}")
        if not plan.executed:
            raise OutcomeUnknown("the charge was lost on its way to the bank")
        made, is_new = await self._start(new_charge(found, request, plan, now))
        return made, is_new and plan.result == NEXT_UNAVAILABLE

    async def _has_binding(self, operation: str) -> bool:
        entry = await self._page(operation)
        return entry is not None and entry.binding is not None

    async def _last_paid(self, part: BindingPart) -> str | None:
        """Return the mandate's last charge if it is paid by now."""
        entry = None if part.last_charge is None else await self._page(part.last_charge)
        return part.last_charge if entry is not None and entry.status is InvoiceStatus.PAID else None

    def _binding(self, entry: InvoiceEntry) -> Binding:
        now = self._clock.now()
        entry = page_as_of(entry, now)
        issued = entry.payload if has_link(entry, now) else None
        return Binding(
            reference=self._reference(entry.operation), link=issued, payload=issued, check_after=wait_of(entry, now)
        )

    def _charge_state(self, entry: InvoiceEntry) -> ChargeState:
        now = self._clock.now()
        entry = page_as_of(entry, now)
        paid_at = entry.charge.paid_at if entry.charge is not None else None
        waits = paid_at is not None and entry.status is InvoiceStatus.PROCESSING
        return ChargeState(
            reference=self._reference(entry.operation),
            status=ChargeStatus(entry.status.value),
            failure=entry.failure,
            transfer=entry.transfers[0] if entry.transfers else None,
            check_after=(paid_at - now).total_seconds() if waits and paid_at is not None else None,
        )


def _notifications(
    operation: str, simulation: MandateSimulation | ChargeSimulation, number: int
) -> tuple[Notification, ...]:
    if simulation.silent:
        return ()
    return (Notification(operation=operation),) * (number * (2 if simulation.doubled else 1))
