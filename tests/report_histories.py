"""Random histories of a merchant, and an independent recomputation of the registers: `python -m tests.report_histories
--histories 10000` (`nox -s reports`). It reads journal entries, payments and lines of settlements, and no movement."""

import argparse
import asyncio
import csv
import io
import random
from collections.abc import Mapping
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from cambist.core.domain.days import MOSCOW
from cambist.core.domain.ledger import BalanceType, JournalEntry
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.domain.settlement.settlement import Settlement, SettlementItem
from cambist.core.domain.settlement.withdrawals import Withdrawal
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from tests.apps import open_test_app
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.refund_app import RefundApp

SHOWN = {"pending": ("pending_rub", 2), "available": ("available_usdt", 8), "reserved": ("reserved_usdt", 8)}


async def lived(seed: int) -> list[str]:
    """Live one history, and return the differences between its registers and its journal."""
    drawn = random.Random(seed)
    async with open_test_app() as opened:
        app = RefundApp(opened)
        await app.set(refunds="true", payout_wallet=WALLET)
        await start_recurring_jobs(opened.ports)
        payments: list[str] = []
        for _ in range(drawn.randint(3, 12)):
            step = drawn.choice(("pay", "pay", "pay", "refund", "settle", "night"))
            if step == "pay":
                amount = f"{drawn.randint(30, 9000)}.{drawn.randint(0, 99):02}"
                payments.append(await app.paid(amount, external_id=drawn.choice(("order 1", "=1+1", "a;b", 'q"q'))))
            elif step == "refund" and payments:
                await app.post({"payment_id": drawn.choice(payments), "amount_rub": f"{drawn.randint(1, 30)}.07"})
            elif step == "settle":
                await app.action("/sandbox/settlements")
            else:
                await opened.work(drawn.choice((3600, 20 * 3600, 60 * 3600)))
            await opened.work(drawn.choice((1, 30, 600)))
        await opened.work(30 * 3600)
        return await differences(opened)


async def differences(opened: Any) -> list[str]:
    """Compare every day's register with the journal, row by row and sum by sum."""
    found: list[str] = []
    facts = await _facts(opened.ports)
    reports = (await opened.get("/reports?kind=day&per_page=100")).json()["data"][::-1]
    day = None
    balance = dict.fromkeys(SHOWN, Fraction(0))
    number = 0
    for report in reports:
        this = date.fromisoformat(report["first_day"])
        if day is not None and this != day + timedelta(days=1):
            found.append(f"{this} follows {day}")
        day = this
        text = (await opened.get(f"/reports/{report['id']}/file")).text
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        sums: dict[str, Fraction] = {}
        found += _same(f"{this} opening", report["opening"], balance)
        for row in rows:
            number += 1
            wanted = facts[row["entry_id"]]
            for part, (name, _) in SHOWN.items():
                balance[part] += wanted[part]
                sums[f"{row['kind']} {name}"] = sums.get(f"{row['kind']} {name}", Fraction(0)) + wanted[part]
                if Fraction(row[name]) != wanted[part] or Fraction(row[f"balance_{name}"]) != balance[part]:
                    found.append(f"{row['entry_id']}: {name} {row[name]}, not {wanted[part]}")
            for name in ("amount_rub", "fee_usdt", "fee_rub"):
                sums[f"{row['kind']} {name}"] = sums.get(f"{row['kind']} {name}", Fraction(0)) + wanted[name]
                if Fraction(row[name] or 0) != wanted[name]:
                    found.append(f"{row['entry_id']}: {name} {row[name]}, not {wanted[name]}")
            if int(row["number"]) != number or wanted["day"] != this:
                found.append(f"{row['entry_id']}: {row['number']} of {wanted['day']} is on {this} as {number}")
            for name in ("external_id", "tx_hash", "sbp_operation_id"):
                if row[name].lstrip("'") != (wanted.get(name) or ""):
                    found.append(f"{row['entry_id']}: {name} {row[name]}, not {wanted.get(name)}")
        found += _same(f"{this} closing", report["closing"], balance)
        for total in report["totals"]:
            for name in (*(each for each, _ in SHOWN.values()), "amount_rub", "fee_usdt", "fee_rub"):
                if Fraction(total[name]) != sums[f"{total['kind']} {name}"]:
                    found.append(f"{this}: total {name} of {total['kind']} is {total[name]}")
        if sum(total["count"] for total in report["totals"]) != len(rows) or report["rows"] != len(rows):
            found.append(f"{this}: {report['rows']} rows")
    if sum(each["day"] <= (day or date.min) for each in facts.values()) != number:
        found.append(f"{len(facts)} entries, {number} rows")
    if facts and not reports:
        found.append("no register")
    return found


def _same(what: str, shown: Mapping[str, str], balance: Mapping[str, Fraction]) -> list[str]:
    return [
        f"{what}: {name} {shown[name]}" for part, (name, _) in SHOWN.items() if Fraction(shown[name]) != balance[part]
    ]


async def _facts(ports: Any) -> dict[str, dict[str, Any]]:
    """The expected row of each entry that moves a balance."""
    payments = {each.id: each for each in await everything(ports, Payment)}
    refunds = {each.id: each for each in await everything(ports, Refund)}
    payouts = {each.id: each for each in await everything(ports, Withdrawal)}
    rates = {each.id: Fraction(each.rate_market) for each in await everything(ports, Settlement)}
    lines: dict[str, list[SettlementItem]] = {}
    for item in await everything(ports, SettlementItem):
        lines.setdefault(f"{item.settlement_id} {item.payment_id}", []).append(item)
    facts = {}
    for entry in await everything(ports, JournalEntry):
        moved = {part: Fraction(0) for part in SHOWN}
        for posting in entry.postings:
            if posting.balance_type in (BalanceType.PENDING, BalanceType.AVAILABLE, BalanceType.RESERVED):
                moved[posting.balance_type.value] += Fraction(posting.amount, 10 ** SHOWN[posting.balance_type][1])
        if not any(moved.values()):
            continue
        fact: dict[str, Any] = {**moved, "amount_rub": abs(moved["pending"]), "fee_usdt": 0, "fee_rub": 0}
        fact["day"] = entry.at.astimezone(MOSCOW).date()
        payment, refund = payments.get(entry.object_id), refunds.get(entry.object_id)
        if payment is not None:
            fact |= {"external_id": payment.external_id, "sbp_operation_id": payment.sbp_operation_id}
        if refund is not None:
            fact |= {"amount_rub": Fraction(str(refund.amount)), "external_id": refund.external_id}
        if entry.object_id in payouts:
            fact["tx_hash"] = payouts[entry.object_id].tx_hash
        if entry.kind == "settlement" and payment is not None:
            items = lines[f"{payment.settlement_id} {payment.id}"]
            fact["fee_usdt"] = sum((Fraction(item.fee.units, 10**8) for item in items), Fraction(0))
            worth = moved["available"] * rates[payment.settlement_id or ""]
            fact["fee_rub"] = fact["amount_rub"] - Fraction(int(worth * 100 + Fraction(1, 2)), 100)
        facts[entry.id] = fact
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    failed = 0
    for seed in range(asked.seed, asked.seed + asked.histories):
        found = asyncio.run(lived(seed))
        failed += bool(found)
        print(*(f"seed {seed}: {each}" for each in found[:5]), sep="\n", end="\n" * bool(found), flush=True)
    print(f"{asked.histories} histories, {failed} with differences", flush=True)
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
