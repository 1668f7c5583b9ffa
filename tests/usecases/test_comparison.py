"""What a held copy does not know of is listed by who sent it, and brought in before it is let go."""

from pathlib import Path

import pytest

from cambist.adapters.payouts.script import Ending, Twist
from cambist.core.domain.accounts import Mode
from cambist.core.domain.audit import Act, AuditEntry
from cambist.core.domain.ledger import Purse
from cambist.core.domain.orders import PaymentOrder
from cambist.core.domain.withdrawals import WithdrawalStatus
from cambist.core.usecases.accounts import create_account, set_settings
from cambist.core.usecases.audit import acting
from cambist.core.usecases.comparison import bring_in, compare
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.ledger import purses
from cambist.core.usecases.payments import create_payment
from cambist.core.usecases.settlement_asked import settle_asked
from cambist.ports.faults import Unavailable
from tests.payout_kit import WALLET
from tests.restored import House, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World("memory", tmp_path)


async def paid(house: House) -> None:
    caller = await house.caller()
    key = house.ports.ids.uuid()
    made = await create_payment(house.ports, caller, key, lambda: PaymentOrder(amount_rub="1000.00"))
    await house.pay(made.resource)
    await house.world.clock.advance(1)


async def settled_now(house: House) -> None:
    """As `cambist settle --cutoff now`: another batch each time, so its payouts have other ids."""
    await settle_asked(house.ports, Mode.LIVE, house.ports.clock.now(), lambda _: None)
    await house.work(3600)


async def available(house: House) -> int:
    async with house.ports.storage.unit() as unit:
        return (await purses(unit, house.world.account_id, Mode.LIVE)).get(Purse.AVAILABLE, 0)


async def test_a_payout_that_the_copy_lacks_is_brought_in_and_not_paid_again(world: World) -> None:
    async with world.opened() as house:
        await paid(house)
        copy, as_of = world.copy(), house.ports.clock.now()
        await settled_now(house)
    [first] = await world.paid_out()
    async with world.opened(copy) as house:
        found = await compare(house.ports, as_of)
        assert [(each.kind, each.operation, each.account_id) for each in found.lacking] == [
            ("transfer", first[0], world.account_id)
        ]
        [brought] = await bring_in(acting(house.ports, Act(operator="eve", name="resume")), found)
        assert brought.id == first[0]
        assert await available(house) == -brought.amount.units, "it was paid, and is not credited here yet"
        assert (await compare(house.ports, as_of)).lacking == []
        await settled_now(house)
        assert await world.paid_out() == [first], "nothing is owed any more"
        assert [each.status for each in await house.withdrawals()] == [WithdrawalStatus.COMPLETED]
        async with house.ports.storage.unit() as unit:
            assert [row.object_id for row in await unit[AuditEntry].find(act="resume")] == [first[0]]
        await house.check()


async def test_what_was_pending_in_the_copy_and_never_sent_is_called_off(world: World) -> None:
    """Else it goes, too: it was made of the same balance, under another id."""
    async with world.opened() as house:
        await paid(house)
        await world.clock.advance(1)
        copy = world.copy()
        await settled_now(house)
    sent = await world.paid_out()
    async with world.opened(copy) as house:
        world.wallet.script.sign.append(Twist(ending=Ending.UNAVAILABLE))
        await settle_asked(house.ports, Mode.LIVE, house.ports.clock.now(), lambda _: None)
        await run_due(house.ports)
        await bring_in(house.ports, await compare(house.ports, None))
        assert sorted(each.status for each in await house.withdrawals()) == ["cancelled", "pending"]
        await house.work(2 * 3600)
        await settled_now(house)
        assert await world.paid_out() == sent
        await house.check()


async def test_brought_in_twice_it_is_one(world: World) -> None:
    async with world.opened() as house:
        await paid(house)
        copy = world.copy()
        await settled_now(house)
    async with world.opened(copy) as house:
        found = await compare(house.ports, None)
        assert await bring_in(house.ports, found) == await bring_in(house.ports, found)
        await house.check()


async def test_what_belongs_to_two_merchants_is_left_to_the_operator(world: World) -> None:
    async with world.opened() as house:
        await paid(house)
        copy = world.copy()
        await settled_now(house)
    async with world.opened(copy) as house:
        other = await create_account(house.ports, "Other")
        await set_settings(house.ports, other.account_id, {"payout_wallet": WALLET})
        found = await compare(house.ports, None)
        assert [each.account_id for each in found.lacking] == [None]
        assert await bring_in(house.ports, found) == []


async def test_what_is_known_is_not_lacking(world: World) -> None:
    async with world.opened() as house:
        await paid(house)
        await settled_now(house)
        assert (await compare(house.ports, None)).lacking == []


async def test_a_wallet_that_gives_no_answer_is_no_comparison(world: World) -> None:
    """Nothing was sent, it would say."""
    async with world.opened() as house:
        await paid(house)
        copy = world.copy()
        await settled_now(house)
    async with world.opened(copy) as house:
        world.wallet.script.find.append(Twist(ending=Ending.UNAVAILABLE))
        with pytest.raises(Unavailable):
            await compare(house.ports, None)
