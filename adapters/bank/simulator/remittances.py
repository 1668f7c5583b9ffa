"""Remittances of the simulated bank: money sent to a person's phone. They complete by themselves or through simulated
events.

The records store only the phone's last four digits, which are enough to distinguish a repeat from another request.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ....ports.bank import Notification
from ....ports.faults import NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.operation_log import OperationLog
from ....ports.remittances import RemittanceRequest, RemittanceState, RemittanceStatus
from ...script import begin_read, begin_write, end_write
from .core import SimulatorCore

TAKES = timedelta(seconds=1)
"""Time until a remittance completes by itself."""

_S = RemittanceStatus


class RemittancePage(msgspec.Struct, frozen=True, kw_only=True):
    """One remittance of the bank, stored as the body of a note."""

    amount_kopecks: int
    bank_id: str
    phone_end: str
    created_at: datetime
    done_at: datetime | None
    """When the remittance completes by itself; None: never."""
    status: RemittanceStatus = _S.PROCESSING
    failure: str | None = None


class RemittanceCore(SimulatorCore):
    """Implement the ports RemittanceBank and RemittanceSimulator, except for the methods that every bank has."""

    _remittances: OperationLog[RemittancePage]

    async def remit(self, request: RemittanceRequest) -> RemittanceState:
        """Send the money, or return the state of this operation's remittance.

        Raises: the errors of the port; OutcomeUnknown also when the storage lost its answer; any error that the script
        sets.
        """
        self._must_remit()
        twist = await begin_write(self._clock, self._script.remit)
        page = await self._begin_remittance(request)
        await end_write(self._clock, twist)
        return self._remittance_state(page)

    async def find_remittance(self, operation: str) -> RemittanceState | None:
        """Return the remittance of this operation at the current clock time, or None. Raises: NotSupported; errors that
        the script sets."""
        self._must_remit()
        await begin_read(self._clock, self._script.find_remittance)
        page = await self._remittances.read(operation)
        return None if page is None else self._remittance_state(page)

    async def simulate_remittance(
        self, operation: str, status: RemittanceStatus, failure: str | None = None
    ) -> Sequence[Notification]:
        """Apply a simulated status to the remittance, and return the one notification that the bank sends. FAILED
        without a reason means `declined_by_bank`.

        Raises: Refused when the remittance does not exist.
        """
        now = self._clock.now()

        def turn(page: RemittancePage) -> RemittancePage:
            page = remittance_as_of(page, now)
            if page.status is not _S.PROCESSING:
                return page
            reason = (failure or "declined_by_bank") if status is _S.FAILED else None
            return msgspec.structs.replace(page, status=status, failure=reason, done_at=None)

        if await self._remittances.change(operation, turn) is None:
            raise self._missing(f"remittance of {operation}")
        return (Notification(operation=operation),)

    def _must_remit(self) -> None:
        if not self._capabilities.remittances:
            raise NotSupported(f"{self.name} sends no money to people")

    async def _begin_remittance(self, request: RemittanceRequest) -> RemittancePage:
        """Return the record of the operation, writing it if needed. Raises: Refused, OutcomeUnknown."""
        most = self._capabilities.remittance_max_kopecks
        if request.amount_kopecks <= 0 or (most is not None and request.amount_kopecks > most):
            raise Refused("no amount that can be sent at once", reason="amount")
        if not _is_digits(request.phone, "+", 10, 15) or not _is_digits(request.bank_id, "bank", 1, 20):
            raise Refused("nobody is known by that phone at that bank", reason="recipient")
        now = self._clock.now()
        page = RemittancePage(
            amount_kopecks=request.amount_kopecks,
            bank_id=request.bank_id,
            phone_end=request.phone[-4:],
            created_at=now,
            done_at=now + TAKES,
        )
        try:
            kept, _ = await self._remittances.start(request.operation, page)
        except Unavailable as fault:
            raise OutcomeUnknown("the bank's pages did not answer") from fault
        if _asked(kept) != _asked(page):
            raise Refused(f"{request.operation} began as another remittance", reason="operation")
        return kept

    def _remittance_state(self, stored: RemittancePage) -> RemittanceState:
        now = self._clock.now()
        page = remittance_as_of(stored, now)
        wait = None if page.done_at is None else (page.done_at - now).total_seconds()
        return RemittanceState(status=page.status, failure=page.failure, check_after=wait)


def remittance_as_of(page: RemittancePage, now: datetime) -> RemittancePage:
    """Apply the passage of time to the remittance."""
    if page.done_at is None or now < page.done_at:
        return page
    return msgspec.structs.replace(page, status=_S.DONE, done_at=None)


def _asked(page: RemittancePage) -> tuple[int, str, str]:
    return page.amount_kopecks, page.bank_id, page.phone_end


def _is_digits(text: str, prefix: str, least: int, most: int) -> bool:
    digits = text.removeprefix(prefix)
    return text.startswith(prefix) and digits.isascii() and digits.isdecimal() and least <= len(digits) <= most
