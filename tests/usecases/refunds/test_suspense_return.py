"""Returns of money in suspense (docs/payments.md "Money that cannot count")."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ledger import BalanceType, EntryKind, JournalEntry
from cambist.core.domain.payments.payments import PaymentStatus
from cambist.core.domain.payments.reports import Report
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.refunds.suspense_returns import return_operation
from cambist.core.usecases.common.schedule import ASK_AGAIN
from cambist.core.usecases.operators.review import list_suspense, resolve_mismatch
from cambist.core.usecases.payments.moves import apply
from cambist.core.usecases.refunds import suspense_progress
from cambist.core.usecases.refunds.bank_refunds import REVERSAL_POLLS
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.frontends.app.compose import FurtherBank
from cambist.ports.bank import BankCapabilities, InvoiceStatus, RefundState, RefundStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.jobs import Job
from tests.invariants import balances, everything
from tests.refund_app import RefundApp, conclude_return, open_refund_app

S = RefundStatus


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def mismatch(refunds: RefundApp) -> str:
    """A payment of 100 RUB for which 60 came; resolved to `failed`."""
    payment_id: str = (await refunds.app.created())["id"]
    await refunds.app.simulate(payment_id, outcome="paid", actual_amount_rub="60.00")
    await resolve_mismatch(refunds.ports, payment_id, "failed")
    return payment_id


async def second_transfer(refunds: RefundApp) -> tuple[str, Suspense]:
    """A payment of 100 RUB that was paid, and then 30 more by the same QR."""
    payment_id = await refunds.paid()
    await refunds.app.told(payment_id, Simulation(status=InvoiceStatus.PAID, amount_kopecks=30_00, again=True))
    [money] = await list_suspense(refunds.ports)
    return payment_id, money


async def only(refunds: RefundApp) -> Suspense:
    [money] = await everything(refunds.ports, Suspense)
    assert isinstance(money, Suspense)
    return money


async def in_suspense(refunds: RefundApp) -> int:
    caller = await refunds.caller()
    return (await balances(refunds.ports))[caller.account_id, caller.mode, BalanceType.SUSPENSE]


async def jobs(refunds: RefundApp) -> list[Job]:
    return [job for job in await everything(refunds.ports, Job) if job.kind == "suspense.send"]


async def test_a_mismatch_resolved_to_failed_is_sent_back_by_itself(refunds: RefundApp) -> None:
    payment_id = await mismatch(refunds)
    assert (await only(refunds)).resolved_at is None
    await refunds.app.work()
    assert (await only(refunds)).resolved_at is None, "the bank has it under way"
    assert await in_suspense(refunds) == 60_00
    await refunds.app.work(5)
    assert (await only(refunds)).resolved_at == refunds.app.clock.now()
    assert await in_suspense(refunds) == 0
    assert await refunds.left_at_bank(payment_id) == 0
    assert await list_suspense(refunds.ports) == []
    assert await refunds.said(payment_id) == ["amount_mismatch", "failed"]


async def test_other_suspense_waits_for_the_operator(refunds: RefundApp) -> None:
    payment_id, money = await second_transfer(refunds)
    await refunds.app.work(3600)
    assert (await only(refunds)).resolved_at is None
    await asyncio.gather(*(return_suspense(refunds.ports, money.id) for _ in range(5)))
    await refunds.app.work(6)
    assert (await only(refunds)).resolved_at is not None
    assert await refunds.left_at_bank(payment_id) == 100_00
    refund_id = await refunds.apply(payment_id)
    await refunds.app.work(7)
    assert await refunds.status(refund_id) == "completed"
    assert await refunds.left_at_bank(payment_id) == 0


async def test_return_names_its_own_transfer(refunds: RefundApp) -> None:
    """Also when the payment itself was refunded first, and the other way round."""
    payment_id, money = await second_transfer(refunds)
    await refunds.apply(payment_id)
    await refunds.app.work(7)
    await return_suspense(refunds.ports, money.id)
    await refunds.app.work(6)
    assert await in_suspense(refunds) == 0
    assert await refunds.left_at_bank(payment_id) == 0


async def test_return_is_sent_once(refunds: RefundApp) -> None:
    _, money = await second_transfer(refunds)
    await return_suspense(refunds.ports, money.id)
    await refunds.app.work(6)
    with pytest.raises(Refusal) as refused:
        await return_suspense(refunds.ports, money.id)
    assert refused.value.code == "INVALID_STATE"
    for _ in range(2):
        await refunds.notification(return_operation(money, 1))
    kinds = [entry.kind for entry in await everything(refunds.ports, JournalEntry) if entry.object_id == money.id]
    assert sorted(kinds) == [EntryKind.SUSPENSE, EntryKind.SUSPENSE_RETURNED]


async def test_each_suspense_of_one_payment_is_found_by_its_return_operation(
    refunds: RefundApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may pay a QR as often as the bank lets him: more than are read at once."""
    monkeypatch.setattr(suspense_progress, "_BATCH", 2)
    payment_id, _ = await second_transfer(refunds)
    for _ in range(4):
        await refunds.app.told(payment_id, Simulation(status=InvoiceStatus.PAID, amount_kopecks=30_00, again=True))
    found = await list_suspense(refunds.ports)
    assert len(found) == 5
    async with refunds.ports.storage.unit() as unit:
        for money in found:
            assert await suspense_progress.suspense_of(unit, return_operation(money, 1)) == (money, 1)
        other = msgspec.structs.replace(found[0], id="sus_other")
        assert await suspense_progress.suspense_of(unit, return_operation(other, 1)) is None


