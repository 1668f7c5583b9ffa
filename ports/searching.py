"""Providers that cannot be asked by the caller's own id, but list what came in a time, with amounts and metadata.

Each protocol stands in for one `find_…`: an adapter that fills it is asked by `search_…` instead, and never by the
other, which may raise NotSupported. It gets what was sent, and a moment before which nothing of this operation was
sent, by our clock: ask from some minutes earlier on, since the provider's may be behind. All are reads.
"""

from datetime import datetime
from typing import Protocol, runtime_checkable

from .bank import Bank, Invoice, InvoiceRequest, RefundRequest, RefundState
from .faults import Unavailable
from .kyc import Check, CheckRequest, KycVerifier
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


@runtime_checkable
class SearchesChecks(Protocol):
    """Instead of `KycVerifier.find_check`."""

    async def search_check(self, request: CheckRequest, since: datetime) -> Check | None:
        """The check that this request began, or None when the verifier never saw it. Raises: as `find_check`."""
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


async def find_check(
    verifier: KycVerifier, operation: str, request: CheckRequest | None, since: datetime
) -> Check | None:
    """The check of a request, whichever way the verifier finds it. Raises: as `KycVerifier.find_check`; Unavailable
    where it would have to be searched for, and what was asked is not known any more (`request` is None)."""
    if not isinstance(verifier, SearchesChecks):
        return await verifier.find_check(operation)
    if request is None:
        raise Unavailable(f"{verifier.name} finds a check by its request alone, which is gone")
    return await verifier.search_check(request, since)
