"""Banks that cannot be asked by the caller's own id, but list what came in a time, with amounts and metadata.

Each protocol stands in for one `find_…`: a bank that fills it is asked by `search_…` instead, and never by the other,
which may raise NotSupported. It gets what was sent, and a moment before which nothing of this operation was sent, by
our clock: ask from some minutes earlier on, since the provider's may be behind. All are reads.
"""

from datetime import datetime
from typing import Protocol, runtime_checkable

from .bank import Bank, Invoice, InvoiceRequest, RefundRequest, RefundState
from .mandates import Binding, BindingRequest, ChargeRequest, ChargeState, MandateBank
from .remittances import RemittanceRequest, RemittanceState


@runtime_checkable
class SearchesInvoices(Protocol):
    """Instead of `Bank.find_invoice`."""

    async def search_invoice(self, request: InvoiceRequest, since: datetime) -> Invoice | None:
        """The invoice that this request made, or None when the bank never saw it."""
        ...


@runtime_checkable
class SearchesRefunds(Protocol):
    """Instead of `Bank.find_refund`."""

    async def search_refund(self, request: RefundRequest, since: datetime) -> RefundState | None:
        """Where the refund of this request stands now, or None when the bank never saw it, or refused it."""
        ...


@runtime_checkable
class SearchesBindings(Protocol):
    """Instead of `MandateBank.find_binding`."""

    async def search_binding(self, request: BindingRequest, since: datetime) -> Binding | None:
        """The binding that this request made, or None when the bank never saw it."""
        ...


@runtime_checkable
class SearchesCharges(Protocol):
    """Instead of `MandateBank.find_charge`."""

    async def search_charge(self, request: ChargeRequest, since: datetime) -> ChargeState | None:
        """Where the charge of this request stands now, or None when the bank never saw it, or refused it."""
        ...


@runtime_checkable
class SearchesRemittances(Protocol):
    """Instead of `RemittanceBank.find_remittance`."""

    async def search_remittance(self, request: RemittanceRequest, since: datetime) -> RemittanceState | None:
        """Where the remittance of this request stands now, or None when the bank never saw it, or refused it."""
        ...


async def find_invoice(bank: Bank, request: InvoiceRequest, since: datetime) -> Invoice | None:
    """The invoice of a request, whichever way the bank finds it."""
    if isinstance(bank, SearchesInvoices):
        return await bank.search_invoice(request, since)
    return await bank.find_invoice(request.operation)


async def find_refund(bank: Bank, request: RefundRequest, since: datetime) -> RefundState | None:
    """The refund of a request, whichever way the bank finds it."""
    if isinstance(bank, SearchesRefunds):
        return await bank.search_refund(request, since)
    return await bank.find_refund(request.operation)


async def find_binding(bank: MandateBank, request: BindingRequest, since: datetime) -> Binding | None:
    """The binding of a request, whichever way the bank finds it."""
    if isinstance(bank, SearchesBindings):
        return await bank.search_binding(request, since)
    return await bank.find_binding(request.operation)
