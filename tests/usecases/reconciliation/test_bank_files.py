"""Files of banks without a list: months of them, of every form, name each planted difference and no other
(docs/reconciliation.md "A bank's file")."""

import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import MOSCOW
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Opening, Payment, PaymentStatus
from cambist.core.domain.reconciliation.reconciliation import Discrepancy, ReconciliationStatus
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.reconciliation.bank_files import import_bank_file
from cambist.core.usecases.reconciliation.discrepancies import list_differences
from cambist.frontends.app.compose import Adapters
from tests.bank_file_kit import CSV_COLUMNS, Line, camt, exchange, table
from tests.invariants import everything
from tests.planting import beneath
from tests.reconciliation_kit import RealBank
from tests.refund_app import RefundApp, open_refund_app

MONTHS = int(os.environ.get("CAMBIST_TEST_MONTHS", "2"))
"""Simulated months; 30 of them take some minutes."""
BANK = "quiet"
FORMS = (exchange, table, camt(2), camt(8))
KINDS = ("missing", "amount", "extra", "second", "state", "fee")


class QuietBank:
    """A bank whose API gives no list."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self._bank = RealBank(BANK, MemoryStorage(clock), clock, SeededIds())

    def __getattr__(self, name: str) -> Any:
        if name in ("owners", "owner_of", "entries"):
            raise AttributeError(name)
        return getattr(self._bank, name)


@asynccontextmanager
async def _opened() -> AsyncIterator[RefundApp]:
    bank: Any = QuietBank()
    async with open_refund_app(made_up=True, adapters=Adapters(banks={Mode.LIVE: [bank]})) as live:
        yield live


class Months:
    """Payments of whole months, and the rows of the bank's files with planted differences."""

    def __init__(self, live: RefundApp, seed: int) -> None:
        self.live = live
        self.draw = random.Random(seed)
        self.planted: set[tuple[str, str]] = set()

    def payment(self, at: datetime, status: PaymentStatus, number: int) -> Payment:
        account = self.live.app.account
        amount = Rub(self.draw.randrange(30_00, 90_000_00))
        is_paid = status is PaymentStatus.PAID
        return Payment(
            id=f"pay_{self.live.ports.ids.uuid()}",
            account_id=account.account_id,
            mode=Mode.LIVE,
            shop_id=account.default_shop_id,
            status=status,
            amount=amount,
            payment_method="sbp",
            created_at=at,
            expires_at=at + timedelta(minutes=15),
            actual_amount=amount if is_paid else None,
            paid_at=at + timedelta(minutes=2) if is_paid else None,
            transfer_id=f"transfer-{number}" if is_paid else None,
            provider_fee=Rub(amount.kopecks // 100) if is_paid else None,
            opening=Opening.OPEN,
            bank=BANK,
            bank_reference=f"REF{number:09}",
        )

    async def month(self, first: date, kinds: Sequence[str], *, has_fee: bool) -> list[Line]:
        """Write the payments of 30 days, and return the rows of the bank's file with these differences planted."""
        made: list[Payment] = []
        lines: list[Line] = []
        for day in range(30):
            midnight = datetime.combine(first + timedelta(days=day), datetime.min.time(), MOSCOW)
            for _ in range(4):
                number = self.draw.randrange(10**9)
                at = (midnight + timedelta(seconds=self.draw.randrange(60, 86_000))).astimezone(UTC)
                status = self.draw.choice((PaymentStatus.PAID,) * 5 + (PaymentStatus.EXPIRED, PaymentStatus.FAILED))
                made.append(self.payment(at, status, number))
        paid = [each for each in made if each.status is PaymentStatus.PAID]
        unpaid = [each for each in made if each.status is not PaymentStatus.PAID]
        lines = [self.line(each, has_fee=has_fee) for each in paid]
        chosen = self.draw.sample(range(len(lines)), len(kinds))
        for kind, row in zip(kinds, chosen, strict=True):
            self.plant("amount" if kind == "fee" and not has_fee else kind, lines, row, paid[row], unpaid)
        # The bank's own fees are no operations of ours.
        lines += [
            Line(name=f"fee-{day}", day=day, time="20:00:00", kopecks=150_00, purpose="Комиссия банка", is_in=False)
            for day in (first, first + timedelta(days=15))
        ]
        async with beneath(self.live.ports).unit() as unit:
            for each in made:
                unit[Payment].add(each)
            await unit.commit()
        self.draw.shuffle(lines)
        return [each for each in lines if each.kopecks]

    def line(self, payment: Payment, *, has_fee: bool) -> Line:
        here = (payment.created_at + timedelta(minutes=2)).astimezone(MOSCOW)
        name = payment.id if self.draw.random() < 0.5 else payment.bank_reference
        return Line(
            name=f"doc{payment.bank_reference}",
            day=here.date(),
            time=f"{here:%H:%M:%S}",
            kopecks=payment.amount.kopecks,
            purpose=f"Оплата по СБП, заказ {name}, НДС не облагается",
            fee=payment.provider_fee.kopecks if has_fee and payment.provider_fee else None,
        )

    def plant(self, kind: str, lines: list[Line], at: int, payment: Payment, unpaid: list[Payment]) -> None:
        line, change = lines[at], msgspec.structs.replace
        if kind == "missing":
            lines[at] = change(line, kopecks=0)
            self.planted.add(("missing", payment.id))
        elif kind == "amount":
            lines[at] = change(line, kopecks=line.kopecks + 1)
            self.planted.add(("amount", payment.id))
        elif kind == "fee":
            lines[at] = change(line, fee=(line.fee or 0) + 1)
            self.planted.add(("fee", payment.id))
        elif kind == "extra":
            name = f"alien-{line.name}"
            lines.append(change(line, name=name, purpose=f"Перевод {name}", kopecks=12_345))
            self.planted.add(("extra", name))
        elif kind == "second":
            lines.append(change(line, name=f"twice-{line.name}"))
            self.planted.add(("extra", f"second of {payment.id}"))
        else:
            other = unpaid.pop()
            lines.append(msgspec.structs.replace(self.line(other, has_fee=False), name=f"late-{other.bank_reference}"))
            self.planted.add(("state", other.id))


def _named(found: Sequence[Discrepancy]) -> set[tuple[str, str]]:
    """Return the found differences as they were planted. Either of two rows of one payment may be the extra one."""
    named = set()
    for each in found:
        entry = each.entry or ""
        is_second = each.difference.value == "extra" and each.object_id is not None
        name = f"second of {each.object_id}" if is_second else each.object_id
        named.add((each.difference.value, name or next((part for part in entry.split() if "alien" in part), entry)))
    return named


async def test_months_of_files_name_every_planted_difference_and_no_other() -> None:
    async with _opened() as live:
        months = Months(live, seed=20261128)
        first = live.app.clock.now().astimezone(MOSCOW).date() + timedelta(days=1)
        for month in range(MONTHS):
            form = FORMS[month % len(FORMS)]
            wanted = [KINDS[(month + at) % len(KINDS)] for at in range(7 if month < 20 else 6)]
            lines = await months.month(first, wanted, has_fee=form is table)
            last = first + timedelta(days=29)
            end = datetime.combine(last + timedelta(days=1), datetime.min.time(), MOSCOW) + timedelta(hours=4)
            await live.app.clock.advance((end - live.app.clock.now()).total_seconds())
            body = form(lines, first, last)
            columns = CSV_COLUMNS if form is table else {}
            compared = await import_bank_file(live.ports, BANK, body, columns=columns)
            assert len(compared.days) == 30
            assert compared.others == 2
            if month == 0:
                # The same file again gives the same result.
                again = await import_bank_file(live.ports, BANK, body, columns=columns)
                assert [each.found for each in again.days] == [each.found for each in compared.days]
            first = last + timedelta(days=1)
        found = await everything(live.ports, Discrepancy)
        assert _named(found) == months.planted
        assert len(found) == len(months.planted)
        print(len(found), "named of", len(months.planted))
        items = [each for each in (await read_action_items(live.ports)).found if each.kind == "difference"]
        assert items
        assert len(await list_differences(live.ports)) == len(found)


async def test_mapping_of_a_csv_file_is_kept_for_the_bank_s_next_file() -> None:
    async with _opened() as live:
        day = live.app.clock.now().astimezone(MOSCOW).date() - timedelta(days=3)
        body = table([Line(name="a", day=day, time="10:00:00", kopecks=500, purpose="Перевод")], day, day)
        with pytest.raises(Refusal, match="needs a mapping"):
            await import_bank_file(live.ports, BANK, body)
        for columns in ({"date": "Дата операции"}, {"date": "x", "amount": "y", "colour": "z"}):
            with pytest.raises(Refusal):
                await import_bank_file(live.ports, BANK, body, columns=columns)
        for columns in (CSV_COLUMNS, {}):
            compared = await import_bank_file(live.ports, BANK, body, columns=columns)
            assert [each.status for each in compared.days] == [ReconciliationStatus.DIFFERENT]
        with pytest.raises(Refusal, match="is no bank"):
            await import_bank_file(live.ports, "other", body)
