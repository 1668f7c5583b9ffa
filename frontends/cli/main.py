"""Entry point of `cambist`. Each subject is a separate module, loaded when it is called."""

import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from io import TextIOWrapper

import click

from .groups import Group
from .output import colours
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
        "user": "users",
        "cell": "cells",
    },
    "Money": {
        "payment": "payments",
        "link": "links",
        "refund": "refunds",
        "receipt": "receipts",
        "exchange": "exchanges",
        "settle": "settlement",
        "payout": "payouts",
        "wallet": "wallet",
        "movements": "movements",
        "report": "reports",
        "ledger": "ledger",
        "reconcile": "reconciliation",
        "difference": "reconciliation",
        "bank": "banks",
        "action": "actions",
        "operation": "operations",
        "operator": "operators",
    },
    "Care": {
        "doctor": "doctor",
        "alarm": "alarms",
        "gateway": "gateways",
        "provider": "providers",
        "notification": "notifications",
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
        "mcp": "mcp",
        "openapi": "openapi",
        "version": "version",
    },
}
"""Commands by audience, each with the module that defines it under the same name."""

COMMANDS: Mapping[str, str] = {name: module for each in HEADINGS.values() for name, module in each.items()}


class Cambist(Group):
    """Group that imports a subject's module only when it is named."""

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
@click.option("--config", metavar="FILE", help="Settings file. Default: ./cambist.toml.")
@click.option("--data-dir", metavar="FOLDER", help="Data folder. Default: ./cambist-data.")
@click.version_option(package_name="cambist", prog_name="cambist")
def cli(config: str | None, data_dir: str | None) -> None:  # noqa: ARG001 - session.py reads them from the context
    """Run and operate cambist, a payment service for merchants.

    Settings come from CAMBIST_* variables and cambist.toml: see `cambist config check`.
    """
    click.get_current_context().color = colours(os.environ)


def main() -> None:
    """Run the command line and exit: 0 done, 1 refused, 2 wrong usage, 3 waits for a confirmation, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # An 8-bit terminal lacks most letters: escape them.
            stream.reconfigure(errors="backslashreplace")
    try:
        status = cli.main(prog_name="cambist", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)
