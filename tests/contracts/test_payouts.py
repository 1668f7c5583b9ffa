"""The simulated wallet by the clock, to the moment, beyond what every wallet must do
(frontends/conformance/payouts.py)."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.clock import VirtualClock
from cambist.adapters.payouts.simulator import FINALITY, LIFETIME, SimulatedSender
from cambist.ports.chain import Network
from cambist.ports.faults import NotConfigured, Refused
from cambist.ports.payouts import (
    SenderCapabilities,
    Senders,
    UsdtSender,
)
from tests.contracts.payouts_kit import (
    END,
    FAILED,
    FINAL,
    IN_BLOCK,
    START,
    UNSEEN,
    Held,
    World,
    signed_by,
)
from tests.tables import table


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def sender(world: World) -> SimulatedSender:
    return world.sender()


class TestSigning:
    async def test_signed_twice_they_are_two_transfers(self, sender: UsdtSender) -> None:
        """So the caller keeps the first: were both broadcast, both would be paid."""
        first, second = await signed_by(sender), await signed_by(sender)
        assert first.tx_hash != second.tx_hash
        await sender.broadcast(first)
        assert (await sender.state(first), await sender.state(second)) == (IN_BLOCK, UNSEEN)


class TestBroadcast:
    async def test_a_transfer_is_in_a_block_and_then_final(self, world: World, sender: UsdtSender) -> None:
        signed = await signed_by(sender)
        await sender.broadcast(signed)
        assert await sender.state(signed) is IN_BLOCK
        await world.clock.advance(FINALITY.total_seconds() - 1)
        assert await sender.state(signed) is IN_BLOCK
        await world.clock.advance(1)
        assert await sender.state(signed) is FINAL

    async def test_the_last_moment_is_still_in_time(self, world: World, sender: UsdtSender) -> None:
        signed = await signed_by(sender)
        await world.clock.advance(LIFETIME.total_seconds() - 0.001)
        await sender.broadcast(signed)
        await world.clock.advance(3600)
        assert await sender.state(signed) is FINAL

    @pytest.mark.parametrize(
        "change",
        [
            {"operation": "wd_2"},
            {"expires_at": START.replace(year=2030)},
            {"blob": b'{"wallet": "\xff"}'},
        ],
        ids=lambda change: next(iter(change)),
    )
    async def test_altered_signed_transfer_is_refused(
        self, world: World, sender: UsdtSender, change: dict[str, object]
    ) -> None:
        signed = msgspec.structs.replace(await signed_by(sender), **change)
        with pytest.raises(Refused) as refused:
            await sender.broadcast(signed)
        assert refused.value.reason == "invalid"
        assert await world.notes() == 0

    async def test_transfer_signed_by_another_wallet_is_refused(self, world: World, sender: UsdtSender) -> None:
        """A transfer of test mode cannot be sent on the live network."""
        with pytest.raises(Refused) as refused:
            await sender.broadcast(await signed_by(world.sender("other")))
        assert refused.value.reason == "invalid"


class TestState:
    async def test_unsent_transfer_is_proven_absent_only_after_its_expiry(
        self, world: World, sender: UsdtSender
    ) -> None:
        """FAILED needs a final block past `expires_at`: until then the transfer may still come."""
        signed = await signed_by(sender)
        await world.clock.advance(END - 0.001)
        assert await sender.state(signed) is UNSEEN
        await world.clock.advance(0.001)
        assert await sender.state(signed) is FAILED

    async def test_asking_changes_nothing(self, world: World, sender: UsdtSender) -> None:
        signed = await signed_by(sender)
        for _ in range(3):
            await world.clock.advance(10)
            assert await sender.state(signed) is UNSEEN
        assert await world.notes() == 0
        await sender.broadcast(signed)
        assert [await sender.state(signed) for _ in range(2)] == [IN_BLOCK, IN_BLOCK]

    async def test_a_broadcast_under_way_comes_too_late_once_absence_was_said(self) -> None:
        """Otherwise money returned after FAILED would be paid out too."""
        storage = Held(VirtualClock(START))
        world = World(storage)
        sender = world.sender()
        signed = await signed_by(sender)
        await world.clock.advance(LIFETIME.total_seconds() - 1)
        gate = storage.hold()
        late = asyncio.create_task(sender.broadcast(signed))
        await world.clock.advance(3600)
        assert await sender.state(signed) is FAILED
        gate.set()
        await late
        await world.clock.advance(3600)
        assert await sender.state(signed) is FAILED

    @given(sent_after=st.none() | st.integers(0, 120), asked_after=st.integers(0, 240))
    async def test_no_transfer_ends_both_ways(self, sent_after: int | None, asked_after: int) -> None:
        """A transfer sent in time is final, even if the service polls late; otherwise it fails. No state in between
        lasts."""
        world = World()
        sender = world.sender()
        signed = await signed_by(sender)
        assert signed.expires_at is not None
        if sent_after is not None:
            await world.clock.advance(sent_after)
            if world.clock.now() < signed.expires_at:
                await sender.broadcast(signed)
            else:
                with pytest.raises(Refused):
                    await sender.broadcast(signed)
        in_time = sent_after is not None and sent_after < LIFETIME.total_seconds()
        await world.clock.advance(asked_after)
        first = await sender.state(signed)
        assert first in ((IN_BLOCK, FINAL) if in_time else (UNSEEN, FAILED))
        await world.clock.advance(END)
        assert await sender.state(signed) is (FINAL if in_time else FAILED)

    async def test_wallets_over_one_storage_keep_apart(self, world: World, sender: UsdtSender) -> None:
        signed = await signed_by(sender)
        await sender.broadcast(signed)
        assert await world.sender("other").state(signed) is UNSEEN


class TestSenders:
    @table(("decimals", "step"), [(6, 100), (8, 1), (18, 1)])
    def test_the_step_is_the_smallest_part_of_the_network(self, decimals: int, step: int) -> None:
        assert SenderCapabilities(network=Network.TRON, decimals=decimals).step == step

    def test_a_mode_has_one_wallet_and_a_stored_payout_finds_its_own(self, world: World) -> None:
        live, test = world.sender("live-wallet"), world.sender("test-wallet")
        former = world.sender("former")
        senders = Senders(
            senders={wallet.name: wallet for wallet in (live, test, former)},
            modes={"live": live.name, "test": test.name},
        )
        assert senders.of_mode("live") is live
        assert senders.of_mode("test") is test
        assert senders.named("former") is former

    @pytest.mark.parametrize(
        "ask",
        [
            lambda senders: senders.named("other"),
            lambda senders: senders.of_mode("test"),
            lambda senders: senders.of_mode("live"),
        ],
        ids=["a name", "a mode without one", "a mode whose wallet is gone"],
    )
    def test_unwired_sender_is_not_configured(self, world: World, ask: Callable[[Senders], UsdtSender]) -> None:
        wallet = world.sender()
        with pytest.raises(NotConfigured):
            ask(Senders(senders={wallet.name: wallet}, modes={"live": "gone"}))
