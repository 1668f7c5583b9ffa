"""`cambist console`: terminal UI for operators. Textual is imported only when the command runs."""

import os

import click

from ..settings.operator import Names, operator_name
from .session import guarded, loaded_settings


@click.command()
@click.option("--demo", "is_demo", is_flag=True, help="Run on a demo service in memory.")
@click.option("--operator", help="Your name in the audit log. Default: CAMBIST_OPERATOR, else your login.")
def console(*, is_demo: bool, operator: str | None) -> None:
    """Open the operators' terminal UI.

    It works on the service's own database, and may run beside the service in several terminals at once. Keys are listed
    at the bottom; press ? for help.
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
