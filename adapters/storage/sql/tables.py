"""The catalogue's tables in SQL, for one dialect: the statements of units, and the queries of readers."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine.interfaces import Dialect

from ..table.catalogue import Rare, Table
from ..table.codec import Storing
from ..table.criteria import Condition, Query, Relation
from ..table.table_map import TableMap
from ..table.writes import Accrue, Write
from .schema import TablesByName, type_of
from .statements import JobStatements, Statement, TableStatements

_ROWS_TOGETHER = 64
"""Accrued rows in one statement at most, because databases limit the number of parameters."""


class Tables:
    """The catalogue's tables and their statements, for one dialect."""

    _shared: ClassVar[dict[tuple[tuple[Table, ...], str], "Tables"]] = {}

    def __init__(self, of: Mapping[str, sa.TableClause], dialect: Dialect) -> None:
        self.of = of
        self.dialect = dialect
        self._statements: dict[str, TableStatements] = {}
        self._questions: dict[Any, tuple[str, list[Any]]] = {}
        self._jobs: dict[bool, JobStatements] = {}

    @classmethod
    def shared(cls, catalogue: Sequence[Table], dialect: Dialect) -> "Tables":
        """Return one object for all storages of the process with the same catalogue and dialect.

        Compiling the statements takes far longer than opening a file or connecting.
        """
        key = tuple(catalogue), dialect.name
        known = cls._shared.get(key)
        if known is None:
            known = cls._shared[key] = cls(TablesByName(catalogue), dialect)
        return known

    def statements(self, mapped: TableMap[Any]) -> TableStatements:
        """Return a table's statements, compiled on first use.

        Compiling all of them would delay every command of the command line.
        """
        known = self._statements.get(mapped.name)
        if known is None:
            known = self._statements[mapped.name] = TableStatements(mapped, self.of[mapped.name], self.dialect)
        return known

    def jobs(self, name: str, now_in_database: sa.ColumnElement[int] | None = None) -> JobStatements:
        """Return the statements that claim jobs from the table of this name, compiled on first use."""
        known = self._jobs.get(now_in_database is None)
        if known is None:
            known = self._jobs[now_in_database is None] = JobStatements(self.of[name], self.dialect, now_in_database)
        return known

    def of_unit(self, writes: Sequence[Write]) -> list[tuple[Write, Statement]]:
        """Return a unit's statements, in order: one for each write.

        Accrued rows of one table share a statement, after all others, in the unit's order.
        """
        found: list[tuple[Write, Statement]] = []
        accruals: list[Accrue] = []
        for write in writes:
            if type(write) is Accrue:
                accruals.append(write)
            else:
                found.append((write, self.statements(write.mapped).of(write)))
        if not accruals:
            return found
        for _, group in groupby(accruals, key=lambda accrual: accrual.mapped.name):
            rows = list(group)
            for start in range(0, len(rows), _ROWS_TOGETHER):
                part = rows[start : start + _ROWS_TOGETHER]
                found.append((part[0], self.statements(part[0].mapped).accrue(part)))
        return found

    def found(self, mapped: TableMap[Any], asked: Query) -> Statement:
        """Return the statement for the rows of a query."""
        conditions = _padded(mapped, asked.conditions)
        form = ("found", mapped.name, _form(conditions), asked.order, asked.descending, asked.offset > 0)
        ends = [asked.limit, asked.offset] if asked.offset else [asked.limit]

        def found() -> sa.Select[Any]:
            return self._select(mapped, msgspec.structs.replace(asked, conditions=conditions))

        return self._question(form, found, [*_values(conditions), *ends])

    def count(self, mapped: TableMap[Any], asked: tuple[Condition, ...]) -> Statement:
        """Return the statement that counts the rows that meet all conditions."""
        conditions, table = _padded(mapped, asked), self.of[mapped.name]

        def count() -> sa.Select[Any]:
            return sa.select(sa.func.count()).select_from(table).where(*(_clause(table, each) for each in conditions))

        return self._question(("count", mapped.name, _form(conditions)), count, _values(conditions))

    def sums(self, mapped: TableMap[Any], field: str, by: str, asked: tuple[Condition, ...]) -> Statement:
        """Return the statement for the sums of a field by the values of another.

        Postgres sums integers to a decimal, hence the cast.
        """
        conditions, table = _padded(mapped, asked), self.of[mapped.name]

        def sums() -> sa.Select[Any, Any]:
            amount: sa.ColumnElement[Any] = sa.cast(sa.func.sum(table.c[field]), sa.BigInteger)
            clauses = [_clause(table, each) for each in conditions]
            return sa.select(table.c[by], amount).where(*clauses).group_by(table.c[by])

        return self._question(("sums", mapped.name, field, by, _form(conditions)), sums, _values(conditions))

    def after(self, mapped: TableMap[Any], asked: tuple[Condition, ...], last: str | None, limit: int) -> Statement:
        """Return the statement for the next rows in the order of ids: from the first one if `last` is None."""
        conditions, table = _padded(mapped, asked), self.of[mapped.name]
        ends: list[Any] = [limit] if last is None else [last, limit]

        def after() -> sa.Select[Any]:
            clauses = [_clause(table, each) for each in conditions]
            if last is not None:
                clauses.append(table.c.id > last)
            return sa.select(table).where(*clauses).order_by(table.c.id).limit(limit)

        form = ("after", mapped.name, _form(conditions), last is None)
        return self._question(form, after, [*_values(conditions), *ends])

    def _question(self, form: Any, select: Callable[[], sa.sql.ClauseElement], values: list[Any]) -> Statement:
        """Return the text for the driver, with its parameters.

        Each form of query is compiled once; there are as many forms as queries in the code.
        """
        known = self._questions.get(form)
        if known is None:
            compiled: Any = select().compile(dialect=self.dialect, compile_kwargs={"render_postcompile": True})
            parameters = [compiled.params[name] for name in compiled.positiontup]
            if parameters[: len(values)] != values:
                raise ValueError(f"the parameters of {compiled} are not the values in their order")
            known = self._questions[form] = str(compiled), parameters[len(values) :]
        text, rest = known
        return text, [*values, *rest]

    def _select(self, mapped: TableMap[Any], asked: Query) -> sa.Select[Any]:
        table = self.of[mapped.name]
        found = sa.select(table)
        if not asked.offset:
            return self._bounded(found, mapped, asked)
        # For the skipped pages, read only ids, which the indexes contain. Read whole rows for this page only.
        ids = self._bounded(sa.select(table.c.id), mapped, asked).offset(asked.offset)
        return found.where(table.c.id.in_(ids)).order_by(*_order(table, asked))

    def _bounded(self, found: sa.Select[Any], mapped: TableMap[Any], asked: Query) -> sa.Select[Any]:
        table = self.of[mapped.name]
        clauses = [_clause(table, each) for each in asked.conditions]
        order = [*_nulls_before(table, mapped.table, asked), *_order(table, asked)]
        return found.where(*clauses).order_by(*order).limit(asked.limit)


