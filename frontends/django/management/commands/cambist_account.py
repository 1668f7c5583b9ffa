"""Creates the account of an embedded service, or prints its id."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from .....ports.faults import Fault
from .....ports.vault import VaultError
from ... import conf
from ...gateway import service


class Command(BaseCommand):
    """Print the id of the account with this name; create it first if there is none."""

    help = "Print the id of the embedded service's account with this name, and create it if it is missing"
    requires_system_checks = ()  # it gives the value that the checks ask for

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the account's name."""
        parser.add_argument("name")

    def handle(self, *_: Any, **options: Any) -> None:
        """Print the id, for `CAMBIST["ACCOUNT"]`."""
        if "DATABASE" not in conf.read():
            raise CommandError("the service is not embedded: create the account there by `cambist account create`")
        try:
            self.stdout.write(service().account(options["name"], create=True, refunds=True))
        except (Fault, VaultError) as fault:
            raise CommandError(str(fault)) from fault
