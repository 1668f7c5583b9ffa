"""`cambist movements`: what moved a merchant's balance."""

from typing import Any

import click

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso
from ...core.domain.movements import MOVEMENT_KINDS, Balance, Movement, ObjectType
from ...core.usecases.ledger.movements import MovementFilter, movements_of
from .output import Answer, table
from .session import answering, in_house

MOST = 1000
"""Movements that are shown."""

_TITLES = ("number", "created_at", "kind", "available_usdt", "reserved_usdt", "pending_rub", "object_id")


@click.command("movements")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--mode", type=click.Choice([each.value for each in Mode]), default=Mode.LIVE.value, show_default=True)
@click.option("--kind", type=click.Choice([each.value for each in MOVEMENT_KINDS]), help="Of this kind only.")
@click.option("--object-type", type=click.Choice([each.value for each in ObjectType]), help="By such objects only.")
@click.option("--object-id", metavar="ID", help="By this object only.")
@click.option("--balance", type=click.Choice([each.value for each in Balance]), help="What changed this part only.")
@click.option("--from", "since", metavar="MOMENT", help="From this moment on.")
@click.option("--to", "until", metavar="MOMENT", help="Until before this moment.")
@answering
def movements(account_id: str, mode: str, since: str | None, until: str | None, **asked: str | None) -> Answer:
    """Every change of an account's balance, with what caused it and the balance after it, newest first; 1000 at most.

    Movements that nobody has read yet are listed on the way. The merchant reads the same by GET /balance/movements,
    which also has rates, and all of them as CSV.
    """
    wanted = MovementFilter(created_from=since, created_to=until, **asked)
    found = in_house(lambda ports: movements_of(ports, account_id, Mode(mode), wanted, MOST))
    rows = [_document(each) for each in found]
    return Answer(document={"data": rows}, text=table(_TITLES, [[row[title] for title in _TITLES] for row in rows]))


def _document(each: Movement) -> dict[str, Any]:
    return {
        "number": each.number,
        "kind": each.kind.value,
        "object_type": each.object_type.value,
        "object_id": each.object_id,
        "available_usdt": str(each.available),
        "reserved_usdt": str(each.reserved),
        "pending_rub": str(each.pending),
        "balance_available_usdt": str(each.available_after),
        "balance_reserved_usdt": str(each.reserved_after),
        "balance_pending_rub": str(each.pending_after),
        "created_at": iso(each.at),
    }
