"""Contract of a deposit watcher (ports/deposits.py). Your conftest.py provides a fixture `deposits_harness`, a
DepositsHarness."""

import asyncio
import re

import pytest

from ...core.domain.tron import is_tron_address
from ...ports.chain import Network
from ...ports.deposits import Deposit, DepositWatcher
from ...ports.faults import Fault, Unavailable
from .expectations import must_raise
from .harnesses import DepositsHarness, check_hidden, check_name
from .problem import Reading, ReadRules

OPERATION = "exch_conformance_1"
OTHER = "exch_conformance_2"
UNITS = 100 * 10**8
LARGE = (2**53 + 1) * 100
"""Units of an amount that no float holds, on a network of 6 decimals either."""


async def came(watcher: DepositWatcher, address: str) -> list[tuple[int, bool]]:
    """Return the units of each deposit so far, and whether it is final, without duplicates."""
    found = {(each.tx_hash, each.index): each for each in await watcher.deposits(address)}
    return sorted((each.units, each.is_final) for each in found.values())


class TestAddresses:
    """Deposits are matched by address, never by sender (docs/exchanges.md "Rules")."""

    async def test_an_operation_has_one_address_for_ever(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        first = await watcher.address(OPERATION)
        rule = "an operation must have one address for ever, also after a restart"
        assert await watcher.address(OPERATION) == first, rule
        assert await deposits_harness.restarted().address(OPERATION) == first, rule

    async def test_asked_at_once_it_is_one_address(self, deposits_harness: DepositsHarness) -> None:
        addresses = await asyncio.gather(*(deposits_harness.watcher.address(OPERATION) for _ in range(5)))
        assert len(set(addresses)) == 1, "an operation must have one address, also when it is asked for at once"

    async def test_no_two_operations_share_one(self, deposits_harness: DepositsHarness) -> None:
        addresses = {await deposits_harness.watcher.address(f"exch_conformance_{number}") for number in range(20)}
        assert len(addresses) == 20, "no two operations may share an address: one client's money would be another's"

    async def test_it_is_one_of_the_network(self, deposits_harness: DepositsHarness) -> None:
        address = await deposits_harness.watcher.address(OPERATION)
        assert address, "an operation must have an address"
        if deposits_harness.watcher.network is Network.TRON:
            assert is_tron_address(address), "no address of TRON: its checksum does not fit"


class TestDeposits:
    """The watcher reports deposits of genuine USDT to this address, final or not."""

    async def test_nothing_came_yet(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        assert list(await watcher.deposits(await watcher.address(OPERATION))) == [], (
            "an address that got nothing must have no deposit"
        )

    async def test_deposit_is_named_by_transaction_and_index_each_time(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        tx_hash = await deposits_harness.send(address, UNITS)
        listed = {(each.tx_hash, each.index): each for each in await watcher.deposits(address)}
        assert len(listed) == 1, "each deposit must be listed, once by its transaction and index"
        [found] = listed.values()
        assert re.fullmatch("[0-9a-f]{64}", found.tx_hash), "64 hex digits in lower case without 0x"
        assert found.tx_hash == tx_hash, "a deposit must have the hash of its transaction"
        assert found.units == UNITS, "a deposit must be in units of 0.00000001 USDT"
        assert found.is_final, "a deposit whose block cannot be reverted must be final"
        assert found.at.utcoffset() is not None, "a deposit's moment has a time zone"
        assert deposits_harness.is_now(found.at), "a deposit's moment must be that of its block"
        again = await deposits_harness.restarted().deposits(address)
        assert {_named(each) for each in again} == {_named(found)}, "another look names it otherwise"

    async def test_several_of_one_transaction_are_apart(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        await deposits_harness.send(address, 5_00, 7_00)
        assert await came(watcher, address) == [(5_00, True), (7_00, True)], (
            "each movement of a transaction must be a deposit with its own index"
        )

    async def test_several_transactions_are_all_there(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        for units in (3_00, 1_00, 1_00):
            await deposits_harness.send(address, units)
        assert await came(watcher, address) == [(1_00, True), (1_00, True), (3_00, True)], (
            "each transaction to the address must be listed, also of equal amounts"
        )

    async def test_each_of_many_deposits_is_listed(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        wanted = [100 * number for number in range(1, 2 * deposits_harness.page + 2)]
        for units in wanted:
            await deposits_harness.send(address, units)
        assert await came(watcher, address) == [(units, True) for units in wanted], (
            "each deposit must be listed once: are the later pages read, and their first and last rows?"
        )

    async def test_large_deposit_loses_no_digit(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        await deposits_harness.send(address, LARGE)
        assert await came(watcher, address) == [(LARGE, True)], "an amount is an integer, never a float"

    async def test_what_leaves_the_address_is_no_deposit(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        await deposits_harness.send(address, UNITS)
        await deposits_harness.spend(address, UNITS)
        assert await came(watcher, address) == [(UNITS, True)], "only what moved USDT to the address is a deposit"

    async def test_a_fake_token_is_none_of_ours(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        await deposits_harness.send(address, UNITS, genuine=False)
        await deposits_harness.send(address, 5_00)
        assert await came(watcher, address) == [(5_00, True)], (
            "only the genuine contract's token is USDT: one that is only named so would be paid out"
        )

    async def test_deposit_to_another_address_is_not_seen(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        await deposits_harness.send(await watcher.address(OTHER), UNITS)
        assert await came(watcher, address) == [], "a deposit must be listed for its own address only"

    async def test_deposit_that_is_not_final_says_so_and_may_vanish(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        tx_hash = await deposits_harness.send(address, 5_00, final=False)
        assert await came(watcher, address) == [(5_00, False)], (
            "a deposit whose block may be reverted must not be final: are confirmations counted?"
        )
        await deposits_harness.drop(address, tx_hash)
        assert await came(watcher, address) == [], "a deposit must vanish with the block that was taken back"

    async def test_deposit_becomes_final_with_its_block(self, deposits_harness: DepositsHarness) -> None:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        tx_hash = await deposits_harness.send(address, 5_00, final=False)
        assert await came(watcher, address) == [(5_00, False)], (
            "a deposit whose block may be reverted must not be final: are confirmations counted?"
        )
        await deposits_harness.make_final(address, tx_hash)
        assert await came(watcher, address) == [(5_00, True)], "each read must report the present state of a deposit"


class TestFailures:
    """A failed read says nothing about deposits."""

    async def test_a_chain_that_is_away_is_unavailable_and_not_an_empty_one(
        self, deposits_harness: DepositsHarness
    ) -> None:
        address = await deposits_harness.watcher.address(OPERATION)
        await deposits_harness.be_away()
        with must_raise("a read that failed is Unavailable, and never an empty list", Unavailable):
            await deposits_harness.watcher.deposits(address)

    async def test_its_name_can_be_stored(self, deposits_harness: DepositsHarness) -> None:
        check_name(deposits_harness.watcher)

    async def test_no_credential_shows(self, deposits_harness: DepositsHarness) -> None:
        """Neither the repr nor a fault contains a credential."""
        address = await deposits_harness.watcher.address(OPERATION)
        await deposits_harness.be_away()
        with must_raise("a read that failed must raise a fault", Fault) as raised:
            await deposits_harness.watcher.deposits(address)
        check_hidden(deposits_harness.secrets, deposits_harness.watcher, raised.value)


def _named(deposit: Deposit) -> tuple[str, int, int]:
    return (deposit.tx_hash, deposit.index, deposit.units)


class TestDepositsAtFaults(ReadRules):
    """Deposits while the node fails."""

    @pytest.fixture
    async def read(self, deposits_harness: DepositsHarness) -> Reading:
        watcher = deposits_harness.watcher
        address = await watcher.address(OPERATION)
        await deposits_harness.send(address, UNITS)
        return Reading(harness=deposits_harness, adapter=watcher, reads=(lambda: watcher.deposits(address),))
