"""`cambist doctor`: checks of an installation, with remedies."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from ...core.usecases.operators.findings import Finding, Level
from .output import printed, shown
from .session import REFUSED, guarded

_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.FAILED: "red"}


@click.command()
@click.option(
    "--full",
    is_flag=True,
    help="Read every page of the database, verify the whole ledger and decrypt every value. It may take long.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def doctor(*, full: bool, as_json: bool) -> None:
    """Check the installation for problems and print a remedy for each.

    It changes nothing and may run beside the working service, preferably as the service's user. Exit 0 when no check
    failed; warnings do not count.
    """
    told: list[tuple[str, Finding]] = []

    def run() -> None:
        from .examine import examine

        for name, finding in examine(full=full):
            told.append((name, finding))
            if not as_json:
                click.echo(_line(name, finding))

    guarded(run, as_json=as_json)
    counts = {level: sum(finding.level is level for _, finding in told) for level in Level}
    if as_json:
        click.echo(printed(_document(told, counts)))
    else:
        click.echo(f"\n{', '.join(f'{count} {level}' for level, count in counts.items())}")
    if counts[Level.FAILED]:
        raise click.exceptions.Exit(REFUSED)


def _line(name: str, finding: Finding) -> str:
    remedy = "" if finding.remedy is None else f"\n{'':21}-> {shown(finding.remedy)}"
    level = click.style(f"{finding.level:<8}", fg=_COLOURS[finding.level])
    return f"{level} {name:<11} {shown(finding.message)}{remedy}"


def _document(told: Sequence[tuple[str, Finding]], counts: Mapping[Level, int]) -> dict[str, Any]:
    return {
        "status": Level.FAILED if counts[Level.FAILED] else Level.WARNING if counts[Level.WARNING] else Level.OK,
        "checks": [
            {"name": name, "level": each.level, "message": each.message, "remedy": each.remedy} for name, each in told
        ],
    }
