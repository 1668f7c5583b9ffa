"""Bugs of authors of chain watchers and deposit watchers: each fails the shipped suite, which names its rule."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import msgspec

from cambist.adapters.chain.simulator import SimulatedChain
from cambist.adapters.deposits.simulator import SimulatedDeposits
from cambist.frontends.conformance import chain, deposits
from cambist.ports.chain import Final, InBlock, Network, NotFound, Reverted, Sighting, UsdtTransfer
from cambist.ports.deposits import Deposit
from cambist.ports.faults import Refused, Unavailable
from tests.contracts.biting import Planted, check_bite, named
from tests.contracts.harnesses import SimulatedChainHarness, SimulatedDepositsHarness
from tests.tables import table


class ChangesTransfers(SimulatedChain):
    """Reads a final transaction's transfers in a wrong way."""

    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        raise NotImplementedError

    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        found = await super().lookup(network, tx_hash)
        return Final(self.changed(found.transfers)) if isinstance(found, Final) else found


def with_units(transfers: Sequence[UsdtTransfer], units: Sequence[int]) -> tuple[UsdtTransfer, ...]:
    return tuple(msgspec.structs.replace(each, units=new) for each, new in zip(transfers, units, strict=True))


class CountsMicroUsdt(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        return with_units(transfers, [each.units // 100 for each in transfers])


class CountsEighteenDecimals(SimulatedChain):
    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        found = await super().lookup(network, tx_hash)
        if network is not Network.BSC or not isinstance(found, Final):
            return found
        return Final(with_units(found.transfers, [each.units * 10**10 for each in found.transfers]))


class CountsInFloats(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        return with_units(transfers, [int(float(each.units // 100)) * 100 for each in transfers])


class ReadsOneTransfer(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        return transfers[:1]


class ReadsOnePage(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        return transfers[:3]


class LosesTheRowBetweenPages(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        return (*transfers[:3], *transfers[4:])


class RepeatsTheRowBetweenPages(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        return (*transfers[:3], *transfers[2:]) if len(transfers) > 3 else transfers


class NumbersAllTransfersZero(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        return tuple(msgspec.structs.replace(each, index=0) for each in transfers)


class SwapsSenderAndRecipient(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        return tuple(msgspec.structs.replace(each, sender=each.recipient, recipient=each.sender) for each in transfers)


class TakesTheContractForTheRecipient(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        return tuple(
            msgspec.structs.replace(each, recipient="TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t") for each in transfers
        )


class SpellsAddressesInUpperCase(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        return tuple(msgspec.structs.replace(each, sender=each.sender.upper()) for each in transfers)


class RenumbersAtEachRead(ChangesTransfers):
    def changed(self, transfers: tuple[UsdtTransfer, ...]) -> tuple[UsdtTransfer, ...]:
        self.first = getattr(self, "first", 0) + len(transfers)
        return tuple(msgspec.structs.replace(each, index=self.first + each.index) for each in transfers)


class TakesAnyTokenForUsdt(SimulatedChain):
    async def simulate(self, network: Network, tx_hash: str, state: Any, moves: Sequence[Any] = ()) -> None:
        genuine = [msgspec.structs.replace(each, genuine=True) for each in moves]
        await super().simulate(network, tx_hash, state, genuine)


class CountsNoConfirmations(SimulatedChain):
    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        found = await super().lookup(network, tx_hash)
        return Final(()) if isinstance(found, InBlock) else found


class TakesRevertedForFinal(SimulatedChain):
    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        found = await super().lookup(network, tx_hash)
        return Final(()) if isinstance(found, Reverted) else found


class AsksTheFirstNetwork(SimulatedChain):
    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        return await super().lookup(next(iter(Network)), tx_hash)


class CachesSightings(SimulatedChain):
    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        kept: dict[str, Sighting] = self.__dict__.setdefault("kept", {})
        if tx_hash not in kept:
            kept[tx_hash] = await super().lookup(network, tx_hash)
        return kept[tx_hash]


class RemembersBlocksThatAreGone(SimulatedChain):
    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        kept: dict[str, Sighting] = self.__dict__.setdefault("kept", {})
        found = await super().lookup(network, tx_hash)
        if isinstance(found, InBlock):
            kept[tx_hash] = found
        return kept.get(tx_hash, found) if isinstance(found, NotFound) else found


class CallsFailedReadsNotFound(SimulatedChain):
    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        try:
            return await super().lookup(network, tx_hash)
        except Unavailable:
            return NotFound()


class TakesHashesInAnyForm(SimulatedChain):
    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        try:
            return await super().lookup(network, tx_hash)
        except ValueError:
            return NotFound()


class RefusesOddHashes(SimulatedChain):
    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        try:
            return await super().lookup(network, tx_hash)
        except ValueError as odd:
            raise Refused("odd") from odd


class ChangesDeposits(SimulatedDeposits):
    """Reads an address's deposits in a wrong way."""

    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        raise NotImplementedError

    async def deposits(self, address: str) -> Sequence[Deposit]:
        return self.changed(await super().deposits(address))


def replaced(found: Sequence[Deposit], **fields: Any) -> Sequence[Deposit]:
    return [msgspec.structs.replace(each, **fields) for each in found]


class ReportsMicroUsdt(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return [msgspec.structs.replace(each, units=each.units // 100) for each in found]


class ReportsFloats(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return [msgspec.structs.replace(each, units=int(float(each.units // 100)) * 100) for each in found]


class ReadsMillisecondsAsSeconds(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return [
            msgspec.structs.replace(each, at=each.at.fromtimestamp(each.at.timestamp() / 1000, each.at.tzinfo))
            for each in found
        ]


class ReportsNaiveMoments(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return [msgspec.structs.replace(each, at=each.at.replace(tzinfo=None)) for each in found]


class PrefixesHashes(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return [msgspec.structs.replace(each, tx_hash=f"0x{each.tx_hash}") for each in found]


class ReportsAllAsFinal(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return replaced(found, is_final=True)


class ReportsNothingAsFinal(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return replaced(found, is_final=False)


class IndexesEachDepositZero(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return replaced(found, index=0)


class NumbersDepositsByProcess(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return [msgspec.structs.replace(each, index=each.index + id(self)) for each in found]


class ReadsThreeDeposits(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return found[:3]


class LosesTheDepositBetweenPages(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return [*found[:3], *found[4:]]


class MergesEqualDeposits(ChangesDeposits):
    def changed(self, found: Sequence[Deposit]) -> Sequence[Deposit]:
        return list({each.units: each for each in found}.values())


class KeepsDepositsThatAreGone(SimulatedDeposits):
    async def deposits(self, address: str) -> Sequence[Deposit]:
        kept: dict[tuple[str, str, int], Deposit] = self.__dict__.setdefault("kept", {})
        for each in await super().deposits(address):
            kept[address, each.tx_hash, each.index] = each
        return [each for key, each in kept.items() if key[0] == address]


class KeepsTheFirstSight(SimulatedDeposits):
    async def deposits(self, address: str) -> Sequence[Deposit]:
        kept: dict[tuple[str, int], Deposit] = self.__dict__.setdefault("kept", {})
        return [kept.setdefault((each.tx_hash, each.index), each) for each in await super().deposits(address)]


class TakesAnyTokenForADeposit(SimulatedDeposits):
    async def simulate_deposit(self, address: str, units: int, **more: Any) -> str:
        return await super().simulate_deposit(address, units, **{**more, "genuine": True})


class ReportsEveryAddress(SimulatedDeposits):
    """Every deposit of the wallet is reported for each of its addresses."""

    async def simulate_deposit(self, address: str, units: int, **more: Any) -> str:
        return await super().simulate_deposit("wallet", units, **more)

    async def deposits(self, address: str) -> Sequence[Deposit]:
        return await super().deposits("wallet")


class CountsWhatLeaves(SimulatedDeposits):
    async def deposits(self, address: str) -> Sequence[Deposit]:
        return [*await super().deposits(address), *await super().deposits(f"{address}-elsewhere")]


class CallsFailedReadsEmpty(SimulatedDeposits):
    async def deposits(self, address: str) -> Sequence[Deposit]:
        try:
            return await super().deposits(address)
        except Unavailable:
            return []


class GivesEveryoneOneAddress(SimulatedDeposits):
    async def address(self, operation: str) -> str:
        return await super().address("everyone")


class GivesANewAddressEachTime(SimulatedDeposits):
    async def address(self, operation: str) -> str:
        return await super().address(self._ids.uuid())


class ForgetsAddressesAtARestart(SimulatedDeposits):
    async def address(self, operation: str) -> str:
        return await super().address(f"{operation}/{id(self)}")


class SpellsAddressesInLowerCase(SimulatedDeposits):
    async def address(self, operation: str) -> str:
        return (await super().address(operation)).lower()


_SIGHT, _FAIL, _TRON = chain.TestSightings, chain.TestFailures, (Network.TRON,)
_PAGES = "are the later pages read"
_PRESENT = "must report the present state"

WATCHERS = (
    Planted(CountsMicroUsdt, _SIGHT, "test_final_lists", "in units of 0.00000001 USDT", _TRON),
    Planted(CountsEighteenDecimals, _SIGHT, "test_final_lists", "in units of 0.00000001 USDT", (Network.BSC,)),
    Planted(CountsInFloats, _SIGHT, "test_large_amount", "never a float", _TRON),
    Planted(ReadsOneTransfer, _SIGHT, "test_final_lists", "each transfer must be listed", _TRON),
    Planted(ReadsOnePage, _SIGHT, "test_transaction_of_many", _PAGES),
    Planted(LosesTheRowBetweenPages, _SIGHT, "test_transaction_of_many", _PAGES),
    Planted(RepeatsTheRowBetweenPages, _SIGHT, "test_transaction_of_many", _PAGES),
    Planted(NumbersAllTransfersZero, _SIGHT, "test_final_lists", "must have two indexes", _TRON),
    Planted(SwapsSenderAndRecipient, _SIGHT, "test_transfer_says", "its own sender and recipient", _TRON),
    Planted(TakesTheContractForTheRecipient, _SIGHT, "test_transfer_says", "its own sender and recipient", _TRON),
    Planted(SpellsAddressesInUpperCase, _SIGHT, "test_transfer_says", "usual spelling", _TRON),
    Planted(RenumbersAtEachRead, _SIGHT, "test_asked_twice", "the same at each read"),
    Planted(TakesAnyTokenForUsdt, _SIGHT, "test_final_lists", "the genuine contract's token", _TRON),
    Planted(CountsNoConfirmations, _SIGHT, "test_in_a_block", "InBlock, and not Final", _TRON),
    Planted(TakesRevertedForFinal, _SIGHT, "test_reverted", "must be Reverted", _TRON),
    Planted(AsksTheFirstNetwork, _SIGHT, "test_networks_are_apart", "for another network"),
    Planted(CachesSightings, _SIGHT, "test_each_read", _PRESENT),
    Planted(CachesSightings, _SIGHT, "test_a_block_that_is", _PRESENT),
    Planted(RemembersBlocksThatAreGone, _SIGHT, "test_a_block_that_is", _PRESENT),
    Planted(CallsFailedReadsNotFound, _FAIL, "test_a_chain_that_is_away", "and never NotFound"),
    Planted(TakesHashesInAnyForm, _SIGHT, "test_only_the_canonical", "must be a ValueError", ("0x" + chain.HASH,)),
    Planted(RefusesOddHashes, _SIGHT, "test_only_the_canonical", "must be a ValueError", ("",)),
)

_ADDRESS, _DEPOSIT, _AWAY = deposits.TestAddresses, deposits.TestDeposits, deposits.TestFailures
_NAMED = "test_deposit_is_named"
_ONE = "must have one address"

DEPOSITS = (
    Planted(ReportsMicroUsdt, _DEPOSIT, _NAMED, "in units of 0.00000001 USDT"),
    Planted(ReportsFloats, _DEPOSIT, "test_large_deposit", "never a float"),
    Planted(ReadsMillisecondsAsSeconds, _DEPOSIT, _NAMED, "must be that of its block"),
    Planted(ReportsNaiveMoments, _DEPOSIT, _NAMED, "has a time zone"),
    Planted(PrefixesHashes, _DEPOSIT, _NAMED, "without 0x"),
    Planted(ReportsAllAsFinal, _DEPOSIT, "test_deposit_that_is_not_final", "are confirmations counted"),
    Planted(ReportsNothingAsFinal, _DEPOSIT, _NAMED, "cannot be reverted must be final"),
    Planted(IndexesEachDepositZero, _DEPOSIT, "test_several_of_one", "with its own index"),
    Planted(NumbersDepositsByProcess, _DEPOSIT, _NAMED, "another look names it otherwise"),
    Planted(ReadsThreeDeposits, _DEPOSIT, "test_each_of_many", _PAGES),
    Planted(LosesTheDepositBetweenPages, _DEPOSIT, "test_each_of_many", _PAGES),
    Planted(MergesEqualDeposits, _DEPOSIT, "test_several_transactions", "also of equal amounts"),
    Planted(KeepsDepositsThatAreGone, _DEPOSIT, "test_deposit_that_is_not_final", "must vanish with the block"),
    Planted(KeepsTheFirstSight, _DEPOSIT, "test_deposit_becomes_final", _PRESENT),
    Planted(TakesAnyTokenForADeposit, _DEPOSIT, "test_a_fake_token", "the genuine contract's token"),
    Planted(ReportsEveryAddress, _DEPOSIT, "test_deposit_to_another", "for its own address only"),
    Planted(CountsWhatLeaves, _DEPOSIT, "test_what_leaves", "only what moved USDT to the address"),
    Planted(CallsFailedReadsEmpty, _AWAY, "test_a_chain_that_is_away", "never an empty list"),
    Planted(GivesEveryoneOneAddress, _ADDRESS, "test_no_two_operations", "no two operations may share"),
    Planted(GivesANewAddressEachTime, _ADDRESS, "test_an_operation_has_one", _ONE),
    Planted(GivesANewAddressEachTime, _ADDRESS, "test_asked_at_once", _ONE),
    Planted(ForgetsAddressesAtARestart, _ADDRESS, "test_an_operation_has_one", _ONE),
    Planted(SpellsAddressesInLowerCase, _ADDRESS, "test_it_is_one_of", "checksum does not fit"),
)


async def watching(_: AsyncExitStack, adapter: type[Any] | None) -> SimulatedChainHarness:
    return SimulatedChainHarness(adapter or SimulatedChain)


async def depositing(_: AsyncExitStack, adapter: type[Any] | None) -> SimulatedDepositsHarness:
    return SimulatedDepositsHarness(adapter or SimulatedDeposits)


@table("bug", WATCHERS, ids=named)
async def test_watcher_with_a_planted_bug_fails_by_its_rule(bug: Planted) -> None:
    await check_bite(bug, watching)


@table("bug", DEPOSITS, ids=named)
async def test_deposits_with_a_planted_bug_fail_by_their_rule(bug: Planted) -> None:
    await check_bite(bug, depositing)
