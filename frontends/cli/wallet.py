"""`cambist wallet …`: the wallet to which clients send USDT (docs/providers/chains.md "Addresses")."""

from collections.abc import Sequence
from typing import Any

import click

from ...core.domain.money import Usdt
from ...core.usecases.operators.wallet import MOST, compare_wallet, list_wallet, skip_wallet
from .groups import group
from .output import Answer, fields, give, table
from .session import REFUSED, answering, guarded, reasoned, run_in_app

_LAST = (1 << 31) - 1
_SAME = {True: "the same", False: "ANOTHER", None: "compare it with what the wallet shows"}


@group()
def wallet() -> None:
    """Check and list the addresses of the wallet to which clients send USDT."""


@wallet.command("check")
@click.argument("addresses", nargs=-1, metavar="[ADDRESS]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(*, addresses: Sequence[str], as_json: bool) -> None:
    """Compare the first addresses with ADDRESS..., as the wallet shows them from number 0 on.

    Without arguments, print the first addresses for a manual comparison. Exit 1 when an address differs: USDT sent
    there would be lost.
    """
    if len(addresses) > MOST:
        raise click.UsageError(f"at most {MOST} addresses")
    compared = guarded(lambda: run_in_app(lambda ports: compare_wallet(ports, addresses)), as_json=as_json)
    rows = [{"number": each.number, "address": each.address, "is_same": each.is_same} for each in compared]
    text = table(("number", "address", ""), [[each.number, each.address, _SAME[each.is_same]] for each in compared])
    give(Answer(document={"data": rows}, text=text), as_json=as_json)
    if any(each.is_same is False for each in compared):
        raise click.exceptions.Exit(REFUSED)


@wallet.command("addresses")
@click.option(
    "--first", default=0, type=click.IntRange(0, _LAST - MOST), show_default=True, help="Number of the first address."
)
@click.option("--most", default=20, type=click.IntRange(1, MOST), show_default=True, help="Number of addresses.")
@answering
def addresses(first: int, most: int) -> Answer:
    """List addresses by number, whether each was given out, and the amount received."""
    rows: list[dict[str, Any]] = [
        {
            "number": each.number,
            "address": each.address,
            "given_out": each.is_given,
            "received_usdt": str(Usdt(each.units)),
        }
        for each in run_in_app(lambda ports: list_wallet(ports, first, most))
    ]
    titles = ("number", "address", "given_out", "received_usdt")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@wallet.command("skip")
@click.argument("number", type=click.IntRange(1, _LAST))
@answering
@reasoned
def skip(number: int) -> Answer:
    """Skip all unused addresses below NUMBER from now on.

    Use it for a database that was restored from a backup: it lacks the addresses given to clients since then.
    """
    document = {"next_number": run_in_app(lambda ports: skip_wallet(ports, number))}
    return Answer(document=document, text=fields(document))
