"""`cambist movements`: changes of a merchant's balance."""

from collections.abc import Sequence
from typing import Any

import click

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso
from ...core.domain.movements import MOVEMENT_KINDS, Balance, Movement, ObjectType
from ...core.usecases.ledger.conversions import Conversion, conversions_of
from ...core.usecases.ledger.movements import MovementFilter, every_movement_of, movements_of
from ...ports.bundle import Ports
from .output import Answer, CsvText, csv_option, table
from .session import answering, run_in_app

MOST = 1000
"""Largest number of movements shown."""

_TITLES = ("number", "created_at", "kind", "available_usdt", "reserved_usdt", "pending_rub", "object_id")


@click.command("movements")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--mode", type=click.Choice([each.value for each in Mode]), default=Mode.LIVE.value, show_default=True)
@click.option("--kind", type=click.Choice([each.value for each in MOVEMENT_KINDS]), help="Only of this kind.")
@click.option(
    "--object-type", type=click.Choice([each.value for each in ObjectType]), help="Only caused by objects of this type."
)
@click.option("--object-id", metavar="ID", help="Only caused by this object.")
@click.option("--balance", type=click.Choice([each.value for each in Balance]), help="Only changes of this part.")
@click.option("--from", "since", metavar="MOMENT", help="From this time on.")
@click.option("--to", "until", metavar="MOMENT", help="Before this time.")
@csv_option
@answering
def movements(
    account_id: str, mode: str, since: str | None, until: str | None, *, as_csv: bool, **asked: str | None
) -> Answer:
    """List every change of an account's balance, newest first; at most 1000.

    Each change is shown with its cause and the balance after it. With --csv all changes are printed, oldest first.
    Merchants get the same list from GET /balance/movements.
    """
    wanted = MovementFilter(created_from=since, created_to=until, **asked)

    async def listed(ports: Ports) -> list[dict[str, Any]]:
        return await _documents(ports, await movements_of(ports, account_id, Mode(mode), wanted, MOST))

    async def written(ports: Ports) -> CsvText:
        text = CsvText()
        async for batch in await every_movement_of(ports, account_id, Mode(mode), wanted):
            text.add(await _documents(ports, batch))
        return text

    if as_csv:
        return run_in_app(written).answer()
    rows = run_in_app(listed)
    return Answer(document={"data": rows}, text=table(_TITLES, [[row[title] for title in _TITLES] for row in rows]))


async def _documents(ports: Ports, movements: Sequence[Movement]) -> list[dict[str, Any]]:
    found = await conversions_of(ports, movements)
    return [_document(each, found.get(each.number)) for each in movements]


def _document(each: Movement, conversion: Conversion | None) -> dict[str, Any]:
    return {
        "id": each.entry_id,
        "number": each.number,
        "kind": each.kind.value,
        "object_type": each.object_type.value,
        "object_id": each.object_id,
        "available_usdt": str(each.available),
        "reserved_usdt": str(each.reserved),
        "pending_rub": str(each.pending),
        "converted_rub": None if conversion is None else str(conversion.amount),
        "rate": None if conversion is None else conversion.rate,
        "settlement_id": None if conversion is None else conversion.settlement_id,
        "balance_available_usdt": str(each.available_after),
        "balance_reserved_usdt": str(each.reserved_after),
        "balance_pending_rub": str(each.pending_after),
        "created_at": iso(each.at),
    }
