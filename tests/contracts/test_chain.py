"""The simulated chain can do all that a chain can do to us, beyond what every watcher must
(frontends/conformance/chain.py)."""

import asyncio

import pytest

from cambist.adapters.chain.simulator import SimulatedChain
from cambist.adapters.clock import VirtualClock
from cambist.adapters.script import ChainScript, Ending, Twist
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.ports import operation_log
from cambist.ports.chain import (
    ChainSimulator,
    Final,
    InBlock,
    Network,
    NotFound,
    TokenMove,
    TransactionState,
)
from cambist.ports.faults import Fault, NotConfigured, NotSupported, Unavailable

HASH = "0123456789abcdef" * 4
OTHER = "f" * 64
MISSING, IN_BLOCK = TransactionState.MISSING, TransactionState.IN_BLOCK
REVERTED, FINAL = TransactionState.REVERTED, TransactionState.FINAL


class World:
    """A storage, a clock, and the chain over them; `chain()` again is the chain after a restart."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.storage = MemoryStorage(self.clock)
        self.script = ChainScript()

    def chain(self) -> SimulatedChain:
        return SimulatedChain(self.storage, self.clock, script=self.script)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def chain(world: World) -> SimulatedChain:
    return world.chain()


class TestSimulator:
    def test_chain_is_a_simulator(self, chain: SimulatedChain) -> None:
        assert isinstance(chain, ChainSimulator)

    async def test_transaction_survives_a_restart(self, world: World, chain: SimulatedChain) -> None:
        await chain.simulate(Network.TRON, HASH, FINAL, [TokenMove(5)])
        assert await world.chain().lookup(Network.TRON, HASH) == await chain.lookup(Network.TRON, HASH)

    @pytest.mark.parametrize("odd", ["0x" + HASH, HASH.upper(), HASH + "\n"], ids=ascii)
    async def test_only_the_canonical_hash_can_be_simulated(self, chain: SimulatedChain, odd: str) -> None:
        with pytest.raises(ValueError, match="64 hex digits"):
            await chain.simulate(Network.TRON, odd, FINAL)

    async def test_every_transfer_has_a_place_and_two_addresses(self, chain: SimulatedChain) -> None:
        await chain.simulate(Network.TRON, HASH, FINAL, [TokenMove(5), TokenMove(7, genuine=False), TokenMove(9)])
        found = await chain.lookup(Network.TRON, HASH)
        assert isinstance(found, Final)
        assert [(transfer.index, transfer.units) for transfer in found.transfers] == [(0, 5), (2, 9)]
        assert len({address for transfer in found.transfers for address in (transfer.sender, transfer.recipient)}) == 4

    async def test_negative_move_is_refused(self, chain: SimulatedChain) -> None:
        with pytest.raises(ValueError, match="nothing or more"):
            await chain.simulate(Network.TRON, HASH, FINAL, [TokenMove(-1)])

    async def test_two_that_write_at_once_both_succeed(self, chain: SimulatedChain) -> None:
        await asyncio.gather(
            *(chain.simulate(Network.TRON, HASH, FINAL, [TokenMove(units)]) for units in (1, 2, 3)),
        )
        found = await chain.lookup(Network.TRON, HASH)
        assert isinstance(found, Final)
        assert found.transfers[0].units in (1, 2, 3)

    async def test_writer_that_keeps_losing_gives_up(
        self, chain: SimulatedChain, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(operation_log, "_TRIES", 1)
        await chain.simulate(Network.TRON, HASH, IN_BLOCK)
        ends = await asyncio.gather(
            *(chain.simulate(Network.TRON, HASH, state) for state in (FINAL, REVERTED)), return_exceptions=True
        )
        assert [type(end) for end in ends].count(Unavailable) == 1

    @pytest.mark.parametrize(
        ("ending", "fault"),
        [
            (Ending.UNAVAILABLE, Unavailable),
            (Ending.NOT_CONFIGURED, NotConfigured),
            (Ending.NOT_SUPPORTED, NotSupported),
        ],
    )
    async def test_the_script_brings_every_fault_about_once(
        self, world: World, chain: SimulatedChain, ending: Ending, fault: type[Fault]
    ) -> None:
        world.script.lookup.append(Twist(ending=ending, retry_after=7.0))
        with pytest.raises(fault) as raised:
            await chain.lookup(Network.TRON, HASH)
        assert getattr(raised.value, "retry_after", 7.0) == 7.0
        assert await chain.lookup(Network.TRON, HASH) == NotFound()

    async def test_late_answer_shows_the_present_state(self, world: World, chain: SimulatedChain) -> None:
        world.script.lookup.append(Twist(silence=30))
        asking = asyncio.create_task(chain.lookup(Network.TRON, HASH))
        await world.clock.advance(29)
        assert not asking.done()
        await chain.simulate(Network.TRON, HASH, IN_BLOCK)
        await world.clock.advance(1)
        assert await asking == InBlock()
