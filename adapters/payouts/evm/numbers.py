"""The numbers of a wallet: which comes next, and which the book lacks because it is of a backup."""

import logging
from contextlib import suppress

from ....ports.clock import Clock
from ....ports.faults import Unavailable
from ...nodes.nodes import View
from . import transaction
from .book import Attempt, Book, Known, Try
from .sightings import Sightings
from .transaction import Transfer

IN_FLIGHT = 64
"""Transfers of a wallet that may wait for a block: nodes keep about as many of one address."""
_FULL = 10.0
"""Seconds until there may be room for more."""
NOBODY = "#nobody"
"""Whose a number is that no operation of ours has."""

log = logging.getLogger("cambist.payouts")


class Numbers:
    """Of one wallet."""

    def __init__(self, wallet: str, book: Book, sightings: Sightings, clock: Clock) -> None:
        self._wallet = wallet
        self._book = book
        self._sightings = sightings
        self._clock = clock

    async def attempt(self, operation: str, nonce: int) -> Attempt | None:
        """The operation's with this number. Raises: Unavailable."""
        return next((each for each in await self._book.attempts(operation) if each.nonce == nonce), None)

    async def waiting(self, count: int) -> list[Attempt]:
        """What has the numbers after the first `count`, which are used. Raises: Unavailable for more than the network
        would keep."""
        waiting: list[Attempt] = []
        while (attempt := await self._book.of_number(count + len(waiting))) is not None:
            waiting.append(attempt)
        if len(waiting) >= IN_FLIGHT:
            raise Unavailable(f"{len(waiting)} transfers wait for a block", retry_after=_FULL)
        return waiting

    async def give(self, view: View, transfer: Transfer, count: int, *, place: int) -> Attempt:
        """The operation's next attempt, with the next number that nobody has. Raises: Unavailable."""
        for nonce in range(count, count + IN_FLIGHT):
            attempt = Attempt(
                operation=transfer.operation,
                place=place,
                nonce=nonce,
                recipient=transfer.recipient,
                amount=transfer.amount,
                height=view.final,
            )
            if await self._book.give(attempt):
                return attempt
        raise Unavailable("too many transfers wait for a block", retry_after=_FULL)

    async def give_nobody(self, nonce: int, height: int) -> Attempt:
        """Let no operation have this number. Raises: Unavailable."""
        attempt = Attempt(operation=NOBODY, place=nonce, nonce=nonce, height=height, void=True)
        await self._book.give(attempt)
        return await self._book.of_number(nonce) or attempt

    async def enter(self, view: View, nonce: int, transfer: Transfer, raw: bytes) -> Attempt:
        """Write down what the book lacks, because it is older than the transfer. Raises: Unavailable where the number
        has been given."""
        known = await self._book.known(Known(nonce=nonce, height=view.final))
        attempt = Attempt(
            operation=transfer.operation,
            place=len(await self._book.attempts(transfer.operation)),
            nonce=nonce,
            recipient=transfer.recipient,
            amount=transfer.amount,
            height=known.height,
            tries=(Try(raw, self._clock.now()),),
            handed=True,
        )
        if not await self._book.give(attempt):
            raise Unavailable(f"number {nonce} of the wallet {self._wallet} was given to two: an operator is to look")
        return attempt

    async def catch_up(self, view: View) -> None:
        """Enter what the network knows and the book lacks. The network is asked first: what the book gives meanwhile is
        no lack. Raises: Unavailable, also while something waits for a block that the book lacks; NotConfigured."""
        final = await self._sightings.count(view, hex(view.final))
        latest = await self._sightings.count(view, "latest")
        pending = await self._sightings.count(view, "pending", most=True)
        known = await self._book.known(Known(nonce=final, height=view.final))
        lacking = {nonce for nonce in range(known.nonce, latest) if await self._book.of_number(nonce) is None}
        if lacking:
            log.error("the book of the wallet %s lacks %s numbers: they are read back", self._wallet, len(lacking))
            await self._read_back(view, known, lacking, final)
        if pending > latest and await self._book.of_number(pending - 1) is None:
            raise Unavailable(f"the wallet {self._wallet} has transactions on their way that the book lacks")
        await self._book.know(Known(nonce=final, height=view.final))

    async def _read_back(self, view: View, known: Known, lacking: set[int], final: int) -> None:
        async for end, found in self._sightings.sent(view, known.height):
            for signed, raw in found:
                if signed.made.nonce not in lacking:
                    continue
                with suppress(ValueError):
                    transfer = transaction.read_transfer(signed.made.data)
                    await self.enter(view, signed.made.nonce, transfer, raw)
                    lacking.discard(signed.made.nonce)
            if not lacking:
                return
            # Of a number that is used up to there, and still lacks, no transfer of ours will be found later.
            await self._book.know(Known(nonce=min(lacking), height=min(end, view.final)))
        for nonce in sorted(lacking):
            if nonce >= final:
                raise Unavailable(f"number {nonce} of the wallet {self._wallet} is used, and not told yet by what")
            log.error("somebody else spends from the wallet %s: number %s is none of ours", self._wallet, nonce)
            await self.give_nobody(nonce, known.height)
