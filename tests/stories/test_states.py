"""One scenario for each row of the state tables of payments, refunds, payouts and subscriptions, over HTTP, by the
public interface and the sandbox alone: time passes by the account's clock (docs/states.md; docs/sandbox.md "States
and how to reach them"). Before a scenario only the account is set up, as at its connection or in the dashboard. A
row without a scenario fails. The sandbox cannot reach the rows of delivery proofs and their reminders, since a
test-mode payment takes none (`400 FEATURE_NOT_ENABLED`)."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from uuid import uuid4

import pytest

from cambist.core.domain.machine import Moves
from cambist.core.domain.payments.payments import PAYMENT_MOVES, PaymentStatus
from cambist.core.domain.refunds.refunds import REFUND_MOVES, RefundStatus
from cambist.core.domain.settlement.withdrawals import WITHDRAWAL_MOVES, WithdrawalStatus
from cambist.core.domain.subscriptions.subscriptions import SUBSCRIPTION_MOVES, SubscriptionStatus
from cambist.core.usecases.accounts import accounts
from tests.apps import TestApp, open_test_app
from tests.moves import pairs
from tests.payout_kit import WALLET

P, R, S, W = PaymentStatus, RefundStatus, SubscriptionStatus, WithdrawalStatus


class Integrator:
    """A merchant's test program, with nothing but test keys. It records each object's statuses in order."""

    def __init__(self, app: TestApp) -> None:
        self.app = app

    async def call(self, method: str, path: str, body: Any = None, *, creates: bool = False) -> dict[str, Any]:
        headers = self.app.headers(**({"Idempotency_Key": str(uuid4())} if creates else {}))
        response = await self.app.http.request(method, f"/api/v1{path}", json=body, headers=headers)
        assert response.is_success, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def payment(self, amount: str = "100.00") -> str:
        made = await self.call("POST", "/payments", {"amount_rub": amount}, creates=True)
        assert made["status"] == "pending"
        assert made["sandbox"] is True
        return str(made["id"])

    async def simulate(self, payment_id: str, outcome: str, **more: Any) -> None:
        await self.call("POST", f"/sandbox/payments/{payment_id}/simulate", {"outcome": outcome, **more})

    async def in_status(self, *outcomes: str) -> str:
        """A payment that the bank reported these of, one after the other."""
        payment_id = await self.payment()
        for outcome in outcomes:
            await self.simulate(payment_id, outcome)
        return payment_id

    async def resolve(self, payment_id: str, outcome: str) -> None:
        await self.call("POST", f"/sandbox/payments/{payment_id}/resolve", {"outcome": outcome})

    async def settle(self) -> None:
        await self.call("POST", "/sandbox/settlements")

    async def wait(self, seconds: int) -> None:
        """Let the account's time pass."""
        moved = await self.call("POST", "/sandbox/clock/advance", {"seconds": seconds})
        assert moved["advancing"] is False

    async def refund(self, payment_id: str, *outcomes: str) -> str:
        """A refund of the whole payment, led to these outcomes."""
        made = await self.call("POST", "/refunds", {"payment_id": payment_id}, creates=True)
        assert made["status"] == "pending"
        for outcome in outcomes:
            await self.play_refund(made["id"], outcome)
        return str(made["id"])

    async def play_refund(self, refund_id: str, outcome: str) -> None:
        await self.call("POST", f"/sandbox/refunds/{refund_id}/simulate", {"outcome": outcome})

    async def payout(self) -> str:
        """Make a payout from a settled payment, and return its id."""
        await self.in_status("paid")
        await self.settle()
        [made] = (await self.call("GET", "/withdrawals"))["data"]
        return str(made["id"])

    async def connected(self, **texts: str) -> None:
        """Set the account's settings, as at its connection or in the merchant's dashboard."""
        await accounts.set_settings(self.app.ports, self.app.account.account_id, texts)

    async def play_payout(self, withdrawal_id: str, outcome: str) -> None:
        shown = await self.call("POST", f"/sandbox/withdrawals/{withdrawal_id}/simulate", {"outcome": outcome})
        assert shown["status"] == outcome

    async def shown(self, kind: str, object_id: str) -> dict[str, Any]:
        return await self.call("GET", f"/{kind}/{object_id}")

    async def told(self, object_id: str) -> list[dict[str, Any]]:
        """The payloads of its events, as the interface shows them, oldest first."""
        listed = (await self.call("GET", f"/events?object_id={object_id}&per_page=100"))["data"]
        whole = [await self.call("GET", f"/events/{event['id']}") for event in reversed(listed)]
        return [event["payload"] for event in whole]


