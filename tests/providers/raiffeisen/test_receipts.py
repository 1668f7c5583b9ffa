"""Receipts at Raiffeisenbank's cash register. One receipt for each payment and each refund reaches the tax office,
despite failed and repeated calls (docs/providers/raiffeisen.md "Receipts")."""

from collections.abc import AsyncIterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from cambist.adapters.bank.raiffeisen.adapter import RaiffeisenBank
from cambist.adapters.bank.raiffeisen.register import Register
from cambist.adapters.clock import SystemClock
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.operators.action_item import ActionItem
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.receipts.receipts import list_receipts_for, retry_receipt_for
from cambist.frontends.conformance.receipts import EMAIL, receipt, receipt_request
from cambist.ports import (
    Fault,
    NotConfigured,
    OutcomeUnknown,
    PaymentMode,
    PaymentSubject,
    ReceiptKind,
    ReceiptNeed,
    ReceiptStatus,
    Refused,
    Unavailable,
    Vat,
)
from cambist.ports.jobs import Job
from cambist.testing import ProviderFault, ProviderRequest
from tests.invariants import everything
from tests.providers.raiffeisen.app import RECEIPTS, TERMS
from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.raiffeisen.fake_rules import SECRET
from tests.providers.raiffeisen.harness import REGISTER, adapter, new_tools
from tests.providers.raiffeisen.test_app import Shop, open_shop
from tests.tables import table

OPERATION = "pay_0198c3f2-7d1a-7e4b-9f60-000000000001"
SALE_OF = receipt_request(OPERATION, 490_00, "qr//AD1/order")


@pytest.fixture
async def books() -> AsyncIterator[Raiffeisen]:
    async with Raiffeisen() as opened:
        yield opened


@pytest.fixture
async def bank(books: Raiffeisen) -> AsyncIterator[RaiffeisenBank]:
    made = adapter(new_tools(SystemClock()), books)
    yield made
    await made.close()


def registered(books: Raiffeisen) -> int:
    """Return the number of receipts that the tax office got."""
    return sum(each["registered"] for each in books.receipts.values())


async def test_a_receipt_is_saved_and_registered_with_what_was_paid(bank: RaiffeisenBank, books: Raiffeisen) -> None:
    assert (await bank.write_receipt(SALE_OF)).status is ReceiptStatus.PROCESSING
    books.finish()
    assert (await bank.write_receipt(SALE_OF)).status is ReceiptStatus.DONE
    back = msgspec.structs.replace(SALE_OF, kind=ReceiptKind.REFUND, receipt=receipt(90_00, vat=Vat.VAT_22))
    await bank.write_receipt(back)
    sale, refund = books.receipts["sell", OPERATION], books.receipts["refund", OPERATION]
    assert (sale["total"], sale["client"], sale["receiptType"]) == (Decimal(490), {"email": EMAIL}, "SELL")
    assert (refund["total"], refund["items"][0]["vatType"], refund["receiptType"]) == (Decimal(90), "VAT22", "REFUND")
    assert registered(books) == 2


FAULTS = [
    ProviderFault.LOST_BEFORE,
    ProviderFault.LOST_AFTER,
    ProviderFault.CUT_IN_BODY,
    ProviderFault.BUSY,
    ProviderFault.SERVER_ERROR,
    ProviderFault.BAD_GATEWAY,
    ProviderFault.HTML,
    ProviderFault.JSON_WITHOUT_FIELDS,
]


