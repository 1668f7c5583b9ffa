"""A provider that hangs delays only its own calls: they are soon refused, and all others continue."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.core.usecases.payments.progress import look
from cambist.frontends.layers.guard import bulkheads
from cambist.frontends.layers.guard.asker import job_asks, request_asks
from cambist.frontends.layers.guard.bulkheads import CALLS, LEFT, SLOW, TRIALS
from cambist.frontends.layers.guard.guard import LEAST, LIMIT, REQUEST_LIMIT, Guard
from cambist.frontends.telemetry.telemetry import outcome_of
from cambist.frontends.worker.loop import Worker
from cambist.ports.faults import BulkheadFull, OutcomeUnknown, Refused, Unavailable
from tests.apps import TestApp, open_test_app
from tests.providers_kit import inside
from tests.quiesce import at_rest


class Bank:
    """Answers after as long as a test says; None: never."""

    name = "theirs"

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.takes: float | None = None
        self.stubborn = False
        self.fault: Exception | None = None
        self.asked = 0

    async def _action(self, _: str) -> None:
        self.asked += 1
        while self.takes is None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise
        await self.clock.sleep(self.takes)
        if self.fault is not None:
            raise self.fault

    find_invoice = revoke = _action


def how_ended(task: "asyncio.Task[Any]") -> str:
    if not task.done():
        return "under way"
    fault = task.exception()
    return "answer" if fault is None else outcome_of(fault)


class Asking:
    """Calls of one bank, and how they ended."""

    def __init__(self, guard: Guard, clock: VirtualClock) -> None:
        self.guard = guard
        self.clock = clock
        self.bank = Bank(clock)
        self.guarded: Any = guard.over("bank", self.bank)
        self.tasks: list[asyncio.Task[Any]] = []

    async def ask(self, count: int = 1, operation: str = "find_invoice") -> None:
        method = getattr(self.guarded, operation)
        self.tasks += [asyncio.ensure_future(method("given")) for _ in range(count)]
        await at_rest()

    def ends(self) -> Counter[str]:
        """Count the ended calls by outcome and the calls still open, then forget the ended ones."""
        found = Counter(map(how_ended, self.tasks))
        self.tasks = [task for task in self.tasks if not task.done()]
        return found


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    clock = VirtualClock(settle=at_rest)
    guard = Guard(clock)
    made = Asking(guard, clock)
    yield made
    made.bank.stubborn = False
    await guard.close()
    await asyncio.gather(*made.tasks, return_exceptions=True)


async def test_hanging_provider_has_at_most_as_many_calls_as_permits(asking: Asking) -> None:
    await asking.ask(CALLS)
    await asking.clock.advance(SLOW)
    await asking.ask(10)
    assert asking.ends() == {"under way": CALLS, "full": 10}
    assert asking.bank.asked == CALLS


async def test_few_trial_calls_follow_abandoned_ones_until_one_ends(asking: Asking) -> None:
    await asking.ask(CALLS)
    await asking.clock.advance(LIMIT)
    assert asking.ends() == {"timeout": CALLS}
    asking.bank.takes = 1.0
    await asking.ask(TRIALS + 5)
    assert asking.ends() == {"under way": TRIALS, "full": 5}
    await asking.clock.advance(1)
    await asking.ask(CALLS)
    assert asking.ends() == {"answer": TRIALS, "under way": CALLS}


@pytest.mark.parametrize(
    ("fault", "hangs"),
    [(Unavailable("away"), True), (OutcomeUnknown("?"), True), (Refused("no"), False), (None, False)],
)
async def test_adapters_own_time_limit_also_counts_as_a_hang(
    asking: Asking, fault: Exception | None, hangs: bool
) -> None:
    asking.bank.takes, asking.bank.fault = SLOW, fault
    await asking.ask()
    await asking.clock.advance(SLOW)
    asking.ends()
    await asking.ask(CALLS)
    assert asking.ends()["under way"] == (TRIALS if hangs else CALLS)


async def test_quickly_refusing_provider_is_not_hanging(asking: Asking) -> None:
    asking.bank.takes, asking.bank.fault = SLOW - 0.001, Unavailable("away")
    await asking.ask()
    await asking.clock.advance(SLOW)
    await asking.ask(CALLS)
    assert asking.ends() == {"unavailable": 1, "under way": CALLS}


async def test_each_kind_of_call_has_its_own_permits(asking: Asking) -> None:
    await asking.ask(CALLS, "find_invoice")
    await asking.clock.advance(SLOW)
    await asking.ask(1, "revoke")
    with job_asks(lambda: None, lambda: None):
        await asking.ask(1, "find_invoice")
    assert asking.ends() == {"under way": CALLS + 2}


async def test_another_provider_has_all_its_permits(asking: Asking) -> None:
    await asking.ask(CALLS)
    await asking.clock.advance(SLOW)
    other = Asking(asking.guard, asking.clock)
    other.bank.takes = 0.5
    await other.ask(CALLS)
    await asking.clock.advance(0.5)
    assert other.ends() == {"answer": CALLS}


class TestWaitingForATurn:
    """While calls end, the calls above the limit wait a moment."""

    async def test_all_get_their_turn_in_order(self, asking: Asking) -> None:
        asking.bank.takes = 0.5
        await asking.ask(3 * CALLS)
        assert asking.bank.asked == CALLS
        await asking.clock.advance(0.5)
        assert asking.bank.asked == 2 * CALLS
        await asking.clock.advance(1)
        assert asking.ends() == {"answer": 3 * CALLS}

    async def test_call_waits_only_shortly_for_a_slot(self, asking: Asking) -> None:
        await asking.ask(CALLS + 1)
        await asking.clock.advance(SLOW - 0.001)
        assert asking.ends() == {"under way": CALLS + 1}
        await asking.clock.advance(0.001)
        assert asking.ends() == {"under way": CALLS, "full": 1}

    async def test_not_more_wait_than_may(self, asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bulkheads, "WAITING", 3)
        await asking.ask(CALLS + 5)
        assert asking.ends() == {"under way": CALLS + 3, "full": 2}

    @pytest.mark.parametrize("at", [0.4, 0.5])
    async def test_cancelled_call_leaves_its_turn_to_the_next(self, asking: Asking, at: float) -> None:
        asking.bank.takes = 0.5
        await asking.ask(CALLS)
        await asking.ask(2)
        first = asking.tasks[CALLS]
        # At the very moment, too, at which the place is given to it.
        asking.clock.call_later(at, first.cancel)
        await asking.clock.advance(1)
        del asking.tasks[CALLS]
        assert (first.cancelled(), asking.ends()) == (True, {"answer": CALLS + 1})
        asking.bank.takes = None
        await asking.ask(CALLS + 1)
        await asking.clock.advance(SLOW)
        assert asking.ends() == {"under way": CALLS, "full": 1}, "no place is lost, and none was made"


async def test_uncancellable_calls_are_bounded(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    asking.bank.stubborn = True
    for _ in range(LEFT // TRIALS):
        await asking.ask(TRIALS)
        await asking.clock.advance(LIMIT)
    assert asking.ends() == {"timeout": LEFT}
    await asking.ask()
    assert asking.ends() == {"full": 1}
    assert asking.bank.asked == LEFT


async def test_log_shows_the_begin_and_end_of_a_hang(asking: Asking, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        await asking.ask()
        await asking.clock.advance(LIMIT)
        asking.bank.takes = 0.1
        await asking.ask()
        await asking.clock.advance(1)
    said = [line for line in caplog.messages if "reads of requests" in line]
    assert said == [
        "bank theirs: reads of requests hang: 8 at a time until one ends",
        "bank theirs: reads of requests end again",
    ]


class TestRequest:
    """A merchant's request has one limit for all that it asks."""

    @staticmethod
    async def ask_in_turn(asking: Asking, *seconds: float | None) -> tuple[list[str], float]:
        """Return how each ended, and how long all took together."""

        async def request() -> list[str]:
            found = []
            with request_asks():
                for each in seconds:
                    asking.bank.takes = each
                    try:
                        await asking.guarded.find_invoice("given")
                    except Unavailable as fault:
                        found.append(outcome_of(fault))
                    else:
                        found.append("answer")
            return found

        begun = asking.clock.monotonic()
        task = asyncio.create_task(request())
        while not task.done():
            await asking.clock.advance(0.5)
        return task.result(), asking.clock.monotonic() - begun

    async def test_the_second_provider_has_what_the_first_one_left(self, asking: Asking) -> None:
        assert await self.ask_in_turn(asking, None, None) == (["timeout", "timeout"], REQUEST_LIMIT)

    async def test_call_without_time_left_is_not_made(self, asking: Asking) -> None:
        took = REQUEST_LIMIT - LEAST + 1
        ends, seconds = await self.ask_in_turn(asking, 15, took - 15, 0.1)
        assert (ends, seconds, asking.bank.asked) == (["answer", "answer", "unavailable"], took, 2)

    async def test_a_job_has_the_whole_limit_each_time(self, asking: Asking) -> None:
        with ExitStack() as stack:
            stack.enter_context(job_asks(lambda: None, lambda: None))
            for _ in range(3):
                await asking.ask()
                await asking.clock.advance(LIMIT - 0.5)
                assert asking.ends() == {"under way": 1}
                await asking.clock.advance(0.5)
                assert asking.ends() == {"timeout": 1}

    async def test_a_creation_over_two_banks_is_answered_within_25_seconds(self) -> None:
        """The first bank's adapter gives up after 19 s, certain that nothing happened; the second hangs."""
        banks = ("simulator-asked", "simulator")
        async with open_test_app(test_banks=banks) as app:
            first, second = (app.ports.banks.named(name) for name in app.ports.banks.order["test"])

            async def away(_: Any) -> None:
                await app.clock.sleep(19)
                raise Unavailable("away")

            async def lost(_: Any) -> None:
                await asyncio.Event().wait()

            inside(first).create_invoice = away
            inside(second).create_invoice = lost
            creating = asyncio.create_task(app.create())
            for _ in range(25):
                await app.clock.advance(1)
            assert creating.done()
            response = await creating
            assert (response.status_code, response.json()["error"]["code"]) == (502, "PROVIDER_ERROR")


