"""The catalogue as SQLAlchemy tables, for both databases: for statements, and to check the migrations against."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.util import OrderedSet

from ..table.catalogue import CATALOGUE, Table
from ..table.codec import Storing
from ..table.table_map import Rule, TableMap, keep

HEARTBEAT = "heartbeat"
"""Table of one row that a health check writes, because a full disk can still be read."""
MARKS = "commit_marks"
"""Table of the marks that processes leave in Postgres (ports/witnesses.py). SQLite has it empty."""


@cache
def type_of(storing: Storing) -> sa.types.TypeEngine[Any]:
    """Return one shared type object for all columns, because each caches what dialects derive from it."""
    match storing:
        case Storing.TEXT:
            # Compare by code points, as SQLite and Python do. Otherwise the order would depend on the server's
            # language.
            return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
        case Storing.JSON:
            return sa.Text()
        case Storing.INTEGER:
            return sa.BigInteger()
        case Storing.BOOLEAN:
            return sa.Boolean()
        case Storing.BYTES:
            return sa.LargeBinary()


class TablesByName(dict[str, sa.TableClause]):
    """Tables for statements, created on first use, with only the names and types of their columns.

    With keys, rules and indexes they would take three times the time and memory.
    """

    def __init__(self, catalogue: Iterable[Table]) -> None:
        super().__init__()
        self._catalogue = {declared.name: declared for declared in catalogue}

    def __missing__(self, name: str) -> sa.TableClause:
        declared = self._catalogue[name]
        columns = keep([declared])[declared.kind].codec.columns
        made = sa.table(name, *(sa.column(column.name, type_of(column.storing)) for column in columns))
        return self.setdefault(name, made)


@cache
def metadata(catalogue: tuple[Table, ...] = CATALOGUE) -> sa.MetaData:
    """Return all tables, created once for the process.

    A unique rule is a unique index with the rule's name, because only an index can be partial.
    """
    schema = sa.MetaData()
    for declared in catalogue:
        _add_indexes(_table(schema, declared), declared)
    _heartbeat(schema)
    _marks(schema)
    return schema


def _heartbeat(schema: sa.MetaData) -> sa.Table:
    return sa.Table(
        HEARTBEAT,
        schema,
        sa.Column("id", type_of(Storing.TEXT), nullable=False),
        sa.Column("beaten_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"{HEARTBEAT}_id"),
    )


def _marks(schema: sa.MetaData) -> sa.Table:
    return sa.Table(
        MARKS,
        schema,
        sa.Column("id", type_of(Storing.TEXT), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("is_whole", sa.Boolean(), nullable=False),
        sa.Column("since", type_of(Storing.TEXT)),
        sa.Column("place", type_of(Storing.TEXT)),
        sa.Column("marked_at", sa.BigInteger()),
        sa.Column("is_synchronous", sa.Boolean()),
        sa.Column("has_left", sa.Boolean()),
        sa.Column("is_accepted", sa.Boolean()),
        sa.PrimaryKeyConstraint("id", name=f"{MARKS}_id"),
    )


def _table(schema: sa.MetaData, declared: Table) -> sa.Table:
    columns = TableMap(declared.kind, declared).codec.columns
    table = sa.Table(
        declared.name,
        schema,
        *(sa.Column(column.name, type_of(column.storing), nullable=column.nullable) for column in columns),
        *_computed(declared),
        sa.PrimaryKeyConstraint("id", name=f"{declared.name}_id"),
        sqlite_with_rowid=not declared.narrow,
        postgresql_with=_storage_parameters(declared),
    )
    # SQLAlchemy creates the indexes of a plain set in a random order, and Postgres names the first one of a row that
    # breaks two rules.
    table.indexes = OrderedSet()
    return table


def _computed(declared: Table) -> Iterator[sa.Column[Any]]:
    rare = declared.rare
    if rare is not None:
        usual = ", ".join(f"'{value}'" for value in rare.usual)
        value = f"CASE WHEN {rare.field} IN ({usual}) THEN NULL ELSE {rare.field} END"
        yield sa.Column(rare.column, type_of(Storing.TEXT), sa.Computed(value, persisted=True))


def _storage_parameters(declared: Table) -> dict[str, Any]:
    """Return Postgres' storage parameters. With its defaults, the new version of an old row goes to another page, and
    vacuum starts after a fifth of the table has changed: after weeks, at millions of payments."""
    if declared.fillfactor == 100:
        return {}
    return {"fillfactor": declared.fillfactor, "autovacuum_vacuum_scale_factor": 0.02}


def _add_indexes(table: sa.Table, declared: Table) -> None:
    for rule in TableMap(declared.kind, declared).rules:
        where = _where(table, rule)
        columns = [table.c[field] for field in rule.fields]
        sa.Index(rule.name, *columns, unique=True, postgresql_where=where, sqlite_where=where)
    for fields in declared.indexes:
        sa.Index(_index_name(declared, fields), *(_ordered(table, field) for field in fields))
    for fields in declared.sparse:
        some = table.c[fields[0]].is_not(None)
        name, ordered = _index_name(declared, fields), (_ordered(table, field) for field in fields)
        sa.Index(name, *ordered, postgresql_where=some, sqlite_where=some)
    if declared.rare is not None:
        column = table.c[declared.rare.column]
        for fields in declared.rare.indexes:
            named = [column.name if field == declared.rare.field else field for field in fields]
            some = column.is_not(None)
            name, ordered = _index_name(declared, named), (_ordered(table, field) for field in named)
            sa.Index(name, *ordered, postgresql_where=some, sqlite_where=some)
    for fields in declared.unset:
        none = table.c[fields[0]].is_(None)
        name, ordered = _index_name(declared, fields), (_ordered(table, field) for field in fields[1:])
        sa.Index(name, *ordered, postgresql_where=none, sqlite_where=none)


def _index_name(declared: Table, fields: Sequence[str]) -> str:
    return "_".join((declared.name, *(field.removeprefix("-") for field in fields), "ix"))


def _ordered(table: sa.Table, field: str) -> sa.ColumnElement[Any]:
    column = table.c[field.removeprefix("-")]
    return column.desc() if field.startswith("-") else column


def _where(table: sa.Table, rule: Rule) -> sa.ColumnElement[bool] | None:
    # SQLAlchemy writes the values as literals, because CREATE INDEX takes no parameters.
    clauses = [table.c[field] == sa.literal(value, table.c[field].type) for field, value in rule.where.items()]
    return sa.and_(*clauses) if clauses else None
