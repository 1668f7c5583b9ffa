"""Wraps an adapter that searches for its requests (ports/searching.py), so that the suites can find them by operation
id alone."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ...ports.bank import InvoiceRequest, RefundRequest
from ...ports.kyc import CheckRequest
from ...ports.mandates import BindingRequest, ChargeRequest
from ...ports.remittances import RemittanceRequest
from ...ports.searching import (
    SearchesBindings,
    SearchesCharges,
    SearchesChecks,
    SearchesInvoices,
    SearchesRefunds,
    SearchesRemittances,
)
from ..layers.wrapping import Call, wrapped

A = TypeVar("A")


class _Way(msgspec.Struct, frozen=True):
    """Method names to send and search one kind of operation."""

    protocol: type
    send: str
    search: str
    never_sent: Callable[[str, datetime], Any]
    """Builds a request for an operation that was never sent."""


_WAYS = {
    "find_invoice": _Way(
        SearchesInvoices,
        "create_invoice",
        "search_invoice",
        lambda operation, now: InvoiceRequest(
            operation=operation, amount_kopecks=100_00, purpose="Order 1", expires_at=now
        ),
    ),
    "find_refund": _Way(
        SearchesRefunds,
        "refund",
        "search_refund",
        lambda operation, _: RefundRequest(operation=operation, reference="no-such-reference", amount_kopecks=1),
    ),
    "find_binding": _Way(
        SearchesBindings,
        "bind",
        "search_binding",
        lambda operation, now: BindingRequest(
            operation=operation, first_charge_kopecks=None, purpose="Coffee club", expires_at=now
        ),
    ),
    "find_charge": _Way(
        SearchesCharges,
        "charge",
        "search_charge",
        lambda operation, _: ChargeRequest(
            operation=operation, reference="no-such-reference", token=operation, amount_kopecks=1, purpose="Coffee club"
        ),
    ),
    "find_check": _Way(
        SearchesChecks,
        "register",
        "search_check",
        lambda operation, _: CheckRequest(operation=operation, phone="+79990000001", redirect=False),
    ),
    "find_remittance": _Way(
        SearchesRemittances,
        "remit",
        "search_remittance",
        lambda operation, _: RemittanceRequest(
            operation=operation, phone="+79990000001", bank_id="bank1", amount_kopecks=1
        ),
    ),
}


Sent = dict[tuple[str, str], tuple[Any, datetime]]
"""Sent requests and when each was first sent, by find method and operation."""


def searched(bank: A, now: Callable[[], datetime], sent: Sent) -> A:
    """Return the bank or verifier, wrapped so that each `find_…` calls `search_…` with the original request and the
    time of its first attempt, recorded in `sent`. An adapter that finds by operation id is returned unchanged."""
    ways = {find: way for find, way in _WAYS.items() if isinstance(bank, way.protocol)}
    if not ways:
        return bank
    finds = {way.send: find for find, way in ways.items()}

    def around(name: str, call: Call) -> Call:
        async def send(request: Any) -> Any:
            sent.setdefault((finds[name], request.operation), (request, now()))
            return await call(request)

        async def find(operation: str) -> Any:
            way = ways[name]
            request, since = sent.get((name, operation)) or (way.never_sent(operation, now()), now())
            return await getattr(bank, way.search)(request, since)

        return find if name in ways else send

    return wrapped(bank, (*ways, *finds), around)