Story = Callable[[Integrator], Awaitable[str]]
"""Makes the move happen; the id of the object that made it."""


def by_the_bank(*outcomes: str) -> Story:
    async def story(merchant: Integrator) -> str:
        return await merchant.in_status(*outcomes)

    return story


def by_review(outcome: str) -> Story:
    async def story(merchant: Integrator) -> str:
        payment_id = await merchant.in_status("amount_mismatch")
        await merchant.resolve(payment_id, outcome)
        return payment_id

    return story


def by_nobody(*outcomes: str) -> Story:
    """The clock runs out."""

    async def story(merchant: Integrator) -> str:
        payment_id = await merchant.in_status(*outcomes)
        await merchant.wait(16 * 60)
        return payment_id

    return story


def by_the_late_payer(outcome: str) -> Story:
    """Within 6 hours of the creation."""

    async def story(merchant: Integrator) -> str:
        payment_id = await merchant.payment()
        await merchant.wait(5 * 3600)
        await merchant.simulate(payment_id, outcome)
        return payment_id

    return story


def by_money(*outcomes: str, settled: bool) -> Story:
    """A paid payment, settled or not, whose refund comes to these outcomes."""

    async def story(merchant: Integrator) -> str:
        payment_id = await merchant.in_status("paid")
        if settled:
            # A refund after the settlement takes the market value, more than this payment alone brought.
            await merchant.in_status("paid")
            await merchant.settle()
        if outcomes:
            await merchant.refund(payment_id, *outcomes)
        return payment_id

    return story


PAYMENT_STORIES: Mapping[tuple[PaymentStatus, PaymentStatus], Story] = {
    (P.PENDING, P.PROCESSING): by_the_bank("processing"),
    (P.PENDING, P.PAID): by_the_bank("paid"),
    (P.PENDING, P.AMOUNT_MISMATCH): by_the_bank("amount_mismatch"),
    (P.PENDING, P.FAILED): by_the_bank("failed"),
    (P.PENDING, P.CANCELLED): by_the_bank("cancelled"),
    (P.PENDING, P.EXPIRED): by_nobody(),
    (P.PROCESSING, P.PAID): by_the_bank("processing", "paid"),
    (P.PROCESSING, P.AMOUNT_MISMATCH): by_the_bank("processing", "amount_mismatch"),
    (P.PROCESSING, P.FAILED): by_the_bank("processing", "failed"),
    (P.PROCESSING, P.CANCELLED): by_the_bank("processing", "cancelled"),
    (P.PROCESSING, P.EXPIRED): by_the_bank("processing", "expired"),
    (P.EXPIRED, P.PAID): by_the_late_payer("paid"),
    (P.EXPIRED, P.AMOUNT_MISMATCH): by_the_late_payer("amount_mismatch"),
    (P.AMOUNT_MISMATCH, P.PAID): by_review("paid"),
    (P.AMOUNT_MISMATCH, P.FAILED): by_review("failed"),
    (P.PAID, P.SETTLED): by_money(settled=True),
    (P.PAID, P.REFUNDED): by_money("completed", settled=False),
    (P.SETTLED, P.REFUNDED): by_money("completed", settled=True),
    (P.REFUNDED, P.PAID): by_money("completed", "reversed", settled=False),
    (P.REFUNDED, P.SETTLED): by_money("completed", "reversed", settled=True),
}


def refunded(*outcomes: str) -> Story:
    async def story(merchant: Integrator) -> str:
        return await merchant.refund(await merchant.in_status("paid"), *outcomes)

    return story


