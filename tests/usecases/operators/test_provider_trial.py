"""A trial: one real payment at a bank, watched and sent back, whatever fails on the way (docs/providers/index.md)."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec
import pytest

import cambist
from cambist.adapters.clock import VirtualClock
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.operators.audit import AuditEntry, OperatorAction
from cambist.core.usecases.actions.audit import acting
from cambist.core.usecases.operators.provider_trial import Trial, TrialNews, TrialStep, run_trial
from cambist.frontends.app.compose import open_app
from cambist.ports import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    OutcomeUnknown,
    RefundRequest,
    RefundState,
    RefundStatus,
    Refused,
    Transfer,
    Unavailable,
)
from cambist.ports.bundle import Ports
from tests.contracts.storage_kit import START

KOPECKS = 1000


class RunningClock(VirtualClock):
    """A clock that jumps ahead instead of sleeping."""

    async def sleep(self, seconds: float) -> None:
        self.step(seconds)


class DeskBank:
    """A bank that acts as scripted: `problems` come first, one for each call of that name."""

    name = "desk"

    def __init__(self, clock: VirtualClock, capabilities: BankCapabilities | None = None) -> None:
        self.capabilities = capabilities or BankCapabilities(max_kopecks=100_00)
        self.clock = clock
        self.problems: dict[str, list[BaseException]] = {}
        self.invoices: dict[str, Invoice] = {}
        self.transfers: list[Transfer] = []
        self.status = InvoiceStatus.OPEN
        self.refunds: dict[str, RefundRequest] = {}
        self.refund_polls: list[RefundStatus] = []
        self.closed = False
        self.polls = 0

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        invoice = Invoice(
            reference=f"desk-{request.operation}", payload="https://qr.example/1", link="https://q.example"
        )
        self.invoices.setdefault(request.operation, invoice)
        self._fail("create_invoice")
        return invoice

    async def find_invoice(self, operation: str) -> Invoice | None:
        self._fail("find_invoice")
        return self.invoices.get(operation)

    async def invoice_state(self, reference: str) -> InvoiceState:
        self.polls += 1
        self._fail("invoice_state")
        return InvoiceState(reference=reference, status=self.status, transfers=tuple(self.transfers))

    async def refund(self, request: RefundRequest) -> RefundState:
        assert request.operation not in self.refunds, "asked for, before it is sent again"
        self._fail("refund_refused")
        self.refunds[request.operation] = request
        self._fail("refund")
        return RefundState(status=self._refund_status())

    async def find_refund(self, operation: str) -> RefundState | None:
        self._fail("find_refund")
        return RefundState(status=self._refund_status()) if operation in self.refunds else None

    async def cancel_invoice(self, reference: str) -> None:
        self.closed = True

    def pay(self, *kopecks: int) -> None:
        self.status = InvoiceStatus.PAID
        self.transfers = [
            Transfer(id=f"t-{number}", amount_kopecks=each, at=self.clock.now(), fee_kopecks=7)
            for number, each in enumerate(kopecks)
        ]

    def _refund_status(self) -> RefundStatus:
        return self.refund_polls.pop(0) if self.refund_polls else RefundStatus.DONE

    def _fail(self, call: str) -> None:
        if self.problems.get(call):
            raise self.problems[call].pop(0)


class Desk(msgspec.Struct):
    """An app whose live bank is the desk's."""

    ports: Ports
    bank: DeskBank
    news: list[TrialNews] = []

    async def run(self, trial: Trial) -> TrialStep:
        action = OperatorAction(operator="ann", name="provider.trial")
        return await run_trial(acting(self.ports, action), trial, self.news.append)

    def trial(self, amount: int = KOPECKS, *, bank: str = "desk") -> Trial:
        operation = f"pay_{self.ports.ids.uuid()}"
        return Trial(operation=operation, bank=bank, amount=Rub(amount), lasts=timedelta(minutes=15))

    def steps(self) -> list[str]:
        return [each.step.value for each in self.news]