class TestWorker:
    """A live bank that hangs delays only the jobs of its own payments, and those by at most the time limit of a
    call."""

    @staticmethod
    async def advance(app: TestApp, seconds: float) -> None:
        for _ in range(round(seconds)):
            await app.clock.advance(1)

    async def test_80_payments_at_a_bank_that_hangs_delay_nobody_else(self) -> None:
        async with open_test_app() as app:
            [live] = app.ports.banks.order["live"]
            ours = [(await app.create(mode="live")).json()["id"] for _ in range(CALLS + 16)]
            theirs = [(await app.created())["id"] for _ in range(30)]
            bank = inside(app.ports.banks.named(live))
            usual = bank.invoice_state
            bank.invoice_state = lambda _: asyncio.Event().wait()
            worker = Worker(app.ports)
            working = asyncio.create_task(worker.work())
            await app.clock.advance(15 * 60)
            assert await statuses(app, theirs) == {"expired": 0, "pending": 30}, "all wait behind the hanging ones"
            await self.advance(app, SLOW + 1)
            assert await statuses(app, theirs) == {"expired": 30, "pending": 0}
            await self.advance(app, 2 * LIMIT)
            assert await statuses(app, ours) == {"expired": len(ours), "pending": 0}, "a bank that is away keeps none"
            bank.invoice_state = usual
            worker.stop()
            await self.advance(app, LIMIT)
            await working

    async def test_gateway_is_down_as_not_answering_after_abandoned_calls(self) -> None:
        async with open_test_app() as app:
            [live] = app.ports.banks.order["live"]
            for _ in range(20):
                await app.create(mode="live")
            inside(app.ports.banks.named(live)).invoice_state = lambda _: asyncio.Event().wait()
            worker = Worker(app.ports)
            working = asyncio.create_task(worker.work())
            await app.clock.advance(15 * 60)
            await self.advance(app, LIMIT)
            [gateway] = (await app.get("/gateways", mode="live")).json()
            assert (gateway["status"], gateway["reason"]) == ("down", "provider_timeout")
            worker.stop()
            await self.advance(app, LIMIT)
            await working

    async def test_full_bulkhead_does_not_count_against_a_gateway(self) -> None:
        async with open_test_app() as app:
            [live] = app.ports.banks.order["live"]
            payment = await app.payment((await app.create(mode="live")).json()["id"])

            async def full(_: Any) -> None:
                raise BulkheadFull("full")

            inside(app.ports.banks.named(live)).invoice_state = full
            for _ in range(20):
                with pytest.raises(BulkheadFull):
                    await look(app.ports, payment)
            [gateway] = (await app.get("/gateways", mode="live")).json()
            assert gateway["status"] == "operational"


async def statuses(app: TestApp, payment_ids: list[str]) -> dict[str, int]:
    found = Counter([(await app.payment(payment_id)).status.value for payment_id in payment_ids])
    return {"expired": found["expired"], "pending": found["pending"]}
