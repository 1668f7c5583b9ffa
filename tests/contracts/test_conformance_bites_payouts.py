"""Bugs of authors of payout wallets: each fails the shipped suite, which names its rule."""

from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

import msgspec

from cambist.adapters.payouts.simulator import SimulatedSender
from cambist.frontends.conformance import payout_faults, payouts
from cambist.ports.faults import OutcomeUnknown, Refused, Unavailable
from cambist.ports.payouts import SentTransfer, SignedTransfer, TransferState
from tests.contracts.biting import Planted, check_bite, named
from tests.contracts.harnesses import SimulatedPayoutsHarness
from tests.contracts.payouts_kit import ADDRESS
from tests.tables import table


class SendsAHundredfold(SimulatedSender):
    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        return await super().sign(operation, address, units * 100)


class SendsMicroUsdt(SimulatedSender):
    """The decimals of the network are forgotten: a millionth of it is a unit of the port."""

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        return await super().sign(operation, address, units // 10_000 * 100)


class SendsCents(SimulatedSender):
    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        return await super().sign(operation, address, max(100, units // 10**6 * 10**6) if units > 0 else units)


class RoundsDown(SimulatedSender):
    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        return await super().sign(operation, address, units // 100 * 100)


class PaysTheFirstClient(SimulatedSender):
    """The address of an earlier payout is kept."""

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        return await super().sign(operation, "T" + "1" * 33, units)


class TakesAnyAddress(SimulatedSender):
    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        try:
            return await super().sign(operation, address, units)
        except Refused as refused:
            if refused.reason != "address":
                raise
            return await super().sign(operation, ADDRESS, units)


class RefusesWithoutAReason(SimulatedSender):
    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        try:
            return await super().sign(operation, address, units)
        except Refused as refused:
            raise Refused("no") from refused


class SendsWhenItSigns(SimulatedSender):
    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        made = await super().sign(operation, address, units)
        await super().broadcast(made)
        return made


class TakesOneNonceForAll(SimulatedSender):
    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        first: SignedTransfer | None = self.__dict__.get("first")
        self.first = first or await super().sign(operation, address, units)
        return self.first


class PrefixesHashes(SimulatedSender):
    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        made = await super().sign(operation, address, units)
        return msgspec.structs.replace(made, tx_hash=f"0x{made.tx_hash}")


class SignsNaiveMoments(SimulatedSender):
    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        made = await super().sign(operation, address, units)
        assert made.expires_at is not None
        return msgspec.structs.replace(made, expires_at=made.expires_at.replace(tzinfo=None))


class SignsAnewAtEachBroadcast(SimulatedSender):
    async def broadcast(self, signed: SignedTransfer) -> None:
        await super().broadcast(await self.sign(signed.operation, ADDRESS, payouts.UNITS))


class KeepsTheBlobToItself(SimulatedSender):
    """The wallet sends from its memory and not from the stored blob."""

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        made = await super().sign(operation, address, units)
        self.__dict__.setdefault("kept", {})[made.tx_hash] = made.blob
        return msgspec.structs.replace(made, blob=b"kept")

    async def broadcast(self, signed: SignedTransfer) -> None:
        blob = self.__dict__.get("kept", {}).get(signed.tx_hash, b"")
        await super().broadcast(msgspec.structs.replace(signed, blob=blob))


class SendsForeignTransfers(SimulatedSender):
    async def broadcast(self, signed: SignedTransfer) -> None:
        try:
            await super().broadcast(signed)
        except Refused as refused:
            if refused.reason == "expired":
                raise


class CallsKnownTransfersRefused(SimulatedSender):
    """The node's answer to a repeat is taken for a refusal."""

    async def broadcast(self, signed: SignedTransfer) -> None:
        if await super().state(signed) in payouts.SENT:
            raise Refused("already known", reason="invalid")
        await super().broadcast(signed)


class CallsLostAnswersRefused(SimulatedSender):
    async def broadcast(self, signed: SignedTransfer) -> None:
        try:
            await super().broadcast(signed)
        except OutcomeUnknown as lost:
            raise Refused("timeout", reason="invalid") from lost


class CallsLostAnswersUnavailable(SimulatedSender):
    async def broadcast(self, signed: SignedTransfer) -> None:
        try:
            await super().broadcast(signed)
        except OutcomeUnknown as lost:
            raise Unavailable("timeout") from lost


class CallsLostAnswersSent(SimulatedSender):
    async def broadcast(self, signed: SignedTransfer) -> None:
        try:
            await super().broadcast(signed)
        except OutcomeUnknown:
            return


class CallsUnreachableUnknown(SimulatedSender):
    async def broadcast(self, signed: SignedTransfer) -> None:
        try:
            await super().broadcast(signed)
        except Unavailable as away:
            raise OutcomeUnknown("away") from away


class IgnoresTheEnd(SimulatedSender):
    async def broadcast(self, signed: SignedTransfer) -> None:
        try:
            await super().broadcast(signed)
        except Refused as refused:
            if refused.reason != "expired":
                raise


class CountsNoConfirmations(SimulatedSender):
    async def state(self, signed: SignedTransfer) -> TransferState:
        found = await super().state(signed)
        return TransferState.FINAL if found is TransferState.IN_BLOCK else found


class CallsUnseenFailed(SimulatedSender):
    async def state(self, signed: SignedTransfer) -> TransferState:
        found = await super().state(signed)
        return TransferState.FAILED if found is TransferState.UNSEEN else found


class NeverGivesUp(SimulatedSender):
    async def state(self, signed: SignedTransfer) -> TransferState:
        found = await super().state(signed)
        return TransferState.UNSEEN if found is TransferState.FAILED else found


class TakesRevertedForFinal(SimulatedSender):
    async def state(self, signed: SignedTransfer) -> TransferState:
        found = await super().state(signed)
        is_over = signed.expires_at is not None and self._clock.now() >= signed.expires_at
        return TransferState.FINAL if found is TransferState.FAILED and not is_over else found


class CachesStates(SimulatedSender):
    async def state(self, signed: SignedTransfer) -> TransferState:
        kept: dict[str, TransferState] = self.__dict__.setdefault("kept", {})
        if signed.tx_hash not in kept:
            kept[signed.tx_hash] = await super().state(signed)
        return kept[signed.tx_hash]


class RemembersWhatItSent(SimulatedSender):
    """A reorganisation is not seen: the wallet's own record wins over the network."""

    async def broadcast(self, signed: SignedTransfer) -> None:
        await super().broadcast(signed)
        self.__dict__.setdefault("sent", set()).add(signed.tx_hash)

    async def state(self, signed: SignedTransfer) -> TransferState:
        found = await super().state(signed)
        is_sent = signed.tx_hash in self.__dict__.get("sent", set())
        return TransferState.IN_BLOCK if found is TransferState.UNSEEN and is_sent else found


class CallsFailedReadsUnseen(SimulatedSender):
    async def state(self, signed: SignedTransfer) -> TransferState:
        try:
            return await super().state(signed)
        except Unavailable:
            return TransferState.UNSEEN


class FindsNothingAfterARestart(SimulatedSender):
    async def broadcast(self, signed: SignedTransfer) -> None:
        await super().broadcast(signed)
        self.__dict__.setdefault("sent", set()).add(signed.operation)

    async def find(self, operation: str) -> SentTransfer | None:
        return await super().find(operation) if operation in self.__dict__.get("sent", set()) else None


class FindsByPrefix(SimulatedSender):
    async def find(self, operation: str) -> SentTransfer | None:
        return await super().find(operation) or await super().find(f"{operation}1")


class FindsWithoutTheAmount(SimulatedSender):
    async def find(self, operation: str) -> SentTransfer | None:
        found = await super().find(operation)
        return found and msgspec.structs.replace(found, units=found.units // 100)


class FindsTheWalletsAddress(SimulatedSender):
    async def find(self, operation: str) -> SentTransfer | None:
        found = await super().find(operation)
        return found and msgspec.structs.replace(found, address="T" + "1" * 33)


class FindsNothingWhileAway(SimulatedSender):
    async def find(self, operation: str) -> SentTransfer | None:
        try:
            return await super().find(operation)
        except Unavailable:
            return None


class ListsOnePage(SimulatedSender):
    async def sent_since(self, moment: datetime) -> list[SentTransfer]:
        return (await super().sent_since(moment))[:3]


class LosesTheRowBetweenPages(SimulatedSender):
    async def sent_since(self, moment: datetime) -> list[SentTransfer]:
        found = await super().sent_since(moment)
        return [*found[:3], *found[4:]]


class RepeatsTheRowBetweenPages(SimulatedSender):
    async def sent_since(self, moment: datetime) -> list[SentTransfer]:
        found = await super().sent_since(moment)
        return [*found[:3], *found[2:]] if len(found) > 3 else found


class ListsNothingWhileAway(SimulatedSender):
    async def sent_since(self, moment: datetime) -> list[SentTransfer]:
        try:
            return await super().sent_since(moment)
        except Unavailable:
            return []


class ShowsTheBlobInFaults(SimulatedSender):
    async def broadcast(self, signed: SignedTransfer) -> None:
        try:
            await super().broadcast(signed)
        except Refused as refused:
            raise Refused(f"cannot send {signed.blob!r}", reason=refused.reason) from refused


_SIGN, _SEND = payouts.TestSigning, payouts.TestBroadcast
_ENDS, _MEMORY, _FAIL = payouts.TestEnds, payouts.TestMemory, payout_faults.TestFailures
_AMOUNT = "must move its amount exactly"
_REPEAT = "must not move the money again"
_UNKNOWN = "has an unknown outcome"
_PAGES = "are the later pages read"
_FINAL = "test_a_transfer_is_in_a_block"

BUGS = (
    Planted(SendsAHundredfold, _SEND, _FINAL, _AMOUNT),
    Planted(SendsMicroUsdt, _SEND, _FINAL, _AMOUNT),
    Planted(SendsCents, _SIGN, "test_the_address_gets", _AMOUNT),
    Planted(RoundsDown, _SIGN, "test_amount_that_is_no", "a wrong amount must be Refused"),
    Planted(PaysTheFirstClient, _SIGN, "test_the_address_gets", "the address of the request must get"),
    Planted(TakesAnyAddress, _SIGN, "test_address_of_another", "a wrong address must be Refused"),
    Planted(RefusesWithoutAReason, _SIGN, "test_nothing_and_less", "instead of 'amount'", (0,)),
    Planted(SendsWhenItSigns, _SIGN, "test_signing_sends", "signing must send nothing"),
    Planted(TakesOneNonceForAll, _SIGN, "test_two_operations", "must be two transfers"),
    Planted(PrefixesHashes, _SIGN, "test_a_signed_transfer", "without 0x"),
    Planted(SignsNaiveMoments, _SIGN, "test_a_signed_transfer", "the end has a time zone"),
    Planted(SignsAnewAtEachBroadcast, _SEND, "test_a_repeat_is", _REPEAT),
    Planted(SignsAnewAtEachBroadcast, _SEND, "test_repeats_at_once", _REPEAT),
    Planted(KeepsTheBlobToItself, _SEND, "test_stored_transfer", "from another process"),
    Planted(SendsForeignTransfers, _SEND, "test_transfer_that_the_wallet", "must be Refused", ({"blob": b""},)),
    Planted(CallsKnownTransfersRefused, _SEND, "test_lost_answer", "a repeat after a lost answer", (True,)),
    Planted(CallsLostAnswersRefused, _SEND, "test_lost_answer", _UNKNOWN, (True,)),
    Planted(CallsLostAnswersUnavailable, _SEND, "test_lost_answer", _UNKNOWN, (True,)),
    Planted(CallsLostAnswersSent, _SEND, "test_lost_answer", _UNKNOWN, (False,)),
    Planted(CallsUnreachableUnknown, _FAIL, "test_a_network_that_is_away", "nothing was sent"),
    Planted(IgnoresTheEnd, _ENDS, "test_transfer_proven", "that expired must be Refused"),
    Planted(CountsNoConfirmations, _SEND, _FINAL, "are confirmations counted"),
    Planted(CallsUnseenFailed, _ENDS, "test_unsent_transfer", "UNSEEN until it is proven absent"),
    Planted(NeverGivesUp, _ENDS, "test_unsent_transfer", "that can never come must be FAILED"),
    Planted(TakesRevertedForFinal, _SEND, "test_transfer_that_the_contract", "FAILED, and not FINAL"),
    Planted(CachesStates, _SEND, _FINAL, "each read reports the present state"),
    Planted(RemembersWhatItSent, _SEND, "test_transfer_whose_block", "taken back must be UNSEEN"),
    Planted(CallsFailedReadsUnseen, _FAIL, "test_a_network_that_is_away", "and proves nothing"),
    Planted(FindsNothingAfterARestart, _MEMORY, "test_sent_transfer", "found by its operation"),
    Planted(FindsByPrefix, _MEMORY, "test_unsent_transfer", "compare the whole operation id"),
    Planted(FindsWithoutTheAmount, _MEMORY, "test_sent_transfer", "found with its amount"),
    Planted(FindsTheWalletsAddress, _MEMORY, "test_sent_transfer", "found with its address"),
    Planted(FindsNothingWhileAway, _MEMORY, "test_a_network_that_is_away", "and never None"),
    Planted(ListsOnePage, _MEMORY, "test_each_of_many", _PAGES),
    Planted(LosesTheRowBetweenPages, _MEMORY, "test_each_of_many", _PAGES),
    Planted(RepeatsTheRowBetweenPages, _MEMORY, "test_each_of_many", _PAGES),
    Planted(ListsNothingWhileAway, _MEMORY, "test_transfers_sent_since", "and never empty"),
    Planted(ShowsTheBlobInFaults, _FAIL, "test_no_credential", "a credential"),
)


async def opened(_: AsyncExitStack, adapter: type[Any] | None) -> SimulatedPayoutsHarness:
    return SimulatedPayoutsHarness(adapter)


@table("bug", BUGS, ids=named)
async def test_wallet_with_a_planted_bug_fails_by_its_rule(bug: Planted) -> None:
    await check_bite(bug, opened)