async def test_any_fault_leaves_one_registered_receipt(bank: RaiffeisenBank, books: Raiffeisen) -> None:
    """Each fault at each of the three calls, until the bank says that it is done."""
    rows = [(fault, method) for fault in FAULTS for method in ("GET", "POST", "PUT")]
    for number, (fault, method) in enumerate(rows):
        request = msgspec.structs.replace(SALE_OF, operation=f"{OPERATION[:-4]}{number:04}")

        def is_meant(asked: ProviderRequest, method: str = method) -> bool:
            return asked.method == method

        books.next(fault, matching=is_meant)
        with suppress(OutcomeUnknown, Unavailable):  # the HTTP client itself repeats a GET and a PUT
            await bank.write_receipt(request)
        assert (await bank.write_receipt(request)).status is ReceiptStatus.PROCESSING, (fault, method)
        books.finish()
        assert (await bank.write_receipt(request)).status is ReceiptStatus.DONE, (fault, method)
        assert books.receipts["sell", request.operation]["registered"] == 1, (fault, method)


async def test_receipt_registered_by_another_process_is_not_repeated(bank: RaiffeisenBank, books: Raiffeisen) -> None:
    """Between our question and our saving, and between our saving and our registering."""
    for number, method in enumerate(("POST", "PUT")):
        request = msgspec.structs.replace(SALE_OF, operation=f"{OPERATION[:-4]}{number:04}")
        body = REGISTER.told(request.receipt, request.operation)

        def other(asked: ProviderRequest, method: str = method, body: dict[str, Any] = body) -> bool:
            if asked.method == method and not books.receipts_of(body["receiptNumber"]):
                books._save_receipt("sell", body)
                books._register_receipt("sell", body["receiptNumber"])
            return False

        books.next(ProviderFault.BUSY, matching=other, always=True)
        assert (await bank.write_receipt(request)).status is ReceiptStatus.PROCESSING
        assert books.receipts["sell", request.operation]["registered"] == 1
        books.recover()


async def test_status_of_the_register_becomes_the_receipts_status(bank: RaiffeisenBank, books: Raiffeisen) -> None:
    books.next_receipt = "FAILED"
    await bank.write_receipt(SALE_OF)
    books.finish()
    for _ in range(2):
        assert (await bank.write_receipt(SALE_OF)).status is ReceiptStatus.FAILED, "a failed one is not sent anew"
    books.receipts["sell", OPERATION]["status"] = "A_NEW_WORD"
    assert (await bank.write_receipt(SALE_OF)).status is ReceiptStatus.PROCESSING
    with pytest.raises(Refused) as refused:
        await bank.write_receipt(msgspec.structs.replace(SALE_OF, receipt=receipt(1_00)))
    assert refused.value.reason == "operation"
    books.has_register = False
    with pytest.raises(NotConfigured) as unset:
        await bank.write_receipt(msgspec.structs.replace(SALE_OF, operation="pay_another"))
    assert EMAIL not in str(unset.value)
    assert registered(books) == 1


@table(
    "told, register",
    [
        (receipt(100_00, subject=PaymentSubject.COMPOSITE), REGISTER),
        (receipt(100_00, mode=PaymentMode.CREDIT_PAYMENT), REGISTER),
        (receipt(99_99), REGISTER),
        (None, msgspec.structs.replace(REGISTER, need=ReceiptNeed.REQUIRED)),
        (msgspec.structs.replace(receipt(100_00), email=None), Register(need=ReceiptNeed.OPTIONAL)),
        (receipt(100_00, vat=Vat.VAT_22), msgspec.structs.replace(REGISTER, is_former=True)),
        (receipt(100_00, mode=PaymentMode.ADVANCE), msgspec.structs.replace(REGISTER, is_former=True)),
    ],
)
async def test_impossible_receipt_is_refused_before_the_payment(told: Any, register: Register) -> None:
    async with Raiffeisen() as books:
        bank = adapter(new_tools(SystemClock()), books, register)
        with pytest.raises(Refused) as refused:
            bank._check_receipt(told, 100_00)
        assert refused.value.reason == "receipt"
        await bank.close()


