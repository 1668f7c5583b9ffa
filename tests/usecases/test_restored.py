"""A database that was restored from a backup has forgotten what was sent since; the bank and the wallet have not.
Nothing is paid twice (ARCHITECTURE.md, "Three ends")."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.payouts.script import Ending, Twist
from cambist.core.domain.accounts import Mode
from cambist.core.domain.exchange_funds import ExchangeTransfer
from cambist.core.domain.exchanges import Exchange, unsigned
from cambist.core.domain.orders import PaymentOrder
from cambist.core.domain.payments import Payment
from cambist.core.domain.withdrawals import WithdrawalStatus
from cambist.core.usecases.exchange_return import return_money
from cambist.core.usecases.payments import create_payment
from cambist.core.usecases.settlement import settle_now
from cambist.ports.payouts import SentTransfer, TransferState
from tests.exchange_house import open_exchange_house
from tests.payout_kit import OTHER_WALLET, WALLET
from tests.restored import Copy, House, World

BACK = OTHER_WALLET
DAY = 24 * 3600
S = WithdrawalStatus

AWAY = Twist(ending=Ending.UNAVAILABLE)


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)


async def paid(house: House, amount: str = "1000.00") -> Payment:
    """A payment that was paid, two days ago by now."""
    caller = await house.caller()
    key = house.ports.ids.uuid()
    made = await create_payment(house.ports, caller, key, lambda: PaymentOrder(amount_rub=amount))
    await house.pay(made.resource)
    await house.world.clock.advance(2 * DAY)
    return made.resource


class TestPayouts:
    """A payout that is pending in the copy, and was sent in the world."""

    async def test_what_the_wallet_sent_is_taken_over_and_not_signed_again(self, world: World) -> None:
        async with world.opened() as house:
            await paid(house)
            world.wallet.script.sign.append(AWAY)
            await settle_now(house.ports, Mode.LIVE)
            await house.work()
            [pending] = await house.withdrawals()
            copy = world.copy()
            await house.work(60)
            [done] = await house.withdrawals()
        assert (pending.status, done.status) == (S.PENDING, S.COMPLETED)
        async with world.opened(copy) as house:
            await house.work(DAY / 4)
            [again] = await house.withdrawals()
            assert (again.status, again.tx_hash) == (S.COMPLETED, done.tx_hash)
            await house.check()
        assert await world.paid_out() == [(pending.id, WALLET, pending.amount.units)]
        assert len(world.wallet.signed) == 1

    async def test_one_that_is_under_way_is_followed_and_needs_no_copy_of_what_was_signed(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with world.opened() as house:
            copy = await self._sent_after_a_copy(world, house)
        remembers(world, monkeypatch, blob=b"")
        [sent] = world.wallet.signed
        async with world.opened(copy) as house:
            await world.wallet.inner.pretend(sent, TransferState.IN_BLOCK)
            await house.work(DAY)
            assert [each.status for each in await house.withdrawals()] == [S.SENT]
            await world.wallet.inner.pretend(sent, TransferState.FINAL)
            await house.work(DAY)
            assert [each.status for each in await house.withdrawals()] == [S.COMPLETED]
            await house.check()
        assert (world.wallet.count("sign"), world.wallet.count("broadcast")) == (2, 1)

    @pytest.mark.parametrize("wrong", [{"units": 1}, {"address": OTHER_WALLET}], ids=str)
    async def test_what_was_sent_otherwise_is_neither_signed_over_nor_given_back(
        self,
        world: World,
        wrong: dict[str, Any],
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """It is for the operator, who reads of it."""
        async with world.opened() as house:
            copy = await self._sent_after_a_copy(world, house)
        remembers(world, monkeypatch, **wrong)
        async with world.opened(copy) as house:
            await house.work(DAY)
            [waiting] = await house.withdrawals()
            assert (waiting.status, waiting.tx_hash) == (S.PENDING, None)
            await house.check()
        assert len(world.wallet.signed) == 1
        [sent] = world.wallet.signed
        told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert told
        assert all(waiting.id in text and sent in text for text in told)

    @pytest.mark.parametrize("ending", [Ending.UNAVAILABLE, Ending.REFUSED])
    async def test_nothing_is_signed_while_the_wallet_does_not_say_what_it_sent(
        self, world: World, ending: Ending
    ) -> None:
        async with world.opened() as house:
            copy = await self._sent_after_a_copy(world, house)
        world.wallet.script.find.extend(Twist(ending=ending) for _ in range(3))
        async with world.opened(copy) as house:
            await house.work(60)
            assert [each.status for each in await house.withdrawals()] == [S.PENDING]
            await house.work(DAY)
            assert [each.status for each in await house.withdrawals()] == [S.COMPLETED]
        assert len(await world.paid_out()) == 1

    async def _sent_after_a_copy(self, world: World, house: House) -> Copy:
        """A copy in which the one payout is pending; the world has it."""
        await paid(house)
        world.wallet.script.sign.append(AWAY)
        await settle_now(house.ports, Mode.LIVE)
        await house.work()
        copy = world.copy()
        await house.work(60)
        assert len(await world.paid_out()) == 1
        return copy


def remembers(world: World, monkeypatch: pytest.MonkeyPatch, blob: bytes | None = None, **other: Any) -> None:
    """The wallet says this of what it sent."""
    find = world.wallet.find

    async def told(operation: str) -> SentTransfer | None:
        found = await find(operation)
        if found is None:
            return None
        signed = found.signed if blob is None else msgspec.structs.replace(found.signed, blob=blob)
        return msgspec.structs.replace(found, signed=signed, **other)

    monkeypatch.setattr(world.wallet, "find", told)


class TestExchanges:
    """USDT for clients go the same way."""

    async def test_the_usdt_of_an_exchange_are_sent_once(self) -> None:
        async with open_exchange_house() as house:
            made = await house.bought()
            await house.pay(made.id)
            await house.house.work(300)
            sent = await house.exchange(made.id)
            async with house.ports.storage.unit() as unit:
                unit[Exchange].save(unsigned(sent))
                await unit.commit()
            await house.house.work(3600)
            done = await house.exchange(made.id)
            assert (done.status, done.tx_hash) == ("completed", sent.tx_hash)
            assert len(await house.on_chain()) == 1

    async def test_usdt_that_go_back_are_sent_once(self) -> None:
        async with open_exchange_house() as house:
            made = await house.made()
            await house.cancel(made.id)
            await house.send(made.id, "7")
            await house.look(made.id)
            [planned] = await house.transfers()
            await return_money(house.ports, made.id, BACK)
            [planned] = await house.transfers()
            await house.house.work(1)
            [sent] = await house.transfers()
            assert len(await house.on_chain()) == 1
            async with house.ports.storage.unit() as unit:
                unit[ExchangeTransfer].save(msgspec.structs.replace(planned, version=sent.version))
                await unit.commit()
            await house.house.work(3600)
            [done] = await house.transfers()
            assert (done.sent_back and done.sent_back.status, done.went_by) == ("returned", sent.went_by)
            assert len(await house.on_chain()) == 1
