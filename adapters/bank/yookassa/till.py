"""States of receipts, second receipts, and receipts that are tried again (docs/receipts.md "Banks").

Not verified with the service: whether it writes a receipt anew that its register rejected inside a payment."""

from typing import Annotated

import msgspec

from ....ports.faults import NotSupported, Refused
from ....ports.receipts import FiscalData, ReceiptNeed, ReceiptRequest, ReceiptState, ReceiptStatus
from .bodies import REFUND, is_of, key_of
from .calls import between
from .core import Note
from .receipts import apart_of
from .refunds import REFUNDS, Refunds
from .shops import Shop
from .wire import Moment, roubles

RECEIPTS = "/receipts"
RECEIPT = "receipt"


class Settled(msgspec.Struct, frozen=True):
    type: str


class Written(msgspec.Struct, frozen=True):
    """A receipt as YooKassa shows it."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    type: str
    status: str
    settlements: list[Settled] = []
    fiscal_document_number: str | None = None
    fiscal_storage_number: str | None = None
    fiscal_attribute: str | None = None
    registered_at: Moment | None = None


class Till(Refunds):
    """Implement the port ReceiptBank."""

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        """Return the receipt inside a payment or refund: the first of its list. One that was sent apart is read by its
        note, or else is the one of its kind since the request."""
        shop, theirs = self._payment_of(request.reference)
        note = None if request.is_with_money else await self._notes.read(request.operation)
        if note is not None and note.kind == RECEIPT:
            found = await self._calls.find(shop, f"{RECEIPTS}/{note.reference}", Written)
            return None if found is None else _state(found)
        whose = await self._whose(shop, theirs, request)
        if whose is None:
            return None
        since = {} if request.is_with_money else between(request.requested_at, None)
        told = [each for each in await self._list(shop, {**whose, **since}) if _fits(each, request)]
        return _state(told[-1]) if told and (request.is_with_money or len(told) == 1) else None

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        """Send a receipt apart from its money."""
        if self._receipts is ReceiptNeed.NONE or request.correction is not None:
            raise NotSupported("yookassa: no register, or no corrections")
        shop, theirs = self._payment_of(request.reference)
        whose = await self._whose(shop, theirs, request)
        if whose is None:
            raise Refused("yookassa: the refund of the receipt is not there", reason="not_found")
        body = {
            "type": _type(request),
            **whose,
            **apart_of(request.receipt),
            "send": True,
            "settlements": [{"type": _settlement(request), "amount": roubles(request.receipt.total_kopecks)}],
        }
        made = await self._calls.write(shop, RECEIPTS, key_of(request.operation), body, Written)
        await self._notes.remember(request.operation, Note(kind=RECEIPT, reference=made.id))
        return _state(made)

    async def _whose(self, shop: Shop, theirs: str, request: ReceiptRequest) -> dict[str, str] | None:
        """Return YooKassa's id of the payment, or of the refund. None: there is no such refund."""
        if not request.goes_back:
            return {"payment_id": theirs}
        async for seen, _ in self._calls.listed(shop, REFUNDS, {"payment_id": theirs}):
            if is_of(seen, REFUND, request.of):
                return {"refund_id": seen.id}
        return None

    async def _list(self, shop: Shop, query: dict[str, str]) -> list[Written]:
        return [msgspec.json.decode(raw, type=Written) async for _, raw in self._calls.listed(shop, RECEIPTS, query)]


def _type(request: ReceiptRequest) -> str:
    return "refund" if request.goes_back else "payment"


def _settlement(request: ReceiptRequest) -> str:
    return "prepayment" if request.prepaid_kopecks else "cashless"


def _fits(found: Written, request: ReceiptRequest) -> bool:
    """Report whether a receipt of the list may be the requested one. A receipt apart from money has settlements."""
    if found.type != _type(request):
        return False
    return request.is_with_money or [each.type for each in found.settlements] == [_settlement(request)]


_STATUSES = {"succeeded": ReceiptStatus.DONE, "canceled": ReceiptStatus.FAILED}


def _state(found: Written) -> ReceiptState:
    status = _STATUSES.get(found.status, ReceiptStatus.PROCESSING)
    fiscal = FiscalData(
        storage=found.fiscal_storage_number,
        document=found.fiscal_document_number,
        sign=found.fiscal_attribute,
        registered_at=found.registered_at,
    )
    failure = "the cash register rejected it" if status is ReceiptStatus.FAILED else None
    return ReceiptState(status=status, failure=failure, fiscal=fiscal)