async def cancelled_by_the_merchant(merchant: Integrator) -> str:
    refund_id = await merchant.refund(await merchant.in_status("paid"))
    await merchant.call("POST", f"/refunds/{refund_id}/cancel")
    return refund_id


async def approved_by_the_operator(merchant: Integrator) -> str:
    refund_id = await merchant.refund(await merchant.in_status("paid"), "awaiting_approval")
    # It stays unapproved, however long the merchant waits.
    await merchant.wait(86_400)
    shown = await merchant.shown("refunds", refund_id)
    assert (shown["status"], shown["pending_reason"]) == ("pending", "awaiting_approval")
    await merchant.play_refund(refund_id, "processing")
    return refund_id


REFUND_STORIES: Mapping[tuple[RefundStatus, RefundStatus], Story] = {
    (R.PENDING, R.PROCESSING): approved_by_the_operator,
    (R.PENDING, R.REJECTED): refunded("rejected"),
    (R.PENDING, R.CANCELLED): cancelled_by_the_merchant,
    (R.PROCESSING, R.COMPLETED): refunded("completed"),
    (R.PROCESSING, R.FAILED): refunded("failed"),
    (R.COMPLETED, R.REVERSED): refunded("completed", "reversed"),
}


async def paid_out(merchant: Integrator) -> str:
    withdrawal_id = await merchant.payout()
    await merchant.wait(300)
    return withdrawal_id


def played_payout(*outcomes: str) -> Story:
    """A payout that the network, or the operator, led to these outcomes, one after the other."""

    async def story(merchant: Integrator) -> str:
        withdrawal_id = await merchant.payout()
        for outcome in outcomes:
            await merchant.play_payout(withdrawal_id, outcome)
        return withdrawal_id

    return story


PAYOUT_STORIES: Mapping[tuple[WithdrawalStatus, WithdrawalStatus], Story] = {
    (W.PENDING, W.PROCESSING): paid_out,
    (W.PROCESSING, W.SENT): paid_out,
    (W.SENT, W.COMPLETED): played_payout("sent", "completed"),
    (W.PENDING, W.CANCELLED): played_payout("cancelled"),
    (W.PROCESSING, W.FAILED): played_payout("processing", "failed"),
    (W.SENT, W.FAILED): played_payout("sent", "failed"),
}


def subscribed(*steps: str) -> Story:
    """A subscription that its payer, its bank or its merchant did these with: outcomes of the sandbox, `cancel` by the
    interface, or days that pass."""

    async def story(merchant: Integrator) -> str:
        order = {"amount_rub": "500.00", "interval": "month", "description": "Club"}
        made = await merchant.call("POST", "/subscriptions", order, creates=True)
        assert made["status"] == "pending_binding"
        path = f"/subscriptions/{made['id']}"
        for step in steps:
            if step == "cancel":
                await merchant.call("POST", f"{path}/cancel")
            elif step.isdigit():
                await merchant.wait(int(step) * 86_400)
            else:
                await merchant.call("POST", f"/sandbox{path}/simulate", {"outcome": step})
        return str(made["id"])

    return story


SUBSCRIPTION_STORIES: Mapping[tuple[SubscriptionStatus, SubscriptionStatus], Story] = {
    (S.PENDING_BINDING, S.ACTIVE): subscribed("confirm"),
    (S.PENDING_BINDING, S.CANCELLED): subscribed("no_link"),
    (S.PENDING_BINDING, S.EXPIRED): subscribed("2"),
    (S.ACTIVE, S.PAUSED): subscribed("confirm", "mandate_lost"),
    (S.ACTIVE, S.CANCELLED): subscribed("confirm", "cancel"),
    (S.ACTIVE, S.EXPIRED): subscribed("confirm", "consent_ended"),
    (S.PAUSED, S.ACTIVE): subscribed("confirm", "mandate_lost", "mandate_restored"),
    (S.PAUSED, S.CANCELLED): subscribed("confirm", "mandate_lost", "cancel"),
    (S.PAUSED, S.EXPIRED): subscribed("confirm", "mandate_lost", "91"),
}


