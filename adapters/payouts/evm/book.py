"""What a wallet gave its numbers to: the network takes each number (nonce) of an address once, and in their order.

Every number that was given has a page of its own, so of several processes that want the next one each gets another.
What is signed for it is written down before anybody else has it, and what was ever handed over is marked before that:
so of one number's transactions one alone takes effect, and whoever asks knows which they are.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from ....ports.faults import Unavailable
from ....ports.notebook import Notebook

_AGE = 1000
"""Blocks after which it is written down anew how far the book is whole, although nothing was sent."""


class Try(msgspec.Struct, frozen=True):
    """One signed transaction."""

    raw: bytes
    at: datetime
    """When it was signed."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A number, and what has it."""

    operation: str
    place: int
    """Among the attempts of its operation, from 0 on."""
    nonce: int
    recipient: bytes = b""
    amount: int = 0
    """In the token's smallest parts."""
    height: int
    """A final block before which nothing had this number."""
    tries: tuple[Try, ...] = ()
    """In their order: the transfer, and those with higher fees. None: who began it died, or cannot sign just now."""
    handed: bool = False
    """It may have been handed to the network."""
    void: bool = False
    """It was never handed over, and never will be: the last of the tries only uses up its number."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """How far the book is whole."""

    nonce: int
    """All numbers below this one were given before the book began, or have a page."""
    height: int
    """A final block up to which nothing had a number from that one on."""


class Book:
    """The pages of one wallet."""

    def __init__(self, wallet: str, attempts: Notebook[Attempt], given: Notebook[str], known: Notebook[Known]) -> None:
        """`wallet`: its address."""
        self._wallet = wallet
        self._attempts = attempts
        self._given = given
        self._known = known

    async def attempts(self, operation: str) -> list[Attempt]:
        """All of an operation, in their order. Raises: Unavailable."""
        return await self._attempts.below(self._of(operation))

    async def of_number(self, nonce: int) -> Attempt | None:
        """Who has the number; None: nobody. Raises: Unavailable."""
        key = await self._given.read(self._number(nonce))
        return None if key is None else await self._attempts.read(key)

    async def give(self, attempt: Attempt) -> bool:
        """Give the number to this attempt; False where another has it. Raises: Unavailable, also where the operation
        has such an attempt already."""
        if await self._given.read(self._number(attempt.nonce)) is not None:
            return False
        key = self._key(attempt)
        return (await self._given.start(self._number(attempt.nonce), key, self._attempts.note(key, attempt)))[1]

    async def change(self, attempt: Attempt, turn: Callable[[Attempt], Attempt]) -> Attempt:
        """Have the page changed; how it then stands. Raises: Unavailable."""
        changed = await self._attempts.change(self._key(attempt), turn)
        if changed is None:
            raise Unavailable(f"{self._attempts.provider}: a page was there and is gone")
        return changed

    async def begun_since(self, moment: datetime) -> list[Attempt]:
        """What got its number from then on. Raises: Unavailable."""
        pages = await self._attempts.since(moment)
        return [msgspec.json.decode(body, type=Attempt) for key, body in pages if key.startswith(self._of(""))]

    async def known(self, begin: Known) -> Known:
        """How far the book is whole; from `begin` on where it is new. Raises: Unavailable."""
        found = await self._known.read(self._whole)
        return found if found is not None else (await self._known.start(self._whole, begin))[0]

    async def know(self, more: Known) -> None:
        """It is whole so far. Raises: Unavailable."""

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
