"""Shared base of the adapter: shops, calls and notes."""

from collections.abc import Awaitable
from typing import TypeVar

import msgspec

from ....ports.clock import Clock
from ....ports.faults import NotSupported, Refused
from ....ports.operation_log import OperationLog
from ....ports.receipts import ReceiptNeed
from .calls import Calls
from .errors import Forbidden
from .shops import Shop, Shops

T = TypeVar("T")

NAME = "yookassa"
FIRST, METHOD = "first", "method"
"""Prefixes of a binding's id: a first payment, or a method that was saved without a payment."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Note about facts that YooKassa cannot report at all, or not by our operation."""

    kind: str = ""
    """Kind of the object, because two kinds may share an operation id."""
    reference: str = ""
    link: str | None = None
    failure: str | None = None
    """Reason of a charge that was never sent because its mandate had ended."""
    was_active: bool = False
    is_ended: bool = False
    attempt: int = 0
    """For a payout: how many earlier ones were cancelled because our balance or a limit was exhausted."""


class Core:
    """Base of all parts of the adapter."""

    def __init__(
        self,
        calls: Calls,
        shops: Shops,
        gateway: Shop | None,
        notes: OperationLog[Note],
        clock: Clock,
        *,
        page: str | None,
        mandates: bool,
        receipts: ReceiptNeed,
        max_kopecks: int,
    ) -> None:
        """`gateway`: credentials of payouts, or None. `page`: address to which payers return from a page of YooKassa;
        None: show payers a QR. `mandates`: the shop may save and charge methods."""
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
        """Await a call that saves or charges a method. If the shop has no right to do so, refuse only this call, so
        that the gateway stays up for payments. Raises: Refused (`forbidden`)."""
        try:
            return await made
        except Forbidden:
            raise Refused("yookassa: the shop may not save methods and charge them", reason="forbidden") from None

    def _check_mandates(self) -> None:
        if not self._mandates:
            raise NotSupported("yookassa: mandates are off (CAMBIST_YOOKASSA_MANDATES)")


def mandate_key(reference: str) -> str:
    """Return the note key of a mandate."""
    return f"mandate/{reference}"
