"""State of reconciliation for monitors, in reads whose cost does not grow with the number of comparisons."""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.reporting import ReportingBank
from ....ports.storage import Between
from ...domain.accounts.accounts import Mode
from ...domain.reconciliation.comparing import Difference
from ...domain.reconciliation.reconciliation import Discrepancy, Reconciliation, ReconciliationStatus

_COMPARED = (ReconciliationStatus.AGREED, ReconciliationStatus.DIFFERENT)
_LATEST = 100
"""Rows read per bank, latest days first; each owner of credentials has one row per day."""


class ReconciliationSigns(msgspec.Struct, frozen=True, kw_only=True):
    """State of the comparisons with a bank."""

    bank: str
    compared_at: datetime | None
    """When a comparison of the latest days was last completed."""
    differences: dict[Difference, int]
    """Number of open differences."""


async def reconciliation_signs(ports: Ports) -> tuple[ReconciliationSigns, ...]:
    """Return the state for each bank of live mode that gives a list."""
    signs = []
    async with ports.storage.unit() as unit:
        for bank in ports.banks.of_mode(Mode.LIVE):
            if not isinstance(bank, ReportingBank):
                continue
            rows = await unit[Reconciliation].find(
                id=Between(f"{bank.name}:", f"{bank.name};"), order="-id", limit=_LATEST, readable=True
            )
            ended = [row.finished_at for row in rows if row.status in _COMPARED and row.finished_at is not None]
            differences = {
                each: await unit[Discrepancy].total(closed_at=None, bank=bank.name, difference=each)
                for each in Difference
            }
            signs.append(
                ReconciliationSigns(bank=bank.name, compared_at=max(ended, default=None), differences=differences)
            )
    return tuple(signs)


async def days_not_compared(ports: Ports) -> int:
    """Return how many comparisons failed, and wait for a bank or an operator."""
    async with ports.storage.unit() as unit:
        return await unit[Reconciliation].total(status=ReconciliationStatus.FAILED)
