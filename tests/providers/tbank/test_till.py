"""Receipts at T-Bank: states from notifications alone, and second receipts, which are sent once (docs/receipts.md
"Banks")."""

from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

import msgspec
import pytest

from cambist.frontends.conformance.operation_ids import operation_id
from cambist.frontends.conformance.receipts import receipt, receipt_request
from cambist.ports.faults import NotSupported, OutcomeUnknown, Refused
from cambist.ports.receipts import PaymentMode, ReceiptKind, ReceiptRequest, ReceiptStatus, Vat
from cambist.testing import ProviderFault, ProviderRequest
from tests.providers.tbank.forms import CLOSING
from tests.providers.tbank.harness import TBankHarness, open_harness, told

PAY = operation_id("pay", 1)
FIRST, SECOND, BACK = (f"rcp_{letter * 26}_1" for letter in "abc")


@pytest.fixture
async def harness() -> AsyncIterator[TBankHarness]:
    async with open_harness(receipts=True) as opened:
        yield opened


async def paid(harness: TBankHarness) -> ReceiptRequest:
    prepaid = receipt(100_00, mode=PaymentMode.FULL_PREPAYMENT, vat=Vat.VAT_22_122)
    invoice = await harness.tbank.create_invoice(msgspec.structs.replace(harness.request(PAY), receipt=prepaid))
    await harness.pay(PAY, invoice, 100_00)
    return receipt_request(FIRST, 100_00, invoice.reference, is_with_money=True)


async def hear(harness: TBankHarness, kopecks: int, number: int, **other: Any) -> list[str]:
    body = harness.fake.receipt_notification(harness.payment(PAY), kopecks, number, **other)
    heard = await harness.tbank.receive(told(body))
    return [each.operation for each in heard.notifications]


async def test_notifications_tell_each_receipt_once(harness: TBankHarness) -> None:
    sale = await paid(harness)
    back = msgspec.structs.replace(sale, operation=BACK, kind=ReceiptKind.REFUND, receipt=receipt(30_00))
    assert await harness.tbank.find_receipt(sale) is None
    for _ in range(2):
        assert await hear(harness, 100_00, 101) == [PAY]
        await hear(harness, 30_00, 102, Type="IncomeReturn")
    for request, number in ((sale, "101"), (back, "102")):
        found = await harness.tbank.find_receipt(request)
        assert found is not None
        assert (found.status, found.fiscal.document, found.fiscal.register) == (
            ReceiptStatus.DONE, number, "0000000000000001",
        )  # fmt: skip
    other = msgspec.structs.replace(sale, operation=SECOND)
    assert await harness.tbank.find_receipt(other) is None, "a told receipt belongs to one of ours"


async def test_receipt_that_the_register_rejects_has_failed(harness: TBankHarness) -> None:
    sale = await paid(harness)
    await hear(harness, 100_00, 0, Success=False, ErrorCode="103", ErrorMessage="no such tax system")
    found = await harness.tbank.find_receipt(sale)
    assert found is not None
    assert (found.status, found.failure) == (ReceiptStatus.FAILED, "no such tax system")
    with pytest.raises(NotSupported):
        await harness.tbank.write_receipt(sale)


@pytest.mark.parametrize("fault", [None, ProviderFault.LOST_AFTER, ProviderFault.LOST_BEFORE])
async def test_second_receipt_is_sent_once(harness: TBankHarness, fault: ProviderFault | None) -> None:
    sale = await paid(harness)
    await hear(harness, 100_00, 101)
    assert await harness.tbank.find_receipt(sale) is not None
    whole = receipt(100_00, vat=Vat.VAT_22)
    second = receipt_request(SECOND, 100_00, sale.reference, receipt=whole, prepaid_kopecks=100_00)
    assert await harness.tbank.find_receipt(second) is None
    if fault is not None:
        harness.fake.next(fault, matching=by_closing)
        with pytest.raises(OutcomeUnknown):
            await harness.tbank.write_receipt(second)
    for _ in range(2):
        assert (await harness.tbank.write_receipt(second)).status is ReceiptStatus.PROCESSING
    sent = 0 if fault is ProviderFault.LOST_BEFORE else 1
    assert len(harness.fake.closed) == sent, "after an unknown outcome a person decides"
    assert [each["Payments"] for _, each in harness.fake.closed] == [{"Electronic": 0, "AdvancePayment": 100_00}] * sent
    await hear(harness, 100_00, 103)
    found = await harness.tbank.find_receipt(second)
    assert found is not None
    assert (found.status, found.fiscal.document) == (ReceiptStatus.DONE, "103")


async def test_refused_second_receipt_may_be_sent_again(harness: TBankHarness) -> None:
    sale = await paid(harness)
    second = receipt_request(SECOND, 99_00, sale.reference, prepaid_kopecks=99_00)
    for _ in range(2):
        with pytest.raises(Refused):
            await harness.tbank.write_receipt(second)
    assert [request.path for request in harness.fake.requests].count(CLOSING) == 2


def by_closing(request: ProviderRequest) -> bool:
    return request.path == CLOSING


async def test_models_of_the_client_take_our_receipts(harness: TBankHarness) -> None:
    sale = await paid(harness)
    second = receipt_request(
        SECOND, 100_00, sale.reference, receipt=receipt(100_00, vat=Vat.VAT_10), prepaid_kopecks=100_00
    )
    await harness.tbank.write_receipt(second)
    [(payment, sent)] = harness.fake.closed
    closing: Any = import_module("tbank.acquiring.models").SendClosingReceiptRequest
    made = closing.model_validate({"PaymentId": payment, "Receipt": sent})
    assert made.receipt.model_dump(by_alias=True, exclude_none=True, mode="json") == sent
