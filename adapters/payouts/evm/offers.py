"""Transactions offered to the network for a number: the transfer, the same with a higher fee, or an empty one that
only uses the number up.
"""

import logging
from contextlib import suppress
from datetime import timedelta

import msgspec

from ....ports.clock import Clock
from ....ports.faults import NO_ANSWER, OutcomeUnknown, Unavailable
from ...nodes.nodes import Nodes, View
from ..signer import Signer, signer_of
from . import transaction
from .answers import handed_over
from .book import Attempt, Book, Try
from .fees import Market
from .numbers import Numbers
from .sightings import Sightings
from .transaction import Transaction

PATIENCE = timedelta(minutes=3)
"""Time after which a transaction that is in no block is sent again with a higher fee."""
GAP_AFTER = 600.0
"""Seconds that the network may wait for a number whose transaction was never broadcast.

Then an empty transaction uses the number up.
"""
_COIN_GAS = 21_000
"""Gas of a transaction that moves nothing."""

log = logging.getLogger("cambist.payouts")


class Offers:
    """Offers of one wallet."""

    def __init__(
        self,
        nodes: Nodes,
        signer: Signer,
        book: Book,
        numbers: Numbers,
        sightings: Sightings,
        market: Market,
        clock: Clock,
    ) -> None:
        self._chain = nodes.chain
        self._signer = signer
        self._book = book
        self._numbers = numbers
        self._sightings = sightings
        self._market = market
        self._clock = clock
        self._gap: tuple[int, float] | None = None
        """The number that the network waits for, and the time when this process noticed."""

    async def signed(self, attempt: Attempt, made: Transaction) -> Attempt:
        """Sign a transaction and add it to the attempt.

        If another process added one first, return the attempt with that one.
        """
        # Sign and check the signature: a device may sign with another key.
        signature = await self._signer.sign(made.digest)
        if signer_of(signature, made.digest) != self._signer.payload:
            raise Unavailable("the signer signed for another address, or something else")
        new = Try(made.signed(signature), self._clock.now())

        # Store it before it leaves this process, unless the page changed meanwhile.
        def turn(before: Attempt) -> Attempt:
            is_as_seen = (before.tries, before.void) == (attempt.tries, attempt.void)
            return msgspec.structs.replace(before, tries=(*before.tries, new)) if is_as_seen else before

        return await self._book.change(attempt, turn)

    async def newest(self, view: View, attempt: Attempt) -> bytes:
        """Return the transaction to broadcast: the last signed one, or a new one with a higher fee if this number is
        next and the last one waited longer than PATIENCE.
        """
        last = attempt.tries[-1]
        # Keep the last one while it is recent, or while earlier numbers must come first.
        if self._clock.now() < last.at + PATIENCE or await self._sightings.count(view, "latest") != attempt.nonce:
            return last.raw
        # Otherwise offer a higher fee, if it is within the limit and the wallet has the coins.
        made = transaction.read(last.raw).made
        fees = await self._market.raised(view, made.fees)
        if fees is None:
            log.warning("%s waits for a block, and more than it offers is above the limit", attempt.operation)
            return last.raw
        try:
            await self._market.check_coins(view, self._signer.payload, made.gas * fees.most)
        except Unavailable as fault:
            log.warning("%s waits for a block and cannot offer more: %s", attempt.operation, fault)
            return last.raw
        log.info("%s is offered with a higher fee", attempt.operation)
        return (await self.signed(attempt, msgspec.structs.replace(made, fees=fees))).tries[-1].raw

    async def unblock(self, view: View, attempt: Attempt) -> None:
        """Use up the number that the network waits for, if it is an earlier one whose transaction was never broadcast.

        This happens when a payout was cancelled, or another was signed in its place.
        """
        with suppress(OutcomeUnknown, *NO_ANSWER):
            # Step 1: find the number that the network waits for. If it is ours or a later one, nothing blocks us.
            count = await self._sightings.count(view, "latest")
            if count >= attempt.nonce:
                return
            # Step 2: give its owner GAP_AFTER seconds to broadcast it.
            if self._gap is None or self._gap[0] != count:
                self._gap = (count, self._clock.monotonic())
            if self._clock.monotonic() < self._gap[1] + GAP_AFTER:
                return
            # Step 3: find its attempt; if the book has none, mark the number as used by none of our operations.
            first = await self._book.of_number(count)
            if first is None:
                first = await self._numbers.give_nobody(count, view.final)
            # Step 4: give up a number that was never broadcast. One that was broadcast is only sent again.
            if not first.handed:
                first = await self._used_up(view, first)
            if first.tries:
                await handed_over(view.nodes, await self.newest(view, first))

    async def _used_up(self, view: View, attempt: Attempt) -> Attempt:
        """Give up an attempt and sign an empty transaction for its number, unless it was broadcast."""

        # Mark it before signing, so that no process broadcasts the transfer from now on.
        def turn(before: Attempt) -> Attempt:
            return before if before.handed else msgspec.structs.replace(before, void=True)

        attempt = await self._book.change(attempt, turn)
        if attempt.handed or (attempt.tries and self.is_of_nothing(attempt.tries[-1])):
            return attempt
        wallet = self._chain.spelling.write(self._signer.payload)
        log.warning("number %s of %s is used up: %s was never sent", attempt.nonce, wallet, attempt.operation)
        fees = await self._market.fees(view)
        nothing = Transaction(
            chain_id=self._chain.chain_id, nonce=attempt.nonce, fees=fees, gas=_COIN_GAS, to=self._signer.payload
        )
        return await self.signed(attempt, nothing)

    def is_of_nothing(self, each: Try) -> bool:
        return transaction.read(each.raw).made.to == self._signer.payload
