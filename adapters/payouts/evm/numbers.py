"""Numbers of a wallet: the next one, and the numbers that the book lacks after it was restored from a backup."""

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
"""Transfers of a wallet that may wait for a block. Nodes keep about as many for one address."""
_FULL = 10.0
"""Seconds until there may be room for more."""
NOBODY = "#nobody"
"""Operation of a number that none of our operations has."""

log = logging.getLogger("cambist.payouts")


class Numbers:
    """Numbers of one wallet."""

    def __init__(self, wallet: str, book: Book, sightings: Sightings, clock: Clock) -> None:
        self._wallet = wallet
        self._book = book
        self._sightings = sightings
        self._clock = clock

    async def attempt(self, operation: str, nonce: int) -> Attempt | None:
        """Return the operation's attempt with this number. Raises: Unavailable."""
        return next((each for each in await self._book.attempts(operation) if each.nonce == nonce), None)

    async def waiting(self, count: int) -> list[Attempt]:
        """Return the attempts after the first `count` numbers, which are used.

        Raises: Unavailable if the network would not keep one more.
        """
        waiting: list[Attempt] = []
        while (attempt := await self._book.of_number(count + len(waiting))) is not None:
            waiting.append(attempt)
        if len(waiting) >= IN_FLIGHT:
            raise Unavailable(f"{len(waiting)} transfers wait for a block", retry_after=_FULL)
        return waiting

    async def give(self, view: View, transfer: Transfer, count: int, *, place: int) -> Attempt:
        """Create the operation's next attempt, with the next free number. Raises: Unavailable."""
        # Try one number after another from the first unused one. Another process may take a number first, so only a
        # successful `give` counts.
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
        # All numbers that nodes would keep are taken.
        raise Unavailable("too many transfers wait for a block", retry_after=_FULL)

    async def give_nobody(self, nonce: int, height: int) -> Attempt:
        """Mark this number as used by none of our operations. Raises: Unavailable."""
        attempt = Attempt(operation=NOBODY, place=nonce, nonce=nonce, height=height, void=True)
        await self._book.give(attempt)
        return await self._book.of_number(nonce) or attempt

    async def enter(self, view: View, nonce: int, transfer: Transfer, raw: bytes) -> Attempt:
        """Add a transfer that the book lacks, because the book is older than it.

        Raises: Unavailable if the number is assigned already.
        """
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
        """Add the transactions that the network knows and the book lacks.

        The network's counts are read first, because numbers that the book assigns meanwhile are not missing.
        Raises: Unavailable, also while a transaction that the book lacks waits for a block; NotConfigured.
        """
        # Step 1: the network's counts of used numbers: in final blocks, in all blocks, and with waiting transactions.
        final = await self._sightings.count(view, hex(view.final))
        latest = await self._sightings.count(view, "latest")
        pending = await self._sightings.count(view, "pending", most=True)
        # Step 2: every used number since the checkpoint must have a page.
        known = await self._book.known(Known(nonce=final, height=view.final))
        lacking = {nonce for nonce in range(known.nonce, latest) if await self._book.of_number(nonce) is None}
        # Step 3: read the missing ones from the chain.
        if lacking:
            log.error("the book of the wallet %s lacks %s numbers: they are read back", self._wallet, len(lacking))
            await self._read_back(view, known, lacking, final)
        # Step 4: a waiting transaction is in no block yet, so the book cannot read it. Wait until it is.
        if pending > latest and await self._book.of_number(pending - 1) is None:
            raise Unavailable(f"the wallet {self._wallet} has transactions on their way that the book lacks")
        # Step 5: the book is complete up to the final count.
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
            # Up to that block all transfers were read, so later blocks cannot hold ours for a number used before. Store
            # the progress.
            await self._book.know(Known(nonce=min(lacking), height=min(end, view.final)))
        # No transfer of ours was found for these numbers. A number that is not final may still turn out to be ours, so
        # wait.
        for nonce in sorted(lacking):
            if nonce >= final:
                raise Unavailable(f"number {nonce} of the wallet {self._wallet} is used, and not told yet by what")
            log.error("somebody else spends from the wallet %s: number %s is none of ours", self._wallet, nonce)
            await self.give_nobody(nonce, known.height)
