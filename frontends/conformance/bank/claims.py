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
from ..harnesses import check_hidden, check_name
from ..operation_ids import operation_id
from .kit import OPERATION, REFUND


class TestWhatItSays:
    """The bank describes itself correctly, and neither its repr nor its faults leak credentials."""

    async def test_its_name_can_be_stored(self, bank_harness: BankHarness) -> None:
        check_name(bank_harness.bank)

    async def test_it_is_what_it_says_it_can_do(self, bank_harness: BankHarness) -> None:
        can = bank_harness.bank.capabilities
        assert not can.mandates or isinstance(bank_harness.bank, MandateBank)
        assert not can.remittances or isinstance(bank_harness.bank, RemittanceBank)
        assert not can.mandate_charges or can.mandates
        assert 0 < can.min_kopecks <= (can.max_kopecks or can.min_kopecks)
        assert not can.cancels_invoices or isinstance(bank_harness.bank, CancellingBank)
        assert not can.draws_invoices or isinstance(bank_harness.bank, DrawingBank)

    async def test_a_bank_that_does_not_refund_says_so(self, bank_harness: BankHarness) -> None:
        if bank_harness.bank.capabilities.refunds:
            pytest.skip("the bank refunds")
        with pytest.raises(NotSupported):
            await bank_harness.bank.refund(RefundRequest(operation=REFUND, reference="x", amount_kopecks=1))
        with pytest.raises(NotSupported):
            await bank_harness.bank.find_refund(REFUND)

    async def test_credentials_that_are_refused_are_told_as_such(self, bank_harness: BankHarness) -> None:
        """Every writing call and `check` raise NotConfigured; `check` passed before. A read may raise Unavailable
        instead."""
        bank = bank_harness.bank
        invoice = await bank.create_invoice(bank_harness.request(OPERATION))
        if isinstance(bank, Checkable):
            await bank.check()
        await bank_harness.refuse_credentials()
        with pytest.raises(NotConfigured) as refused:
            await bank.create_invoice(bank_harness.request(operation_id("pay", 2)))
        check_hidden(bank_harness.secrets, bank, refused.value)
        with pytest.raises((NotConfigured, Unavailable)):
            await bank.invoice_state(invoice.reference)
        if isinstance(bank, Checkable):
            with pytest.raises(NotConfigured) as refused:
                await bank.check()
            check_hidden(bank_harness.secrets, bank, refused.value)

    async def test_no_credential_shows(self, bank_harness: BankHarness) -> None:
        """Neither the repr nor a fault contains a credential."""
        with pytest.raises(Fault) as raised:
            await bank_harness.bank.invoice_state("no-such-reference")
        check_hidden(bank_harness.secrets, bank_harness.bank, raised.value)
