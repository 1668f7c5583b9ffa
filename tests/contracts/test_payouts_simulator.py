"""The simulated wallet can do all that a network can do to us: drop a block, lose an answer, be silent, be away."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.payouts.simulator import SimulatedSender
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from cambist.ports.payouts import (
    SenderSimulator,
    SignedTransfer,
    TransferState,
)
from tests.contracts.payouts_kit import (
    END,
    FAILED,
    FINAL,
    IN_BLOCK,
    OPERATION,
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


class TestSimulate:
    def test_sender_is_a_simulator(self, sender: SimulatedSender) -> None:
        assert isinstance(sender, SenderSimulator)
        assert sender.capabilities.simulated

    @pytest.mark.parametrize("state", [IN_BLOCK, FINAL, FAILED])
    async def test_simulated_state_stays_whatever_the_clock_says(
        self, world: World, sender: SimulatedSender, state: TransferState
    ) -> None:
        signed = await signed_by(sender)
        await sender.broadcast(signed)
        await sender.simulate(signed.tx_hash, state)
        assert await sender.state(signed) is state
        await world.clock.advance(3600)
        assert await world.sender().state(signed) is state

    async def test_transfer_of_a_dropped_block_is_unseen_until_repeated(
        self, world: World, sender: SimulatedSender
    ) -> None:
        signed = await signed_by(sender)
        await sender.broadcast(signed)
        await sender.simulate(signed.tx_hash, UNSEEN)
        assert await sender.state(signed) is UNSEEN
        await sender.broadcast(signed)
        assert await sender.state(signed) is IN_BLOCK
        await world.clock.advance(END)
        assert await sender.state(signed) is FINAL

    async def test_a_transfer_dropped_and_not_repeated_fails_at_its_end(
        self, world: World, sender: SimulatedSender
    ) -> None:
        """`sent` may become `failed`, once it is proven (docs/settlement.md "Payouts")."""
        signed = await signed_by(sender)
        await sender.broadcast(signed)
        await sender.simulate(signed.tx_hash, UNSEEN)
        await world.clock.advance(END)
        assert await sender.state(signed) is FAILED

    async def test_a_transfer_that_the_contract_refused_is_known_and_failed(self, sender: SimulatedSender) -> None:
        signed = await signed_by(sender)
        await sender.broadcast(signed)
        await sender.simulate(signed.tx_hash, FAILED)
        await sender.broadcast(signed)
        assert await sender.state(signed) is FAILED

    async def test_transfer_never_broadcast_may_be_on_the_chain(self, sender: SimulatedSender) -> None:
        signed = await signed_by(sender)
        await sender.simulate(signed.tx_hash, FINAL)
        assert await sender.state(signed) is FINAL

    @pytest.mark.parametrize("odd", ["", OPERATION, "A" * 64, "0x" + "a" * 64, "a" * 64 + "\n"], ids=ascii)
    async def test_only_a_hash_names_a_transfer(self, sender: SimulatedSender, odd: str) -> None:
        with pytest.raises(ValueError, match="64 hex digits"):
            await sender.simulate(odd, FINAL)

    async def test_from_a_seed_the_hashes_are_the_same(self) -> None:
        assert await signed_by(World().sender()) == await signed_by(World().sender())


Call = Callable[[SimulatedSender, SignedTransfer], Awaitable[object]]


async def _sign(sender: SimulatedSender, _: SignedTransfer) -> object:
    return await signed_by(sender, "wd_2")


async def _broadcast(sender: SimulatedSender, signed: SignedTransfer) -> object:
    await sender.broadcast(signed)
    return True


async def _state(sender: SimulatedSender, signed: SignedTransfer) -> object:
    return await sender.state(signed)


class TestScript:
    @pytest.mark.parametrize(
        ("verb", "call", "ending", "fault"),
        [
            ("sign", _sign, Ending.REFUSED, Refused),
            ("sign", _sign, Ending.UNAVAILABLE, Unavailable),
            ("sign", _sign, Ending.NOT_CONFIGURED, NotConfigured),
            ("sign", _sign, Ending.UNKNOWN_DONE, Unavailable),
            ("sign", _sign, Ending.UNKNOWN_NOT_DONE, Unavailable),
            ("broadcast", _broadcast, Ending.REFUSED, Refused),
            ("broadcast", _broadcast, Ending.UNAVAILABLE, Unavailable),
            ("broadcast", _broadcast, Ending.NOT_CONFIGURED, NotConfigured),
            ("broadcast", _broadcast, Ending.UNKNOWN_DONE, OutcomeUnknown),
            ("broadcast", _broadcast, Ending.UNKNOWN_NOT_DONE, OutcomeUnknown),
            ("state", _state, Ending.REFUSED, Unavailable),
            ("state", _state, Ending.UNAVAILABLE, Unavailable),
            ("state", _state, Ending.NOT_CONFIGURED, NotConfigured),
            ("state", _state, Ending.UNKNOWN_DONE, Unavailable),
            ("state", _state, Ending.UNKNOWN_NOT_DONE, Unavailable),
        ],
    )
    async def test_every_end_of_every_call(
        self, world: World, sender: SimulatedSender, verb: str, call: Call, ending: Ending, fault: type[Fault]
    ) -> None:
        """Signing and reading leave nothing open, so they never end unknown."""
        signed = await signed_by(sender)
        getattr(world.script, verb).append(Twist(ending=ending))
        with pytest.raises(fault) as caught:
            await call(sender, signed)
        assert type(caught.value) is fault
        assert await sender.state(signed) is (
            IN_BLOCK if (verb, ending) == ("broadcast", Ending.UNKNOWN_DONE) else UNSEEN
        )
        assert await call(sender, signed) is not None

    async def test_twists_are_taken_in_order_and_name_the_reason(self, world: World, sender: SimulatedSender) -> None:
        world.script.sign.extend(
            [
                Twist(ending=Ending.UNAVAILABLE, message="not enough USDT", retry_after=30),
                Twist(),
                Twist(ending=Ending.REFUSED, reason="limit"),
            ]
        )
        with pytest.raises(Unavailable, match="not enough USDT") as unavailable:
            await signed_by(sender)
        assert unavailable.value.retry_after == 30
        await signed_by(sender)
        with pytest.raises(Refused) as refused:
            await signed_by(sender)
        assert refused.value.reason == "limit"

    @pytest.mark.parametrize(("verb", "call"), [("sign", _sign), ("broadcast", _broadcast), ("state", _state)])
    @pytest.mark.parametrize("ending", [Ending.NORMAL, Ending.UNAVAILABLE])
    async def test_silence_before_an_answer(
        self, world: World, sender: SimulatedSender, verb: str, call: Call, ending: Ending
    ) -> None:
        signed = await signed_by(sender)
        getattr(world.script, verb).append(Twist(ending=ending, silence=25))
        task = asyncio.ensure_future(call(sender, signed))
        await world.clock.advance(24.9)
        assert not task.done()
        await world.clock.advance(0.1)
        assert task.done()
        assert isinstance(task.exception(), Unavailable) is (ending is Ending.UNAVAILABLE)

    async def test_a_slow_broadcast_is_done_before_the_silence(self, world: World, sender: SimulatedSender) -> None:
        """The caller that gives up in between has sent the transfer, as on a real network."""
        signed = await signed_by(sender)
        world.script.broadcast.append(Twist(silence=25))
        task = asyncio.ensure_future(sender.broadcast(signed))
        await world.clock.advance(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await sender.state(signed) is IN_BLOCK


class TestStorageProblem:
    async def test_a_commit_without_an_answer_is_an_unknown_outcome(self) -> None:
        """A storage that did not answer may have written (ports/storage.py, commit)."""
        storage = Held(VirtualClock(START))
        sender = World(storage).sender()
        signed = await signed_by(sender)
        storage.fault = Unavailable("no answer")
        with pytest.raises(OutcomeUnknown):
            await sender.broadcast(signed)
        storage.fault = None
        assert await sender.state(signed) is UNSEEN

    async def test_absence_that_could_not_be_written_down_is_not_said(self) -> None:
        storage = Held(VirtualClock(START))
        world = World(storage)
        sender = world.sender()
        signed = await signed_by(sender)
        await world.clock.advance(END)
        storage.fault = Unavailable("no answer")
        with pytest.raises(Unavailable):
            await sender.state(signed)


@table("mode", Mode)
async def test_each_mode_has_a_wallet_of_its_own(mode: Mode) -> None:
    """Stored payouts carry the name: it never changes."""
    async with open_app(Settings(database_url="memory://"), clock=VirtualClock(START), ids=SeededIds()) as app:
        sender = app.ports.senders.of_mode(mode)
        assert sender.name == f"simulator-chain-{mode}"
        assert app.ports.senders.named(sender.name) is sender
        signed = await signed_by(sender)
        await sender.broadcast(signed)
        assert await sender.state(signed) is IN_BLOCK
