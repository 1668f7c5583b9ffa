"""`cambist console`: the operators' terminal. Textual is imported only here, when it is called for."""

import os

import click

from ..operator import Names, operator_name
from .session import guarded, loaded_settings


@click.command()
@click.option("--demo", "is_demo", is_flag=True, help="A living service in memory, to look at; it is gone afterwards.")
@click.option("--operator", help="Your name in the audit log; without: CAMBIST_OPERATOR, else your login.")
def console(*, is_demo: bool, operator: str | None) -> None:
    """What needs a person, and what a person can do, on the service's own database.

    It may run beside the service, in as many terminals as there are operators. Keys are at the bottom; ? explains.
    """

    def run() -> None:
        settings = loaded_settings().settings
        if operator is not None and settings.operator_names != Names.GIVEN and not is_demo:
            raise click.UsageError(f"operators are named by their {settings.operator_names} here (operator_names)")
        try:
            from ..console.run import run as run_console
            from ..console.run import run_demo
        except ModuleNotFoundError as missing:
            if missing.name is None or not missing.name.startswith("textual"):
                raise
            raise click.ClickException("the console needs Textual: pip install 'cambist[server]'") from None
        if is_demo:
            run_demo(operator or operator_name(os.environ))
        else:
            run_console(settings, operator)

    guarded(run)
