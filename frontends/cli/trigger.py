"""`cambist trigger`: one test event by one command, for a merchant's developer."""

import asyncio
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from ...core.domain.shapes import nearest
from .listen import test_key, web_address
from .output import Answer, fields, give, shown
from .recipes import RECIPES
from .session import guarded, loaded_settings

if TYPE_CHECKING:
    from ...ports.clock import Ids
    from .triggering import Told


def _event(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001 - click's signature
    if value in RECIPES:
        return value
    near = nearest(value, RECIPES)
    instead = f"did you mean {near}?" if near else f"there are: {', '.join(RECIPES)}"
    raise click.BadParameter(f"{shown(value)} is no event; {instead}")


def _begun(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's signature
    """Return the events that a shell offers for the text typed so far."""
    return [name for name in RECIPES if name.startswith(incomplete)]


def _amount(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001 - click's signature
    try:
        amount = Decimal(value)
    except InvalidOperation:
        raise click.BadParameter("must be a number of roubles, such as 490 or 490.50") from None
    if not amount.is_finite() or amount != amount.quantize(Decimal("0.01")):
        raise click.BadParameter("must be a number of roubles, such as 490 or 490.50")
    return f"{amount:.2f}"


class _Trigger(click.Command):
    """Command whose help lists every event."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        kinds: dict[str, list[str]] = {}
        for name in RECIPES:
            kinds.setdefault(name.partition(".")[0], []).append(name)
        with formatter.section("Events"):
            formatter.write_dl([(kind, ", ".join(names)) for kind, names in kinds.items()])


@click.command(cls=_Trigger)
@click.argument("event", metavar="EVENT", callback=_event, shell_complete=_begun)
@click.option(
    "--amount", default="490.00", callback=_amount, metavar="RUB", help="Amount of the payment. Default: 490."
)
@click.option("--phone", default=None, help="Phone of the client, for exchanges and kyc. Default: a new one.")
@click.option("--gateway", default="simulator-test", show_default=True, help="Gateway for gateway events.")
@click.option("--api-key", envvar="CAMBIST_API_KEY", required=True, callback=test_key, help="A test key.")
@click.option(
    "--api-secret",
    envvar="CAMBIST_API_SECRET",
    required=True,
    help="The secret of the key; better set in CAMBIST_API_SECRET.",
)
@click.option(
    "--base-url",
    metavar="URL",
    envvar="CAMBIST_URL",
    callback=web_address,
    help="Address of the service, or CAMBIST_URL. Default: from the settings.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def trigger(
    event: str,
    amount: str,
    phone: str | None,
    gateway: str,
    api_key: str,
    api_secret: str,
    base_url: str | None,
    as_json: bool,
) -> None:
    """Trigger a test event by making the API calls of the merchant, the payer and the bank.

    The service sends its webhooks as usual; `cambist listen` shows them. Events that take time (subscription.charged,
    subscription.charge_exhausted, exchange.expired) move the account's test clock forward. Exit 1 when a call is
    refused, with the API's own message.
    """

    def run() -> None:
        # Imports aiohttp, which the help of all commands need not load.
        from ..app.compose import system_ids
        from .triggering import Caller, perform

        ids = system_ids()
        address = (base_url or loaded_settings().settings.base_url).rstrip("/")
        caller = Caller(base_url=address, api_key=api_key, api_secret=api_secret, ids=ids)
        given = {"amount": amount, "phone": phone or _new_phone(ids), "gateway": gateway}

        def tell(told: "Told") -> None:
            if not as_json:
                click.echo(f"{told.status}  POST {shown(told.path)}", err=True)

        known = asyncio.run(perform(caller, RECIPES[event], given, tell))
        objects = {name: value for name, value in known.items() if name not in given}
        document: dict[str, Any] = {"event": event, **objects}
        give(Answer(document=document, text=fields(document)), as_json=as_json)

    guarded(run, as_json=as_json)


def _new_phone(ids: "Ids") -> str:
    return f"+7900{int(ids.secret(4), 16) % 10_000_000:07}"
