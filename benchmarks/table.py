"""Table of a run's results: `python -m benchmarks.table RESULTS.json [--keep docs/performance.md]`.

RESULTS.json is the output of pytest-benchmark; several files are combined. `--keep` writes the table between the page's
two markers, and a chart of it into the page's images.
"""

import argparse
import platform
from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.goals import GOALS, Goal, Result, Results

BEGIN, END = "<!-- table -->", "<!-- end of table -->"
LIBRARIES = ("litestar", "uvicorn", "uvloop", "msgspec", "sqlalchemy", "asyncpg", "redis", "aiohttp")
_LINE = 26
_NAMES, _BARS = 390, 330


def read(paths: Sequence[Path]) -> tuple[Results, dict[str, Any], str]:
    """Read the results, the machine and the day."""
    found: dict[str, Result] = {}
    machine: dict[str, Any] = {}
    day = ""
    for path in paths:
        document = msgspec.json.decode(path.read_bytes())
        machine, day = document["machine_info"], max(day, document["datetime"][:10])
        for each in document["benchmarks"]:
            name = each["fullname"].rsplit("/", 1)[-1]
            found[name] = Result(each["stats"]["median"], each["stats"]["min"], each["extra_info"])
    return Results(found), machine, day


def ratio_of(goal: Goal, results: Results, *, cpu: bool = False) -> float | None:
    """Compute the measured ratio; None if a part was not run or the peer was unavailable."""
    ratio = goal.by_cpu if cpu else goal.ratio
    try:
        return None if ratio is None else ratio(results)
    except KeyError:
        return None


def table(results: Results) -> str:
    """Format all goals as Markdown."""
    lines = ["| path | beside | goal | measured | by CPU time | |", "|---|---|---|---|---|---|"]
    for goal in GOALS:
        ratio, cpu = ratio_of(goal, results), ratio_of(goal, results, cpu=True)
        wanted = f"{'≥' if goal.at_least else '≤'} {goal.goal:g}"
        verdict = "not measured here" if ratio is None else "reached" if goal.reached(ratio) else "**short**"
        cells = [goal.path, goal.beside, wanted, _number(ratio), _number(cpu), verdict]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def chart(results: Results) -> str:
    """Draw as SVG how much of its goal each path reaches. A bar up to the line or beyond it reaches the goal."""
    rows = []
    for goal in GOALS:
        ratio = ratio_of(goal, results)
        if ratio:
            rows.append((goal, ratio / goal.goal if goal.at_least else goal.goal / ratio))
    height, full = _LINE * (len(rows) + 1), _NAMES + _BARS // 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_NAMES + _BARS + 60}" height="{height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="100%" height="{height}" fill="white"/>',
    ]
    for place, (goal, share) in enumerate(rows):
        middle = _LINE * place + _LINE // 2
        width = min(share, 2.0) * _BARS / 2
        colour = "#2f7d57" if share >= 1 else "#b5562b"
        label = escape(f"{goal.path.replace('`', '')} / {goal.beside.replace('`', '')}")
        parts += [
            f'<text x="{_NAMES - 8}" y="{middle + 4}" text-anchor="end">{label}</text>',
            f'<rect x="{_NAMES}" y="{middle - 8}" width="{width:.0f}" height="16" fill="{colour}"/>',
            f'<text x="{_NAMES + width + 6:.0f}" y="{middle + 4}">{share:.0%}</text>',
        ]
    parts += [
        f'<line x1="{full}" y1="0" x2="{full}" y2="{height - _LINE}" stroke="black" stroke-dasharray="4 3"/>',
        f'<text x="{full}" y="{height - 8}" text-anchor="middle">the goal</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def where(machine: dict[str, Any], day: str) -> str:
    """Format the machine and the versions."""
    cpu = machine.get("cpu", {})
    named = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{day}, {cpu.get('count', '?')} cores of {cpu.get('brand_raw', platform.machine())},"
        f" Python {machine.get('python_version', platform.python_version())}; {named}."
    )


def keep(page: Path, results: Results, machine: dict[str, Any], day: str) -> None:
    """Write the table and the chart into the documentation."""
    text = page.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{where(machine, day)}\n\n{table(results)}\n{END}{after}", "utf-8")
    (page.parent / "images" / "performance.svg").write_text(chart(results), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    results, machine, day = read(given.results)
    print(where(machine, day), table(results), sep="\n\n")
    if given.keep is not None:
        keep(given.keep, results, machine, day)


if __name__ == "__main__":
    main()
