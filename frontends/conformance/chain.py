"""Contract of a chain watcher (ports/chain.py). Your conftest.py provides a fixture `chain_harness`, a ChainHarness."""

import pytest

from ...ports.chain import Final, InBlock, Network, NotFound, Reverted, TokenMove, TransactionState
from ...ports.faults import Fault, NotConfigured, NotSupported, Unavailable
from .harnesses import ChainHarness, check_hidden
from .problem import Reading, ReadRules

HASH = "0123456789abcdef" * 4
OTHER = "f" * 64


def wired(harness: ChainHarness, network: Network) -> Network:
    """Return the network. Skips if the watcher does not see it."""
    if network not in harness.networks:
        pytest.skip(f"the watcher does not see {network}")
    return network


class TestSightings:
    """The watcher reports a transaction as the network shows it now, and invents nothing."""

    @pytest.mark.parametrize("network", Network)
    async def test_a_transaction_that_never_was_is_not_found(
        self, chain_harness: ChainHarness, network: Network
    ) -> None:
        assert await chain_harness.watcher.lookup(wired(chain_harness, network), HASH) == NotFound()

    @pytest.mark.parametrize("network", Network)
    async def test_in_a_block_it_says_nothing_of_transfers(self, chain_harness: ChainHarness, network: Network) -> None:
        """The block may still be reverted."""
        await chain_harness.show(wired(chain_harness, network), HASH, TransactionState.IN_BLOCK, [TokenMove(5)])
        assert await chain_harness.watcher.lookup(network, HASH) == InBlock()

    @pytest.mark.parametrize("network", Network)
    async def test_reverted_is_not_final(self, chain_harness: ChainHarness, network: Network) -> None:
        """A reverted contract call moved nothing, whatever the transaction requested."""
        await chain_harness.show(wired(chain_harness, network), HASH, TransactionState.REVERTED, [TokenMove(5)])
        assert await chain_harness.watcher.lookup(network, HASH) == Reverted()

    @pytest.mark.parametrize("network", Network)
    async def test_final_lists_every_transfer_of_genuine_usdt(
        self, chain_harness: ChainHarness, network: Network
    ) -> None:
        moves = [TokenMove(5_00), TokenMove(7_00, genuine=False), TokenMove(9_00)]
        await chain_harness.show(wired(chain_harness, network), HASH, TransactionState.FINAL, moves)
        found = await chain_harness.watcher.lookup(network, HASH)
        assert isinstance(found, Final)
        assert [transfer.units for transfer in found.transfers] == [5_00, 9_00], (
            "units of 0.00000001, genuine USDT only"
        )
        assert len({transfer.index for transfer in found.transfers}) == 2, "two movements have one index"
        assert all(transfer.sender and transfer.recipient for transfer in found.transfers)

    @pytest.mark.parametrize("moves", [[], [TokenMove(0)], [TokenMove(5_00, genuine=False)]], ids=str)
    async def test_final_without_usdt_lists_nothing(self, chain_harness: ChainHarness, moves: list[TokenMove]) -> None:
        network = chain_harness.networks[0]
        await chain_harness.show(network, HASH, TransactionState.FINAL, moves)
        assert await chain_harness.watcher.lookup(network, HASH) == Final(())

    async def test_asked_twice_it_answers_the_same(self, chain_harness: ChainHarness) -> None:
        """Hash and index identify a movement for ever. The rule that a delivery proof is used only once depends on
        it."""
        network = chain_harness.networks[0]
        await chain_harness.show(network, HASH, TransactionState.FINAL, [TokenMove(5_00), TokenMove(7_00)])
        first = await chain_harness.watcher.lookup(network, HASH)
        assert await chain_harness.watcher.lookup(network, HASH) == first

    async def test_hashes_are_apart(self, chain_harness: ChainHarness) -> None:
        network = chain_harness.networks[0]
        await chain_harness.show(network, HASH, TransactionState.FINAL, [TokenMove(5_00)])
        assert await chain_harness.watcher.lookup(network, OTHER) == NotFound()

    async def test_networks_are_apart(self, chain_harness: ChainHarness) -> None:
        if len(chain_harness.networks) < 2:
            pytest.skip("the watcher sees one network")
        one, other = chain_harness.networks[:2]
        await chain_harness.show(one, HASH, TransactionState.FINAL, [TokenMove(5_00)])
        assert await chain_harness.watcher.lookup(other, HASH) == NotFound()

    async def test_a_block_that_is_taken_back_takes_the_transaction_along(self, chain_harness: ChainHarness) -> None:
        """The watcher remembers nothing about a transaction before it is final."""
        network, seen = chain_harness.networks[0], []
        for state in (TransactionState.IN_BLOCK, TransactionState.MISSING, TransactionState.IN_BLOCK):
            await chain_harness.show(network, HASH, state)
            seen.append(await chain_harness.watcher.lookup(network, HASH))
        assert seen == [InBlock(), NotFound(), InBlock()]

    @pytest.mark.parametrize(
        "odd", ["", "0x" + HASH, HASH.upper(), HASH[:-1], HASH + "0", HASH + "\n", "г" * 64], ids=ascii
    )
    async def test_only_the_canonical_form_is_a_hash(self, chain_harness: ChainHarness, odd: str) -> None:
        """The hash becomes part of a URL at the node, so only 64 lower-case hex digits are allowed."""
        with pytest.raises(ValueError):  # noqa: PT011 - the port gives no words
            await chain_harness.watcher.lookup(chain_harness.networks[0], odd)


class TestFailures:
    """A failed read says nothing about the transaction."""

    async def test_a_chain_that_is_away_is_unavailable_and_not_an_empty_one(self, chain_harness: ChainHarness) -> None:
        await chain_harness.be_away()
        with pytest.raises(Unavailable):
            await chain_harness.watcher.lookup(chain_harness.networks[0], HASH)

    @pytest.mark.parametrize("network", Network)
    async def test_a_network_that_is_not_wired_says_so(self, chain_harness: ChainHarness, network: Network) -> None:
        if network in chain_harness.networks:
            pytest.skip("the watcher sees it")
        with pytest.raises((NotSupported, NotConfigured)):
            await chain_harness.watcher.lookup(network, HASH)

    async def test_no_credential_shows(self, chain_harness: ChainHarness) -> None:
        """Neither the repr nor a fault contains a credential."""
        await chain_harness.be_away()
        with pytest.raises(Fault) as raised:
            await chain_harness.watcher.lookup(chain_harness.networks[0], HASH)
        check_hidden(chain_harness.secrets, chain_harness.watcher, raised.value)


class TestChainAtFaults(ReadRules):
    """Transactions while the node fails."""

    @pytest.fixture
    async def read(self, chain_harness: ChainHarness) -> Reading:
        network, watcher = chain_harness.networks[0], chain_harness.watcher
        await chain_harness.show(network, HASH, TransactionState.FINAL, [TokenMove(5_00)])
        reads = (lambda: watcher.lookup(network, HASH), lambda: watcher.lookup(network, OTHER))
        return Reading(harness=chain_harness, adapter=watcher, reads=reads)
