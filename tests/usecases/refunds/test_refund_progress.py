"""Progress of a refund at the bank: its outcomes, money and events (docs/refunds.md "How it ends"; ARCHITECTURE.md
"Three outcomes")."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.settlement.settlement import Correction
from cambist.core.usecases.common.schedule import ASK_AGAIN
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.refunds.bank_refunds import next_status_poll
from cambist.core.usecases.refunds.contradictions import contradicted_refunds, settle_contradiction
from cambist.frontends.app.compose import FurtherBank
from cambist.ports.bank import BankCapabilities, RefundState, RefundStatus
from cambist.ports.jobs import Job
from tests.domain.refund_kit import NOW
from tests.invariants import everything
from tests.refund_app import RefundApp, conclude, open_refund_app, receive
from tests.tables import table

S = RefundStatus
UNKNOWN = Twist(ending=Ending.UNKNOWN_DONE)
LOST = Twist(ending=Ending.UNKNOWN_NOT_DONE)
AWAY = Twist(ending=Ending.UNAVAILABLE)


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def jobs(refunds: RefundApp) -> list[Job]:
    return [job for job in await everything(refunds.ports, Job) if job.kind == "refund.execute"]


async def test_test_mode_refund_waits_two_seconds_and_completes_after_five(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id)
    for seconds, expected in ((1.9, "pending"), (0.1, "processing"), (4.9, "processing"), (0.1, "completed")):
        await refunds.app.work(seconds)
        assert await refunds.status(refund_id) == expected
    refund, payment = await refunds.refund(refund_id), await refunds.payment(payment_id)
    assert refund.completed_at == refunds.app.clock.now()
    assert (payment.status, payment.refund_pending) == ("refunded", False)
    assert await refunds.said(refund_id) == ["completed"]
    assert await refunds.said(payment_id) == ["paid", "refunded"]
    assert (await refunds.balance()).pending == Rub(0)
    assert await refunds.left_at_bank(payment_id) == 0


async def test_approved_live_refund_goes_to_the_bank_at_once(refunds: RefundApp) -> None:
    await refunds.set(refund_approval="auto")
    payment_id = await refunds.paid(mode="live")
    refund_id = await refunds.apply(payment_id, mode="live")
    await refunds.app.work()
    assert await refunds.status(refund_id) == "completed"


async def test_refund_under_way_keeps_the_status_and_sets_refund_pending(refunds: RefundApp) -> None:
    """While a refund is under way the status stays, and `refund_pending` is true (docs/refunds.md "How it ends")."""
    payment_id = await refunds.paid()
    await refunds.apply(payment_id)
    for seconds in (0, 2, 2):
        await refunds.app.work(seconds)
        shown = (await refunds.app.get(f"/payments/{payment_id}")).json()
        assert (shown["status"], shown["refund_pending"]) == ("paid", True)
    assert await refunds.said(payment_id) == ["paid"], "refund_pending alone sends no event"
    await refunds.app.work(5)
    last = (await refunds.app.events(payment_id))[-1]
    assert (last["status"], last["previous_status"], last["refund_pending"]) == ("refunded", "paid", False)


async def test_a_partial_refund_leaves_the_status_and_the_last_part_moves_it(refunds: RefundApp) -> None:
    payment_id, _ = await refunds.completed("40.00")
    payment = await refunds.payment(payment_id)
    assert (payment.status, payment.refund_pending, payment.refund_taken) == ("paid", False, Rub(40_00))
    assert (await refunds.balance()).pending == Rub(60_00)
    await refunds.apply(payment_id)
    await refunds.app.work(7)
    assert (await refunds.payment(payment_id)).status == "refunded"
    assert await refunds.said(payment_id) == ["paid", "refunded"]


async def test_the_money_is_taken_before_the_bank_is_asked(refunds: RefundApp) -> None:
    """A provider operation is recorded before it is sent: the bank's answer finds the refund `processing`."""
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id)
    refunds.app.script.refund.append(Twist(silence=1.0))
    await refunds.app.clock.advance(2)
    working = asyncio.ensure_future(refunds.app.work())
    await refunds.app.clock.advance(0.5)
    assert await refunds.status(refund_id) == "processing"
    assert (await refunds.balance()).pending == Rub(0)
    await refunds.app.clock.advance(1)
    await working


