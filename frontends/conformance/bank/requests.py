"""Contract of requests for invoices: the provider gets the amount, purpose and deadline that the caller meant
(ports/bank.py: InvoiceRequest)."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from ....ports.bank import InvoiceKind
from ..bank_harness import BankHarness
from ..expectations import must_answer
from ..operation_ids import exchange_invoice_id
from .kit import OPERATION, OTHER, asked_of, assert_amount, assert_purpose, kept

_ROUNDING = timedelta(minutes=1)
"""Largest difference between a deadline that was asked for and the provider's."""


class TestRequests:
    """The provider's records show the invoice that the caller asked for."""

    async def test_each_operation_has_an_order_of_its_own(self, bank_harness: BankHarness) -> None:
        """The ids differ only in their prefixes or in their last characters."""
        orders = set()
        operations = (OPERATION, OTHER, exchange_invoice_id())
        rule = "each operation must be sent under an id of its own: is the operation id cut?"
        for operation in operations:
            with must_answer(rule):
                await bank_harness.bank.create_invoice(bank_harness.request(operation))
            orders.add(kept((await asked_of(bank_harness, operation)).order, "order"))
        assert len(orders) == len(operations), rule

    @pytest.mark.parametrize("kopecks", [100_00, 490_05, 1_234_50])
    async def test_provider_is_asked_for_the_amount_to_the_kopeck(
        self, bank_harness: BankHarness, kopecks: int
    ) -> None:
        """Confusing kopecks with roubles, or 490.5 with 490.05, would charge the payer a different price."""
        await bank_harness.bank.create_invoice(bank_harness.request(OPERATION, kopecks))
        assert_amount(await asked_of(bank_harness, OPERATION), kopecks)

    async def test_invoices_made_at_once_keep_their_amounts(self, bank_harness: BankHarness) -> None:
        """An adapter that keeps a request in itself while it waits would mix up two payers."""
        requests = [bank_harness.request(operation, kopecks) for operation, kopecks in _TWO.items()]
        await asyncio.gather(*(bank_harness.bank.create_invoice(request) for request in requests))
        for operation, kopecks in _TWO.items():
            assert_amount(await asked_of(bank_harness, operation), kopecks)

    async def test_provider_gets_the_purpose(self, bank_harness: BankHarness) -> None:
        await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        assert_purpose(await asked_of(bank_harness, OPERATION), "Order 1")

    async def test_provider_gets_the_deadline(self, bank_harness: BankHarness) -> None:
        """`own_lifetime` promises that the invoice ends when the payment does."""
        if not bank_harness.bank.capabilities.own_lifetime:
            pytest.skip("the provider decides when an invoice ends (`capabilities.own_lifetime`)")
        request = bank_harness.request(OPERATION)
        await bank_harness.bank.create_invoice(request)
        deadline = kept((await asked_of(bank_harness, OPERATION)).expires_at, "expires_at")
        rule = f"a bank with own_lifetime must send the deadline of the request, {request.expires_at}"
        assert deadline is not None, f"{rule}, and sent none"
        assert abs(deadline - request.expires_at) < _ROUNDING, f"{rule}, and sent {deadline}: is the time zone right?"

    async def test_payer_returns_from_the_page_of_the_provider(self, bank_harness: BankHarness) -> None:
        url = "https://pay.example/p/pay_1"
        request = msgspec.structs.replace(bank_harness.request(OPERATION), return_url=url)
        invoice = await bank_harness.bank.create_invoice(request)
        if invoice.kind is not InvoiceKind.PAGE:
            pytest.skip("the link of the invoice is no page of the provider (`Invoice.kind`)")
        sent = kept((await asked_of(bank_harness, OPERATION)).return_url, "return_url")
        assert sent == url, "the provider's page must send the payer to the `return_url` of the request"


_TWO = {OPERATION: 100_00, OTHER: 490_05}