@pytest.fixture
async def merchant() -> AsyncIterator[Integrator]:
    """An integrator whose account may refund."""
    async with open_test_app() as app:
        opened = Integrator(app)
        await opened.connected(refunds="true")
        yield opened


@pytest.fixture
async def payee(merchant: Integrator) -> Integrator:
    """Return a merchant that has a wallet, too."""
    await merchant.connected(payout_wallet=WALLET)
    return merchant


def ids(pair: tuple[Any, Any]) -> str:
    return f"{pair[0]}-{pair[1]}"


@pytest.mark.parametrize("row", pairs(PAYMENT_MOVES), ids=ids)
async def test_a_payment(merchant: Integrator, row: tuple[PaymentStatus, PaymentStatus]) -> None:
    assert row in PAYMENT_STORIES, "tell in PAYMENT_STORIES how an integrator makes this move happen"
    before, after = row
    payment_id = await PAYMENT_STORIES[row](merchant)
    shown = await merchant.shown("payments", payment_id)
    assert shown["status"] == after
    told = await merchant.told(payment_id)
    last = told[-1]
    assert (last["event"], last["previous_status"], last["status"]) == ("payment.status_changed", before, after)
    # Every move sends one event, and each begins where the one before ended.
    assert [event["previous_status"] for event in told] == ["pending", *(event["status"] for event in told[:-1])]
    for name in ("actual_amount_rub", "amount_usdt", "failure_reason", "refund_pending"):
        assert last.get(name) == shown.get(name), name
    # The received amount is shown even after it was sent back.
    came = before is P.AMOUNT_MISMATCH or after not in (P.PROCESSING, P.FAILED, P.CANCELLED, P.EXPIRED)
    assert (shown["actual_amount_rub"] is not None) is came
    assert (shown["settled_at"] is not None) is (P.SETTLED in (before, after))


@pytest.mark.parametrize("row", pairs(REFUND_MOVES), ids=ids)
async def test_a_refund(merchant: Integrator, row: tuple[RefundStatus, RefundStatus]) -> None:
    assert row in REFUND_STORIES, "tell in REFUND_STORIES how an integrator makes this move happen"
    _, after = row
    refund_id = await REFUND_STORIES[row](merchant)
    shown = await merchant.shown("refunds", refund_id)
    assert shown["status"] == after
    told = [event["event"] for event in await merchant.told(refund_id)]
    silent = (R.PROCESSING, R.CANCELLED)
    assert told[-1:] == ([] if after in silent else [f"refund.{after}"])
    payment = await merchant.shown("payments", shown["payment_id"])
    assert payment["refund_pending"] is (after in (R.PENDING, R.PROCESSING))
    assert payment["status"] == ("refunded" if after is R.COMPLETED else "paid")


@pytest.mark.parametrize("row", pairs(WITHDRAWAL_MOVES), ids=ids)
async def test_a_payout(payee: Integrator, row: tuple[WithdrawalStatus, WithdrawalStatus]) -> None:
    assert row in PAYOUT_STORIES, "tell in PAYOUT_STORIES how an integrator makes this move happen"
    withdrawal_id = await PAYOUT_STORIES[row](payee)
    told = await payee.told(withdrawal_id)
    moves = [(event["previous_status"], event["status"]) for event in told]
    assert row in moves
    assert moves[0] == (None, "pending")
    assert [before for before, _ in moves[1:]] == [after for _, after in moves[:-1]]
    shown = await payee.shown("withdrawals", withdrawal_id)
    assert shown["status"] == moves[-1][1]
    assert all(
        (event["tx_hash"] is None) is (event["status"] in (W.PENDING, W.PROCESSING, W.CANCELLED))
        or row == (W.PROCESSING, W.FAILED)
        for event in told
    )
    balance = await payee.call("GET", "/balance")
    given_back = shown["status"] in (W.FAILED, W.CANCELLED)
    assert balance["reserved_usdt"] == "0.00000000"
    assert (balance["total_withdrawn_usdt"] == "0.00000000") is given_back
    assert (balance["available_usdt"] == balance["total_settled_usdt"]) is given_back


