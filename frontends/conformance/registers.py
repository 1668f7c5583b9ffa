"""Contract of a cash register (ports/receipts.py: ReceiptRegister). Your conftest.py provides a fixture
`register_harness`, a RegisterHarness."""

import asyncio
from collections.abc import Sequence
from datetime import date
from typing import Any

import msgspec
import pytest

from ...ports.faults import Fault, NotSupported, Refused
from ...ports.receipts import (
    Correction,
    MarkCode,
    MarkFormat,
    Measure,
    PaymentMode,
    PaymentSubject,
    Receipt,
    ReceiptKind,
    ReceiptRequest,
    ReceiptState,
    ReceiptStatus,
    TaxSystem,
    UserAttribute,
    Vat,
)
from .expectations import may_raise, must_answer, must_raise
from .harnesses import AskedReceipt, RegisterHarness, check_hidden, check_name
from .hearing import NotificationRules, Told, told
from .problem import CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules
from .receipts import AGENTS, EMAIL, PHONE, SUPPLIER, receipt, receipt_request

_PACKED = "agmmh4t5dj7exh3aaaaaaaaaai"
_ONCE = "one operation must be one receipt: two are a tax offence"
_FOUND = "a receipt that was requested must be found by its operation"
_CORRECTION = Correction(day=date(2026, 11, 20))


def receipt_id(number: int = 1) -> str:
    """Return the id of a receipt: the record's UUID in 26 characters, and the number of the attempt."""
    return f"rcp_{_PACKED}_{100_000_000 + number}"


OPERATION, OTHER = receipt_id(1), receipt_id(2)


def request_of(operation: str = OPERATION, kopecks: int = 100_00, **more: Any) -> ReceiptRequest:
    """Return a request for a receipt with one item."""
    return receipt_request(operation, kopecks, "", **more)


async def _only(harness: RegisterHarness, operation: str = OPERATION) -> AskedReceipt:
    asked = await harness.asked(operation)
    assert len(asked) == 1, f"{_ONCE}: the register has {len(asked)}"
    return asked[0]


async def _state(harness: RegisterHarness, request: ReceiptRequest) -> ReceiptState:
    found = await harness.register.find_receipt(request)
    assert found is not None, _FOUND
    return found


