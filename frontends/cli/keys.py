"""`cambist key …`"""

from datetime import timedelta

import click

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso
from ...core.usecases.accounts import accounts as usecases
from .arguments import Duration
from .groups import group
from .output import Answer, fields, table
from .session import answering, in_house, reasoned


@group()
def key() -> None:
    """API keys."""


@key.command("rotate")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--mode", type=click.Choice([mode.value for mode in Mode]), required=True)
@click.option(
    "--overlap", type=Duration(), help="How long the old pair still works (24h); without it, it ends at once."
)
@answering
@reasoned
def rotate(account_id: str, mode: str, overlap: timedelta | None) -> Answer:
    """A new key pair. The secret is shown this once."""
    made = in_house(lambda ports: usecases.rotate_key(ports, account_id, Mode(mode), overlap))
    replaced = [{"api_key": old.api_key, "ends_at": iso(old.ends_at)} for old in made.replaced]
    head = fields({"mode": mode, "X-Api-Key": made.pair.api_key, "X-Api-Secret": made.pair.api_secret})
    ended = table(("replaced", "ends"), [(old["api_key"], old["ends_at"]) for old in replaced])
    return Answer(
        document={
            "account_id": account_id,
            "mode": mode,
            "api_key": made.pair.api_key,
            "api_secret": made.pair.api_secret,
            "replaced": replaced,
        },
        text=f"{head}\n\n{ended}\n\nKeep the secret: it cannot be shown again.",
    )