@asynccontextmanager
async def opened(capabilities: BankCapabilities | None = None) -> AsyncIterator[Desk]:
    clock = RunningClock(START)
    bank = DeskBank(clock, capabilities)
    settings = cambist.Settings(database_url="memory://")
    adapters = cambist.Adapters(banks={cambist.Mode.LIVE: [bank]})
    async with open_app(settings, adapters=adapters, clock=clock) as app:
        yield Desk(app.ports, bank)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with opened() as one:
        yield one


async def test_trial_returns_the_money_and_reports_every_step(desk: Desk) -> None:
    desk.bank.pay(KOPECKS)
    trial = desk.trial()
    assert await desk.run(trial) is TrialStep.RETURNED
    assert desk.steps() == ["opened", "paid", "returned"]
    assert desk.news[1].message == "10.00 RUB came; the bank keeps 0.07 RUB"
    [sent] = desk.bank.refunds.values()
    assert (sent.amount_kopecks, sent.transfer) == (KOPECKS, "t-0")


async def test_each_transfer_goes_back_by_itself(desk: Desk) -> None:
    """A QR may be paid twice."""
    desk.bank.pay(KOPECKS, KOPECKS)
    assert await desk.run(desk.trial()) is TrialStep.RETURNED
    assert desk.news[1].message == "20.00 RUB came in 2 transfers; the bank keeps 0.14 RUB"
    assert [each.transfer for each in desk.bank.refunds.values()] == ["t-0", "t-1"]


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        *((call, OutcomeUnknown("lost")) for call in ("create_invoice", "refund")),
        *((call, Unavailable("away")) for call in ("find_invoice", "invoice_state", "find_refund", "refund_refused")),
    ],
)
async def test_a_call_that_fails_is_repeated_and_nothing_is_done_twice(desk: Desk, call: str, fault: Exception) -> None:
    """The provider refuses a second refund of one operation, so after a lost answer the refund is queried first."""
    desk.bank.pay(KOPECKS)
    desk.bank.problems[call] = [fault]
    assert await desk.run(desk.trial()) is TrialStep.RETURNED
    assert len(desk.bank.invoices) == len(desk.bank.refunds) == 1


async def test_the_same_trial_goes_on_where_it_stood(desk: Desk) -> None:
    """After Ctrl-C, or a machine that died: the invoice is found, and the money goes back once."""
    trial = desk.trial()
    desk.bank.pay(KOPECKS)
    desk.bank.refund_polls = [RefundStatus.PROCESSING]

    def interrupt(news: TrialNews) -> None:
        if news.step is TrialStep.RETURNING:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        await run_trial(desk.ports, trial, interrupt)
    assert await desk.run(trial) is TrialStep.RETURNED
    assert len(desk.bank.invoices) == len(desk.bank.refunds) == 1


async def test_trial_without_a_payment_ends_not_paid(desk: Desk) -> None:
    assert await desk.run(desk.trial()) is TrialStep.NOT_PAID
    assert desk.steps() == ["opened", "not_paid"]
    assert desk.bank.polls == 15 * 60 / 3 + 1
    assert not desk.bank.closed


async def test_an_open_invoice_is_closed_where_the_bank_can() -> None:
    async with opened(BankCapabilities(cancels_invoices=True)) as desk:
        assert await desk.run(desk.trial()) is TrialStep.NOT_PAID
        assert desk.bank.closed


@pytest.mark.parametrize("status", [InvoiceStatus.FAILED, InvoiceStatus.CANCELLED, InvoiceStatus.EXPIRED])
async def test_an_invoice_that_ends_without_money_ends_the_trial(desk: Desk, status: InvoiceStatus) -> None:
    desk.bank.status = status
    assert await desk.run(desk.trial()) is TrialStep.NOT_PAID
    assert desk.bank.polls == 1


async def test_a_refund_is_watched_to_its_end(desk: Desk) -> None:
    desk.bank.pay(KOPECKS)
    desk.bank.refund_polls = [RefundStatus.PROCESSING, RefundStatus.PROCESSING, RefundStatus.DONE]
    assert await desk.run(desk.trial()) is TrialStep.RETURNED
    assert desk.steps() == ["opened", "paid", "returning", "returned"]


