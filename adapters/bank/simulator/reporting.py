"""Report of the simulated bank: all its operations by the time when they began."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from ....ports.bank import InvoiceStatus, RefundStatus
from ....ports.operation_log import OperationLog
from ....ports.remittances import RemittanceStatus
from ....ports.reporting import ReportedEntry, ReportedKind, ReportedPage, ReportedState
from ...script import begin_read
from .core import SimulatorCore
from .mandate_events import page_as_of
from .pages import InvoiceEntry, RefundEntry
from .remittances import RemittancePage, remittance_as_of

_S = ReportedState

_REFUNDS: Mapping[RefundStatus, ReportedState] = {
    RefundStatus.PROCESSING: _S.OPEN,
    RefundStatus.DONE: _S.DONE,
    RefundStatus.FAILED: _S.FAILED,
    RefundStatus.REVERSED: _S.FAILED,
}
_REMITTANCES: Mapping[RemittanceStatus, ReportedState] = {
    RemittanceStatus.PROCESSING: _S.OPEN,
    RemittanceStatus.DONE: _S.DONE,
    RemittanceStatus.FAILED: _S.FAILED,
}
_WAITING = (InvoiceStatus.OPEN, InvoiceStatus.PROCESSING)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class ReportingCore(SimulatorCore):
    """Implement the port ReportingBank, except for the methods that every bank has. The simulator has no merchant
    credentials."""

    _remittances: OperationLog[RemittancePage]

    def owners(self) -> Sequence[str]:
        """Return the installation alone."""
        return ("",)

    def owner_of(self, reference: str) -> str:  # noqa: ARG002 - the same owner for every reference
        """Return the installation."""
        return ""

    async def entries(self, owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:  # noqa: ARG002
        """Return a page of the operations begun in this period, after the script's changes. Each call reads all
        records, which is cheap because a simulator has few.

        Raises: Unavailable; errors that the script sets.
        """
        script = self._script.entries
        await begin_read(self._clock, script.calls)
        told = [
            script.turned.get(each.operation or "", _as_it_is)(each)
            for each in await self._booked()
            if each.operation not in script.omitted
        ]
        listed = [each for each in [*told, *script.invented] if since <= each.moment < until]
        rest = sorted((each for each in listed if cursor is None or _place(each) > cursor), key=_place)
        page = tuple(rest[: script.page])
        return ReportedPage(entries=page, next_cursor=_place(page[-1]) if len(rest) > len(page) else None)

    async def _booked(self) -> list[ReportedEntry]:
        now = self._clock.now()
        booked: list[ReportedEntry] = []
        for key, body in await self._pages.since(_BEGINNING):
            try:
                entry = page_as_of(msgspec.json.decode(body, type=InvoiceEntry), now)
            except msgspec.ValidationError:
                # Another kind of note about the bank, such as its health.
                continue
            booked += _entries(key, entry)
        for operation, body in await self._remittances.since(_BEGINNING):
            page = remittance_as_of(msgspec.json.decode(body, type=RemittancePage), now)
            booked.append(_remitted(operation, page))
        return booked


def _as_it_is(entry: ReportedEntry) -> ReportedEntry:
    return entry


def _place(entry: ReportedEntry) -> str:
    return f"{entry.moment.astimezone(UTC).isoformat(timespec='microseconds')} {entry.kind} {entry.id}"


def _entries(operation: str, entry: InvoiceEntry) -> Iterator[ReportedEntry]:
    came = sum(each.amount_kopecks for each in entry.transfers if not each.taken_back)
    if came or entry.amount_kopecks:
        state = _S.DONE if came else _S.OPEN if entry.status in _WAITING else _S.FAILED
        yield ReportedEntry(
            id=operation,
            kind=ReportedKind.PAYMENT,
            state=state,
            moment=entry.created_at,
            amount_kopecks=came or entry.amount_kopecks,
            operation=operation,
        )
    yield from map(_refunded, entry.refunds)


def _refunded(refund: RefundEntry) -> ReportedEntry:
    return ReportedEntry(
        id=refund.operation,
        kind=ReportedKind.REFUND,
        state=_REFUNDS[refund.status],
        moment=refund.created_at,
        amount_kopecks=refund.amount_kopecks,
        operation=refund.operation,
    )


def _remitted(operation: str, page: RemittancePage) -> ReportedEntry:
    return ReportedEntry(
        id=operation,
        kind=ReportedKind.PAYOUT,
        state=_REMITTANCES[page.status],
        moment=page.created_at,
        amount_kopecks=page.amount_kopecks,
        operation=operation,
    )
