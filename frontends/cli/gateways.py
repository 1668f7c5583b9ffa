"""`cambist gateway …`: payment gateways and their status."""

from typing import Any

import click

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso_or_none
from ...core.domain.gateways.gateways import BY_HAND, GatewayStatus
from ...core.usecases.gateways import announcements
from ...core.usecases.gateways import gateways as usecases
from ...core.usecases.gateways.gateways import ShownGateway
from ...core.usecases.gateways.members import members_of
from ...ports.bundle import Ports
from ...ports.members import MemberBank
from .groups import group
from .output import Answer, fields, table
from .session import answering, run_in_app


@group()
def gateway() -> None:
    """Show the payment gateways and set their status."""


def gateway_document(shown: ShownGateway) -> dict[str, Any]:
    """Return a gateway as the command line shows it."""
    return {
        "gateway_id": shown.gateway_id,
        "mode": shown.mode.value,
        "payment_method": shown.payment_method,
        "status": shown.status.value,
        "reason": None if shown.reason is None else shown.reason.value,
        "since": iso_or_none(shown.since),
    }


@gateway.command("list")
@click.option("--mode", type=click.Choice([each.value for each in Mode]), help="Only of this mode.")
@answering
def list_all(mode: str | None) -> Answer:
    """List all gateways in the order in which payments try them."""

    async def work(ports: Ports) -> list[ShownGateway]:
        modes = [*Mode] if mode is None else [Mode(mode)]
        return [shown for each in modes for shown in await usecases.list_gateways(ports, each)]

    rows = [gateway_document(shown) for shown in run_in_app(work)]
    titles = ("gateway_id", "mode", "payment_method", "status", "reason", "since")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@gateway.command("banks")
@click.argument("gateway_id", metavar="ID")
@answering
def list_banks(gateway_id: str) -> Answer:
    """List the banks to which a gateway can pay, for `client_bank_id` of exchanges.

    The list is the latest answer of the gateway's bank. Without an answer so far, the worker requests one now.
    """

    async def work(ports: Ports) -> tuple[MemberBank, ...] | None:
        announcements.mode_of(ports, gateway_id)
        found = await members_of(ports, ports.banks.named(gateway_id))
        return None if found is None else found.banks

    banks = run_in_app(work)
    titles = ("id", "name", "bic")
    rows = [{title: getattr(bank, title) for title in titles} for bank in banks or ()]
    text = table(titles, [[row[title] for title in titles] for row in rows])
    return Answer(document={"data": rows}, text="Not known (yet)." if banks is None else text)


@gateway.command("set")
@click.argument("gateway_id", metavar="ID")
@click.argument("status", type=click.Choice([each.value for each in GatewayStatus]))
@click.option(
    "--reason",
    type=click.Choice([each.value for each in BY_HAND]),
    help="Reason of a status other than operational. Default: operator.",
)
@answering
def set_status(gateway_id: str, status: str, reason: str | None) -> Answer:
    """Set the status of a gateway.

    Merchants are notified when the status has lasted for a minute. A gateway that is down gets no new payments from now
    on.
    """
    why = None if reason is None else usecases.read_reason(reason)
    document = gateway_document(
        run_in_app(lambda ports: usecases.set_gateway(ports, gateway_id, usecases.read_status(status), why))
    )
    return Answer(document=document, text=fields(document))
