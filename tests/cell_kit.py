"""Two cells in memory, and an account with rows in nearly every table."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cambist.adapters.ids import SeededIds
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.cells.cell import Cell
from cambist.core.usecases.cells.moving import Move, move_account
from cambist.frontends.settings.settings import VaultKeys
from cambist.ports.forwarding import ForwardingStorage
from cambist.ports.storage import Storage
from tests import openapi_tour
from tests.apps import TestApp, open_test_app
from tests.openapi_tour import Tour
from tests.people_kit import joined

PEPPER = b"p" * 32
ACTION = OperatorAction(operator="olga", name="account.move")


def raw(storage: Any) -> Storage:
    """The storage below the layers of use cases."""
    while isinstance(storage, ForwardingStorage):
        storage = storage.inner
    return storage  # type: ignore[no-any-return]


def cell_of(app: TestApp, name: str, storage: Storage | None = None) -> Cell:
    """A cell, over another storage if one is given."""
    return Cell(name=name, ports=app.ports, storage=storage or raw(app.ports.storage))


@asynccontextmanager
async def cells(**settings: Any) -> AsyncIterator[tuple[TestApp, TestApp]]:
    """Two open cells with different keys and one pepper, which share a folder of documents."""
    with tempfile.TemporaryDirectory() as folder:
        shared = {"data_dir": Path(folder), **settings}
        first = VaultKeys(keys={1: b"a" * 32}, current=1, pepper=PEPPER)
        second = VaultKeys(keys={1: b"b" * 32, 2: b"c" * 32}, current=2, pepper=PEPPER)
        async with (
            open_test_app(cell="c1", vault=first, pay_url="https://c1.pay.example", **shared) as one,
            open_test_app(cell="c2", vault=second, pay_url="https://c2.pay.example", ids=SeededIds(2), **shared) as two,
        ):
            yield one, two


async def fill(app: TestApp) -> None:
    """Make objects of every kind that can move."""
    wishes = {"refunds": "true", "direct_links": "true", "recurring": "true", "terminals": "true"}
    await accounts.set_settings(app.ports, app.account.account_id, wishes)
    tour = Tour(app)
    for part in (
        openapi_tour._payments,
        openapi_tour._links,
        openapi_tour._refunds,
        openapi_tour._subscriptions,
        openapi_tour._money,
        openapi_tour._events,
    ):
        await part(tour)
    await joined(app.ports, app.account.account_id, Role.OWNER)
    await app.create(mode="live")
    await app.create({"amount_rub": "300.00"})


async def level(one: TestApp, two: TestApp) -> None:
    """Advance the clock of the second cell to that of the first."""
    await two.clock.advance((one.clock.now() - two.clock.now()).total_seconds())


async def move(source: Cell, target: Cell, account_id: str) -> Move:
    """Move the account, without processes that could still change it."""

    async def switch() -> None:
        """No proxy leads here."""

    return await move_account(source, target, account_id, action=ACTION, settled=0, switch=switch)


class Mortal(ForwardingStorage):
    """A storage whose process is killed at a commit: nothing is read or written any more. All of a process share
    `commits`, the number of commits left."""

    def __init__(self, inner: Storage, commits: list[int], *, written: bool) -> None:
        super().__init__(inner)
        self._commits = commits
        self._written = written

    def unit(self) -> Any:
        self._live()
        return _MortalUnit(self.inner.unit(), self)

    def get(self, kind: Any, record_id: str, /) -> Any:
        self._live()
        return self.inner.get(kind, record_id)

    def scan(self, kind: Any, **asked: Any) -> Any:
        self._live()
        return self.inner.scan(kind, **asked)

    def _live(self) -> None:
        if self._commits[0] < 0:
            raise Killed

    async def commit(self, unit: Any) -> None:
        self._live()
        self._commits[0] -= 1
        if self._commits[0] >= 0 or self._written:
            await unit.commit()
        self._live()


class Killed(Exception):
    """The process is dead."""


class _MortalUnit:
    def __init__(self, opening: Any, storage: Mortal) -> None:
        self._opening, self._storage = opening, storage

    async def __aenter__(self) -> Any:
        self._unit = await self._opening.__aenter__()
        return self

    async def __aexit__(self, *fault: object) -> Any:
        return await self._opening.__aexit__(*fault)

    def __getitem__(self, kind: Any) -> Any:
        return self._unit[kind]

    async def commit(self, *, durable: bool = True) -> None:
        await self._storage.commit(self._unit)
