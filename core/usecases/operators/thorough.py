"""Slow checks of the doctor, which read everything (docs/operations.md)."""

from collections.abc import Awaitable, Callable, Mapping

from ....ports.bundle import Ports
from ....ports.unreadable import SettingAside
from ..ledger.check import verify_ledger
from ..sandbox.data import FORGOTTEN, STAYS
from .doctor import Progress, listed, of_rows
from .findings import Finding, failed, ok, warning
from .reencrypt import inspect_keys


async def read_everything(ports: Ports, progress: Progress) -> Finding:
    """Read every row of every table. The time grows with the number of rows."""
    for record in (*(kind.record for kind in FORGOTTEN), *STAYS):
        seen = 0
        async for batch in ports.storage.scan(record, readable=True):
            seen += len(batch)
            progress(f"{seen} of {record.__name__}")
    return of_rows(await ports.storage.count_noted() if isinstance(ports.storage, SettingAside) else 0)


async def verify_whole_ledger(ports: Ports, progress: Progress) -> Finding:
    """Run the check of `cambist ledger verify`. The time grows with the number of entries."""
    report = await verify_ledger(ports, progress=lambda count: progress(f"{count} entries of the ledger"))
    if report.holds:
        return ok(f"all {report.entries} entries and every balance hold")
    return failed("the books do not hold", "run `cambist ledger verify`, which names what differs, and stop payouts")


async def open_everything(ports: Ports, progress: Progress) -> Finding:
    """Run the check of `cambist vault status`. The time grows with the number of records."""
    report = await inspect_keys(ports, progress=lambda kind, seen, _: progress(f"{seen} of {kind}"))
    count = sum(report.in_use.values())
    if report.unopened_count:
        return failed(f"{report.unopened_count} of {count} sealed values do not open", "see `cambist vault status`")
    if report.old_in_use:
        return warning(
            f"all {count} sealed values open, some by older keys ({listed(report.old_in_use)})",
            "run `cambist vault reencrypt`",
        )
    return ok(f"all {count} sealed values open, by key {report.current}")


THOROUGH: Mapping[str, Callable[[Ports, Progress], Awaitable[Finding]]] = {
    "ledger": verify_whole_ledger,
    "vault": open_everything,
    "rows": read_everything,
}
"""Thorough checks, which replace the quick checks of the same names."""
