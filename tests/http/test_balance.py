"""GET /balance (docs/settlement.md "The balance")."""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.frontends.http.openapi.openapi import openapi_document
from tests.http.documents import Document
from tests.refund_app import RefundApp, open_refund_app

DOCUMENT = Document(openapi_document("https://pay.example"))
WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"
ZERO = "0.00000000"
EMPTY = {
    "available_usdt": ZERO,
    "reserved_usdt": ZERO,
    "pending_rub": "0.00",
    "total_settled_usdt": ZERO,
    "total_withdrawn_usdt": ZERO,
}


@pytest.fixture
async def open_() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def balance(app: RefundApp, *, mode: str = "test") -> dict[str, str]:
    """The balance without its moment, as the document promises it."""
    response = await app.app.get("/balance", mode=mode)
    assert response.status_code == 200, response.text
    DOCUMENT.check(response)
    body: dict[str, str] = response.json()
    assert body.pop("updated_at") == app.ports.clock.now().strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return body


async def test_balance_of_a_new_account_is_zero(open_: RefundApp) -> None:
    """RUB with 2 decimals, USDT with 8 (docs/concepts.md "Amounts and times")."""
    assert await balance(open_) == EMPTY
    assert await balance(open_, mode="live") == EMPTY


async def test_paid_amount_waits_in_rub_and_is_available_in_usdt_once_settled(open_: RefundApp) -> None:
    """RUB is credited as soon as the payer pays (docs/concepts.md "Money, in one paragraph")."""
    await open_.paid("100.00")
    await open_.paid("50.50")
    unpaid = await open_.app.created()
    await open_.app.simulate(unpaid["id"], outcome="processing")
    assert await balance(open_) == EMPTY | {"pending_rub": "150.50"}
    await open_.settle()
    settled = {"available_usdt": "1.57821620", "total_settled_usdt": "1.57821620"}
    assert await balance(open_) == EMPTY | settled
    await open_.paid("30.00")
    assert await balance(open_) == EMPTY | settled | {"pending_rub": "30.00"}


async def test_money_under_review_or_in_suspense_is_not_the_merchant_s(open_: RefundApp) -> None:
    for outcome in ("paid", "failed"):
        payment = await open_.app.created()
        await open_.app.simulate(payment["id"], outcome="paid", actual_amount_rub="60.00")
        assert (await balance(open_))["pending_rub"] == ("0.00" if outcome == "paid" else "60.00")
        await open_.action(f"/sandbox/payments/{payment['id']}/resolve", {"outcome": outcome})
        assert await balance(open_) == EMPTY | {"pending_rub": "60.00"}


async def test_modes_and_accounts_have_balances_of_their_own(open_: RefundApp) -> None:
    await open_.paid("100.00")
    await open_.paid("70.00", mode="live")
    other = await create_account(open_.ports, "Other")
    assert await balance(open_) == EMPTY | {"pending_rub": "100.00"}
    assert await balance(open_, mode="live") == EMPTY | {"pending_rub": "70.00"}
    await settle_now(open_.ports, Mode.LIVE, cutoff=open_.ports.clock.now().replace(year=2027))
    live = await balance(open_, mode="live")
    assert (live["pending_rub"], live["available_usdt"]) == ("0.00", "0.73405405")
    assert await balance(open_) == EMPTY | {"pending_rub": "100.00"}
    for pair in (other.test, other.live):
        headers = {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret}
        theirs = (await open_.app.http.get("/api/v1/balance", headers=headers)).json()
        assert {**theirs, "updated_at": None} == EMPTY | {"updated_at": None}


async def test_shops_share_one_balance(open_: RefundApp) -> None:
    """Shared across shops: balance, payouts (docs/concepts.md "Shops")."""
    shop = await create_shop(open_.ports, open_.app.account.account_id, "Further", "0.01")
    await open_.paid("100.00")
    await open_.paid("100.00", shop_id=shop.id)
    assert (await balance(open_))["pending_rub"] == "200.00"


async def test_a_payout_goes_from_available_to_reserved_to_withdrawn(open_: RefundApp) -> None:
    await open_.set(payout_wallet=WALLET)
    await open_.paid("100.00")
    await open_.settle()
    rest, paid, all_ = "0.00000064", "1.04864800", "1.04864864"
    assert await balance(open_) == EMPTY | {
        "available_usdt": rest,
        "reserved_usdt": paid,
        "total_settled_usdt": all_,
    }
    await open_.app.work(3600)
    assert await balance(open_) == EMPTY | {
        "available_usdt": rest,
        "total_withdrawn_usdt": paid,
        "total_settled_usdt": all_,
    }


async def test_a_refund_before_settlement_lowers_pending_rub(open_: RefundApp) -> None:
    """After settlement a refund takes from the balance (docs/refunds.md "The money")."""
    payment_id = await open_.paid("100.00")
    refund_id = await open_.apply(payment_id, "40.00")
    await open_.app.work(2)
    assert await balance(open_) == EMPTY | {"pending_rub": "60.00"}
    await open_.simulate(refund_id, "completed")
    assert await balance(open_) == EMPTY | {"pending_rub": "60.00"}
    await open_.simulate(refund_id, "reversed")
    assert await balance(open_) == EMPTY | {"pending_rub": "100.00"}


async def test_refund_after_settlement_lowers_available_usdt_alone(open_: RefundApp) -> None:
    """At the market rate of the payment's batch, so that the fee stays with the service
    (docs/refunds.md "The money")."""
    payment_id = await open_.paid("100.00")
    await open_.paid("100.00")
    await open_.settle()
    before = await balance(open_)
    refund_id = await open_.apply(payment_id, "40.00")
    await open_.app.work(2)
    left = Decimal(before["available_usdt"]) - Decimal("0.43243243")
    expected = EMPTY | {"available_usdt": f"{left:f}", "total_settled_usdt": before["total_settled_usdt"]}
    assert await balance(open_) == expected
    await open_.simulate(refund_id, "completed")
    assert await balance(open_) == expected
    await open_.simulate(refund_id, "reversed")
    assert await balance(open_) == before


async def test_below_zero_is_shown_with_its_sign(open_: RefundApp) -> None:
    """A refund may go below zero by the account's overdraft."""
    await open_.set(refund_overdraft_usdt="5")
    payment_id = await open_.paid("100.00")
    await open_.settle()
    await open_.apply(payment_id)
    await open_.app.work(2)
    found = await balance(open_)
    assert (found["available_usdt"], found["total_settled_usdt"]) == ("-0.03243244", "1.04864864")


async def test_balance_is_consistent_while_money_moves(open_: RefundApp) -> None:
    """One statement reads it: the RUB and USDT of a payment are never both counted, and never both missing."""
    await open_.paid("100.00")
    settling = asyncio.create_task(open_.settle())
    seen: list[dict[str, Any]] = []
    while not settling.done():
        seen.append(await balance(open_))
        await asyncio.sleep(0)
    await settling
    both = {(each["pending_rub"], each["available_usdt"]) for each in seen}
    assert both <= {("100.00", ZERO), ("0.00", "1.04864864")}


async def test_balance_needs_a_key(open_: RefundApp) -> None:
    response = await open_.app.http.get("/api/v1/balance")
    DOCUMENT.check(response)
    assert (response.status_code, response.json()["error"]["code"]) == (401, "Unauthorized")