class TestReceipts:
    """One operation is one receipt, and the register gets what the request says."""

    async def test_a_receipt_is_written_once_however_often_it_is_sent(self, register_harness: RegisterHarness) -> None:
        request = request_of()
        for _ in range(3):
            state = await register_harness.register.write_receipt(request)
            assert state.status is not ReceiptStatus.FAILED, "a repeat must return the state of the same receipt"
            await _state(register_harness, request)
        await _only(register_harness)
        await register_harness.write(OPERATION)
        again = await register_harness.register.write_receipt(request)
        assert again.status is ReceiptStatus.DONE, "a repeat must return the state of the same receipt"
        await _only(register_harness)

    async def test_repeats_at_once_are_one_receipt(self, register_harness: RegisterHarness) -> None:
        await asyncio.gather(*(register_harness.register.write_receipt(request_of()) for _ in range(5)))
        await _only(register_harness)

    async def test_two_operations_are_two_receipts(self, register_harness: RegisterHarness) -> None:
        """The second attempt of a receipt, and another payment of the same sum, have ids of their own."""
        for operation in (OPERATION, OTHER):
            await register_harness.register.write_receipt(request_of(operation))
        await register_harness.reject(OPERATION, "out of paper")
        await register_harness.write(OTHER)
        states = [await _state(register_harness, request_of(operation)) for operation in (OPERATION, OTHER)]
        assert [state.status for state in states] == [ReceiptStatus.FAILED, ReceiptStatus.DONE], (
            "two operations must be two receipts, also if they are equal"
        )

    @pytest.mark.parametrize(
        "changes",
        [
            {"receipt": receipt(99_99)},
            {"receipt": receipt(100_00, vat=Vat.VAT_22)},
            {"kind": ReceiptKind.REFUND},
            {"prepaid_kopecks": 50_00},
        ],
        ids=["sum", "item", "kind", "payment"],
    )
    async def test_another_receipt_of_the_same_operation_is_refused(
        self, register_harness: RegisterHarness, changes: dict[str, Any]
    ) -> None:
        await register_harness.register.write_receipt(request_of())
        with must_raise("another receipt of the same operation must be refused", Refused, reason="operation"):
            await register_harness.register.write_receipt(msgspec.structs.replace(request_of(), **changes))
        await _only(register_harness)

    async def test_an_operation_that_never_came_is_not_found(self, register_harness: RegisterHarness) -> None:
        with must_answer("an operation that the register never saw must be found as None, without a fault"):
            found = await register_harness.register.find_receipt(request_of(receipt_id(99)))
        assert found is None, "an operation that the register never saw must not be found"

    @pytest.mark.parametrize("kind", [ReceiptKind.SALE, ReceiptKind.REFUND])
    async def test_the_register_gets_the_receipt_of_the_request(
        self, register_harness: RegisterHarness, kind: ReceiptKind
    ) -> None:
        [item] = receipt(33_33).items
        items = (item, msgspec.structs.replace(item, name="Order 2", price_kopecks=1_11, thousandths=1500))
        request = request_of(kopecks=35_00, kind=kind, receipt=msgspec.structs.replace(receipt(1), items=items))
        await register_harness.register.write_receipt(request)
        asked = await _only(register_harness)
        assert asked.kind is kind, "a refund must be a refund, and a sale a sale"
        assert asked.total_kopecks == 35_00, "the register must get the sum to the kopeck"
        assert asked.items in (msgspec.UNSET, ["Order 1", "Order 2"], ("Order 1", "Order 2")), "and all items"
        assert asked.email in (msgspec.UNSET, EMAIL), "the receipt must go to the customer of the request"
        assert asked.prepaid_kopecks in (msgspec.UNSET, 0), "money that is paid now is not prepaid"

    @pytest.mark.parametrize("prepaid", [30_00, 100_00])
    async def test_second_receipt_reports_the_prepaid_part(
        self, register_harness: RegisterHarness, prepaid: int
    ) -> None:
        await register_harness.register.write_receipt(request_of(prepaid_kopecks=prepaid))
        asked = await _only(register_harness)
        assert asked.total_kopecks == 100_00, "the prepaid part belongs to the sum"
        assert asked.prepaid_kopecks in (msgspec.UNSET, prepaid), "money of an earlier receipt must be reported as such"

    @pytest.mark.parametrize("order", [None, "17-a"])
    @pytest.mark.parametrize("kind", [ReceiptKind.SALE_CORRECTION, ReceiptKind.REFUND_CORRECTION])
    async def test_a_correction_is_one_or_is_not_supported(
        self, register_harness: RegisterHarness, kind: ReceiptKind, order: str | None
    ) -> None:
        request = request_of(kind=kind, correction=msgspec.structs.replace(_CORRECTION, order=order))
        if kind not in register_harness.corrects:
            with must_raise("a correction that the register does not have must be NotSupported", NotSupported):
                await register_harness.register.write_receipt(request)
            assert not await register_harness.asked(OPERATION), "and nothing may be written instead"
            return
        await register_harness.register.write_receipt(request)
        asked = await _only(register_harness)
        assert asked.kind is kind, "a correction must not be an ordinary receipt"
        assert asked.total_kopecks == 100_00, "the register must get the sum to the kopeck"

    async def test_every_word_has_a_code_there_or_is_refused(self, register_harness: RegisterHarness) -> None:
        plain = receipt(100_00)
        told: Sequence[Receipt] = (
            *(receipt(100_00, vat=vat) for vat in Vat),
            *(receipt(100_00, subject=subject) for subject in PaymentSubject),
            *(receipt(100_00, mode=mode) for mode in PaymentMode),
            *(receipt(80_00, measure=measure, thousandths=1250) for measure in Measure),
            *(msgspec.structs.replace(plain, tax_system=system) for system in TaxSystem),
            *(receipt(100_00, agent=agent, supplier=SUPPLIER) for agent in AGENTS),
            *(
                receipt(100_00, subject=PaymentSubject.MARKED, mark=MarkCode(format=form, value="0104600000000008" * 2))
                for form in MarkFormat
            ),
            receipt(100_00, country="CN", customs_declaration="10702030/060625/5000001"),
            receipt(100_00, subject=PaymentSubject.EXCISE, excise_kopecks=10_50),
            receipt(100_00, additional="row 5"),
            msgspec.structs.replace(plain, name="Anna Orlova", inn="500100732259"),
            msgspec.structs.replace(plain, attribute=UserAttribute(name="Order", value="17")),
        )
        taken = 0
        for number, each in enumerate(told, 1000):
            request = request_of(receipt_id(number), 100_00, receipt=each)
            with may_raise("a receipt without a form there is refused", Refused, reason="receipt"):
                await register_harness.register.write_receipt(request)
            there = len(await register_harness.asked(request.operation))
            taken += there
            assert there <= 1, _ONCE
        assert taken > len(told) / 2, "a register must take most of what the law names"

    @pytest.mark.parametrize("contact", [{"email": None}, {"phone": None}], ids=["phone", "email"])
    async def test_one_address_is_enough(self, register_harness: RegisterHarness, contact: dict[str, None]) -> None:
        told = msgspec.structs.replace(receipt(100_00), **contact)
        with must_answer("a receipt with a phone or an e-mail alone is written"):
            await register_harness.register.write_receipt(request_of(receipt=told))

    @pytest.mark.parametrize(
        "request_",
        [
            request_of(receipt=msgspec.structs.replace(receipt(100_00), items=())),
            request_of(prepaid_kopecks=100_01),
            request_of(prepaid_kopecks=-1),
        ],
        ids=["no items", "more prepaid than sold", "less than nothing prepaid"],
    )
    async def test_sums_that_do_not_agree_are_refused_for_certain(
        self, register_harness: RegisterHarness, request_: ReceiptRequest
    ) -> None:
        with must_raise("a receipt whose sums do not agree must be refused", Refused, reason="receipt"):
            await register_harness.register.write_receipt(request_)
        assert not await register_harness.asked(OPERATION), "a refused receipt must not exist"