@pytest.mark.parametrize("amount", [None, "40.00"])
async def test_failed_at_the_bank_gives_the_money_back(refunds: RefundApp, amount: str | None) -> None:
    payment_id, refund_id = await refunds.processing(amount)
    await refunds.tell(refund_id, S.FAILED, "account_closed")
    refund, payment = await refunds.refund(refund_id), await refunds.payment(payment_id)
    assert (refund.status, refund.failure_reason, refund.completed_at) == ("failed", "account_closed", None)
    assert (payment.status, payment.refund_pending, payment.refund_taken) == ("paid", False, Rub(0))
    assert (await refunds.balance()).pending == Rub(100_00)
    assert await refunds.said(refund_id) == ["failed"]
    assert await refunds.said(payment_id) == ["paid"]
    await refunds.app.work(60)
    assert await jobs(refunds) == []


async def test_refused_by_the_bank_for_certain_it_fails_with_the_banks_reason(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id)
    refunds.app.script.refund.append(Twist(ending=Ending.REFUSED, reason="too_old"))
    await refunds.app.work(2)
    assert ((await refunds.refund(refund_id)).failure_reason, await refunds.status(refund_id)) == ("too_old", "failed")
    assert (await refunds.balance()).pending == Rub(100_00)


@pytest.mark.parametrize("ending", [UNKNOWN, LOST, AWAY], ids=["done unheard", "never arrived", "away"])
@pytest.mark.parametrize("silent_polls", [0, 1, 3])
async def test_unknown_outcome_returns_nothing_and_repeats_the_same_operation(
    refunds: RefundApp, ending: Twist, silent_polls: int
) -> None:
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id)
    refunds.app.script.refund.append(ending)
    refunds.app.script.find_refund.extend([AWAY] * silent_polls)
    await refunds.app.work(2)
    for pause in ASK_AGAIN[:silent_polls]:
        await refunds.app.work(pause.total_seconds())
        assert await refunds.status(refund_id) == "processing"
        assert (await refunds.balance()).pending == Rub(0)
    await refunds.app.work(ASK_AGAIN[silent_polls].total_seconds() + 10)
    assert await refunds.status(refund_id) == "completed"
    assert await refunds.left_at_bank(payment_id) == 0
    assert await refunds.said(refund_id) == ["completed"]


async def test_a_repeat_that_is_refused_fails(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id)
    refunds.app.script.refund.extend([LOST, Twist(ending=Ending.REFUSED)])
    await refunds.app.work(2 + 10)
    assert await refunds.status(refund_id) == "failed"
    assert (await refunds.balance()).pending == Rub(100_00)


@table(
    ("asked", "seconds"),
    [(0, 10), (1, 10), (2, 30), (3, 120), (4, 600), (5, 3600), (6, 21_600), (7, 21_600), (900, 21_600)],
)
def test_the_backoff_goes_on_for_ever(asked: int, seconds: int) -> None:
    assert next_status_poll(None, asked, NOW) == NOW + timedelta(seconds=seconds)
    assert next_status_poll(RefundState(status=S.PROCESSING), asked, NOW) == NOW + timedelta(seconds=seconds)


@table(("hint", "seconds"), [(0.0, 1), (5.0, 5), (1e9, 21_600)])
def test_a_hint_of_the_bank_goes_before_the_backoff(hint: float, seconds: int) -> None:
    assert next_status_poll(RefundState(status=S.PROCESSING, check_after=hint), 3, NOW) == NOW + timedelta(
        seconds=seconds
    )


async def test_a_notification_that_never_comes_is_made_up_for_by_looking(refunds: RefundApp) -> None:
    """Held by the bank, it has no hint any more: the backoff finds the end."""
    payment_id, refund_id = await refunds.processing()
    await refunds.tell(refund_id, S.PROCESSING)
    await refunds.app.work(60)
    assert await refunds.status(refund_id) == "processing"
    await refunds.bank().simulate_refund(refund_id, S.FAILED)
    await refunds.app.work(3 * 3600)
    assert await refunds.status(refund_id) == "failed"
    assert (await refunds.payment(payment_id)).refund_pending is False