@pytest.mark.parametrize(
    ("polls", "told"),
    [
        ([RefundStatus.FAILED], "the refund is failed; send it by hand"),
        ([RefundStatus.REVERSED], "the refund is reversed; send it by hand"),
        ([RefundStatus.PROCESSING] * 1000, "the refund is still under way at the bank"),
    ],
)
async def test_money_that_does_not_go_back_is_reported(desk: Desk, polls: Sequence[RefundStatus], told: str) -> None:
    desk.bank.pay(KOPECKS)
    desk.bank.refund_polls = list(polls)
    assert await desk.run(desk.trial()) is TrialStep.NOT_RETURNED
    assert desk.news[-1].message == told


async def test_bank_without_refunds_is_reported_as_such() -> None:
    async with opened(BankCapabilities(refunds=False)) as desk:
        desk.bank.pay(KOPECKS)
        assert await desk.run(desk.trial()) is TrialStep.NOT_RETURNED
        assert (desk.bank.refunds, desk.steps()) == ({}, ["opened", "paid", "not_returned"])


async def test_a_bank_that_stays_away_ends_the_trial_with_its_fault(desk: Desk) -> None:
    desk.bank.problems["find_invoice"] = [Unavailable("away")] * 1000
    with pytest.raises(Unavailable, match="away"):
        await desk.run(desk.trial())


@pytest.mark.parametrize(("said", "waits"), [(None, 3), (0.2, 1), (10, 10), (1000, 30)])
@pytest.mark.parametrize("call", ["find_invoice", "invoice_state", "find_refund"])
async def test_a_bank_is_asked_again_when_it_says_within_half_a_minute(
    desk: Desk, call: str, said: float | None, waits: float
) -> None:
    desk.bank.pay(KOPECKS)
    desk.bank.problems[call] = [Unavailable("busy", retry_after=said)]
    began = desk.ports.clock.now()
    assert await desk.run(desk.trial()) is TrialStep.RETURNED
    assert desk.ports.clock.now() - began == timedelta(seconds=waits)


async def test_a_refusal_ends_it_at_once(desk: Desk) -> None:
    desk.bank.pay(KOPECKS)
    desk.bank.problems["refund_refused"] = [Refused("no", reason="amount")]
    with pytest.raises(Refused):
        await desk.run(desk.trial())


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda desk: desk.trial(bank="nobody"), "GATEWAY_NOT_FOUND"),
        (lambda desk: desk.trial(0), "INVALID_AMOUNT"),
        (lambda desk: desk.trial(100_01), "INVALID_AMOUNT"),
        (lambda desk: msgspec.structs.replace(desk.trial(), operation="pay_1"), "VALIDATION_ERROR"),
        (
            lambda desk: msgspec.structs.replace(desk.trial(), operation="pay_ffffffff-ffff-4fff-bfff-ffffffffffff"),
            "VALIDATION_ERROR",
        ),
    ],
)
async def test_impossible_trial_is_refused_before_anything_is_sent(
    desk: Desk, change: Callable[[Desk], Trial], code: str
) -> None:
    with pytest.raises(Refusal) as caught:
        await desk.run(change(desk))
    assert caught.value.code == code
    assert desk.bank.invoices == {}


async def test_the_audit_log_has_it_before_the_bank_is_asked(desk: Desk) -> None:
    """The trial moves money outside the books, so the log must give the reason."""
    desk.bank.problems["find_invoice"] = [Refused("stop")]
    trial = desk.trial()
    with pytest.raises(Refused):
        await desk.run(trial)
    async with desk.ports.storage.unit() as unit:
        [row] = await unit[AuditEntry].find(limit=10)
    assert (row.operator, row.action, row.object_id) == ("ann", "provider.trial", trial.operation)


def test_since_is_the_moment_in_the_operation() -> None:
    trial = Trial(
        operation="pay_01a206fd-3ba6-7b00-979b-00d4115ae3c3", bank="desk", amount=Rub(1), lasts=timedelta(minutes=1)
    )
    assert trial.since.isoformat(timespec="seconds") == "2026-11-23T05:59:48+00:00"
