"""Every call to a provider ends in time, and in one of the three outcomes, whatever its adapter does."""

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.core.domain.payments.payments import Opening, PaymentStatus
from cambist.frontends.layers.guard.guard import LIMIT, Guard
from cambist.frontends.layers.wrapping import OPERATIONS, Does
from cambist.frontends.telemetry.telemetry import outcome_of
from cambist.ports.bank import Invoice, InvoiceRequest, RefundState, RefundStatus
from cambist.ports.faults import Conflict, Fault, NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from cambist.ports.kyc import NoAnswer
from tests.apps import open_test_app
from tests.quiesce import at_rest
from tests.tables import table

ALL = [(port, operation) for port, operations in OPERATIONS.items() for operation in operations]

Actions = Callable[[], Awaitable[Any]]


def adapter(action: Actions) -> Any:
    """Return an adapter that does this on every call."""

    async def method(self: Any, *given: Any) -> Any:
        return await action()

    operations = {name for names in OPERATIONS.values() for name in names}
    return type("Provider", (), {"name": "theirs", **dict.fromkeys(operations, method)})()


async def for_ever() -> None:
    await asyncio.Event().wait()


def ask(guard: Guard, port: str, operation: str, action: Actions) -> "asyncio.Task[Any]":
    return asyncio.ensure_future(getattr(guard.over(port, adapter(action)), operation)("given"))


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock(settle=at_rest)


@pytest.fixture
async def guard(clock: VirtualClock) -> AsyncIterator[Guard]:
    made = Guard(clock)
    yield made
    await made.close()


@table(("port", "operation"), ALL)
async def test_a_call_that_hangs_ends_at_the_limit_and_says_what_is_known(
    clock: VirtualClock, guard: Guard, port: str, operation: str
) -> None:
    asked = ask(guard, port, operation, for_ever)
    await clock.advance(LIMIT - 0.001)
    assert not asked.done()
    await clock.advance(0.001)
    assert asked.done()
    with pytest.raises(Fault) as caught:
        await asked
    writes = OPERATIONS[port][operation] is Does.WRITE
    assert type(caught.value) is (OutcomeUnknown if writes else NoAnswer if port == "kyc" else Unavailable)
    assert outcome_of(caught.value) == "timeout"


async def test_an_answer_in_time_is_the_answer_and_nothing_is_left(clock: VirtualClock, guard: Guard) -> None:
    answer = RefundState(status=RefundStatus.DONE)

    async def slowly() -> RefundState:
        await clock.sleep(LIMIT - 1)
        return answer

    asked = ask(guard, "bank", "refund", slowly)
    await clock.advance(LIMIT - 1)
    assert await asked is answer
    assert clock.next_wake() is None, "no alarm rings for a call that is over"


@pytest.mark.parametrize(
    "fault",
    [
        Refused("no", reason="amount"),
        OutcomeUnknown("perhaps"),
        Unavailable("away", retry_after=3.0),
        NoAnswer("silent"),
        NotConfigured("no key"),
        NotSupported("cannot"),
        Conflict("rule"),
    ],
)
async def test_a_fault_of_the_adapter_is_its_own(guard: Guard, fault: Fault) -> None:
    async def fails() -> None:
        raise fault

    with pytest.raises(Fault) as caught:
        await ask(guard, "bank", "create_invoice", fails)
    assert caught.value is fault


@table(("port", "operation"), ALL)
async def test_unexpected_error_is_an_unknown_outcome_and_its_text_stays_secret(
    guard: Guard, caplog: pytest.LogCaptureFixture, port: str, operation: str
) -> None:
    said = "IVAN PETROV"
    caplog.clear()

    async def breaks() -> None:
        raise KeyError(said)

    with caplog.at_level(logging.INFO), pytest.raises(Fault) as caught:
        await ask(guard, port, operation, breaks)
    writes = OPERATIONS[port][operation] is Does.WRITE
    assert type(caught.value) is (OutcomeUnknown if writes else Unavailable)
    assert "PETROV" not in caplog.text + "".join(traceback.format_exception(caught.value))
    assert f"{port} theirs: {operation} raised KeyError" in caplog.text
    assert "in breaks" in caplog.text, "whoever mends the adapter sees where it broke"


