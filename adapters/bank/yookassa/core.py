"""What all parts of the adapter share: whose shops there are, how they are asked, and what is remembered."""

from collections.abc import Awaitable
from typing import TypeVar

import msgspec

from ....ports.clock import Clock
from ....ports.faults import NotSupported, Refused
from ....ports.notebook import Notebook
from ....ports.receipts import ReceiptNeed
from .calls import Calls
from .errors import Forbidden
from .shops import Shop, Shops

T = TypeVar("T")

NAME = "yookassa"
FIRST, METHOD = "first", "method"
"""What a binding's id is there: of its first payment, or of a method that was saved without one."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What YooKassa cannot be asked for by our operation, or at all."""

    kind: str = ""
    """Of the object: two kinds may have one operation's id."""
    reference: str = ""
    link: str | None = None
    failure: str | None = None
    """Of a charge that was never sent, because its mandate had ended."""
    was_active: bool = False
    is_ended: bool = False
    attempt: int = 0
    """Of a payout: how many were cancelled for want of our money, or a limit."""


class Core:
    """Held by all parts."""

    def __init__(
        self,
        calls: Calls,
        shops: Shops,
        gateway: Shop | None,
        notes: Notebook[Note],
        clock: Clock,
        *,
        page: str | None,
        mandates: bool,
        receipts: ReceiptNeed,
        max_kopecks: int,
    ) -> None:
        """`gateway`: the one of payouts, where there is one. `page`: where payers come back to from a page of
        YooKassa's; None: they are shown a QR. `mandates`: the shop may save and charge methods."""
        self._calls = calls
        self._shops = shops
        self._gateway = gateway
        self._notes = notes
        self._clock = clock
        self._page = page
        self._mandates = mandates
        self._receipts = receipts
        self._max_kopecks = max_kopecks

    @property
    def name(self) -> str:
        return NAME

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._shops!r}>"

    async def _saving(self, made: Awaitable[T]) -> T:
        """What a call gives that saves a method or charges one. That the shop may not do so is no reason to take the
        gateway from all payments. Raises: Refused (`forbidden`)."""
        try:
            return await made
        except Forbidden:
            raise Refused("yookassa: the shop may not save methods and charge them", reason="forbidden") from None

    def _check_mandates(self) -> None:
        if not self._mandates:
            raise NotSupported("yookassa: mandates are off (CAMBIST_YOOKASSA_MANDATES)")


def mandate_key(reference: str) -> str:
    """Where it is noted what became of a mandate."""
    return f"mandate/{reference}"
