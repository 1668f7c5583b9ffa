"""Refunds by Cancel (docs/providers/tbank.md "Refunds"). They are noted before they are sent, one per payment at a
time, and never sent twice. refund_book.py makes the decisions."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bank import InvoiceStatus, RefundRequest, RefundState, RefundStatus
from ....ports.clock import Clock
from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ....ports.operation_log import OperationLog
from .calls import Calls
from .receipts import receipt_fields
from .references import NO_PAYMENT, Reference, find_reference, read_reference
from .refund_book import ALL, BUSY, PAID, PART, QUIET, Book, Seen, Stage, begun, ended, found, is_busy, settled
from .wire import Said, kopecks_of, status_of

_TRIES = 5
_LATE = timedelta(minutes=1)
"""If this much time passed between writing the entry and Cancel, nothing is sent: other processes may have continued
meanwhile."""


class Refunds:
    """Send money of payments back."""

    def __init__(self, calls: Calls, books: OperationLog[Book], clock: Clock) -> None:
        self._calls = calls
        self._books = books
        self._clock = clock
        self._turns: dict[str, list[asyncio.Lock]] = {}
        self._sent: dict[str, float] = {}
        """Monotonic time at which this process sent each refund. It gives the age of an unanswered refund."""

    async def refund(self, request: RefundRequest) -> RefundState:
        """Implement ports/bank.py: Bank.refund. Only the call that wrote the entry into the book sends Cancel."""
        reference = read_reference(request.reference)
        _check_payment(reference, request)
        async with self._turn(reference.payment):
            for _ in range(_TRIES):
                book = await self._book(reference)
                entry = book.entry(request.operation)
                if entry is not None and (end := ended(entry)) is not None:
                    return end
                seen = await self._look(reference, book)
                now = self._now(book)
                after = settled(book, seen, now)
                if after.entry(request.operation) is not None or is_busy(after, seen):
                    after, state = found(after, request, seen, now)
                    if state is not None and await self._keep(reference, book, after):
                        return state
                    continue
                receipt = receipt_fields(request.receipt, request.amount_kopecks, self._calls.receipts)
                after = begun(after, request, seen, self._clock.now())
                if await self._keep(reference, book, after):
                    return await self._send(reference, request, after, receipt)
        raise Unavailable("tbank: too many refunds of one payment at once")

    async def search(self, request: RefundRequest) -> RefundState | None:
        """Implement ports/searching.py: SearchesRefunds. None proves that nothing was or will be refunded for this
        operation."""
        reference = find_reference(request.reference)
        if reference is None or reference.payment_id == NO_PAYMENT:
            return None
        async with self._turn(reference.payment):
            for _ in range(_TRIES):
                book = await self._book(reference)
                entry = book.entry(request.operation)
                if entry is not None and (end := ended(entry)) is not None:
                    return end
                try:
                    seen = await self._look(reference, book)
                except Refused:
                    return None  # no payment exists, so nothing was refunded
                now = self._now(book)
                after, state = found(settled(book, seen, now), request, seen, now)
                if await self._keep(reference, book, after):
                    return state
        raise Unavailable("tbank: too many refunds of one payment at once")

    async def open_of(self, payment: str) -> list[str]:
        """Return the operations of a payment's open refunds, for its notifications."""
        book = await self._books.read(_key(payment))
        return [] if book is None else [each.operation for each in book.entries if each.is_open]

    def _now(self, book: Book) -> datetime:
        """Return the current time for judging the open refund. For a refund that this process sent, its age follows the
        monotonic clock, so a clock set forward does not make it older."""
        now, entry = self._clock.now(), book.open
        since = None if entry is None else self._sent.get(entry.operation)
        if entry is not None and since is not None:
            now = min(now, entry.sent_at + timedelta(seconds=self._clock.monotonic() - since))
        return now

    def _note_sending(self, operation: str) -> None:
        now = self._clock.monotonic()
        self._sent = {each: at for each, at in self._sent.items() if now - at < QUIET.total_seconds()}
        self._sent[operation] = now

    async def _send(
        self, reference: Reference, request: RefundRequest, book: Book, receipt: Mapping[str, Any]
    ) -> RefundState:
        """Send Cancel for an entry of the book, and note the result. Raises: the same as `refund`."""
        entry = book.entry(request.operation)
        if entry is None or self._clock.now() - entry.sent_at > _LATE:
            raise Unavailable("tbank: too late to send the refund")
        self._note_sending(request.operation)
        terminal = self._calls.terminals.of_key(reference.terminal)
        fields = {"PaymentId": reference.payment_id, "Amount": request.amount_kopecks, **receipt}
        try:
            said = await self._calls.say(terminal, "Cancel", fields, writes=True)
            fault = None if said.is_done else self._calls.fault(terminal, said, writes=True)
        except (Unavailable, NotConfigured) as never:
            said, fault = None, never
        if fault is not None:
            if not isinstance(fault, OutcomeUnknown):
                await self._note_nothing(reference, request, fault, is_limit=said is not None)
            raise fault
        # After a first partial refund the status does not show a second one; the next poll reads it.
        word = None if said is None else said.status
        has_ended = word == ALL or (word == PART and entry.before.status == PAID)
        stage = Stage.DONE if has_ended else Stage.TAKEN

        def taken(book: Book) -> Book:
            entry = book.entry(request.operation)
            return book if entry is None else book.put(msgspec.structs.replace(entry, stage=stage))

        with suppress(Unavailable):  # the next poll reads it from T-Bank
            await self._books.change(_key(reference.payment), taken)
        return RefundState(status=RefundStatus.DONE if has_ended else RefundStatus.PROCESSING)

    async def _note_nothing(
        self, reference: Reference, request: RefundRequest, fault: Fault, *, is_limit: bool
    ) -> None:
        """Remove the entry of a refund that was certainly not made. If the write fails, later polls find out."""
        wait = fault.retry_after if is_limit and isinstance(fault, Unavailable) else None
        until = None if wait is None else self._clock.now() + timedelta(seconds=wait)
        with suppress(Unavailable):
            await self._books.change(
                _key(reference.payment),
                lambda book: msgspec.structs.replace(book.drop(request.operation), closed_until=until),
            )

    async def _look(self, reference: Reference, book: Book) -> Seen:
        """Read the payment's state from T-Bank. A partly refunded payment counts as paid, whatever status T-Bank shows.

        Raises: Refused `not_found`, `not_paid`; Unavailable; NotConfigured.
        """
        try:
            said = await self._calls.state(reference)
            _check_paid(said)
        except Refused:
            if book.entries:
                raise Unavailable("tbank: a payment of which money went back is not shown any more") from None
            raise
        terminal = self._calls.terminals.of_key(reference.terminal)
        back = await self._calls.say(terminal, "GetQrState", {"PaymentId": reference.payment_id}, writes=False)
        told = back if back.is_done else None
        return Seen(
            status=said.status or "",
            kopecks=kopecks_of(said.amount),
            last=None if told is None else kopecks_of(told.amount),
            code=None if told is None else told.qr_cancel_code or None,
        )

    async def _book(self, reference: Reference) -> Book:
        return await self._books.read(_key(reference.payment)) or Book(paid=reference.kopecks)

    async def _keep(self, reference: Reference, before: Book, after: Book) -> bool:
        """Write the book if it has not changed since it was read. Return False if another process changed it."""
        key = _key(reference.payment)
        if before == after:
            return True
        if before == Book(paid=reference.kopecks):
            present, is_new = await self._books.start(key, after)
            if is_new:
                return True
            if present != before:
                return False
        won = False

        def turn(book: Book) -> Book:
            nonlocal won
            won = book == before
            return after if won else book

        await self._books.change(key, turn)
        return won

    @asynccontextmanager
    async def _turn(self, payment: str) -> AsyncIterator[None]:
        """Lock the payment within this process. Between processes the compare-and-set of the book protects it."""
        waiting = self._turns.setdefault(payment, [asyncio.Lock()])
        lock = waiting[0]
        waiting.append(lock)
        try:
            async with lock:
                yield
        finally:
            waiting.pop()
            if len(waiting) == 1:
                self._turns.pop(payment, None)


def _check_payment(reference: Reference, request: RefundRequest) -> None:
    """Raises: Refused if the reference has no payment, or the request names another transfer."""
    if reference.payment_id == NO_PAYMENT:
        raise Refused("tbank: nobody paid it", reason="not_paid")
    if request.transfer is not None and request.transfer != reference.payment_id:
        raise Refused("tbank: the payment has no such transfer", reason="not_found")


def _check_paid(said: Said) -> None:
    """Raises: Refused `not_paid`; Unavailable if the payment may still become paid."""
    if said.status in (PAID, PART, ALL, *BUSY):
        return
    if status_of(said.status) in (InvoiceStatus.PAID, InvoiceStatus.PROCESSING):
        raise Unavailable("tbank: nobody can tell yet whether it is paid")
    raise Refused("tbank: nobody paid it", reason="not_paid")


def _key(payment: str) -> str:
    return f"refunds/{payment}"
