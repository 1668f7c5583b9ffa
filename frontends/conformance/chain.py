"""Contract of a chain watcher (ports/chain.py). Your conftest.py provides a fixture `chain_harness`, a ChainHarness."""

import pytest

from ...ports.chain import Final, InBlock, Network, NotFound, Reverted, TokenMove, TransactionState
from ...ports.faults import Fault, NotConfigured, NotSupported, Unavailable
from .expectations import must_raise
from .harnesses import ChainHarness, check_hidden
from .problem import Reading, ReadRules

HASH = "0123456789abcdef" * 4
OTHER = "f" * 64
LARGE = (2**53 + 1) * 100
"""Units of an amount that no float holds, on a network of 6 decimals either."""


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
        assert await chain_harness.watcher.lookup(wired(chain_harness, network), HASH) == NotFound(), (
            "a transaction that the network does not know must be NotFound"
        )

    @pytest.mark.parametrize("network", Network)
    async def test_in_a_block_it_says_nothing_of_transfers(self, chain_harness: ChainHarness, network: Network) -> None:
        """The block may still be reverted."""
        await chain_harness.show(wired(chain_harness, network), HASH, TransactionState.IN_BLOCK, [TokenMove(5)])
        assert await chain_harness.watcher.lookup(network, HASH) == InBlock(), (
            "a transaction whose block may be reverted must be InBlock, and not Final"
        )

    @pytest.mark.parametrize("network", Network)
    async def test_reverted_is_not_final(self, chain_harness: ChainHarness, network: Network) -> None:
        """A reverted contract call moved nothing, whatever the transaction requested."""
        await chain_harness.show(wired(chain_harness, network), HASH, TransactionState.REVERTED, [TokenMove(5)])
        assert await chain_harness.watcher.lookup(network, HASH) == Reverted(), (
            "a transaction that the contract refused must be Reverted: it moved nothing"
        )

    @pytest.mark.parametrize("network", Network)
    async def test_final_lists_every_transfer_of_genuine_usdt(
        self, chain_harness: ChainHarness, network: Network
    ) -> None:
        moves = [TokenMove(5_00), TokenMove(7_00, genuine=False), TokenMove(9_00)]
        await chain_harness.show(wired(chain_harness, network), HASH, TransactionState.FINAL, moves)
        found = await chain_harness.watcher.lookup(network, HASH)
        assert isinstance(found, Final), "a transaction that is final and took effect must be Final"
        units = [transfer.units for transfer in found.transfers]
        assert 7_00 not in units, "only the genuine contract's token is USDT, whatever others call themselves"
        assert units == [5_00, 9_00], "each transfer must be listed, in units of 0.00000001 USDT on every network"
        assert len({transfer.index for transfer in found.transfers}) == 2, "two movements must have two indexes"
        assert all(transfer.sender and transfer.recipient for transfer in found.transfers), (
            "a transfer must have a sender and a recipient"
        )

    @pytest.mark.parametrize("network", Network)
    async def test_transfer_says_who_paid_whom(self, chain_harness: ChainHarness, network: Network) -> None:
        """The core compares the recipient with the client's wallet."""
        moves = [TokenMove(5_00), TokenMove(7_00)]
        await chain_harness.show(wired(chain_harness, network), HASH, TransactionState.FINAL, moves)
        found = await chain_harness.watcher.lookup(network, HASH)
        assert isinstance(found, Final), "a transaction that is final and took effect must be Final"
        parties = [(transfer.sender, transfer.recipient) for transfer in found.transfers]
        assert parties == list(await chain_harness.parties(network, HASH)), (
            "a transfer must have its own sender and recipient, in the network's usual spelling"
        )

    @pytest.mark.parametrize("network", Network)
    async def test_large_amount_loses_no_digit(self, chain_harness: ChainHarness, network: Network) -> None:
        """The amount is more than a float can hold."""
        await chain_harness.show(wired(chain_harness, network), HASH, TransactionState.FINAL, [TokenMove(LARGE)])
        found = await chain_harness.watcher.lookup(network, HASH)
        assert isinstance(found, Final), "a transaction that is final and took effect must be Final"
        assert [transfer.units for transfer in found.transfers] == [LARGE], "an amount is an integer, never a float"

    async def test_transaction_of_many_transfers_lists_them_all(self, chain_harness: ChainHarness) -> None:
        network, wanted = chain_harness.networks[0], [100 * number for number in range(1, 2 * chain_harness.page + 2)]
        await chain_harness.show(network, HASH, TransactionState.FINAL, [TokenMove(units) for units in wanted])
        found = await chain_harness.watcher.lookup(network, HASH)
        assert isinstance(found, Final), "a transaction that is final and took effect must be Final"
        assert sorted(transfer.units for transfer in found.transfers) == wanted, (
            "each transfer must be listed once: are the later pages read, and their first and last rows?"
        )

    @pytest.mark.parametrize("moves", [[], [TokenMove(0)], [TokenMove(5_00, genuine=False)]], ids=str)
    async def test_final_without_usdt_lists_nothing(self, chain_harness: ChainHarness, moves: list[TokenMove]) -> None:
        network = chain_harness.networks[0]
        await chain_harness.show(network, HASH, TransactionState.FINAL, moves)
        assert await chain_harness.watcher.lookup(network, HASH) == Final(()), (
            "a final transaction without genuine USDT must list no transfer"
        )

    async def test_asked_twice_it_answers_the_same(self, chain_harness: ChainHarness) -> None:
        """Hash and index identify a movement for ever. The rule that a delivery proof is used only once depends on
        it."""
        network = chain_harness.networks[0]
        await chain_harness.show(network, HASH, TransactionState.FINAL, [TokenMove(5_00), TokenMove(7_00)])
        first = await chain_harness.watcher.lookup(network, HASH)
        assert await chain_harness.watcher.lookup(network, HASH) == first, (
            "a final transaction must be reported the same at each read"
        )

    async def test_hashes_are_apart(self, chain_harness: ChainHarness) -> None:
        network = chain_harness.networks[0]
        await chain_harness.show(network, HASH, TransactionState.FINAL, [TokenMove(5_00)])
        assert await chain_harness.watcher.lookup(network, OTHER) == NotFound(), (
            "a transaction must not be reported for another hash"
        )

    async def test_networks_are_apart(self, chain_harness: ChainHarness) -> None:
        if len(chain_harness.networks) < 2:
            pytest.skip("the watcher sees one network")
        one, other = chain_harness.networks[:2]
        await chain_harness.show(one, HASH, TransactionState.FINAL, [TokenMove(5_00)])
        assert await chain_harness.watcher.lookup(other, HASH) == NotFound(), (
            "a transaction must not be reported for another network"
        )

    async def test_a_block_that_is_taken_back_takes_the_transaction_along(self, chain_harness: ChainHarness) -> None:
        """The watcher remembers nothing about a transaction before it is final."""
        network, seen = chain_harness.networks[0], []
        for state in (TransactionState.IN_BLOCK, TransactionState.MISSING, TransactionState.IN_BLOCK):
            await chain_harness.show(network, HASH, state)
            seen.append(await chain_harness.watcher.lookup(network, HASH))
        assert seen == [InBlock(), NotFound(), InBlock()], (
            "each read must report the present state: a block that was taken back takes its transactions along"
        )

    async def test_each_read_reports_the_present_state(self, chain_harness: ChainHarness) -> None:
        network, watcher = chain_harness.networks[0], chain_harness.watcher
        rule = "each read must report the present state, and not an earlier one"
        assert await watcher.lookup(network, HASH) == NotFound(), rule
        await chain_harness.show(network, HASH, TransactionState.IN_BLOCK, [TokenMove(5_00)])
        assert await watcher.lookup(network, HASH) == InBlock(), rule
        await chain_harness.show(network, HASH, TransactionState.FINAL, [TokenMove(5_00)])
        assert isinstance(await watcher.lookup(network, HASH), Final), rule

    @pytest.mark.parametrize(
        "odd", ["", "0x" + HASH, HASH.upper(), HASH[:-1], HASH + "0", HASH + "\n", "г" * 64], ids=ascii
    )
    async def test_only_the_canonical_form_is_a_hash(self, chain_harness: ChainHarness, odd: str) -> None:
        """The hash becomes part of a URL at the node, so only 64 lower-case hex digits are allowed."""
        with must_raise("a text that is not 64 hex digits in lower case must be a ValueError", ValueError):
            await chain_harness.watcher.lookup(chain_harness.networks[0], odd)


class TestFailures:
    """A failed read says nothing about the transaction."""

    async def test_a_chain_that_is_away_is_unavailable_and_not_an_empty_one(self, chain_harness: ChainHarness) -> None:
        await chain_harness.be_away()
        with must_raise("a read that failed is Unavailable, and never NotFound", Unavailable):
            await chain_harness.watcher.lookup(chain_harness.networks[0], HASH)

    @pytest.mark.parametrize("network", Network)
    async def test_a_network_that_is_not_wired_says_so(self, chain_harness: ChainHarness, network: Network) -> None:
        if network in chain_harness.networks:
            pytest.skip("the watcher sees it")
        with must_raise(
            "a network that is not wired must be NotSupported or NotConfigured", NotSupported, NotConfigured
        ):
            await chain_harness.watcher.lookup(network, HASH)

    async def test_no_credential_shows(self, chain_harness: ChainHarness) -> None:
        """Neither the repr nor a fault contains a credential."""
        await chain_harness.be_away()
        with must_raise("a read that failed must raise a fault", Fault) as raised:
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
