"""The preview that an operator sees before an action: the money that it moves, and the rest (docs/console.md)."""

from collections.abc import AsyncIterator

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.ledger import BalanceType, Currency
from cambist.core.domain.money import Rub, Usdt
from cambist.core.usecases.operators.foresight import (
    DuePayout,
    DueSettlement,
    foresee_balance_type,
    foresee_payout,
    foresee_refund,
    foresee_settlement,
)
from tests.payout_kit import WALLET, lost_wallet
from tests.refund_app import MARKET_100, SETTLED_100, RefundApp, open_refund_app


@pytest.fixture
async def app() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def test_balance_type_is_shown_with_what_is_added_to_it(app: RefundApp) -> None:
    await app.paid()
    account_id = app.app.account.account_id
    held = await foresee_balance_type(app.ports, account_id, Mode.TEST, BalanceType.PENDING, -5_00)
    assert (held.balance_type, held.currency, held.holds, held.adds) == (
        BalanceType.PENDING,
        Currency.RUB,
        100_00,
        -5_00,
    )
    held = await foresee_balance_type(app.ports, account_id, Mode.LIVE, BalanceType.AVAILABLE, 1)
    assert (held.currency, held.holds, held.adds, held.is_covered) == (Currency.USDT, 0, 1, True)


async def test_a_refund_before_the_settlement_takes_what_is_pending(app: RefundApp) -> None:
    payment_id = await app.paid()
    refund = await app.refund(await app.apply(payment_id, "100.00"))
    payment, held = await foresee_refund(app.ports, refund)
    assert (payment and payment.id, held and (held.balance_type, held.holds, held.adds, held.is_covered)) == (
        payment_id,
        (BalanceType.PENDING, 100_00, -100_00, True),
    )


@pytest.mark.parametrize(("overdraft", "is_covered"), [(0, False), (-1, False), (None, True)])
async def test_refund_after_settlement_takes_market_value_to_the_overdraft(
    app: RefundApp, overdraft: int | None, is_covered: bool
) -> None:
    """`overdraft`: None is exactly enough, -1 is one unit less, 0 is no overdraft."""
    lacks = MARKET_100 - SETTLED_100
    await app.set(refund_overdraft_usdt=str(Usdt(0 if overdraft == 0 else lacks + (overdraft or 0))))
    refund = await app.refund(await app.apply(await app.settled()))
    _, held = await foresee_refund(app.ports, refund)
    assert held is not None
    assert (held.balance_type, held.holds, held.adds) == (BalanceType.AVAILABLE, SETTLED_100, -MARKET_100)
    assert held.is_covered is is_covered


async def test_payout_takes_the_transferable_part_beyond_waiting_refunds(
    app: RefundApp,
) -> None:
    account_id = app.app.account.account_id
    first = await app.settled()
    assert await foresee_payout(app.ports, account_id, Mode.TEST) == DuePayout(
        amount=Usdt(SETTLED_100 // 100 * 100), available=Usdt(SETTLED_100), kept=Usdt(0), wallet=None
    )
    live = await foresee_payout(app.ports, account_id, Mode.LIVE)
    assert (live.amount, live.available) == (Usdt(0), Usdt(0))
    due = await foresee_payout(lost_wallet(app.ports), account_id, Mode.TEST)
    assert (due.amount, due.available) == (Usdt(0), Usdt(SETTLED_100))
    await app.set(refund_reserve="true", refund_approval="auto")
    await app.apply(first)
    await app.app.work(5)
    due = await foresee_payout(app.ports, account_id, Mode.TEST)
    assert (due.amount, due.available, due.kept) == (Usdt(0), Usdt(SETTLED_100), Usdt(MARKET_100))
    await app.settled()
    await app.set(payout_wallet=WALLET)
    due = await foresee_payout(app.ports, account_id, Mode.TEST)
    left = due.available - due.kept
    assert left > Usdt(0)
    assert (due.amount, due.wallet) == (Usdt(left.units // 100 * 100), WALLET)


async def test_a_settlement_takes_all_that_was_paid_before_its_cutoff(app: RefundApp) -> None:
    for _ in range(2):
        await app.paid()
    due = await foresee_settlement(app.ports, Mode.TEST, None)
    assert (due.payments, due.merchants, due.amount) == (0, 0, Rub(0))
    await app.app.clock.advance(2 * 86400)
    await app.paid("70.00")
    due = await foresee_settlement(app.ports, Mode.TEST, None)
    assert due == DueSettlement(mode=Mode.TEST, payments=2, merchants=1, amount=Rub(200_00), rate=due.rate)
    await app.settle()
    due = await foresee_settlement(app.ports, Mode.TEST, None)
    assert (due.payments, due.merchants, due.rate) == (0, 0, "92.50")
    live = await foresee_settlement(app.ports, Mode.LIVE, None)
    assert (live.mode, live.payments, live.amount, live.rate) == (Mode.LIVE, 0, Rub(0), None)
