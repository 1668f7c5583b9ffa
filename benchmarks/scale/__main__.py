"""Plants databases of several sizes, and prints what each operation costs in them: `nox -s scale -- 10000 1000000`.

Each size gets a Postgres server of its own. A million payments need some 6 GB of disk and ten minutes.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.scale.measure import Cost, measure, sizes
from benchmarks.scale.plant import plant
from cambist.adapters.storage.migrate import migrate
from tests.servers import own_postgres

_DAYS = 150


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("sizes", metavar="PAYMENTS", type=int, nargs="*", default=[10_000, 200_000])
    parser.add_argument("--merchants", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where the servers keep their data; default: the temporary folder")
    options = parser.parse_args()
    if options.folder is not None:
        os.environ["TMPDIR"] = str(options.folder)
    costs, disks = {}, {}
    for size in options.sizes:
        with own_postgres() as server:
            costs[size], disks[size] = asyncio.run(_one(server.url, size, options.merchants))
    print(*table(costs), "", *disk(disks), sep="\n")


async def _one(url: str, payments: int, merchants: int) -> tuple[dict[str, Cost], dict[str, float]]:
    def tell(text: str) -> None:
        print(f"{payments}: {text}", file=sys.stderr)

    await migrate(url)
    planted = await plant(url, payments, merchants=merchants, days=_DAYS, progress=tell)
    tell("measuring")
    return await measure(url, planted), await sizes(url, payments)


def table(costs: dict[int, dict[str, Cost]]) -> Iterable[str]:
    """Yield the rows of a Markdown table: pages, bytes of log and CPU at each size."""
    titles = [f"{title}, {size:,}" for title in ("pages", "log, bytes", "CPU, ms") for size in costs]
    yield " | ".join(("| operation", *titles)) + " |"
    yield "|---" * (1 + len(titles)) + "|"
    first = next(iter(costs.values()))
    for name in first:
        found = [each[name] for each in costs.values()]
        cells = [
            *(f"{cost.pages:.0f}" for cost in found),
            *(f"{cost.wal:.0f}" for cost in found),
            *(f"{cost.cpu_ms:.2f}" for cost in found),
        ]
        yield " | ".join((f"| {name}", *cells)) + " |"


def disk(disks: dict[int, dict[str, float]]) -> Iterable[str]:
    """Yield the rows of a table of bytes on disk for each payment."""
    yield " | ".join(("| bytes on disk a payment", *(f"{size:,}" for size in disks))) + " |"
    yield "|---" * (1 + len(disks)) + "|"
    yield " | ".join(("| all tables", *(f"{sum(each.values()):.0f}" for each in disks.values()))) + " |"
    largest = list(next(reversed(disks.values())))[:10]
    for name in largest:
        yield " | ".join((f"| {name}", *(f"{each[name]:.0f}" for each in disks.values()))) + " |"


if __name__ == "__main__":
    main()