@pytest.mark.parametrize("row", pairs(SUBSCRIPTION_MOVES), ids=ids)
async def test_a_subscription(merchant: Integrator, row: tuple[SubscriptionStatus, SubscriptionStatus]) -> None:
    assert row in SUBSCRIPTION_STORIES, "tell in SUBSCRIPTION_STORIES how an integrator makes this move happen"
    before, after = row
    subscription_id = await SUBSCRIPTION_STORIES[row](merchant)
    shown = await merchant.shown("subscriptions", subscription_id)
    assert (shown["status"], shown["sandbox"]) == (after, True)
    assert ("rebind_required" in shown) is (after is S.PAUSED)
    last = (await merchant.told(subscription_id))[-1]
    assert last["event"] == "subscription.status_changed"
    assert (last["previous_status"], last["status"]) == (before, after)


@pytest.mark.parametrize(
    ("steps", "past_due"), [(("confirm", "past_due"), True), (("confirm", "past_due", "past_due_cleared"), False)]
)
async def test_a_flag_of_a_subscription(merchant: Integrator, steps: tuple[str, ...], past_due: bool) -> None:
    """An event with equal statuses (docs/subscriptions.md "When the mandate is lost")."""
    subscription_id = await subscribed(*steps)(merchant)
    assert (await merchant.shown("subscriptions", subscription_id))["past_due"] is past_due
    last = (await merchant.told(subscription_id))[-1]
    assert (last["previous_status"], last["status"], last["past_due"]) == ("active", "active", past_due)


@pytest.mark.parametrize(
    ("outcome", "status", "has_link"),
    [("link_ready", "pending_binding", True), ("no_link", "cancelled", False)],
)
async def test_a_link_that_comes_later_or_never(
    merchant: Integrator, outcome: str, status: str, has_link: bool
) -> None:
    """The link comes later (docs/subscriptions.md "How the payer binds"). In the calendar scheme the amount 404.05
    keeps it back."""
    await merchant.connected(subscription_scheme="calendar")
    order = {"amount_rub": "404.05", "interval": "month", "description": "Club"}
    made = await merchant.call("POST", "/subscriptions", order, creates=True)
    assert (made["binding_url"], made["binding_url_pending"]) == (None, True)
    shown = await merchant.call("POST", f"/sandbox/subscriptions/{made['id']}/simulate", {"outcome": outcome})
    assert (shown["status"], shown["binding_url"] is not None, shown["binding_url_pending"]) == (
        status,
        has_link,
        False,
    )
    [event] = await merchant.told(made["id"])
    assert (event["previous_status"], event["status"]) == ("pending_binding", status)


async def test_a_payout_that_is_over_is_played_no_further(payee: Integrator) -> None:
    withdrawal_id = await played_payout("completed", "completed")(payee)
    path = f"/api/v1/sandbox/withdrawals/{withdrawal_id}/simulate"
    refused = (("failed", 409), ("cancelled", 409), ("sent", 409), ("processing", 409), ("lost", 400))
    for outcome, code in refused:
        response = await payee.app.http.post(path, json={"outcome": outcome}, headers=payee.app.headers())
        assert response.status_code == code, outcome
    live = await payee.app.http.post(path, json={"outcome": "sent"}, headers=payee.app.headers("live"))
    assert live.status_code == 404


@pytest.mark.parametrize(
    ("stories", "moves"),
    [
        (PAYMENT_STORIES, PAYMENT_MOVES),
        (REFUND_STORIES, REFUND_MOVES),
        (PAYOUT_STORIES, WITHDRAWAL_MOVES),
        (SUBSCRIPTION_STORIES, SUBSCRIPTION_MOVES),
    ],
    ids=["payments", "refunds", "payouts", "subscriptions"],
)
def test_every_story_is_of_an_existing_row(stories: Mapping[Any, Story], moves: Moves[Any, Any]) -> None:
    assert set(stories) == set(pairs(moves))
