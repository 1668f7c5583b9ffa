"""States of receipts, which T-Bank tells by notifications alone, and second receipts (docs/receipts.md "Banks").

Not verified with the bank: values of `Type` in a notification about a receipt of a refund."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from ....ports.faults import NotConfigured, NotSupported, Refused, Unavailable
from ....ports.operation_log import OperationLog
from ....ports.receipts import FiscalData, ReceiptRequest, ReceiptState, ReceiptStatus
from ....ports.tools import Tools
from .calls import Calls
from .receipts import receipt_fields
from .references import read_reference

_CLOSING = "/cashbox/SendClosingReceipt"


class ToldReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt of a notification."""

    goes_back: bool
    kopecks: int
    failure: str | None = None
    fiscal: FiscalData = FiscalData()
    operation: str | None = None
    """The receipt of ours that it is."""


class ReceiptBook(msgspec.Struct, frozen=True):
    """All receipts of a payment that T-Bank has told, in order."""

    told: tuple[ToldReceipt, ...] = ()


class Closing(msgspec.Struct, frozen=True):
    """A second receipt: whether T-Bank may have it. It has no key and is not found there, so it is sent once."""

    sent: bool = False


class Till:
    """Receipts of all terminals."""

    def __init__(self, calls: Calls, name: str, tools: Tools) -> None:
        self._calls = calls
        self._books: OperationLog[ReceiptBook] = tools.operation_log(name, ReceiptBook)
        self._closings: OperationLog[Closing] = tools.operation_log(name, Closing)

    async def hear(self, reference: str, fields: Mapping[str, str]) -> None:
        """Note the receipt of a notification about the payment with this reference."""
        amount = fields.get("Amount", "")
        if not amount.isdecimal():
            return
        told = ToldReceipt(
            goes_back="return" in fields.get("Type", "").lower(),
            kopecks=int(amount),
            failure=None if _is_good(fields) else fields.get("ErrorMessage") or fields.get("ErrorCode", "unknown"),
            fiscal=FiscalData(
                storage=fields.get("FnNumber"),
                document=fields.get("FiscalDocumentNumber"),
                sign=fields.get("FiscalDocumentAttribute"),
                register=fields.get("EcrRegNumber"),
                url=fields.get("Url"),
                registered_at=_moment(fields.get("ReceiptDatetime", "")),
            ),
        )

        def noted(book: ReceiptBook) -> ReceiptBook:
            known = [msgspec.structs.replace(each, operation=None) for each in book.told]
            return book if told in known else ReceiptBook((*book.told, told))

        await self._books.start(_key(reference), ReceiptBook())
        await self._books.change(_key(reference), noted)

    async def find(self, request: ReceiptRequest) -> ReceiptState | None:
        """Return the state that a notification told. A receipt that was sent and not told is in processing."""
        found = await self._told(request)
        if found is None:
            closing = await self._closings.read(f"closing/{request.operation}")
            is_sent = closing is not None and closing.sent
            return ReceiptState(status=ReceiptStatus.PROCESSING) if is_sent else None
        if found.failure is not None:
            return ReceiptState(status=ReceiptStatus.FAILED, failure=found.failure)
        return ReceiptState(status=ReceiptStatus.DONE, fiscal=found.fiscal)

    async def _told(self, request: ReceiptRequest) -> ToldReceipt | None:
        """Return the told receipt of this request, and keep it for this request."""

        def claimed(book: ReceiptBook) -> ReceiptBook:
            if any(each.operation == request.operation for each in book.told):
                return book
            for place, each in enumerate(book.told):
                if each.operation is None and (each.goes_back, each.kopecks) == wanted:
                    mine = msgspec.structs.replace(each, operation=request.operation)
                    return ReceiptBook((*book.told[:place], mine, *book.told[place + 1 :]))
            return book

        wanted = (request.goes_back, request.receipt.total_kopecks)
        book = await self._books.change(_key(_payment(request)), claimed)
        return next((each for each in book.told if each.operation == request.operation), None) if book else None

    async def close_prepayment(self, request: ReceiptRequest) -> ReceiptState:
        """Send a second receipt, once: after a lost answer only a notification or a person can say whether it is
        written."""
        if not request.prepaid_kopecks or request.correction is not None:
            raise NotSupported("tbank: receipts are written with the money; only second receipts are sent apart")
        key, reference = f"closing/{request.operation}", read_reference(request.reference)
        terminal = self._calls.terminals.of_key(reference.terminal)
        total = request.receipt.total_kopecks
        receipt: dict[str, Any] = receipt_fields(request.receipt, total, self._calls.receipts)["Receipt"]
        receipt["Payments"] = {"Electronic": total - request.prepaid_kopecks, "AdvancePayment": request.prepaid_kopecks}
        closing, _ = await self._closings.start(key, Closing())
        if not closing.sent:
            await self._closings.put(key, Closing(sent=True))
            fields = {"PaymentId": reference.payment_id, "Receipt": receipt}
            try:
                await self._calls.do(terminal, _CLOSING, fields, writes=True)
            except (Refused, Unavailable, NotConfigured):
                await self._closings.put(key, Closing(sent=False))
                raise
        return await self.find(request) or ReceiptState(status=ReceiptStatus.PROCESSING)


def _payment(request: ReceiptRequest) -> str:
    reference = read_reference(request.reference)
    return f"{reference.terminal}/{reference.payment_id}"


def _key(payment: str) -> str:
    return f"receipts/{payment}"


def _is_good(fields: Mapping[str, str]) -> bool:
    return fields.get("Success") == "true" and fields.get("ErrorCode", "0") == "0"


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment
