"""Contract of a bank's name, capabilities, credentials and faults (ports/bank.py)."""

import pytest

from ....ports.bank import (
    CancellingBank,
    DrawingBank,
    RefundRequest,
)
from ....ports.checking import Checkable
from ....ports.faults import Fault, NotConfigured, NotSupported, Unavailable
from ....ports.mandates import MandateBank
from ....ports.remittances import RemittanceBank
from ..bank_harness import BankHarness
from ..expectations import must_raise
from ..harnesses import check_hidden, check_name
from ..operation_ids import operation_id
from .kit import OPERATION, REFUND


class TestWhatItSays:
    """The bank describes itself correctly, and neither its repr nor its faults leak credentials."""

    async def test_its_name_can_be_stored(self, bank_harness: BankHarness) -> None:
        check_name(bank_harness.bank)

    async def test_it_is_what_it_says_it_can_do(self, bank_harness: BankHarness) -> None:
        can = bank_harness.bank.capabilities
        claims = (
            (can.mandates, MandateBank, "mandates"),
            (can.remittances, RemittanceBank, "remittances"),
            (can.cancels_invoices, CancellingBank, "cancels_invoices"),
            (can.draws_invoices, DrawingBank, "draws_invoices"),
        )
        for is_claimed, port, name in claims:
            is_kept = not is_claimed or isinstance(bank_harness.bank, port)
            assert is_kept, f"a bank with `capabilities.{name}` must have the methods of {port.__name__}"
        assert not can.mandate_charges or can.mandates, "`mandate_charges` needs `mandates`"
        assert 0 < can.min_kopecks <= (can.max_kopecks or can.min_kopecks), "min_kopecks must be 1 to max_kopecks"

    async def test_a_bank_that_does_not_refund_says_so(self, bank_harness: BankHarness) -> None:
        if bank_harness.bank.capabilities.refunds:
            pytest.skip("the bank refunds (`capabilities.refunds`)")
        with must_raise("`refund` of a bank without `capabilities.refunds`", NotSupported):
            await bank_harness.bank.refund(RefundRequest(operation=REFUND, reference="x", amount_kopecks=1))
        with must_raise("`find_refund` of a bank without `capabilities.refunds`", NotSupported):
            await bank_harness.bank.find_refund(REFUND)

    async def test_credentials_that_are_refused_are_told_as_such(self, bank_harness: BankHarness) -> None:
        """Every writing call and `check` raise NotConfigured; `check` passed before. A read may raise Unavailable
        instead."""
        bank = bank_harness.bank
        invoice = await bank.create_invoice(bank_harness.request(OPERATION))
        if isinstance(bank, Checkable):
            await bank.check()
        await bank_harness.refuse_credentials()
        with must_raise("a writing call with refused credentials", NotConfigured) as refused:
            await bank.create_invoice(bank_harness.request(operation_id("pay", 2)))
        check_hidden(bank_harness.secrets, bank, refused.value)
        with must_raise("a read with refused credentials", NotConfigured, Unavailable):
            await bank.invoice_state(invoice.reference)
        if isinstance(bank, Checkable):
            with must_raise("`check` with refused credentials", NotConfigured) as refused:
                await bank.check()
            check_hidden(bank_harness.secrets, bank, refused.value)

    async def test_no_credential_shows(self, bank_harness: BankHarness) -> None:
        """Neither the repr nor a fault contains a credential."""
        with must_raise("a reference that the provider does not know", Fault) as raised:
            await bank_harness.bank.invoice_state("no-such-reference")
        check_hidden(bank_harness.secrets, bank_harness.bank, raised.value)
