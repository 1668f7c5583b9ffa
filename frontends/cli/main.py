"""`cambist`: the entry point. Each subject is a module of its own, loaded when it is called for."""

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from io import TextIOWrapper

import click

from .groups import Group
from .session import INTERRUPTED

HEADINGS: Mapping[str, Mapping[str, str]] = {
    "Run": {
        "serve": "service",
        "api": "service",
        "worker": "service",
        "migrate": "service",
        "config": "config",
        "console": "console",
    },
    "Merchants": {
        "account": "accounts",
        "shop": "shops",
        "terminal": "terminals",
        "key": "keys",
        "client": "clients",
    },
    "Money": {
        "payment": "payments",
        "refund": "refunds",
        "exchange": "exchanges",
        "settle": "settlement",
        "payout": "payouts",
        "wallet": "wallet",
        "movements": "movements",
        "ledger": "ledger",
        "reconcile": "reconciliation",
        "difference": "reconciliation",
        "act": "acts",
        "operation": "operations",
        "operator": "operators",
    },
    "Care": {
        "doctor": "doctor",
        "alarm": "alarms",
        "gateway": "gateways",
        "provider": "providers",
        "notice": "notices",
        "event": "events",
        "logs": "logs",
        "vault": "vault",
        "backup": "backup",
        "restore": "restore",
        "hold": "hold",
        "resume": "hold",
        "unreadable": "unreadable",
    },
    "Develop": {
        "demo": "service",
        "trigger": "trigger",
        "listen": "listen",
        "openapi": "openapi",
    },
}
"""The commands by whom they are for, each with the module of this room that holds it under its own name."""

COMMANDS: Mapping[str, str] = {name: module for each in HEADINGS.values() for name, module in each.items()}


class Cambist(Group):
    """A group that imports a subject only when it is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def headings(self) -> Mapping[str, Iterable[str]]:
        return HEADINGS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command = getattr(import_module(f".{module}", __package__), cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is no command")
        return command


@click.group(cls=Cambist, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", metavar="FILE", help="The settings file, instead of ./cambist.toml.")
@click.option("--data-dir", metavar="FOLDER", help="The data folder, instead of ./cambist-data.")
@click.version_option(package_name="cambist", prog_name="cambist")
def cli(config: str | None, data_dir: str | None) -> None:
    """A merchant's payment service: accept, refund, settle, notify.

    Settings come from CAMBIST_* variables and cambist.toml: see `cambist config check`.
    """
    # Both options are read from the context, by session.py.


def main() -> None:
    """Run the command line and exit: 0 done, 1 refused, 2 wrong usage, 3 waits for a confirmation, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal of 8 bits has no sign for most letters: what it cannot show is escaped.
            stream.reconfigure(errors="backslashreplace")
    try:
        status = cli.main(prog_name="cambist", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)