async def test_notifications_at_once_late_and_twice_make_one_move(refunds: RefundApp) -> None:
    payment_id, refund_id = await refunds.processing()
    notifications = await refunds.bank().simulate_refund(refund_id, S.DONE)
    await asyncio.gather(*(receive(refunds.ports, notifications[0].operation) for _ in range(10)), refunds.app.work())
    await refunds.app.work(60)
    await refunds.notification(refund_id)
    assert await refunds.said(refund_id) == ["completed"]
    assert await refunds.said(payment_id) == ["paid", "refunded"]


@pytest.mark.parametrize("word", [S.PROCESSING, S.DONE, S.FAILED])
async def test_completed_refund_ignores_every_status_but_reversed(refunds: RefundApp, word: RefundStatus) -> None:
    _, refund_id = await refunds.completed()
    await conclude(refunds.ports, refund_id, RefundState(status=word))
    assert await refunds.said(refund_id) == ["completed"]


@pytest.mark.parametrize("word", S)
async def test_the_banks_word_moves_no_refund_that_is_not_at_the_bank(refunds: RefundApp, word: RefundStatus) -> None:
    refund_id = await refunds.apply(await refunds.paid())
    await conclude(refunds.ports, refund_id, RefundState(status=word))
    await refunds.notification(refund_id)
    assert await refunds.status(refund_id) == "pending"
    await refunds.action(f"/refunds/{refund_id}/cancel")
    await conclude(refunds.ports, refund_id, RefundState(status=word))
    assert await refunds.status(refund_id) == "cancelled"


async def test_a_notification_of_no_known_refund_is_let_be(refunds: RefundApp) -> None:
    await refunds.notification("ref_00000000-0000-4000-8000-000000000000")
    await refunds.notification("sus_nothing")


async def test_refund_that_fails_after_settlement_becomes_a_correction(refunds: RefundApp) -> None:
    """A settlement may settle the payment at any moment between the steps."""
    payment_id, refund_id = await refunds.processing("40.00")
    await refunds.tell(refund_id, S.PROCESSING)
    await refunds.settle()
    assert (await refunds.payment(payment_id)).status == "settled"
    await refunds.tell(refund_id, S.FAILED)
    assert (await refunds.payment(payment_id)).status == "settled"
    assert [row.amount for row in await everything(refunds.ports, Correction)] == [Rub(40_00)]
    assert (await refunds.balance()).pending == Rub(40_00)
    await refunds.app.clock.advance(1)
    await refunds.settle()
    assert (await refunds.balance()).pending == Rub(0)


async def test_a_payment_that_is_refunded_whole_is_not_settled_on_the_way(refunds: RefundApp) -> None:
    payment_id, refund_id = await refunds.processing()
    await refunds.settle()
    assert (await refunds.payment(payment_id)).status == "paid"
    await refunds.app.work(5)
    assert (await refunds.status(refund_id), (await refunds.payment(payment_id)).status) == ("completed", "refunded")


async def test_bank_without_refunds_rejects_before_money_is_taken() -> None:
    deaf = FurtherBank(name="deaf", capabilities=BankCapabilities(refunds=False, simulated=True))
    async with open_refund_app(further_banks=[deaf]) as refunds:
        payment_id = await refunds.paid()
        await refunds.change(payment_id, bank="deaf")
        refund_id = await refunds.apply(payment_id)
        await refunds.app.work(2)
        refund, payment = await refunds.refund(refund_id), await refunds.payment(payment_id)
        assert (refund.status, refund.failure_reason) == ("rejected", "not_supported")
        assert (payment.refund_pending, payment.status) == (False, "paid")
        assert await refunds.said(refund_id) == ["rejected"]
        assert await jobs(refunds) == []


async def test_money_whose_name_at_the_bank_nobody_knows_cannot_go_back(refunds: RefundApp) -> None:
    """Its payment has no reference there: rejected by rule, as at a bank that sends nothing back."""
    refunds.app.made_up = True  # the reference is tagged
    payment_id = await refunds.paid()
    await refunds.change(payment_id, bank_reference=None)
    refund_id = await refunds.apply(payment_id)
    await refunds.app.work(2)
    refund = await refunds.refund(refund_id)
    assert (refund.status, refund.failure_reason) == ("rejected", "not_supported")
    assert (await refunds.balance()).pending == Rub(100_00)


