"""How reconciliation does, in reads that cost the same however much was compared: for monitors."""

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
"""Rows of a bank that are looked through, the latest days first: each owner of credentials has one a day."""


class ReconciliationSigns(msgspec.Struct, frozen=True, kw_only=True):
    """How the comparisons with a bank do."""

    bank: str
    compared_at: datetime | None
    """When one was last brought to its end, of the latest days."""
    differences: dict[Difference, int]
    """Those that are open."""


async def reconciliation_signs(ports: Ports) -> tuple[ReconciliationSigns, ...]:
    """Of each bank of live mode that gives a list."""
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
    """How many comparisons could not be brought to their end, and wait for a bank or an operator."""
    async with ports.storage.unit() as unit:
        return await unit[Reconciliation].total(status=ReconciliationStatus.FAILED)
