"""Statements are built from adapters/storage/sql/schema.py: TablesByName, and migrations are compared with `metadata`.
Both must give the same statements."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.sqlite import pysqlite
from sqlalchemy.engine.interfaces import Dialect

from cambist.adapters.storage.sql.schema import metadata
from cambist.adapters.storage.sql.tables import Tables
from cambist.adapters.storage.table.catalogue import CATALOGUE, Table
from cambist.adapters.storage.table.criteria import query
from cambist.adapters.storage.table.table_map import keep
from cambist.adapters.storage.table.writes import Add, Increase, Remove, Save
from cambist.ports.storage import OneOf

MAPS = keep(CATALOGUE)
DIALECTS = (pysqlite.dialect(), postgresql.asyncpg.dialect())  # type: ignore[no-untyped-call]  # theirs


def texts(tables: Tables, table: Table) -> Iterator[str]:
    """Every statement that is written of a table, as text."""
    mapped = MAPS[table.kind]
    statements, row = tables.statements(mapped), [None] * len(mapped.codec.names)
    yield statements.get
    yield statements.insert(("id", "version"))
    for write in (Add(mapped, "x", row), Save(mapped, "x", 1, row), Remove(mapped, "x", 1, (0,) * len(mapped.sums))):
        yield statements.of(write)[0]
    yield from (text for _, (text, _) in statements.clashes(Add(mapped, "x", row)))
    for number in mapped.sums:
        yield statements.of(Increase(mapped, "x", mapped.codec.names[number], 1))[0]
    if mapped.sums:
        yield statements.upsert(2)
    asked: dict[str, Any] = {"id": OneOf(("a", "b"))}
    for order, offset in (("id", 0), ("-id", 20)):
        yield tables.found(mapped, query(mapped.codec, asked, order, 20, offset))[0]
    yield tables.after(mapped, (), "a", 20)[0]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.name)
def test_statements_are_those_of_the_whole_tables(dialect: Dialect) -> None:
    stored = {
        name: sa.table(name, *(sa.column(each.name, each.type) for each in table.columns if each.computed is None))
        for name, table in metadata().tables.items()
    }
    short, whole = Tables.shared(CATALOGUE, dialect), Tables(stored, dialect)
    for table in CATALOGUE:
        assert [*texts(short, table)] == [*texts(whole, table)]
