"""Providers that cannot find an operation by the caller's id, but list the operations of a period, with amounts and
metadata.

Each protocol replaces one `find_…`: for an adapter that implements it the core calls `search_…` instead, and never the
other method, which may raise NotSupported. The arguments are the original request, and a moment by our clock before
which nothing of this operation was sent: search from some minutes earlier, since the provider's clock may be behind.
All are reads.
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
    """Replaces `Bank.find_invoice`."""

    async def search_invoice(self, request: InvoiceRequest, since: datetime) -> Invoice | None:
        """Return the invoice that this request created, or None when the bank never saw it."""
        ...


@runtime_checkable
class SearchesRefunds(Protocol):
    """Replaces `Bank.find_refund`."""

    async def search_refund(self, request: RefundRequest, since: datetime) -> RefundState | None:
        """Return the present state of this request's refund, or None when the bank never saw it or refused it."""
        ...


@runtime_checkable
class SearchesBindings(Protocol):
    """Replaces `MandateBank.find_binding`."""

    async def search_binding(self, request: BindingRequest, since: datetime) -> Binding | None:
        """Return the binding that this request created, or None when the bank never saw it."""
        ...


@runtime_checkable
class SearchesCharges(Protocol):
    """Replaces `MandateBank.find_charge`."""

    async def search_charge(self, request: ChargeRequest, since: datetime) -> ChargeState | None:
        """Return the present state of this request's charge, or None when the bank never saw it or refused it."""
        ...


@runtime_checkable
class SearchesRemittances(Protocol):
    """Replaces `RemittanceBank.find_remittance`."""

    async def search_remittance(self, request: RemittanceRequest, since: datetime) -> RemittanceState | None:
        """Return the present state of this request's remittance, or None when the bank never saw it or refused it."""
        ...


@runtime_checkable
class SearchesChecks(Protocol):
    """Replaces `KycVerifier.find_check`."""

    async def search_check(self, request: CheckRequest, since: datetime) -> Check | None:
        """Return the check that this request began, or None when the verifier never saw it. Raises: as `find_check`."""
        ...


async def find_invoice(bank: Bank, request: InvoiceRequest, since: datetime) -> Invoice | None:
    """Return the invoice of a request, by id or by search, as the bank supports."""
    if isinstance(bank, SearchesInvoices):
        return await bank.search_invoice(request, since)
    return await bank.find_invoice(request.operation)


async def find_refund(bank: Bank, request: RefundRequest, since: datetime) -> RefundState | None:
    """Return the refund of a request, by id or by search, as the bank supports."""
    if isinstance(bank, SearchesRefunds):
        return await bank.search_refund(request, since)
    return await bank.find_refund(request.operation)


async def find_binding(bank: MandateBank, request: BindingRequest, since: datetime) -> Binding | None:
    """Return the binding of a request, by id or by search, as the bank supports."""
    if isinstance(bank, SearchesBindings):
        return await bank.search_binding(request, since)
    return await bank.find_binding(request.operation)


async def find_check(
    verifier: KycVerifier, operation: str, request: CheckRequest | None, since: datetime
) -> Check | None:
    """Return the check of a request, by id or by search, as the verifier supports. Raises: as `KycVerifier.find_check`;
    Unavailable when the verifier can only search, and the request is no longer stored (`request` is None)."""
    if not isinstance(verifier, SearchesChecks):
        return await verifier.find_check(operation)
    if request is None:
        raise Unavailable(f"{verifier.name} finds a check by its request alone, which is gone")
    return await verifier.search_check(request, since)
