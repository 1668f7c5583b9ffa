"""Shared base of the simulated bank: records, clock and script."""

import binascii

from ....ports.bank import BankCapabilities
from ....ports.clock import Clock, Ids
from ....ports.faults import OutcomeUnknown, Refused
from ....ports.operation_log import MayBeWritten, OperationLog
from ....ports.receipts import Receipt, ReceiptNeed
from ....ports.storage import Storage
from ...script import Script
from .drawn import DRAWN, drawn_entry
from .mandate_events import page_as_of
from .pages import InvoiceEntry


class SimulatorCore:
    """Access to records. The reference of an invoice, binding or charge is the id of its note."""

    def __init__(
        self,
        name: str,
        storage: Storage,
        clock: Clock,
        ids: Ids,
        *,
        link_base: str,
        script: Script | None,
        capabilities: BankCapabilities,
    ) -> None:
        self._pages = OperationLog(name, InvoiceEntry, storage, clock)
        self._clock = clock
        self._ids = ids
        self._link_base = link_base
        self._script = script or Script()
        self._capabilities = capabilities

    @property
    def name(self) -> str:
        """Name from the constructor. It is part of every note's id."""
        return self._pages.provider

    @property
    def capabilities(self) -> BankCapabilities:
        """Return the configured capabilities; by default the bank supports everything."""
        return self._capabilities

    async def _page(self, operation: str) -> InvoiceEntry | None:
        """Return the record of this operation at the current clock time, or None."""
        found = await self._pages.read(operation)
        return None if found is None else page_as_of(found, self._clock.now())

    async def _start(self, entry: InvoiceEntry, *, durable: bool = True) -> tuple[InvoiceEntry, bool]:
        """Return the record of the operation, and whether this call wrote it. Raises: OutcomeUnknown; Unavailable when
        the storage could not even be opened."""
        try:
            return await self._pages.start(entry.operation, entry, durable=durable)
        except MayBeWritten as fault:
            raise OutcomeUnknown("the bank's pages did not answer") from fault

    async def _invoice_page(self, reference: str) -> InvoiceEntry | None:
        """Return the record with this reference at the current clock time. For an unpaid invoice that its reference
        encodes, return the decoded record."""
        found = await self._pages.read(self._operation(reference)) or self._drawn(reference)
        return None if found is None else page_as_of(found, self._clock.now())

    def _drawn(self, reference: str) -> InvoiceEntry | None:
        """Decode the record of an invoice from its reference. Return None if the reference encodes no invoice, or
        belongs to another bank."""
        own = self._reference("")
        if not reference.startswith(own):
            return None
        return drawn_entry(reference.removeprefix(own), self._payload)

    def _reference(self, operation: str) -> str:
        return self._pages.page_id(operation)

    def _operation(self, reference: str) -> str:
        """Return the operation of a reference. It need not exist."""
        return reference.removeprefix(self._reference("")).partition(DRAWN)[0]

    def _check_receipt(self, receipt: Receipt | None, kopecks: int | None) -> None:
        """Raises: Refused, as banks do, when the receipt has another amount, or a required one is missing."""
        need = self._capabilities.receipts
        if receipt is None and need is ReceiptNeed.REQUIRED:
            raise Refused("there is no receipt", reason="receipt")
        if receipt is not None and (need is ReceiptNeed.NONE or receipt.total_kopecks != kopecks):
            raise Refused("the receipt is not of this amount", reason="receipt")

    def _missing(self, what: str) -> Refused:
        return Refused(f"{self.name} has no {what}", reason="not_found")

    def _payload(self, kopecks: int, chance: str | None = None) -> str:
        """Build a payload in the form of NSPK's dynamic QR, with an id and a bank that cannot exist. `chance`: 16
        hexadecimal digits."""
        chance = (self._ids.uuid().replace("-", "")[-16:] if chance is None else chance).upper()
        text = f"{self._link_base}/AD00SIMULATED000{chance}?type=02&bank=999999999999&sum={kopecks}&cur=RUB"
        return f"{text}&crc={binascii.crc_hqx(text.encode(), 0xFFFF):04X}"