class TestStates:
    """A receipt is in progress until the register has written or rejected it, and then stays so."""

    async def test_a_receipt_is_done_when_it_is_written(self, register_harness: RegisterHarness) -> None:
        request = request_of()
        begun = await register_harness.register.write_receipt(request)
        assert begun.status is ReceiptStatus.PROCESSING, "a receipt is not done before the register has written it"
        assert (await _state(register_harness, request)).status is ReceiptStatus.PROCESSING, "and a read says the same"
        await register_harness.write(OPERATION)
        done = await _state(register_harness, request)
        assert done.status is ReceiptStatus.DONE, "a receipt is done when the register has written it"
        numbers = (done.fiscal.storage, done.fiscal.document, done.fiscal.sign)
        assert all(numbers), "a receipt that is done has the numbers by which it is found"
        assert done.fiscal.registered_at is None or done.fiscal.registered_at.utcoffset() is not None, (
            "the time on the receipt has a time zone"
        )
        assert await _state(register_harness, request) == done, "numbers must stay the same however often they are read"

    async def test_a_rejected_receipt_says_why_and_stays_rejected(self, register_harness: RegisterHarness) -> None:
        request = request_of()
        await register_harness.register.write_receipt(request)
        await register_harness.reject(OPERATION, f"wrong e-mail {EMAIL}, phone {PHONE}")
        failed = await _state(register_harness, request)
        assert failed.status is ReceiptStatus.FAILED, "a receipt that the register rejected is FAILED"
        assert failed.failure, "a receipt that failed must say why"
        for value in (EMAIL, PHONE, PHONE.lstrip("+")):
            assert value not in failed.failure, "the reason of a failure must not contain the customer's data"
        again = await register_harness.register.write_receipt(request)
        assert again == failed, "a failed receipt is final: another attempt has another operation"
        assert len(await register_harness.asked(OPERATION)) == 1, _ONCE


class _OfReceipts:
    @pytest.fixture
    async def work(self, register_harness: RegisterHarness) -> Work:
        register, request = register_harness.register, request_of()

        async def is_there() -> bool:
            return await register.find_receipt(request) is not None

        async def once() -> None:
            await _state(register_harness, request)
            await _only(register_harness)

        return Work(
            harness=register_harness,
            adapter=register,
            write=lambda: register.write_receipt(request),
            is_there=is_there,
            once=once,
            beside=lambda: register_harness.another().write_receipt(request),
            hidden=(EMAIL, PHONE),
            in_one_call=register_harness.finds_lost,
        )


class TestReceiptsAtFaults(_OfReceipts, WriteRules, ReadRules):
    """Receipts while the provider fails."""

    @pytest.fixture
    async def read(self, register_harness: RegisterHarness) -> Reading:
        request = request_of()
        await register_harness.register.write_receipt(request)
        reads = (lambda: register_harness.register.find_receipt(request),)
        return Reading(harness=register_harness, adapter=register_harness.register, reads=reads, hidden=(EMAIL, PHONE))


class TestCancelledReceipts(_OfReceipts, CancelRules):
    """Receipts when the caller cancels the call."""


class TestTwoReceipts(_OfReceipts, TwoProcessRules):
    """Two processes request one receipt."""


class TestNotifications(NotificationRules):
    """A genuine notification from the register is accepted, but only as a hint to poll."""

    @pytest.fixture
    async def noticed(self, register_harness: RegisterHarness) -> Told:
        await register_harness.register.write_receipt(request_of())
        return await told(register_harness.register, register_harness, OPERATION, OTHER)


class TestWhatItSays:
    """The register has a valid name, and neither its repr nor its faults leak data."""

    async def test_its_name_can_be_stored(self, register_harness: RegisterHarness) -> None:
        check_name(register_harness.register)

    async def test_no_credential_and_no_customer_shows(self, register_harness: RegisterHarness) -> None:
        with must_raise("a receipt without items must raise a fault", Fault) as raised:
            empty = msgspec.structs.replace(receipt(100_00), items=())
            await register_harness.register.write_receipt(request_of(receipt=empty))
        check_hidden((*register_harness.secrets, EMAIL, PHONE), register_harness.register, raised.value)
