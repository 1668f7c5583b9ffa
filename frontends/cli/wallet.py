"""`cambist wallet …`: the wallet that clients send USDT to (docs/providers/chains.md "Addresses")."""

from collections.abc import Sequence
from typing import Any

import click

from ...core.domain.money import Usdt
from ...core.usecases.operators.wallet import MOST, compare_wallet, list_wallet, skip_wallet
from .groups import group
from .output import Answer, fields, give, table
from .session import REFUSED, answering, guarded, in_house, reasoned

_LAST = (1 << 31) - 1
_SAME = {True: "the same", False: "ANOTHER", None: "compare it with what the wallet shows"}


@group()
def wallet() -> None:
    """The wallet that clients send USDT to: whose addresses does the service give out?"""


@wallet.command("check")
@click.argument("addresses", nargs=-1, metavar="[ADDRESS]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(*, addresses: Sequence[str], as_json: bool) -> None:
    """Compare the first addresses with ADDRESS..., which the wallet shows from number 0 on.

    Without any, print the first ones, to be compared by eye. Exit 1 when one is another: what clients send there would
    be nobody's.
    """
    if len(addresses) > MOST:
        raise click.UsageError(f"at most {MOST} addresses")
    compared = guarded(lambda: in_house(lambda ports: compare_wallet(ports, addresses)), as_json=as_json)
    rows = [{"number": each.number, "address": each.address, "is_same": each.is_same} for each in compared]
    text = table(("number", "address", ""), [[each.number, each.address, _SAME[each.is_same]] for each in compared])
    give(Answer(document={"data": rows}, text=text), as_json=as_json)
    if any(each.is_same is False for each in compared):
        raise click.exceptions.Exit(REFUSED)


@wallet.command("addresses")
@click.option("--first", default=0, type=click.IntRange(0, _LAST - MOST), show_default=True, help="The number of one.")
@click.option("--most", default=20, type=click.IntRange(1, MOST), show_default=True, help="How many.")
@answering
def addresses(first: int, most: int) -> Answer:
    """Addresses by their numbers, whether each was given out, and what came to it."""
    rows: list[dict[str, Any]] = [
        {
            "number": each.number,
            "address": each.address,
            "given_out": each.is_given,
            "received_usdt": str(Usdt(each.units)),
        }
        for each in in_house(lambda ports: list_wallet(ports, first, most))
    ]
    titles = ("number", "address", "given_out", "received_usdt")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@wallet.command("skip")
@click.argument("number", type=click.IntRange(1, _LAST))
@answering
@reasoned
def skip(number: int) -> Answer:
    """Give the addresses below NUMBER to nobody any more, as far as they are free.

    For a database that was restored from a backup: it has forgotten which addresses clients were told since.
    """
    document = {"next_number": in_house(lambda ports: skip_wallet(ports, number))}
    return Answer(document=document, text=fields(document))
