"""Book of a wallet's numbers. The network accepts each number (nonce) of an address once, and in order.

Every assigned number has its own page, so processes that want the next one at the same time each get another. A
signed transaction is stored before any other process or node gets it, and a page is marked before its transaction
is broadcast. So only one transaction of a number takes effect, and the book knows all candidates.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from ....ports.faults import Unavailable
from ....ports.operation_log import OperationLog

_AGE = 1000
"""Blocks after which the checkpoint is renewed although nothing was sent."""


class Try(msgspec.Struct, frozen=True):
    """One signed transaction."""

    raw: bytes
    at: datetime
    """Time of signing."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A number, and the transfer that has it."""

    operation: str
    place: int
    """Position among the attempts of its operation, from 0."""
    nonce: int
    recipient: bytes = b""
    amount: int = 0
    """Amount in the token's smallest units."""
    height: int
    """Final block before which no transaction had this number."""
    tries: tuple[Try, ...] = ()
    """Signed transactions, in order: the transfer, then the same with higher fees.

    Empty if the process that took the number died, or cannot sign now.
    """
    handed: bool = False
    """Whether it may have been broadcast."""
    void: bool = False
    """Whether it was given up: it was never broadcast and never will be.

    Its last transaction only uses up the number.
    """


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Checkpoint up to which the book is complete."""

    nonce: int
    """Every number below this one was used before the book began, or has a page."""
    height: int
    """Final block up to which no transaction had this number or a higher one."""


class Book:
    """Pages of one wallet."""

    def __init__(
        self, wallet: str, attempts: OperationLog[Attempt], given: OperationLog[str], known: OperationLog[Known]
    ) -> None:
        """Open the book of the wallet with this address."""
        self._wallet = wallet
        self._attempts = attempts
        self._given = given
        self._known = known

    async def attempts(self, operation: str) -> list[Attempt]:
        """Return all attempts of an operation, in order. Raises: Unavailable."""
        return await self._attempts.below(self._of(operation))

    async def of_number(self, nonce: int) -> Attempt | None:
        """Return the attempt that has the number; None if the number is free. Raises: Unavailable."""
        key = await self._given.read(self._number(nonce))
        return None if key is None else await self._attempts.read(key)

    async def give(self, attempt: Attempt) -> bool:
        """Assign the number to this attempt; return False if another has it.

        Raises: Unavailable, also if the operation already has such an attempt.
        """
        # Most lost races show here, before the write.
        if await self._given.read(self._number(attempt.nonce)) is not None:
            return False
        # One unit stores the number and the attempt's page. If two processes write at once, the storage lets one win.
        key = self._key(attempt)
        return (await self._given.start(self._number(attempt.nonce), key, self._attempts.note(key, attempt)))[1]

    async def change(self, attempt: Attempt, turn: Callable[[Attempt], Attempt]) -> Attempt:
        """Change the page and return the result. Raises: Unavailable."""
        changed = await self._attempts.change(self._key(attempt), turn)
        if changed is None:
            raise Unavailable(f"{self._attempts.provider}: a page was there and is gone")
        return changed

    async def begun_since(self, moment: datetime) -> list[Attempt]:
        """Return the attempts that got their number since `moment`. Raises: Unavailable."""
        pages = await self._attempts.since(moment)
        return [msgspec.json.decode(body, type=Attempt) for key, body in pages if key.startswith(self._of(""))]

    async def known(self, begin: Known) -> Known:
        """Return the checkpoint, or store `begin` as the first one. Raises: Unavailable."""
        found = await self._known.read(self._whole)
        return found if found is not None else (await self._known.start(self._whole, begin))[0]

    async def know(self, more: Known) -> None:
        """Advance the checkpoint. Raises: Unavailable."""

        def turn(before: Known) -> Known:
            is_more = more.nonce > before.nonce or more.height > before.height + _AGE
            return more if is_more and more.nonce >= before.nonce else before

        await self._known.change(self._whole, turn)

    @property
    def _whole(self) -> str:
        return f"#whole/{self._wallet}"

    def _number(self, nonce: int) -> str:
        return f"#number/{self._wallet}/{nonce}"

    def _of(self, operation: str) -> str:
        return f"{self._wallet}/{operation}"

    def _key(self, attempt: Attempt) -> str:
        return f"{self._of(attempt.operation)}/{attempt.place:06}"