@pytest.mark.parametrize("unknown", ["sus_x", "", "sus_\0", "pay_x"])
async def test_unknown_money_is_not_found(refunds: RefundApp, unknown: str) -> None:
    with pytest.raises(Refusal) as refused:
        await return_suspense(refunds.ports, unknown)
    assert refused.value.code == "SUSPENSE_NOT_FOUND"


@pytest.mark.parametrize("ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE])
async def test_return_with_an_unknown_outcome_stays_in_suspense_until_polled(
    refunds: RefundApp, ending: Ending
) -> None:
    payment_id = await mismatch(refunds)
    refunds.app.script.refund.append(Twist(ending=ending))
    refunds.app.script.find_refund.append(Twist(ending=Ending.UNAVAILABLE))
    await refunds.app.work(ASK_AGAIN[0].total_seconds())
    assert await in_suspense(refunds) == 60_00
    await refunds.app.work(60)
    assert (await in_suspense(refunds), await refunds.left_at_bank(payment_id)) == (0, 0)


@pytest.mark.parametrize("how", ["refused", "failed later"])
async def test_return_that_the_bank_cannot_send_stays_with_its_reason(refunds: RefundApp, how: str) -> None:
    await mismatch(refunds)
    if how == "refused":
        refunds.app.script.refund.append(Twist(ending=Ending.REFUSED))
        await refunds.app.work()
    else:
        await refunds.app.work()
        await refunds.tell(return_operation(await only(refunds), 1), S.FAILED)
        await refunds.app.work(10)
    money = await only(refunds)
    assert (money.resolved_at, money.reason) == (None, "return_failed")
    assert await jobs(refunds) == []
    if how == "refused":
        await return_suspense(refunds.ports, money.id)
        await refunds.app.work(6)
        assert (await only(refunds)).resolved_at is not None


@pytest.mark.parametrize("noticed", [True, False])
async def test_reversed_return_is_in_suspense_again(refunds: RefundApp, noticed: bool) -> None:
    await mismatch(refunds)
    await refunds.app.work(6)
    money = await only(refunds)
    if noticed:
        await refunds.tell(return_operation(money, 1), S.REVERSED)
        await refunds.notification(return_operation(money, 1))
    else:
        await refunds.bank().simulate_refund(return_operation(money, 1), S.REVERSED)
        await refunds.app.work(REVERSAL_POLLS[0].total_seconds())
    money = await only(refunds)
    assert (money.resolved_at, money.reason) == (None, "return_reversed")
    assert await in_suspense(refunds) == 60_00


async def test_reversed_before_anybody_looked_nothing_left_the_books(refunds: RefundApp) -> None:
    await mismatch(refunds)
    await refunds.app.work()
    money = await only(refunds)
    for status in (S.DONE, S.REVERSED):
        await refunds.bank().simulate_refund(return_operation(money, 1), status)
    await refunds.app.work(20)
    assert ((await only(refunds)).reason, await in_suspense(refunds)) == ("return_reversed", 60_00)
    assert await jobs(refunds) == []


async def test_a_bank_that_sends_nothing_back_is_said_at_once() -> None:
    deaf = FurtherBank(name="deaf", capabilities=BankCapabilities(refunds=False, simulated=True))
    async with open_refund_app(further_banks=[deaf]) as refunds:
        payment_id, money = await second_transfer(refunds)
        for name in ("deaf", "gone"):
            await refunds.change(payment_id, bank=name)
            with pytest.raises(Refusal) as refused:
                await return_suspense(refunds.ports, money.id)
            assert refused.value.code == "INVALID_STATE"
        mine = await mismatch(refunds)
        await refunds.change(mine, bank="deaf")
        await refunds.app.work(60)
        found = {row.payment_id: row.reason for row in await list_suspense(refunds.ports)}
        assert found[mine] == "return_failed"


async def test_return_of_unreported_money_names_no_transfer(refunds: RefundApp) -> None:
    """The operator enters the received amount. A bank that knows no such money refuses, and the item stays with the
    operator."""
    payment = await refunds.app.created()
    await apply(refunds.ports, payment["id"], Report(status=PaymentStatus.PAID))
    await resolve_mismatch(refunds.ports, payment["id"], "failed", amount=(await refunds.payment(payment["id"])).amount)
    await refunds.app.work(60)
    money = await only(refunds)
    assert (money.resolved_at, money.reason) == (None, "return_failed")


@pytest.mark.parametrize("went", [True, False])
async def test_an_answer_from_before_it_came_back_moves_nothing(refunds: RefundApp, went: bool) -> None:
    """Two polls run at once: the poll that received DONE is handled after the poll that received REVERSED. The money is
    here."""
    await mismatch(refunds)
    await refunds.app.work(6 if went else 0)
    money = await only(refunds)
    for status in (S.REVERSED, S.DONE, S.REVERSED):
        await conclude_return(refunds.ports, return_operation(money, 1), RefundState(status=status))
    money = await only(refunds)
    assert (money.resolved_at, money.reason) == (None, "return_reversed")
    assert await in_suspense(refunds) == 60_00


async def entries(refunds: RefundApp, money_id: str) -> list[str]:
    """Return kind and revision of the money's ledger entries, in the order of time."""
    found = await everything(refunds.ports, JournalEntry)
    mine = sorted((entry for entry in found if entry.object_id == money_id), key=lambda entry: entry.at)
    return [f"{entry.kind}:{entry.revision}" for entry in mine]


@pytest.mark.parametrize("how", ["failed", "reversed"])
async def test_a_further_attempt_is_another_operation(refunds: RefundApp, how: str) -> None:
    """A bank repeats its answer for an operation that it knows, so with the same operation the money would stay for
    ever."""
    payment_id = await mismatch(refunds)
    await refunds.app.work(0 if how == "failed" else 6)
    money = await only(refunds)
    await refunds.tell(return_operation(money, 1), S(how))
    await refunds.app.work(10)
    await return_suspense(refunds.ports, money.id)
    assert ((await only(refunds)).attempt, (await only(refunds)).reason) == (2, "returned_anew")
    await refunds.app.work(6)
    assert (await in_suspense(refunds), await refunds.left_at_bank(payment_id)) == (0, 0)
    # Its notifications are matched, and returned money is in suspense once more.
    await refunds.tell(return_operation(money, 2), S.REVERSED)
    assert ((await only(refunds)).reason, await in_suspense(refunds)) == ("return_reversed", 60_00)
    await return_suspense(refunds.ports, money.id)
    await refunds.app.work(6)
    assert await in_suspense(refunds) == 0
    first = ["suspense_returned:1", "suspense:2"] if how == "reversed" else []
    assert await entries(refunds, money.id) == [
        "suspense:1", *first, "suspense_returned:2", "suspense:3", "suspense_returned:3"
    ]  # fmt: skip


async def test_late_words_of_an_earlier_attempt_move_nothing(
    refunds: RefundApp, caplog: pytest.LogCaptureFixture
) -> None:
    await mismatch(refunds)
    await refunds.app.work()
    money = await only(refunds)
    await refunds.tell(return_operation(money, 1), S.FAILED)
    await return_suspense(refunds.ports, money.id)
    for status in S:
        caplog.clear()
        await conclude_return(refunds.ports, return_operation(money, 1), RefundState(status=status))
        assert ("settle it with the bank" in caplog.text) == (status is S.DONE)
    assert ((await only(refunds)).resolved_at, (await only(refunds)).reason) == (None, "returned_anew")
    assert await in_suspense(refunds) == 60_00
    # The job that waited for the first attempt is for the second one now, although the first is over.
    await refunds.app.work(6)
    assert await in_suspense(refunds) == 0


async def test_an_attempt_that_went_after_all_is_booked_instead_of_sending_twice(refunds: RefundApp) -> None:
    payment_id = await mismatch(refunds)
    await refunds.app.work()
    money = await only(refunds)
    # Our question was answered `failed`, and the money went: the notification of that was lost.
    await conclude_return(refunds.ports, return_operation(money, 1), RefundState(status=S.FAILED))
    with pytest.raises(Refusal, match="executing the last attempt"):
        await return_suspense(refunds.ports, money.id)
    await refunds.bank().simulate_refund(return_operation(money, 1), S.DONE)
    with pytest.raises(Refusal, match="not in suspense"):
        await return_suspense(refunds.ports, money.id)
    await refunds.app.work(60)
    assert ((await only(refunds)).attempt, await in_suspense(refunds)) == (1, 0)
    assert await refunds.left_at_bank(payment_id) == 0


async def test_return_that_keeps_failing_is_left_to_operators(refunds: RefundApp) -> None:
    await mismatch(refunds)
    for number in range(1, 11):
        refunds.app.script.refund.append(Twist(ending=Ending.REFUSED))
        await refunds.app.work(2)
        money = await only(refunds)
        assert (money.attempt, money.reason) == (number, "return_failed")
        if number < 10:
            await return_suspense(refunds.ports, money.id)
    with pytest.raises(Refusal, match="10 times"):
        await return_suspense(refunds.ports, (await only(refunds)).id)


async def test_simultaneous_operators_make_one_attempt(refunds: RefundApp) -> None:
    await mismatch(refunds)
    refunds.app.script.refund.append(Twist(ending=Ending.REFUSED))
    await refunds.app.work()
    money = await only(refunds)
    await asyncio.gather(*(return_suspense(refunds.ports, money.id) for _ in range(3)))
    assert (await only(refunds)).attempt == 2
