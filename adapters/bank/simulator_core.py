"""What every part of the simulated bank works with: its pages, its clock and its script."""

import binascii

from ...ports.bank import BankCapabilities
from ...ports.clock import Clock, Ids
from ...ports.faults import OutcomeUnknown, Refused
from ...ports.notebook import MayBeWritten, Notebook
from ...ports.receipts import Receipt, ReceiptNeed
from ...ports.storage import Storage
from ..script import Script
from .drawn import DRAWN, drawn_entry
from .mandate_events import page_as_of
from .pages import InvoiceEntry


class SimulatorCore:
    """The reference of whatever has a page is the id of its note."""

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
        self._pages = Notebook(name, InvoiceEntry, storage, clock)
        self._clock = clock
        self._ids = ids
        self._link_base = link_base
        self._script = script or Script()
        self._capabilities = capabilities

    @property
    def name(self) -> str:
        """As given; part of every note's id."""
        return self._pages.provider

    @property
    def capabilities(self) -> BankCapabilities:
        """It can do everything, unless told otherwise."""
        return self._capabilities

    async def _page(self, operation: str) -> InvoiceEntry | None:
        """The page of this operation by the clock of now, or None."""
        found = await self._pages.read(operation)
        return None if found is None else page_as_of(found, self._clock.now())

    async def _start(self, entry: InvoiceEntry, *, durable: bool = True) -> tuple[InvoiceEntry, bool]:
        """The page of the operation, and whether this call wrote it. Raises: OutcomeUnknown; Unavailable, when the
        pages could not even be opened."""
        try:
            return await self._pages.start(entry.operation, entry, durable=durable)
        except MayBeWritten as fault:
            raise OutcomeUnknown("the bank's pages did not answer") from fault

    async def _invoice_page(self, reference: str) -> InvoiceEntry | None:
        """The page of what has this reference, by the clock of now; of an invoice that was drawn and that nobody paid
        yet, the page as it would be."""
        found = await self._pages.read(self._operation(reference)) or self._drawn(reference)
        return None if found is None else page_as_of(found, self._clock.now())

    def _drawn(self, reference: str) -> InvoiceEntry | None:
        """The page of an invoice that was drawn; None: it was not, or not here."""
        own = self._reference("")
        if not reference.startswith(own):
            return None
        return drawn_entry(reference.removeprefix(own), self._payload)

    def _reference(self, operation: str) -> str:
        return self._pages.page_id(operation)

    def _operation(self, reference: str) -> str:
        """The operation of what has this reference, if there is such a thing."""
        return reference.removeprefix(self._reference("")).partition(DRAWN)[0]

    def _check_receipt(self, receipt: Receipt | None, kopecks: int | None) -> None:
        """Raises: Refused, as banks do with a receipt that is not of this amount, or without the one they require."""
        need = self._capabilities.receipts
        if receipt is None and need is ReceiptNeed.REQUIRED:
            raise Refused("there is no receipt", reason="receipt")
        if receipt is not None and (need is ReceiptNeed.NONE or receipt.total_kopecks != kopecks):
            raise Refused("the receipt is not of this amount", reason="receipt")

    def _missing(self, what: str) -> Refused:
        return Refused(f"{self.name} has no {what}", reason="not_found")

    def _payload(self, kopecks: int, chance: str | None = None) -> str:
        """Of the shape that NSPK gives a dynamic QR, with an id and a bank that cannot exist. `chance`: 16 hexadecimal
        digits."""
        chance = (self._ids.uuid().replace("-", "")[-16:] if chance is None else chance).upper()
        text = f"{self._link_base}/AD00SIMULATED000{chance}?type=02&bank=999999999999&sum={kopecks}&cur=RUB"
        return f"{text}&crc={binascii.crc_hqx(text.encode(), 0xFFFF):04X}"
