"""The lines of a payout sum to its amount, by pages of any size (docs/settlement.md "What a payout is made of")."""

from collections.abc import AsyncIterator

import pytest

from cambist.core.domain.accounts.accounts import Account, Caller
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Usdt
from cambist.core.domain.settlement.withdrawals import Withdrawal
from cambist.core.usecases.settlement.payout_items import (
    PayoutItem,
    every_payout_item_of,
    list_payout_items,
    payout_items_of,
)
from cambist.core.usecases.settlement.withdrawals import accept_sent
from tests.payout_kit import OTHER_WALLET, Payouts, open_payouts


@pytest.fixture
async def payouts() -> AsyncIterator[Payouts]:
    async with open_payouts() as opened:
        yield opened


async def paid_out(payouts: Payouts, amount: str) -> Withdrawal:
    """Pay out the available balance and this amount."""
    await payouts.credit(Usdt.parse(amount))
    withdrawal = await payouts.pay_out()
    assert withdrawal is not None
    return withdrawal


async def lines(payouts: Payouts, withdrawal_id: str) -> list[tuple[str, str]]:
    """Return kinds and amounts, the same by pages of any size. The first reading lists the unlisted lines."""
    read: list[PayoutItem] = []
    async for batch in await every_payout_item_of(payouts.ports, withdrawal_id):
        read += batch
    account = await payouts.ports.storage.get(Account, payouts.account_id)
    assert account is not None
    caller = Caller(account=account, mode=payouts.mode, key_id="")
    for size in range(1, len(read) + 2):
        pages: list[PayoutItem] = []
        for number in range(1, -(-len(read) // size) + 1):
            page = await list_payout_items(payouts.ports, caller, withdrawal_id, number, size)
            assert page.total == len(read)
            pages += page.records
        assert pages == read
        assert await payout_items_of(payouts.ports, withdrawal_id, size, offset=1) == read[1 : size + 1]
    assert sum(each.amount.units for each in read) == (await payouts.record(withdrawal_id)).amount.units
    return [(each.kind.value, str(each.amount)) for each in read]


async def test_remainder_of_a_payout_is_carried_into_the_next(payouts: Payouts) -> None:
    first = await paid_out(payouts, "100.00000123")
    assert await lines(payouts, first.id) == [("settlement", "100.00000123"), ("carried_out", "-0.00000023")]
    second = await paid_out(payouts, "5.00000078")
    assert await lines(payouts, second.id) == [
        ("carried_in", "0.00000023"),
        ("settlement", "5.00000078"),
        ("carried_out", "-0.00000001"),
    ]


async def test_payout_without_a_remainder_carries_nothing(payouts: Payouts) -> None:
    for _ in range(2):
        payout = await paid_out(payouts, "5.000001")
        assert await lines(payouts, payout.id) == [("settlement", "5.00000100")]


@pytest.mark.parametrize("sent", ["4.000000", "6.000000"])
async def test_payout_sent_otherwise_is_corrected_in_it_and_in_the_next(payouts: Payouts, sent: str) -> None:
    """The correction is a line of the payout that it corrects, and of the next one, which it leaves more or less."""
    await payouts.credit(Usdt.parse("2"))
    made = await paid_out(payouts, "3.00000012")
    wallet, units = payouts.sender.inner, Usdt.parse(sent).units
    await wallet.broadcast(await wallet.sign(made.id, OTHER_WALLET, units))
    await accept_sent(payouts.ports, made.id)
    await payouts.app.work(60)
    with pytest.raises(Refusal, match="is completed, not pending"):
        await accept_sent(payouts.ports, made.id)
    more = str(Usdt(units) - Usdt.parse("5"))
    assert await lines(payouts, made.id) == [
        ("settlement", "2.00000000"),
        ("settlement", "3.00000012"),
        ("corrected", more),
        ("carried_out", "-0.00000012"),
    ]
    later = await paid_out(payouts, "3.00000000")
    assert await lines(payouts, later.id) == [
        ("carried_in", "0.00000012"),
        ("payout_reserved", str(Usdt(0) - Usdt.parse(more))),
        ("settlement", "3.00000000"),
        ("carried_out", "-0.00000012"),
    ]


@pytest.mark.parametrize("unknown", ["wd_00000000-0000-7000-8000-000000000000", "wd_x", ""])
async def test_items_of_an_unknown_payout_are_refused(payouts: Payouts, unknown: str) -> None:
    with pytest.raises(Refusal, match="No withdrawal of this id"):
        await payout_items_of(payouts.ports, unknown, 10)
