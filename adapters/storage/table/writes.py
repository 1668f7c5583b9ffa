"""Writes of a unit, collected until its commit, which each storage applies in its own way."""

from typing import Any

import msgspec

from ....ports.jobs import Job
from .codec import Row, integer
from .table_map import TableMap


class Add(msgspec.Struct, frozen=True, gc=False):
    """New record, as a row."""

    mapped: TableMap[Any]
    id: str
    row: Row


class Save(msgspec.Struct, frozen=True, gc=False):
    """Changed record, as a row with the new version; `version` is the one it replaces."""

    mapped: TableMap[Any]
    id: str
    version: int
    row: Row
    changed: tuple[str, ...] = ()
    """The only changed fields, if they are known."""


class Remove(msgspec.Struct, frozen=True):
    """Record to delete. `sums` are its sums at the time of the read, in the order of the fields."""

    mapped: TableMap[Any]
    id: str
    version: int
    sums: tuple[int, ...] = ()


class Increase(msgspec.Struct, frozen=True):
    """Change of one sum."""

    mapped: TableMap[Any]
    id: str
    field: str
    by: int


class Accrue(msgspec.Struct, frozen=True):
    """Row whose sums are added to those of the stored row, or that is inserted if there is none."""

    mapped: TableMap[Any]
    id: str
    row: Row


Write = Add | Save | Remove | Increase | Accrue


class Pending(msgspec.Struct, eq=False):
    """Uncommitted writes of a unit. It accepts no more once it is `closed`."""

    writes: list[Write] = []
    """Writes other than accruals."""
    jobs: list[Job] = []
    accruals: dict[tuple[str, str], Accrue] = {}
    """Accruals by table and id. Several accruals to one row are added up here."""
    durable: bool = True
    """Whether commit returns only once the writes are on disk."""
    closed: str | None = None
    """Reason why the unit accepts no more writes; None while it does."""

    __repr__ = object.__repr__  # the default of a struct would show the written values, also in the repr of its owner

    def put(self, write: Write) -> None:
        """Add a write. Raises RuntimeError if the unit is over or only reads: a bug of the caller."""
        if self.closed:
            raise RuntimeError(self.closed)
        self.writes.append(write)

    def accrue(self, accrual: Accrue) -> None:
        """Add an accrual. Raises RuntimeError as `put` does."""
        if self.closed:
            raise RuntimeError(self.closed)
        key = accrual.mapped.name, accrual.id
        known = self.accruals.get(key)
        self.accruals[key] = accrual if known is None else Accrue(accrual.mapped, accrual.id, added(accrual, known.row))

    def all_writes(self) -> list[Write]:
        """Return the writes in their order, then the accruals in the order of tables and ids."""
        if not self.accruals:
            return self.writes
        return [*self.writes, *(accrual for _, accrual in sorted(self.accruals.items()))]


def added(accrual: Accrue, to: Row) -> list[Any]:
    """Return the row `to` with the accrual's sums added. Raises ValueError beyond 64 bits."""
    return [integer(value + accrual.row[key]) if key in accrual.mapped.sums else value for key, value in enumerate(to)]
