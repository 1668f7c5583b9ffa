"""Receipts at YooKassa: states from its list, retries and second receipts apart from money (docs/receipts.md
"Banks")."""

import json
from importlib import import_module
from typing import Any

import msgspec
import pytest

from cambist.frontends.conformance.operation_ids import operation_id
from cambist.frontends.conformance.receipts import AGENTS, EMAIL, SUPPLIER, receipt, receipt_request
from cambist.ports.bank import RefundRequest
from cambist.ports.faults import NotSupported, OutcomeUnknown
from cambist.ports.receipts import (
    Correction,
    MarkCode,
    MarkFormat,
    PaymentMode,
    PaymentSubject,
    ReceiptKind,
    ReceiptNeed,
    ReceiptRequest,
    ReceiptStatus,
    UserAttribute,
    Vat,
)
from cambist.testing import ProviderFault, is_write
from tests.providers.yookassa.conftest import tools_of
from tests.providers.yookassa.fake import YooKassaFake
from tests.providers.yookassa.harness import YooKassaHarness

PAY, REFUND = operation_id("pay", 1), operation_id("ref", 1)
FIRST, AGAIN = (f"rcp_{'a' * 26}_{number}" for number in (1, 2))


@pytest.fixture
async def till(clock: Any, fake: YooKassaFake) -> Any:
    made = YooKassaHarness(tools_of(clock), clock, fake, receipts=ReceiptNeed.OPTIONAL)
    yield made
    for bank in made.banks:
        await bank.close()


async def paid(till: YooKassaHarness) -> ReceiptRequest:
    """Return the request for the receipt of a payment of 100.00 that was paid with it."""
    request = msgspec.structs.replace(till.request(PAY), receipt=receipt(100_00))
    invoice = await till.bank.create_invoice(request)
    await till.pay(PAY, invoice, 100_00)
    sale = receipt_request(FIRST, 100_00, invoice.reference, is_with_money=True)
    return msgspec.structs.replace(sale, of=PAY, requested_at=till.clock.now())


async def test_receipts_of_payment_and_refund_are_told_with_their_numbers(till: YooKassaHarness) -> None:
    sale = await paid(till)
    found = await till.banks[0].find_receipt(sale)
    assert found is not None
    assert (found.status, found.fiscal.storage) == (ReceiptStatus.DONE, "9999078902004339")
    back = msgspec.structs.replace(sale, kind=ReceiptKind.REFUND, of=REFUND)
    assert await till.banks[0].find_receipt(back) is None
    part = RefundRequest(operation=REFUND, reference=sale.reference, amount_kopecks=30_00, receipt=receipt(30_00))
    await till.bank.refund(part)
    told = await till.banks[0].find_receipt(back)
    assert told is not None
    assert told.fiscal.document not in (None, found.fiscal.document)


async def test_rejected_receipt_is_written_apart_once_whatever_is_lost(
    till: YooKassaHarness, fake: YooKassaFake
) -> None:
    fake.books.receipts_fail = 1
    sale = await paid(till)
    failed = await till.banks[0].find_receipt(sale)
    assert failed is not None
    assert failed.status is ReceiptStatus.FAILED
    again = msgspec.structs.replace(sale, operation=AGAIN, is_with_money=False)
    fake.next(ProviderFault.LOST_AFTER, matching=is_write)
    with pytest.raises(OutcomeUnknown):
        await till.banks[0].write_receipt(again)
    found = await till.banks[0].find_receipt(again)
    assert found is not None, "the list has it, although the answer was lost"
    assert await till.banks[0].write_receipt(again) == found
    assert len(fake.books.of_kind("receipt")) == 2


async def test_second_receipt_is_paid_by_the_prepayment(till: YooKassaHarness, fake: YooKassaFake) -> None:
    sale = await paid(till)
    second = msgspec.structs.replace(sale, operation=AGAIN, is_with_money=False, prepaid_kopecks=100_00)
    assert (await till.banks[0].write_receipt(second)).status is ReceiptStatus.DONE
    assert [each["type"] for each in fake.books.of_kind("receipt")[-1]["settlements"]] == ["prepayment"]
    assert await till.banks[0].find_receipt(second) == await till.another().find_receipt(second)
    correction = Correction(day=till.clock.now().date())
    with pytest.raises(NotSupported):
        await till.banks[0].write_receipt(msgspec.structs.replace(second, correction=correction))


async def test_sdk_of_yookassa_takes_the_receipts_that_we_send(till: YooKassaHarness, fake: YooKassaFake) -> None:
    """Its models validate contacts, items, settlements, marks and lengths, and write the same fields again."""
    sale = await paid(till)
    mark = MarkCode(format=MarkFormat.GS_1M, value="010460000000000821A\x1d91EE")
    items = (
        *receipt(70_00, mode=PaymentMode.FULL_PREPAYMENT, vat=Vat.VAT_22_122, agent=AGENTS[5], supplier=SUPPLIER).items,
        *receipt(30_00, subject=PaymentSubject.MARKED, mark=mark, country="RU", excise_kopecks=1_00).items,
    )
    attribute = UserAttribute(name="Order", value="17")
    whole = msgspec.structs.replace(receipt(100_00), items=items, attribute=attribute, inn="500100732259")
    apart = msgspec.structs.replace(sale, operation=AGAIN, is_with_money=False, receipt=whole, prepaid_kopecks=100_00)
    await till.banks[0].write_receipt(apart)
    requests: Any = import_module("yookassa.domain.request")
    checked = 0
    for request in fake.requests:
        body = json.loads(request.body or b"{}")
        if request.method != "POST":
            continue
        if request.path == "/v3/receipts":
            made = requests.ReceiptRequest(body)
            made.validate()
            assert _values(dict(made)) >= _values({**body, "items": None})
        else:
            made = requests.PaymentRequest(body)
            assert made.receipt.customer.email == EMAIL
            assert len(made.receipt.items) == len(body["receipt"]["items"])
        checked += 1
    assert checked == 2


def _values(body: dict[str, Any]) -> set[str]:
    return {f"{name}={value}" for name, value in body.items() if isinstance(value, str | bool)}