async def test_the_words_of_2021_are_taken_by_who_knows_no_others(books: Raiffeisen) -> None:
    books.is_former = True
    new = adapter(new_tools(SystemClock()), books)
    former = adapter(new_tools(SystemClock()), books, msgspec.structs.replace(REGISTER, is_former=True))
    with pytest.raises(Fault) as refused:
        await new.write_receipt(SALE_OF)
    assert isinstance(refused.value, Refused)
    await former.write_receipt(SALE_OF)
    assert books.receipts["sell", OPERATION]["items"][0]["vatType"] == "none"
    for each in (new, former):
        await each.close()


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop(own=RECEIPTS) as made:
        await accounts.set_settings(made.app.ports, made.app.account.account_id, TERMS)
        yield made


async def paid(shop: Shop) -> str:
    payment: str = (await shop.ask("POST", "/payments", amount_rub="490.00", client_email="p@example.com"))["id"]
    [qr] = [each for each in shop.bank.qrs.values() if each["order"] == payment]
    shop.bank.pay(qr["qrId"])
    assert await shop.tell(shop.bank.notification(payment)) == 200
    assert (await shop.ask("GET", f"/payments/{payment}"))["status"] == "paid"
    return payment


async def receipts_that_wait(shop: Shop) -> list[ActionItem]:
    """Return the receipts that operators see in their action items and alarms."""
    return [each for each in (await read_action_items(shop.app.ports)).found if each.kind == "receipt"]


async def test_a_payment_and_its_refund_have_a_receipt_each(shop: Shop) -> None:
    payment = await paid(shop)
    refund = (await shop.ask("POST", "/refunds", payment_id=payment, amount_rub="90.00"))["id"]
    await shop.app.work(3600)
    written = [(side, each["total"], each["client"]["email"]) for (side, _), each in shop.bank.receipts.items()]
    assert written == [("sell", Decimal(490), "p@example.com"), ("refund", Decimal(90), "p@example.com")]
    assert registered(shop.bank) == 2
    receipts = await list_receipts_for(shop.app.ports, payment_id=payment)
    assert {(each.refund_id, each.status.value) for each in receipts} == {(None, "succeeded"), (refund, "succeeded")}
    assert not [job for job in await everything(shop.app.ports, Job) if job.kind.startswith("receipt.")]


async def test_a_register_that_is_away_keeps_no_payment_waiting(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """Its receipt comes late, and once; nothing of payer or key is logged."""
    shop.bank.has_register = False
    payment = await paid(shop)
    await shop.app.work(1800)
    assert not await receipts_that_wait(shop), "a cash register may be away for a while"
    await shop.app.work(7 * 3600)
    assert shop.told(payment) == ["paid"]
    assert not shop.bank.receipts
    [waiting] = await receipts_that_wait(shop)
    assert waiting.mode is Mode.LIVE
    assert waiting.text.startswith("not written; the shift ends at ")
    shop.bank.has_register = True
    await shop.app.work(7 * 3600)
    assert [len(shop.bank.receipts), registered(shop.bank)] == [1, 1]
    assert not await receipts_that_wait(shop)
    assert "p@example.com" not in caplog.text
    assert SECRET not in caplog.text


async def test_receipt_that_the_register_rejects_is_tried_again_under_another_number(shop: Shop) -> None:
    shop.bank.next_receipt = "FAILED"
    payment = await paid(shop)
    await shop.app.work(86400)
    [failed] = await list_receipts_for(shop.app.ports, payment_id=payment)
    assert (failed.status, failed.failure_reason, registered(shop.bank)) == ("failed", "FAILED", 1)
    [waiting] = await receipts_that_wait(shop)
    assert waiting.text.startswith("failed; the shift ends at ")
    await retry_receipt_for(shop.app.ports, failed.id)
    await shop.app.work(3600)
    [written] = await list_receipts_for(shop.app.ports, payment_id=payment)
    assert (written.status, written.attempt) == ("succeeded", 2)
    assert sorted(each["status"] for each in shop.bank.receipts.values()) == ["DONE", "FAILED"]
    assert not await receipts_that_wait(shop)
