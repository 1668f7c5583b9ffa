"""ATOL Online as the port ReceiptRegister. Our operation id is the document's external id, which a group of registers
accepts once: a repeat is answered with the id of the first document."""

import re
from collections.abc import Sequence
from decimal import Decimal

import msgspec

from ....ports.bank import Notification
from ....ports.faults import Forged, OutcomeUnknown, Refused, Unavailable
from ....ports.notifications import InboundNotification, Received
from ....ports.operation_log import OperationLog
from ....ports.receipts import ReceiptRequest, ReceiptState, ReceiptStatus
from ....ports.tools import Tools
from ..digest import digest_of
from .api import NAME, AtolApi, Problem
from .settings import AtolSettings
from .tills import Till, Tills
from .wire import OPERATIONS, document_of, fiscal_of

_OPERATION = re.compile(r"[a-z0-9_-]{1,40}\Z")
_FAILURE_MAX = 200


class AtolReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """Note of one receipt."""

    digest: str
    owner: str
    """Owner of the till."""
    uuid: str | None = None
    """ATOL's id of the document. None: no answer yet."""


class _Callback(msgspec.Struct, frozen=True):
    """A notification, as far as it is read."""

    external_id: str
    status: str


class AtolRegister:
    """Implements the ports ReceiptRegister, Notifications and Checkable."""

    name = NAME
    notification_networks: Sequence[str] = ()

    def __init__(self, tools: Tools, tills: Tills, own: AtolSettings) -> None:
        self._is_1_2 = own.format == "1.2"
        version = "v5" if self._is_1_2 else "v4"
        self._api = AtolApi(f"{own.url}/{version}", tools.clock, registers=own.registers)
        self._tills = tills
        self._callback_url = own.callback_url
        self._notes = OperationLog(NAME, AtolReceipt, tools.storage, tools.clock)

    def __repr__(self) -> str:
        return "<AtolRegister>"

    @property
    def clock_skew(self) -> float | None:
        """Seconds by which ATOL's clock was ahead of ours; None: not known yet."""
        return self._api.clock_skew

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        """Register the document, or return the state of the one that was registered before. Raises: as the port."""
        digest = digest_of(request)
        note = await self._notes.read(request.operation)
        till = self._tills.of_request(request) if note is None else self._tills.of_owner(note.owner)
        document = document_of(request, till, is_1_2=self._is_1_2, callback_url=self._callback_url)
        if note is None:
            note, _ = await self._notes.start(request.operation, AtolReceipt(digest=digest, owner=till.owner))
        if note.digest != digest:
            raise Refused(f"{NAME}: the operation has another receipt", reason="operation")
        if note.uuid is not None:
            return await self._state(request, till, note.uuid)
        uuid, is_new = await self._api.send(till, OPERATIONS[request.kind], document)
        try:
            await self._notes.change(request.operation, lambda present: msgspec.structs.replace(present, uuid=uuid))
        except Unavailable as lost:
            raise OutcomeUnknown(f"{NAME}: registered, but its id could not be stored") from lost
        return ReceiptState(status=ReceiptStatus.PROCESSING) if is_new else await self._found(request, till, uuid)

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        """Return the state of the receipt. None also stands for a request whose answer was lost: ATOL finds no document
        by our id, and a repeat of the request is safe. Raises: Refused, Unavailable, NotConfigured."""
        note = await self._notes.read(request.operation)
        if note is None or note.uuid is None:
            return None
        return await self._state(request, self._tills.of_owner(note.owner), note.uuid)

    async def receive(self, notification: InboundNotification) -> Received:
        """Read the operation of a notification. ATOL signs nothing, so it is a hint alone. Raises: Forged."""
        try:
            said = msgspec.json.decode(notification.body, type=_Callback)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Forged(f"{NAME}: not a notification") from None
        is_ours = bool(_OPERATION.match(said.external_id))
        return Received(notifications=(Notification(operation=said.external_id),) if is_ours else ())

    async def check(self) -> None:
        """Check the credentials of every till. Raises: NotConfigured, Unavailable."""
        for till in self._tills.all():
            await self._api.check(till)

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    async def _found(self, request: ReceiptRequest, till: Till, uuid: str) -> ReceiptState:
        """Return the state of a document that the group had already. A failed read is no failed write."""
        try:
            return await self._state(request, till, uuid)
        except Unavailable:
            return ReceiptState(status=ReceiptStatus.PROCESSING)

    async def _state(self, request: ReceiptRequest, till: Till, uuid: str) -> ReceiptState:
        """Raises: Refused `operation` if the document has another sum; Unavailable; NotConfigured."""
        said = await self._api.report(till, uuid)
        if said.status == "done" and said.payload is not None:
            if said.payload.total != Decimal(request.receipt.total_kopecks).scaleb(-2):
                raise Refused(f"{NAME}: the operation has a receipt of another sum", reason="operation")
            return ReceiptState(status=ReceiptStatus.DONE, fiscal=fiscal_of(said.payload))
        if said.status == "fail" and said.error is not None:
            return ReceiptState(status=ReceiptStatus.FAILED, failure=_failure(said.error, request))
        if said.status != "wait":
            raise Unavailable(f"{NAME}: a report in a form that we do not know")
        return ReceiptState(status=ReceiptStatus.PROCESSING)


def _failure(error: Problem, request: ReceiptRequest) -> str:
    """Return the reason without the customer's data, which texts about invalid fields may quote."""
    receipt, text = request.receipt, error.text
    for value in (receipt.email, receipt.phone, receipt.phone and receipt.phone.lstrip("+"), receipt.name, receipt.inn):
        if value:
            text = text.replace(value, "***")
    plain = "".join(char if char.isprintable() else " " for char in text).strip()
    return f"{error.type} {error.code}: {plain}"[:_FAILURE_MAX]
