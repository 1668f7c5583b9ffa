"""Nightly reconciliation: compare every settled payment of the statements with your own paid orders.

    CAMBIST_API_KEY=… CAMBIST_API_SECRET=… python examples/reconcile.py https://pay.example orders.csv

`orders.csv` has the columns `order`, `payment_id` and `amount_rub`. Exit status 1 means that something differs.
"""

import csv
import os
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from io import StringIO
from pathlib import Path

from cambist.client import Client


def settled(client: Client, newest: int = 31) -> dict[str, Decimal]:
    """Sum each payment's lines in the newest statements, so that a refund reduces the sum."""
    sums: dict[str, Decimal] = {}
    for statement in client.settlements.list(per_page=newest).data:
        if statement.completed_at is None:
            continue  # it is read tomorrow
        for line in csv.DictReader(StringIO(client.settlements.csv(statement.id))):
            payment = line["payment_id"]
            sums[payment] = sums.get(payment, Decimal(0)) + Decimal(line["amount_rub"])
    return sums


def differences(orders: Iterable[Mapping[str, str]], sums: Mapping[str, Decimal]) -> list[str]:
    """Return one line per difference. Nothing is corrected automatically."""
    found = []
    left = dict(sums)
    for order in orders:
        amount = left.pop(order["payment_id"], None)
        if amount is None:
            found.append(f"{order['order']}: not settled yet")
        elif amount != Decimal(order["amount_rub"]):
            found.append(f"{order['order']}: settled {amount}, expected {order['amount_rub']}")
    found += [f"{payment}: settled {amount}, and no order has it" for payment, amount in left.items()]
    return found


def main(base_url: str, orders: Path) -> int:
    client = Client(base_url, os.environ["CAMBIST_API_KEY"], os.environ["CAMBIST_API_SECRET"])
    with client, orders.open(encoding="utf-8", newline="") as file:
        lines = differences(csv.DictReader(file), settled(client))
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
