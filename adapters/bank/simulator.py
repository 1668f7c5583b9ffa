"""A bank without money: SBP invoices that are paid, refused or forgotten when somebody says so.

Its books lie in the storage, so that what it promised survives a restart, as a real bank would. It keeps no timers:
what has happened by now follows from the books and the clock whenever it is asked. It does everything that a bank can
do to us, late and double payments included; what becomes of them is the core's to decide.
"""

import binascii
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ...ports.bank import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    Notice,
    Pretence,
    Transfer,
)
from ...ports.clock import Clock, Ids
from ...ports.faults import OutcomeUnknown, Refused, Unavailable
from ...ports.storage import Storage
from ..notebook import Notebook
from .script import Ending, Script, Twist, fault, next_twist

INSUFFICIENT_FUNDS = 404_01
DECLINED = 404_02
ANOTHER_AMOUNT = 404_03
OUTCOME_UNKNOWN = 404_04
"""Amounts in kopecks that act without a call (DECISIONS 8). The invoice of 404.04 exists, its answer is lost."""

_REACTION = timedelta(seconds=1)
"""From the creation of an invoice of such an amount until the payer or the bank has acted."""
_SHORT_BY = 100
"""How many kopecks less than asked the payer of 404.03 sends."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One invoice in the bank's books: the body of a note."""

    operation: str
    amount_kopecks: int
    purpose: str
    payload: str
    created_at: datetime
    expires_at: datetime
    status: InvoiceStatus = InvoiceStatus.OPEN
    transfers: tuple[Transfer, ...] = ()
    failure: str | None = None

    def __repr__(self) -> str:
        # Transfers name payers.
        return f"<{self.status} invoice of {self.operation}>"


class SimulatedBank:
    """Fills the ports Bank and BankSimulator. The reference of an invoice is the id of its note."""

    def __init__(
        self,
        name: str,
        storage: Storage,
        clock: Clock,
        ids: Ids,
        *,
        link_base: str = "https://qr.nspk.ru",
        script: Script | None = None,
        capabilities: BankCapabilities | None = None,
    ) -> None:
        """`link_base` is where payment links seem to lead, without a slash at the end; `capabilities` is what it says
        of itself, where it shall be less than everything."""
        self._books = Notebook(name, _Entry, storage, clock)
        self._clock = clock
        self._ids = ids
        self._link_base = link_base
        self._script = script or Script()
        self._capabilities = capabilities or BankCapabilities(own_lifetime=True, direct_link=True, simulated=True)

    @property
    def name(self) -> str:
        """As given; part of every note's id."""
        return self._books.provider

    @property
    def capabilities(self) -> BankCapabilities:
        """It can do everything, unless told otherwise."""
        return self._capabilities

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        """Open an invoice, or return the one that this operation made before.

        Raises: Refused for an amount that is not above zero; OutcomeUnknown at the first call for 404.04, and when
        the storage lost its answer; whatever the script says.
        """
        twist = next_twist(self._script.create)
        if twist.ending not in (Ending.NORMAL, Ending.UNKNOWN_DONE):
            await self._be_silent(twist)
            raise fault(twist)
        if request.amount_kopecks <= 0:
            raise Refused("an invoice is for more than nothing", reason="amount")
        entry, is_new = await self._open(request)
        await self._be_silent(twist)
        if twist.ending is Ending.UNKNOWN_DONE:
            raise fault(twist)
        if is_new and request.amount_kopecks == OUTCOME_UNKNOWN:
            raise OutcomeUnknown("the bank's answer was lost")
        return self._invoice(entry)

    async def find_invoice(self, operation: str) -> Invoice | None:
        """The invoice of this operation, or None. Raises: what the script says."""
        await self._answer_read(self._script.find)
        entry = await self._books.read(operation)
        return None if entry is None else self._invoice(entry)

    async def invoice_state(self, reference: str) -> InvoiceState:
        """The invoice by the clock of now. Raises: Refused when there is none; what the script says."""
        await self._answer_read(self._script.state)
        found = await self._books.read(reference.removeprefix(self._books.page_id("")))
        if found is None:
            raise Refused(f"{self.name} has no invoice {reference}", reason="not_found")
        entry = _as_of(found, self._clock.now())
        return InvoiceState(reference=reference, status=entry.status, transfers=entry.transfers, failure=entry.failure)

    async def pretend(self, operation: str, pretence: Pretence) -> Sequence[Notice]:
        """Change the books, and return the notices that go out: one, none when silent, two when doubled.

        An invoice that was paid stays paid: any further wish changes nothing, but for a second transfer with `again`.
        Without a failure reason FAILED means `declined_by_bank`. Money is accepted in every state, however late.

        Raises: Refused when there is no such invoice; ValueError for what no bank reports (OPEN, no money as money).
        """
        if pretence.status is InvoiceStatus.OPEN:
            raise ValueError("an invoice does not become open again")
        if pretence.amount_kopecks is not None and pretence.amount_kopecks <= 0:
            raise ValueError("a transfer is of more than nothing")
        now = self._clock.now()
        if await self._books.change(operation, lambda entry: _pretended(_as_of(entry, now), pretence, now)) is None:
            raise Refused(f"{self.name} has no invoice of {operation}", reason="not_found")
        if pretence.silent:
            return ()
        return (Notice(operation=operation),) * (2 if pretence.doubled else 1)

    async def _open(self, request: InvoiceRequest) -> tuple[_Entry, bool]:
        """The entry of the operation, and whether this call made it."""
        entry = _Entry(
            operation=request.operation,
            amount_kopecks=request.amount_kopecks,
            purpose=request.purpose,
            payload=self._payload(request.amount_kopecks),
            created_at=self._clock.now(),
            expires_at=request.expires_at,
        )
        try:
            return await self._books.start(request.operation, entry)
        except Unavailable as fault:
            raise OutcomeUnknown("the bank's books did not answer") from fault

    async def _answer_read(self, twists: deque[Twist]) -> None:
        """Let the script have its say in a read."""
        twist = next_twist(twists)
        await self._be_silent(twist)
        if twist.ending is not Ending.NORMAL:
            raise fault(twist, is_read=True)

    async def _be_silent(self, twist: Twist) -> None:
        if twist.silence > 0:
            await self._clock.sleep(twist.silence)

    def _payload(self, kopecks: int) -> str:
        """Of the shape that NSPK gives a dynamic QR, with an id and a bank that cannot exist."""
        chance = self._ids.uuid().hex[-16:].upper()
        text = f"{self._link_base}/AD00SIMULATED000{chance}?type=02&bank=999999999999&sum={kopecks}&cur=RUB"
        return f"{text}&crc={binascii.crc_hqx(text.encode(), 0xFFFF):04X}"

    def _invoice(self, entry: _Entry) -> Invoice:
        acts_alone = entry.amount_kopecks in (INSUFFICIENT_FUNDS, DECLINED, ANOTHER_AMOUNT)
        return Invoice(
            reference=self._books.page_id(entry.operation),
            payload=entry.payload,
            link=entry.payload,
            check_after=_REACTION.total_seconds() if acts_alone else None,
        )


