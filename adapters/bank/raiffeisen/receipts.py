"""Receipts of Raiffeisenbank as the port ReceiptBank. A receipt is saved under a number of ours once the money has
moved, then registered. The bank registers a number once, however often calls are repeated."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from ....ports.faults import NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.receipts import Receipt, ReceiptNeed, ReceiptRequest, ReceiptState, ReceiptStatus
from .core import RaiffeisenCore
from .errors import RECEIPT_CONFLICT, BankRefused
from .merchants import NAME, Pair, Reference
from .register import refused
from .wire import kopecks, number_of

_STATUSES: Mapping[str, ReceiptStatus] = {"DONE": ReceiptStatus.DONE, "FAILED": ReceiptStatus.FAILED}
_UNREGISTERED = "NEW"


class Written(msgspec.Struct, frozen=True, rename="camel"):
    """A receipt as the bank shows it."""

    receipt_number: str
    status: str
    total: Decimal


class RaiffeisenReceipts(RaiffeisenCore):
    """Receipts part of the adapter. Implement ReceiptBank."""

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        """Read a receipt by our number. A receipt that is saved and not registered counts as not seen."""
        found = await self._api.ask(self._whose_receipt(request), Written, *_path(request), _number(request))
        return None if found is None or found.status == _UNREGISTERED else _state(found, request)

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        """Write a receipt. Look it up by our number first; if it is not registered yet, save and register it. Both
        calls are safe to repeat."""
        who, number, path = self._whose_receipt(request), _number(request), _path(request)
        if request.correction is not None:
            raise NotSupported(f"{NAME}: no corrections")
        body = self._till.told(request.receipt, number, request.prepaid_kopecks)
        found = await self._api.ask(who, Written, *path, number)
        if found is None or found.status == _UNREGISTERED:
            found = await self._registered_receipt(who, body, path)
        return _state(found, request)

    def _whose_receipt(self, request: ReceiptRequest) -> Pair:
        if self._till.need is ReceiptNeed.NONE:
            raise NotSupported(f"{NAME}: there is no cash register")
        return self._whose(Reference.read(request.reference))

    async def _registered_receipt(self, who: Pair, body: dict[str, Any], path: tuple[str, ...]) -> Written:
        """Save and register a receipt. If the bank refuses because another process did so at the same time, read the
        receipt again."""
        number = body["receiptNumber"]
        try:
            await self._api.send(who, Written, body, *path)
            return await self._api.put(who, Written, *path, number)
        except BankRefused as refusal:
            if refusal.code != RECEIPT_CONFLICT:
                raise
        try:
            found = await self._api.ask(who, Written, *path, number)
        except Unavailable:
            raise OutcomeUnknown(f"{NAME}: a receipt was refused, and may be registered") from None
        if found is None:
            raise OutcomeUnknown(f"{NAME}: a receipt cannot be changed, and is not there")
        return found

    def _check_receipt(self, receipt: Receipt | None, amount_kopecks: int | None) -> None:
        """Check that money of this amount can be received or sent back with this receipt. Raises: Refused `receipt`."""
        if receipt is None:
            if self._till.need is ReceiptNeed.REQUIRED:
                raise refused("there is none")
            return
        if receipt.total_kopecks != amount_kopecks:
            raise refused("it is of another amount")
        self._till.told(receipt, "")


def _number(request: ReceiptRequest) -> str:
    return number_of(request.operation)


def _path(request: ReceiptRequest) -> tuple[str, ...]:
    return ("fiscal", "v1", "receipts", "refund" if request.goes_back else "sell")


def _state(found: Written, request: ReceiptRequest) -> ReceiptState:
    """Raises: Refused `operation`."""
    if kopecks(found.total) != request.receipt.total_kopecks:
        raise Refused(f"{NAME}: the operation has a receipt of another sum", reason="operation")
    status = _STATUSES.get(found.status, ReceiptStatus.PROCESSING)
    return ReceiptState(status=status, failure=found.status if status is ReceiptStatus.FAILED else None)
