"""A simulated cash register. It writes every receipt a few seconds after the request, unless a script or a simulated
event says otherwise.

Its receipts are stored in the storage, so they survive a restart. It has no timers: each call derives the receipt's
state from the stored receipt and the clock. It stores no item and no contact.
"""

import binascii
from datetime import datetime, timedelta

import msgspec

from ...ports.clock import Clock
from ...ports.faults import OutcomeUnknown, Refused, Unavailable
from ...ports.operation_log import OperationLog
from ...ports.receipts import FiscalData, ReceiptKind, ReceiptRequest, ReceiptState, ReceiptStatus
from ...ports.storage import Storage
from ..script import ReceiptScript, begin_read, begin_write, end_write
from .digest import digest_of

TAKES = timedelta(seconds=5)
"""Time until a receipt is written."""


class SimulatedReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """Record of one receipt."""

    digest: str
    kind: ReceiptKind
    total_kopecks: int
    prepaid_kopecks: int
    written_at: datetime
    """Time on the receipt, from which on it is written."""
    failure: str | None = None
    """Why the register rejected it."""


class SimulatedRegister:
    """Implement the port ReceiptRegister."""

    def __init__(
        self,
        name: str,
        storage: Storage,
        clock: Clock,
        *,
        script: ReceiptScript | None = None,
        takes: timedelta = TAKES,
    ) -> None:
        self._receipts = OperationLog(name, SimulatedReceipt, storage, clock)
        self._clock = clock
        self._takes = takes
        self.script = script or ReceiptScript()

    @property
    def name(self) -> str:
        return self._receipts.provider

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        """Write the receipt, once for each operation. Raises: as the port."""
        if not 0 <= request.prepaid_kopecks <= request.receipt.total_kopecks or not request.receipt.items:
            raise Refused(f"{self.name}: the receipt's sums do not agree", reason="receipt")
        twist = await begin_write(self._clock, self.script.write)
        new = SimulatedReceipt(
            digest=digest_of(request),
            kind=request.kind,
            total_kopecks=request.receipt.total_kopecks,
            prepaid_kopecks=request.prepaid_kopecks,
            written_at=self._clock.now() + self._takes,
        )
        try:
            stored, _ = await self._receipts.start(request.operation, new)
        except Unavailable as lost:
            raise OutcomeUnknown(f"{self.name}: the storage did not answer") from lost
        await end_write(self._clock, twist)
        if stored.digest != new.digest:
            raise Refused(f"{self.name}: the operation has another receipt", reason="operation")
        return self._state(request.operation, stored)

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        """Return the receipt's state. Raises: Unavailable."""
        await begin_read(self._clock, self.script.find)
        stored = await self._receipts.read(request.operation)
        return None if stored is None else self._state(request.operation, stored)

    async def reject(self, operation: str, failure: str) -> None:
        """Let the register reject a receipt that is not written yet. Raises: Unavailable."""

        def rejected(stored: SimulatedReceipt) -> SimulatedReceipt:
            is_written = stored.written_at <= self._clock.now()
            return stored if is_written else msgspec.structs.replace(stored, failure=failure)

        await self._receipts.change(operation, rejected)

    def _state(self, operation: str, stored: SimulatedReceipt) -> ReceiptState:
        if stored.failure is not None:
            return ReceiptState(status=ReceiptStatus.FAILED, failure=stored.failure)
        if stored.written_at > self._clock.now():
            return ReceiptState(status=ReceiptStatus.PROCESSING)
        number = binascii.crc32(operation.encode())
        return ReceiptState(
            status=ReceiptStatus.DONE,
            fiscal=FiscalData(
                storage="9999078900000001",
                document=str(number % 1_000_000),
                sign=f"{number:010d}",
                register="0000000000000001",
                registered_at=stored.written_at,
            ),
        )