def _as_of(entry: _Entry, now: datetime) -> _Entry:
    """What the books say once time did its part: acting amounts after a second, the end of the lifetime."""
    acted_at = entry.created_at + _REACTION
    if entry.status is InvoiceStatus.OPEN and now >= acted_at:
        if entry.amount_kopecks == INSUFFICIENT_FUNDS:
            return _failed(entry, "insufficient_funds")
        if entry.amount_kopecks == DECLINED:
            return _failed(entry, "declined_by_bank")
        if entry.amount_kopecks == ANOTHER_AMOUNT:
            return _paid(entry, entry.amount_kopecks - _SHORT_BY, acted_at, None)
    if entry.status in (InvoiceStatus.OPEN, InvoiceStatus.PROCESSING) and now >= entry.expires_at:
        return msgspec.structs.replace(entry, status=InvoiceStatus.EXPIRED)
    return entry


def _pretended(entry: _Entry, pretence: Pretence, now: datetime) -> _Entry:
    if pretence.status is InvoiceStatus.PAID and (pretence.again or not entry.transfers):
        return _paid(entry, pretence.amount_kopecks or entry.amount_kopecks, now, pretence.payer_name)
    if entry.transfers:
        return entry
    if pretence.status is InvoiceStatus.FAILED:
        return _failed(entry, pretence.failure or "declined_by_bank")
    return msgspec.structs.replace(entry, status=pretence.status, failure=None)


def _failed(entry: _Entry, failure: str) -> _Entry:
    return msgspec.structs.replace(entry, status=InvoiceStatus.FAILED, failure=failure)


def _paid(entry: _Entry, kopecks: int, at: datetime, payer_name: str | None) -> _Entry:
    """One more transfer. Its id follows from its number, so that it is the same however often it is worked out."""
    transfer = Transfer(
        id=f"{entry.operation}/{len(entry.transfers) + 1}", amount_kopecks=kopecks, at=at, payer_name=payer_name
    )
    return msgspec.structs.replace(
        entry, status=InvoiceStatus.PAID, failure=None, transfers=(*entry.transfers, transfer)
    )
