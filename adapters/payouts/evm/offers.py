"""What is handed to the network for a number: the transfer, the same with a higher fee, or what only uses the number
up."""

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
"""After which what is in no block is sent with a higher fee."""
GAP_AFTER = 600.0
"""Seconds for which the network may wait for a number that was given to what was never handed over; then a transaction
of nothing uses it up."""
_COIN_GAS = 21_000
"""Of a transaction that moves nothing."""

log = logging.getLogger("cambist.payouts")


class Offers:
    """Of one wallet."""

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
        """The number that the network waits for, and since when this process knows."""

    async def signed(self, attempt: Attempt, made: Transaction) -> Attempt:
        """The attempt with this one signed, too; with another's, where that was first."""
        signature = await self._signer.sign(made.digest)
        if signer_of(signature, made.digest) != self._signer.payload:
            raise Unavailable("the signer signed for another address, or something else")
        new = Try(made.signed(signature), self._clock.now())

        def turn(before: Attempt) -> Attempt:
            is_as_seen = (before.tries, before.void) == (attempt.tries, attempt.void)
            return msgspec.structs.replace(before, tries=(*before.tries, new)) if is_as_seen else before

        return await self._book.change(attempt, turn)

    async def newest(self, view: View, attempt: Attempt) -> bytes:
        """What is to be handed over: the last that was signed, or one with a higher fee, where it is its turn and that
        one was waited for long enough."""
        last = attempt.tries[-1]
        if self._clock.now() < last.at + PATIENCE or await self._sightings.count(view, "latest") != attempt.nonce:
            return last.raw
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
        """See to it that the number is used up that the network waits for, where that is another one, which nobody ever
        handed over: its payout was called off, or another was signed in its place."""
        with suppress(OutcomeUnknown, *NO_ANSWER):
            count = await self._sightings.count(view, "latest")
            if count >= attempt.nonce:
                return
            if self._gap is None or self._gap[0] != count:
                self._gap = (count, self._clock.monotonic())
            if self._clock.monotonic() < self._gap[1] + GAP_AFTER:
                return
            first = await self._book.of_number(count)
            if first is None:
                first = await self._numbers.give_nobody(count, view.final)
            if not first.handed:
                first = await self._used_up(view, first)
            if first.tries:
                await handed_over(view.nodes, await self.newest(view, first))

    async def _used_up(self, view: View, attempt: Attempt) -> Attempt:
        """The attempt, whose place is given up: a transaction that moves nothing has it. Unless it was handed over."""

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
