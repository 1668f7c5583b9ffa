"""Every list finds its rows by an index and reads no others: a page costs its own rows, however many others there are
(docs/console.md "Filters")."""

import asyncio
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import msgspec
import sqlalchemy as sa

from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.sql.tables import Tables
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.criteria import conditions
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.domain.settlement.settlement import Settlement
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.browse.leaves import Leaf, counted
from cambist.frontends.console.kinds.events import EVENTS
from cambist.frontends.console.kinds.kinds import Kind, Wish
from cambist.frontends.console.kinds.payments import PAYMENTS
from cambist.frontends.console.kinds.refunds import REFUNDS
from cambist.frontends.console.kinds.statements import STATEMENTS
from cambist.frontends.console.kinds.subscriptions import SUBSCRIPTIONS
from tests.contracts.test_storage_migrations import plan_of
from tests.refund_app import open_refund_app

_HOW = ("readable", "offset", "limit", "quick", "unread")
TYPED = {
    "from": "2026-01-01",
    "to": "2026-01-02",
    "order": "order-7",
    "name": "m",
    "operator": "ivan",
    "action": "look",
}


LISTS = (PAYMENTS, REFUNDS, SUBSCRIPTIONS, EVENTS, STATEMENTS)
MANY = {Payment, Refund, Subscription, Event, Settlement}
"""Types whose number grows with every payment."""


COUNT = ""
"""A count has no order."""
FEW = {"external_id", "batch_id"}
"""Whatever has the same is looked at as a whole."""


class Recorded:
    """A storage, or a unit or repository of it, whose finds are kept."""

    def __init__(self, inner: Any, finds: list[tuple[Any, str, dict[str, Any]]], kind: Any = None) -> None:
        self._inner, self._finds, self._kind = inner, finds, kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __getitem__(self, kind: Any) -> "Recorded":
        return Recorded(self._inner[kind], self._finds, kind)

    def unit(self) -> "Recorded":
        return Recorded(self._inner.unit(), self._finds)

    def snapshot(self) -> "Recorded":
        return Recorded(self._inner.snapshot(), self._finds)

    async def __aenter__(self) -> Self:
        return type(self)(await self._inner.__aenter__(), self._finds)

    async def __aexit__(self, *left: object) -> Any:
        return await self._inner.__aexit__(*left)

    async def find(self, *, order: str = "id", **asked: Any) -> Any:
        criteria = {name: value for name, value in asked.items() if name not in _HOW}
        self._finds.append((self._kind, order, criteria))
        return await self._inner.find(order=order, **asked)

    async def total(self, **criteria: Any) -> Any:
        self._finds.append((self._kind, COUNT, criteria))
        return await self._inner.total(**criteria)


def wishes(kind: Kind, account_id: str) -> Iterator[Wish]:
    """No filter, each by itself, and each two."""
    values = {
        each.name: next(value for value in (*each.choices, TYPED.get(each.name) or account_id) if not each.walks(value))
        for each in kind.filters
        if not each.is_walked
    }
    for count in range(3):
        for names in itertools.combinations(values, count):
            for order in kind.orders:
                yield Wish(filters={name: values[name] for name in names}, order=order)


async def asked_for() -> list[tuple[str, tuple[Any, str, dict[str, Any]]]]:
    """Return the finds of lists and counts for each wish of an operator, one find of each form."""
    async with open_refund_app() as refunds:
        finds: list[tuple[Any, str, dict[str, Any]]] = []
        ports = msgspec.structs.replace(refunds.ports, storage=Recorded(refunds.ports.storage, finds))
        told: dict[tuple[Any, ...], tuple[str, tuple[Any, str, dict[str, Any]]]] = {}
        for kind in LISTS:
            for wish in wishes(kind, refunds.app.account.account_id):
                finds.clear()
                leaf = await kind.read(ports, wish, None, 10)
                if isinstance(leaf, Leaf):
                    await counted(ports, leaf)
                for found in finds:
                    told.setdefault((found[0], found[1], *sorted(found[2])), (f"{kind.name} {wish}", found))
    return list(told.values())


def plan(connection: sa.Connection, kind: Any, order: str, criteria: dict[str, Any]) -> list[str]:
    """The steps in which SQLite finds, or counts."""
    if order != COUNT:
        return plan_of(connection, kind, order, criteria, 0)
    kept = keep(CATALOGUE)[kind]
    text, values = Tables.shared(CATALOGUE, connection.dialect).count(kept, conditions(kept.codec, criteria))
    return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", tuple(values))]


def test_no_list_looks_at_what_does_not_fit(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    asyncio.run(migrate(url))
    engine = sa.create_engine(url)
    asked, slow = asyncio.run(asked_for()), []
    for found_or_counted in (True, False):
        assert {kind for _, (kind, order, _) in asked if (order != COUNT) is found_or_counted} >= MANY
    with engine.connect() as connection:
        for wish, (kind, order, criteria) in asked:
            steps = plan(connection, kind, order, criteria)
            found = {name.removeprefix("rare_") for name in re.findall(r"(\w+)[=<>]", steps[0])}
            fits = found & FEW or (found >= criteria.keys() and len(steps) == 1)
            if kind in MANY and not fits and (criteria or order.lstrip("-") != "id"):
                slow.append((wish, kind.__name__, order, criteria, steps))
    engine.dispose()
    assert slow == []
