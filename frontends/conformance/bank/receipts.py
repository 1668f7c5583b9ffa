"""Contract of a bank's 54-FZ receipts (docs/adapters.md "Receipts")."""

import msgspec
import pytest

from ....ports.bank import RefundRequest
from ....ports.faults import Fault, Refused
from ....ports.receipts import (
    MarkCode,
    MarkFormat,
    Measure,
    PaymentMode,
    PaymentSubject,
    Receipt,
    ReceiptBank,
    ReceiptNeed,
    ReceiptStatus,
    TaxSystem,
    UserAttribute,
    Vat,
)
from ..bank_harness import BankHarness
from ..expectations import must_answer, must_raise
from ..harnesses import check_hidden
from ..operation_ids import operation_id
from ..receipts import AGENTS, EMAIL, PHONE, SUPPLIER, receipt, receipt_request
from .kit import OPERATION


def _need(harness: BankHarness) -> ReceiptNeed:
    need = harness.bank.capabilities.receipts
    if need is ReceiptNeed.NONE:
        pytest.skip("the bank writes no receipts (`capabilities.receipts`)")
    return need


class TestReceipts:
    """A receipt goes with the money. Skips banks that do not write receipts."""

    async def test_without_one_nothing_is_taken_where_it_is_required(self, bank_harness: BankHarness) -> None:
        need, bank = _need(bank_harness), bank_harness.unaided
        if need is ReceiptNeed.OPTIONAL:
            with must_answer("with ReceiptNeed.OPTIONAL a request without a receipt makes an invoice"):
                await bank.create_invoice(bank_harness.request(OPERATION))
            return
        with must_raise("with ReceiptNeed.REQUIRED a request without a receipt must be refused", Refused):
            await bank.create_invoice(bank_harness.request(OPERATION))
        assert await bank_harness.bank.find_invoice(OPERATION) is None, "a refused invoice must not exist"

    async def test_every_word_has_a_code_there_or_is_refused(self, bank_harness: BankHarness) -> None:
        _need(bank_harness)
        plain = receipt(100_00)
        told = [receipt(100_00, vat=vat) for vat in Vat]
        told += [receipt(100_00, subject=subject) for subject in PaymentSubject]
        told += [receipt(100_00, mode=mode) for mode in PaymentMode]
        told += [msgspec.structs.replace(plain, tax_system=system) for system in TaxSystem]
        taken = [await self._takes(bank_harness, number, each) for number, each in enumerate(told)]
        assert any(taken), "a bank that writes receipts must take one of the words of each kind"

    async def test_items_in_full_are_taken_or_refused_for_certain(self, bank_harness: BankHarness) -> None:
        """Units, goods of an agent, marked goods, imported goods: an adapter has fields for them, or refuses."""
        _need(bank_harness)
        with must_answer("a quantity of another unit makes an invoice"):
            taken = await self._takes(bank_harness, 900, receipt(100_00, measure=Measure.KILOGRAM, thousandths=1000))
        assert taken, "a bank that writes receipts must take a quantity of another unit"
        told = [receipt(80_00, measure=measure, thousandths=1250) for measure in Measure]
        told += [receipt(100_00, agent=agent, supplier=SUPPLIER) for agent in AGENTS]
        told += [
            receipt(100_00, subject=PaymentSubject.MARKED, mark=MarkCode(format=form, value="0" * 14))
            for form in MarkFormat
        ]
        told += [
            receipt(100_00, country="CN", customs_declaration="10702030/060625/5000001"),
            receipt(100_00, subject=PaymentSubject.EXCISE, excise_kopecks=10_50),
            receipt(100_00, additional="row 5"),
            msgspec.structs.replace(receipt(100_00), name="Anna Orlova", inn="500100732259"),
            msgspec.structs.replace(receipt(100_00), attribute=UserAttribute(name="Order", value="17")),
        ]
        for number, each in enumerate(told, 1000):
            await self._takes(bank_harness, number, each)

    async def _takes(self, harness: BankHarness, number: int, told: Receipt) -> bool:
        request = msgspec.structs.replace(harness.request(operation_id("pay", number)), receipt=told)
        try:
            return bool((await harness.bank.create_invoice(request)).reference)
        except Refused:
            return False

    @pytest.mark.parametrize("contact", [{"email": None}, {"phone": None}], ids=["phone", "email"])
    async def test_one_address_is_enough(self, bank_harness: BankHarness, contact: dict[str, None]) -> None:
        _need(bank_harness)
        told = msgspec.structs.replace(receipt(100_00), **contact)
        request = msgspec.structs.replace(bank_harness.request(OPERATION), receipt=told)
        with must_answer("a receipt with a phone or an e-mail alone makes an invoice"):
            await bank_harness.bank.create_invoice(request)

    async def test_it_may_have_several_items_and_of_each_several(self, bank_harness: BankHarness) -> None:
        _need(bank_harness)
        [item] = receipt(33_33).items
        several = (item, msgspec.structs.replace(item, price_kopecks=1, thousandths=3000))
        told = msgspec.structs.replace(receipt(1), items=several)
        request = msgspec.structs.replace(bank_harness.request(OPERATION, 33_36), receipt=told)
        with must_answer("a receipt with several items, and items of several pieces, makes an invoice"):
            await bank_harness.bank.create_invoice(request)

    async def test_each_part_that_goes_back_has_its_own(self, bank_harness: BankHarness) -> None:
        _need(bank_harness)
        bank = bank_harness.bank
        if not bank.capabilities.refunds:
            pytest.skip("the bank does not refund (`capabilities.refunds`)")
        invoice = await bank.create_invoice(bank_harness.request(OPERATION))
        await bank_harness.pay(OPERATION, invoice, 100_00)
        for number, kopecks in enumerate((33_33, 66_67)):
            request = RefundRequest(
                operation=operation_id("ref", number),
                reference=invoice.reference,
                amount_kopecks=kopecks,
                receipt=receipt(kopecks),
            )
            with must_answer("a part that goes back must be sent with the receipt of that part"):
                await bank.refund(request)
            await bank_harness.finish_refunds()

    async def test_separate_receipt_is_written_once_however_often_it_is_sent(self, bank_harness: BankHarness) -> None:
        _need(bank_harness)
        bank = bank_harness.bank
        if not isinstance(bank, ReceiptBank) or not bank.capabilities.receipts_apart:
            pytest.skip("receipts go with the money (`capabilities.receipts_apart`)")
        invoice = await bank.create_invoice(bank_harness.request(OPERATION))
        await bank_harness.pay(OPERATION, invoice, 100_00)
        request = receipt_request(OPERATION, 100_00, invoice.reference)
        for _ in range(3):
            state = await bank.write_receipt(request)
            assert state.status is not ReceiptStatus.FAILED, "a repeat must return the state of the first receipt"
            assert await bank.find_receipt(request) is not None, "a receipt that was sent must be found"
        with must_raise("another receipt of the same operation must be refused", Refused, reason="operation"):
            await bank.write_receipt(msgspec.structs.replace(request, receipt=receipt(99_99)))

    async def test_address_of_a_receipt_shows_nowhere(self, bank_harness: BankHarness) -> None:
        _need(bank_harness)
        with must_raise("an invoice of nothing must be refused", Fault) as raised:
            await bank_harness.bank.create_invoice(bank_harness.request(OPERATION, 0))
        check_hidden((EMAIL, PHONE), bank_harness.bank, raised.value)