async def test_value_error_about_the_arguments_reaches_the_caller(guard: Guard) -> None:
    async def refuses() -> None:
        raise ValueError("no such hash")

    with pytest.raises(ValueError, match="hash"):
        await ask(guard, "chain", "lookup", refuses)


async def test_an_adapter_that_cancels_itself_does_not_cancel_who_asked(guard: Guard) -> None:
    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    with pytest.raises(OutcomeUnknown):
        await ask(guard, "bank", "refund", cancels_itself)


class TestOneThatCannotBeCancelled:
    """The guard does not wait for such a call: it abandons the call and drops its later answer."""

    @staticmethod
    def stubborn(let_go: asyncio.Event, result: Any) -> Actions:
        async def action() -> Any:
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    continue
            if isinstance(result, Exception):
                raise result
            return result

        return action

    @pytest.mark.parametrize("result", ["paid 100.00 by IVAN PETROV", ValueError("IVAN PETROV")])
    async def test_late_end_of_a_call_is_dropped_with_a_line_in_the_log(
        self, clock: VirtualClock, guard: Guard, caplog: pytest.LogCaptureFixture, result: Any
    ) -> None:
        let_go = asyncio.Event()
        asked = ask(guard, "bank", "refund", self.stubborn(let_go, result))
        await clock.advance(LIMIT)
        with pytest.raises(OutcomeUnknown):
            await asked
        await clock.advance(100)
        with caplog.at_level(logging.WARNING):
            let_go.set()
            await at_rest()
        assert "bank theirs: refund came to an end after 120 s" in caplog.text
        assert "PETROV" not in caplog.text

    async def test_caller_is_cancelled_at_once(self, guard: Guard) -> None:
        let_go = asyncio.Event()
        asked = ask(guard, "bank", "refund", self.stubborn(let_go, None))
        await at_rest()
        asked.cancel()
        await at_rest()
        assert asked.cancelled()
        let_go.set()
        await at_rest()


async def test_cancelled_caller_cancels_the_call(guard: Guard) -> None:
    ended: list[bool] = []

    async def noticed() -> None:
        try:
            await for_ever()
        finally:
            ended.append(True)

    asked = ask(guard, "bank", "refund", noticed)
    await at_rest()
    asked.cancel()
    await at_rest()
    assert ended == [True]


async def test_closing_ends_what_is_under_way(clock: VirtualClock) -> None:
    guard = Guard(clock)
    asked = ask(guard, "bank", "invoice_state", for_ever)
    await at_rest()
    await guard.close()
    with pytest.raises(Unavailable):
        await asked


class TestInTheApp:
    """The effect of a hanging bank on a merchant's payment."""

    async def test_a_creation_is_answered_502_at_the_limit_and_goes_on_as_unknown(self) -> None:
        async with open_test_app(test_banks=("simulator-asked",)) as app:
            [name] = app.ports.banks.order["test"]
            bank: Any = app.ports.banks.named(name)
            asked: list[InvoiceRequest] = []

            async def lost(request: InvoiceRequest) -> Invoice:
                asked.append(request)
                await for_ever()
                raise AssertionError

            bank._adapter.create_invoice = lost
            creating = asyncio.create_task(app.create())
            await app.clock.advance(LIMIT - 1)
            assert not creating.done()
            await app.clock.advance(1)
            response = await creating
            assert (response.status_code, response.json()["error"]["code"]) == (502, "PROVIDER_ERROR")
            payment = await app.payment(asked[0].operation)
            assert (payment.status, payment.opening) == (PaymentStatus.PENDING, Opening.UNKNOWN)

    async def test_a_day_that_passes_in_one_step_ends_no_call_that_gets_its_answers(self) -> None:
        async with open_test_app() as app:
            payment = await app.created()
            await app.clock.advance(86_400)
            await app.work()
            assert (await app.payment(payment["id"])).status is PaymentStatus.EXPIRED
