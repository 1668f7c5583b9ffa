"""Receipts of the simulated bank. It writes each at once, but that of an invoice of 404.06 fails until it is tried
again."""

from hashlib import sha256

import msgspec

from ....ports.faults import NotSupported, Refused
from ....ports.operation_log import OperationLog
from ....ports.receipts import FiscalData, ReceiptNeed, ReceiptRequest, ReceiptState, ReceiptStatus
from .core import SimulatorCore

RECEIPT_FAILS = 404_06
"""Amount in kopecks of a payment whose receipt the simulated cash register rejects at first."""


class WrittenReceipt(msgspec.Struct, frozen=True):
    """A receipt that was written by a call of its own."""

    kopecks: int


class ReceiptCore(SimulatorCore):
    """Implement the port ReceiptBank."""

    _receipts: OperationLog[WrittenReceipt]

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        """Return the state of a receipt; None if a receipt apart from money was never requested."""
        if request.is_with_money:
            if request.amount_kopecks == RECEIPT_FAILS and not request.goes_back:
                return ReceiptState(status=ReceiptStatus.FAILED, failure="simulated: the cash register rejects it")
            return _written(request)
        found = await self._receipts.read(request.operation)
        return None if found is None else _written(request)

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        """Write a receipt apart from money, or return the state of this operation's receipt."""
        if self._capabilities.receipts is ReceiptNeed.NONE or request.correction is not None:
            raise NotSupported(f"{self.name} writes no such receipts")
        kopecks = request.receipt.total_kopecks
        found, _ = await self._receipts.start(request.operation, WrittenReceipt(kopecks))
        if found.kopecks != kopecks:
            raise Refused("the operation has a receipt of another sum", reason="operation")
        return _written(request)


def _written(request: ReceiptRequest) -> ReceiptState:
    number = int.from_bytes(sha256(request.operation.encode()).digest()[:4])
    fiscal = FiscalData(
        storage="9999078900000001",
        document=str(number % 100_000 + 1),
        sign=f"{number:010}",
        register="0000000000000001",
        registered_at=request.requested_at,
    )
    return ReceiptState(status=ReceiptStatus.DONE, fiscal=fiscal)
