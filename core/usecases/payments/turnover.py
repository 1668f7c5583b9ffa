"""Turnover of shops per day (docs/settlement.md "Turnover")."""

import re
from datetime import date, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Between
from ...domain.accounts.accounts import Caller
from ...domain.accounts.shops import Shop
from ...domain.errors import shape_error
from ...domain.money import Rub
from ...domain.payments.tallies import Turnover, day_ids, day_of

DAYS_MAX = 366
DAYS_USUAL = 30

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")


class ShopDay(msgspec.Struct, frozen=True, kw_only=True):
    """One shop on one day of the report."""

    day: str
    shop_id: str
    shop_name: str | None
    payments: int
    amount: Rub


class TurnoverReport(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of days and shops that took money, oldest day first, and their total."""

    rows: list[ShopDay]
    payments: int
    amount: Rub


async def shops_turnover(ports: Ports, caller: Caller, first: str | None, last: str | None) -> TurnoverReport:
    """Return the turnover of the caller's account and mode, from day `first` to day `last`, both inclusive.

    Without `last` it ends today; without `first` it has 30 days. Raises: Refusal VALIDATION_ERROR.
    """
    start, end = _period(first, last, today=day_of(ports.clock.now()))
    low, high = day_ids(caller.account_id, caller.mode, start.isoformat(), end.isoformat())
    names = {
        shop.id: shop.name async for batch in ports.storage.scan(Shop, account_id=caller.account_id) for shop in batch
    }
    sums: dict[tuple[str, str], tuple[int, Rub]] = {}
    # Rows come in the order of ids, which begin with the day and the shop; each such pair has several rows.
    async for batch in ports.storage.scan(Turnover, id=Between(low, high)):
        for kept in batch:
            payments, amount = sums.get((kept.day, kept.shop_id), (0, Rub(0)))
            sums[kept.day, kept.shop_id] = payments + kept.payments, amount + kept.amount
    rows = [
        ShopDay(day=day, shop_id=shop_id, shop_name=names.get(shop_id), payments=payments, amount=amount)
        for (day, shop_id), (payments, amount) in sums.items()
        if payments
    ]
    return TurnoverReport(
        rows=rows, payments=sum(row.payments for row in rows), amount=sum((row.amount for row in rows), Rub(0))
    )


def _period(first: str | None, last: str | None, *, today: str) -> tuple[date, date]:
    end = _day("to", today if last is None else last)
    usual = timedelta(days=min(DAYS_USUAL - 1, (end - date.min).days))
    start = end - usual if first is None else _day("from", first)
    if start > end:
        raise shape_error("from", f"must not be after to, which is {end}")
    if (end - start).days >= DAYS_MAX:
        raise shape_error("from", f"at most {DAYS_MAX} days up to {end}")
    return start, end


def _day(name: str, text: str) -> date:
    # Check the pattern first: the parser also accepts other forms of ISO 8601, such as weeks.
    try:
        return date.fromisoformat(text if _DAY.match(text) else "")
    except ValueError:
        raise shape_error(name, "must be a calendar day, such as 2026-11-21") from None