def _nulls_before(table: sa.TableClause, declared: Table, asked: Query) -> list[sa.ColumnElement[Any]]:
    """Return sort keys for the fields that the query fixes to null, if an index has them before the order.

    They do not change the result. But Postgres ignores a fixed field in an index only if it equals a value, not if
    it is null. Without these keys it would not use the index's order, and would sort all rows to return the first
    few.
    """
    same = {each.field: each.relation for each in asked.conditions if each.relation in (Relation.EQUAL, Relation.NULL)}
    order = ("id",) if asked.order == "id" else (asked.order, "id")
    for index in declared.indexes:
        before = index[: -len(order)]
        nulls = [field for field in before if same.get(field) is Relation.NULL]
        if nulls and index == (*before, *order) and same.keys() >= set(before):
            return [table.c[field].desc() if asked.descending else table.c[field].asc() for field in nulls]
    # Few rows are without the value. In the order of ids alone, Postgres might walk over all others to find them.
    unset = [index[0] for index in declared.unset if same.get(index[0]) is Relation.NULL and asked.order == "id"]
    return [table.c[field] for field in unset]


def _order(table: sa.TableClause, asked: Query) -> list[sa.ColumnElement[Any]]:
    column = table.c[asked.order]
    order: sa.ColumnElement[Any] = column.desc() if asked.descending else column.asc()
    if asked.nulls:
        order = order.nulls_first() if asked.descending else order.nulls_last()
    return [order] if asked.order == "id" else [order, table.c.id.desc() if asked.descending else table.c.id.asc()]


def _values(conditions: Sequence[Condition]) -> list[Any]:
    return [value for each in conditions for value in _values_of(each)]


def _values_of(condition: Condition) -> tuple[Any, ...]:
    match condition.relation:
        case Relation.NULL:
            return ()
        case Relation.ONE_OF | Relation.ONE_OF_OR_NULL:
            return tuple(condition.value)
        case _:
            return (condition.value,)


def _form(conditions: Sequence[Condition]) -> tuple[Any, ...]:
    return tuple((each.field, each.relation, len(_values_of(each))) for each in conditions)


def _padded(mapped: TableMap[Any], conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Let conditions for rare values use their column, which has an index. Pad lists of values to a power of two with
    their last value, to limit the number of forms."""
    return tuple(_padded_one(_by_rare(mapped.table.rare, each)) for each in conditions)


def _by_rare(rare: Rare | None, condition: Condition) -> Condition:
    if rare is None or condition.field != rare.field or condition.relation not in (Relation.EQUAL, Relation.ONE_OF):
        return condition
    if not set(rare.usual).isdisjoint(_values_of(condition)):
        return condition
    return Condition(rare.column, condition.relation, condition.value)


def _padded_one(condition: Condition) -> Condition:
    if condition.relation not in (Relation.ONE_OF, Relation.ONE_OF_OR_NULL) or not condition.value:
        return condition
    size = 1 << (len(condition.value) - 1).bit_length()
    values = (*condition.value, *condition.value[-1:] * (size - len(condition.value)))
    return Condition(condition.field, condition.relation, values)


def _clause(table: sa.TableClause, condition: Condition) -> sa.ColumnElement[bool]:
    column, value = _column(table, condition.field), condition.value
    match condition.relation:
        case Relation.EQUAL:
            return column == sa.literal(value, column.type)
        case Relation.AT_MOST:
            return column <= sa.literal(value, column.type)
        case Relation.AT_LEAST:
            return column >= sa.literal(value, column.type)
        case Relation.BELOW:
            return column < sa.literal(value, column.type)
        case Relation.ONE_OF:
            return _one_of(column, value)
        case Relation.NULL:
            return column.is_(None)
        case Relation.ONE_OF_OR_NULL:
            return sa.or_(column.is_(None), _one_of(column, value))


def _column(table: sa.TableClause, field: str) -> sa.ColumnElement[Any]:
    # The columns of a statement's table are those of the record, because each read returns all of them.
    found = table.c.get(field)
    return sa.column(field, type_of(Storing.TEXT)) if found is None else found


def _one_of(column: sa.ColumnElement[Any], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    # Make each value a parameter: SQLAlchemy would expand a list after all other parameters were numbered.
    return column.in_([sa.literal(value, column.type) for value in values])