async def test_a_bank_that_is_not_wired_any_more_leaves_it_pending_until_it_is(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    await refunds.change(payment_id, bank="gone")
    refund_id = await refunds.apply(payment_id)
    await refunds.app.work(3600)
    assert await refunds.status(refund_id) == "pending"
    await refunds.change(payment_id, bank="simulator-test")
    await refunds.app.work(7 * 3600)
    assert await refunds.status(refund_id) == "completed"


async def test_the_events_carry_what_the_schema_has_and_rise_in_sequence(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id, "40.5", external_id="order-1", metadata={"a": [1]})
    await refunds.app.work(7)
    await refunds.tell(refund_id, S.REVERSED)
    first, second = await refunds.app.events(refund_id)
    payment = await refunds.payment(payment_id)
    assert first == {
        "event": "refund.completed",
        "payment_id": payment_id,
        "refund_id": refund_id,
        "amount_rub": "40.50",
        "status": "completed",
        "external_id": "order-1",
        "metadata": {"a": [1]},
        "shop_id": payment.shop_id,
        "shop_name": "Default",
    }
    assert second == {**first, "event": "refund.reversed", "status": "reversed"}
    await refunds.app.work()
    webhooks = [webhook for webhook in refunds.app.postman.webhooks if b"refund." in webhook.body]
    assert [webhook.headers["X-Webhook-Sequence"] for webhook in webhooks] == ["1", "2"]
    refunds.app.check_signatures()


async def test_failed_refund_that_was_sent_after_all_waits_for_an_operator(refunds: RefundApp) -> None:
    """`failed` is final and the merchant has the money again, so nothing is booked, and an operator must decide."""
    _, refund_id = await refunds.processing()
    await conclude(refunds.ports, refund_id, RefundState(status=S.FAILED))
    assert await contradicted_refunds(refunds.ports) == []
    before = await refunds.balance()
    for _ in range(2):
        await refunds.tell(refund_id, S.DONE)
    [found] = await contradicted_refunds(refunds.ports)
    assert (found.id, found.status) == (refund_id, "failed")
    assert await refunds.balance() == before
    assert await refunds.said(refund_id) == ["failed"]
    [need] = (await read_action_items(refunds.ports)).found
    assert (need.kind, need.object_id, need.since) == ("refund", refund_id, found.contradicted_at)
    assert need.text == "100.00 RUB failed, but was sent"
    await settle_contradiction(refunds.ports, refund_id)
    await refunds.app.clock.advance(1)
    await refunds.tell(refund_id, S.DONE)
    assert (await read_action_items(refunds.ports)).found == []
    with pytest.raises(Refusal, match="settled already"):
        await settle_contradiction(refunds.ports, refund_id)


async def test_a_completed_one_that_the_bank_calls_failed_is_an_operators(refunds: RefundApp) -> None:
    """Nothing is booked, and no event is sent, until the bank reports the refund as done or the money returns."""
    _, refund_id = await refunds.completed()
    before = await refunds.balance()
    for word, waits in ((S.FAILED, 1), (S.FAILED, 1), (S.PROCESSING, 1), (S.DONE, 0), (S.FAILED, 1)):
        await conclude(refunds.ports, refund_id, RefundState(status=word))
        assert [each.id for each in await contradicted_refunds(refunds.ports)] == [refund_id] * waits, word
    [need] = (await read_action_items(refunds.ports)).found
    assert need.text == "100.00 RUB completed, but the bank says that it failed"
    assert await refunds.balance() == before
    assert await refunds.said(refund_id) == ["completed"]
    await settle_contradiction(refunds.ports, refund_id)
    await refunds.app.clock.advance(1)
    await conclude(refunds.ports, refund_id, RefundState(status=S.FAILED))
    assert (await read_action_items(refunds.ports)).found == []
    await conclude(refunds.ports, refund_id, RefundState(status=S.REVERSED))
    assert await refunds.said(refund_id) == ["completed", "reversed"]


async def test_failed_refund_sent_and_reversed_needs_no_operator(refunds: RefundApp) -> None:
    _, refund_id = await refunds.processing()
    await conclude(refunds.ports, refund_id, RefundState(status=S.FAILED))
    for status in (S.DONE, S.REVERSED):
        await refunds.tell(refund_id, status)
    assert await contradicted_refunds(refunds.ports) == []
    assert await refunds.said(refund_id) == ["failed"]
