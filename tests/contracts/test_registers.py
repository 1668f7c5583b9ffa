"""The simulated cash register keeps the contract of registers (frontends/conformance/registers.py), and the contract
finds planted bugs by their rules."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.receipts.simulator import TAKES, SimulatedReceipt, SimulatedRegister
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.frontends.conformance import registers
from cambist.frontends.conformance.harnesses import AskedReceipt, RegisterHarness
from cambist.frontends.conformance.receipts import EMAIL, receipt
from cambist.ports.faults import Refused
from cambist.ports.operation_log import OperationLog
from cambist.ports.receipts import FiscalData, ReceiptKind, ReceiptRequest, ReceiptState, ReceiptStatus
from tests.contracts.biting import Planted, check_bite, named

KEY = "register-secret-key"


class SimulatorHarness(RegisterHarness):
    secrets = (KEY,)

    def __init__(self, register: type[SimulatedRegister] = SimulatedRegister) -> None:
        self.clock = self.virtual = VirtualClock()
        self.storage = MemoryStorage(self.clock)
        self.register = self.simulated = register("till", self.storage, self.clock)
        self._receipts = OperationLog("till", SimulatedReceipt, self.storage, self.clock)

    async def write(self, operation: str) -> None:
        await self.virtual.advance(TAKES.total_seconds())

    async def reject(self, operation: str, quoted: str) -> None:
        await self.simulated.reject(operation, quoted.partition(" ")[0])

    async def asked(self, operation: str) -> Sequence[AskedReceipt]:
        kept = [await self._receipts.read(operation), *await self._receipts.below(operation)]
        return [
            AskedReceipt(kind=each.kind, total_kopecks=each.total_kopecks, prepaid_kopecks=each.prepaid_kopecks)
            for each in kept
            if each is not None
        ]


class TestSimulatedRegister:
    @pytest.fixture
    def register_harness(self) -> RegisterHarness:
        return SimulatorHarness()

    class TestReceipts(registers.TestReceipts): ...

    class TestStates(registers.TestStates): ...

    class TestOfItself(registers.TestWhatItSays): ...


class Doubles(SimulatedRegister):
    """Writes a document for each call."""

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        state = await super().write_receipt(request)
        stored = await self._receipts.read(request.operation)
        assert stored is not None
        calls = len(await self._receipts.below(request.operation))
        if calls + getattr(self, "calls", 0):
            await self._receipts.start(f"{request.operation}/{calls}", stored)
        self.calls = 1
        return state


class RefusesRepeats(SimulatedRegister):
    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        if await self._receipts.read(request.operation) is not None:
            return ReceiptState(status=ReceiptStatus.FAILED, failure="the document exists (33)")
        return await super().write_receipt(request)


class KnowsPaymentsOnly(SimulatedRegister):
    """Takes the payment's sum as the document's id."""

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        return await super().write_receipt(msgspec.structs.replace(request, operation=str(request.amount_kopecks)))

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        return await super().find_receipt(msgspec.structs.replace(request, operation=str(request.amount_kopecks)))


class NeverCompares(SimulatedRegister):
    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        try:
            return await super().write_receipt(request)
        except Refused as refused:
            if refused.reason != "operation":
                raise
            return ReceiptState(status=ReceiptStatus.PROCESSING)


class FindsEverything(SimulatedRegister):
    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        return await super().find_receipt(request) or ReceiptState(status=ReceiptStatus.PROCESSING)


class RaisesForTheUnknown(SimulatedRegister):
    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        found = await super().find_receipt(request)
        if found is None:
            raise Refused("404", reason="not_found")
        return found


class _Alters(SimulatedRegister):
    def altered(self, request: ReceiptRequest) -> ReceiptRequest:
        raise NotImplementedError

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        return await super().write_receipt(self.altered(request))


class SellsRefunds(_Alters):
    def altered(self, request: ReceiptRequest) -> ReceiptRequest:
        return msgspec.structs.replace(request, kind=ReceiptKind.SALE)


class DropsAnItem(_Alters):
    def altered(self, request: ReceiptRequest) -> ReceiptRequest:
        return msgspec.structs.replace(
            request, receipt=msgspec.structs.replace(request.receipt, items=request.receipt.items[:1])
        )


class ForgetsThePrepaid(_Alters):
    def altered(self, request: ReceiptRequest) -> ReceiptRequest:
        if not 0 <= request.prepaid_kopecks <= request.receipt.total_kopecks:
            return request
        return msgspec.structs.replace(request, prepaid_kopecks=0)


class SellsInsteadOfCorrecting(_Alters):
    def altered(self, request: ReceiptRequest) -> ReceiptRequest:
        plain = {ReceiptKind.SALE_CORRECTION: ReceiptKind.SALE, ReceiptKind.REFUND_CORRECTION: ReceiptKind.REFUND}
        return msgspec.structs.replace(request, kind=plain.get(request.kind, request.kind))


class NeedsAnEmail(SimulatedRegister):
    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        if request.receipt.email is None:
            raise Refused("no e-mail", reason="receipt")
        return await super().write_receipt(request)


class TakesAnySums(_Alters):
    def altered(self, request: ReceiptRequest) -> ReceiptRequest:
        total = request.receipt.total_kopecks
        return msgspec.structs.replace(request, prepaid_kopecks=min(max(request.prepaid_kopecks, 0), total))


class RaisesOtherReasons(SimulatedRegister):
    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        if request.receipt.items and request.receipt.items[0].vat not in ("none", "22"):
            raise Refused("no such rate", reason="vat")
        return await super().write_receipt(request)


class IsDoneAtOnce(SimulatedRegister):
    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        await super().write_receipt(request)
        return ReceiptState(status=ReceiptStatus.DONE, fiscal=FiscalData(storage="1", document="1", sign="1"))


class IsNeverDone(SimulatedRegister):
    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        found = await super().find_receipt(request)
        return None if found is None else ReceiptState(status=ReceiptStatus.PROCESSING)


class LosesTheNumbers(SimulatedRegister):
    def _state(self, operation: str, stored: SimulatedReceipt) -> ReceiptState:
        return msgspec.structs.replace(super()._state(operation, stored), fiscal=FiscalData())


class SaysNaiveMoments(SimulatedRegister):
    def _state(self, operation: str, stored: SimulatedReceipt) -> ReceiptState:
        state = super()._state(operation, stored)
        at = state.fiscal.registered_at
        naive = None if at is None else at.replace(tzinfo=None)
        return msgspec.structs.replace(state, fiscal=msgspec.structs.replace(state.fiscal, registered_at=naive))


class CountsAnew(SimulatedRegister):
    number = 0

    def _state(self, operation: str, stored: SimulatedReceipt) -> ReceiptState:
        state = super()._state(operation, stored)
        self.number += 1
        return msgspec.structs.replace(state, fiscal=msgspec.structs.replace(state.fiscal, document=str(self.number)))


class WaitsForTheRejected(SimulatedRegister):
    def _state(self, operation: str, stored: SimulatedReceipt) -> ReceiptState:
        state = super()._state(operation, stored)
        is_failed = state.status is ReceiptStatus.FAILED
        return ReceiptState(status=ReceiptStatus.PROCESSING) if is_failed else state


class SaysNoReason(SimulatedRegister):
    def _state(self, operation: str, stored: SimulatedReceipt) -> ReceiptState:
        return msgspec.structs.replace(super()._state(operation, stored), failure=None)


class QuotesTheCustomer(SimulatedRegister):
    def _state(self, operation: str, stored: SimulatedReceipt) -> ReceiptState:
        state = super()._state(operation, stored)
        return state if state.failure is None else msgspec.structs.replace(state, failure=f"wrong address {EMAIL}")


class TriesTheRejectedAgain(SimulatedRegister):
    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        state = await super().write_receipt(request)
        if state.status is ReceiptStatus.FAILED:
            await self._receipts.change(request.operation, lambda stored: msgspec.structs.replace(stored, failure=None))
            return ReceiptState(status=ReceiptStatus.PROCESSING)
        return state


class ShowsItsKey(SimulatedRegister):
    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        try:
            return await super().write_receipt(request)
        except Refused as fault:
            raise Refused(f"POST /sell?token={KEY}: {fault}", reason=fault.reason) from fault


class HasNoName(SimulatedRegister):
    @property
    def name(self) -> str:
        return ""


_OF = registers.TestReceipts
_STATES = registers.TestStates
BUGS = (
    Planted(Doubles, _OF, "test_a_receipt_is_written", "two are a tax offence"),
    Planted(Doubles, _OF, "test_repeats_at_once", "two are a tax offence"),
    Planted(RefusesRepeats, _OF, "test_a_receipt_is_written", "a repeat must return the state"),
    Planted(KnowsPaymentsOnly, _OF, "test_two_operations", "two operations must be two receipts"),
    Planted(NeverCompares, _OF, "test_another_receipt", "another receipt of the same", ({"receipt": receipt(99_99)},)),
    Planted(FindsEverything, _OF, "test_an_operation", "must not be found"),
    Planted(RaisesForTheUnknown, _OF, "test_an_operation", "must be found as None"),
    Planted(SellsRefunds, _OF, "test_the_register_gets", "a refund must be a refund", (ReceiptKind.REFUND,)),
    Planted(DropsAnItem, _OF, "test_the_register_gets", "the sum to the kopeck", (ReceiptKind.SALE,)),
    Planted(ForgetsThePrepaid, _OF, "test_second_receipt", "must be reported as such", (30_00,)),
    Planted(
        SellsInsteadOfCorrecting,
        _OF,
        "test_a_correction",
        "must not be an ordinary",
        (ReceiptKind.SALE_CORRECTION, None),
    ),
    Planted(NeedsAnEmail, _OF, "test_one_address", "a phone or an e-mail alone", ({"email": None},)),
    Planted(RaisesOtherReasons, _OF, "test_every_word", "the reason of the refusal"),
    Planted(
        TakesAnySums, _OF, "test_sums", "do not agree must be refused", (registers.request_of(prepaid_kopecks=-1),)
    ),
    Planted(IsDoneAtOnce, _STATES, "test_a_receipt_is_done", "not done before the register has written"),
    Planted(IsNeverDone, _STATES, "test_a_receipt_is_done", "is done when the register has written"),
    Planted(LosesTheNumbers, _STATES, "test_a_receipt_is_done", "has the numbers"),
    Planted(SaysNaiveMoments, _STATES, "test_a_receipt_is_done", "has a time zone"),
    Planted(CountsAnew, _STATES, "test_a_receipt_is_done", "must stay the same"),
    Planted(WaitsForTheRejected, _STATES, "test_a_rejected", "rejected is FAILED"),
    Planted(SaysNoReason, _STATES, "test_a_rejected", "must say why"),
    Planted(QuotesTheCustomer, _STATES, "test_a_rejected", "must not contain the customer's data"),
    Planted(TriesTheRejectedAgain, _STATES, "test_a_rejected", "is final"),
    Planted(ShowsItsKey, registers.TestWhatItSays, "test_no_credential", "a credential"),
    Planted(HasNoName, registers.TestWhatItSays, "test_its_name", "1 to 64 characters"),
)


async def opened(_: AsyncExitStack, adapter: type[Any] | None) -> SimulatorHarness:
    return SimulatorHarness(adapter or SimulatedRegister)


@pytest.mark.parametrize("bug", BUGS, ids=named)
async def test_register_with_a_planted_bug_fails_by_its_rule(bug: Planted) -> None:
    await check_bite(bug, opened)
