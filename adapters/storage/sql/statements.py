"""Statements of the hot path, compiled once by SQLAlchemy Core and then run as text on the driver.

SQLAlchemy's own execution costs some hundred microseconds a statement, several times the cost of SQLite or of a
round trip to Postgres.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import Dialect

from ..table.table_map import Rule, TableMap
from ..table.unit import refuse_both
from ..table.writes import Accrue, Add, Increase, Remove, Save, Write
from .schema import HEARTBEAT

Statement = tuple[str, Sequence[Any]]
"""Text and parameters in the driver's form."""


def beat(parameter: str) -> str:
    """Return the statement that writes the heartbeat row.

    `parameter` is the driver's placeholder for the time (microseconds).
    """
    return (
        f"INSERT INTO {HEARTBEAT} (id, beaten_at) VALUES ('storage', {parameter})"  # noqa: S608 - nothing from outside
        " ON CONFLICT (id) DO UPDATE SET beaten_at = excluded.beaten_at"
    )


class Prepared:
    """Statement as text, with the driver's order of parameters.

    Parameters that SQLAlchemy adds itself (an offset of 0) have known values.
    """

    def __init__(self, statement: sa.sql.ClauseElement, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect)
        self.text = str(compiled)
        self._names: tuple[str, ...] = tuple(compiled.positiontup)
        self._constants: dict[str, Any] = {k: v for k, v in compiled.params.items() if v is not None}

    def with_values(self, **values: Any) -> Statement:
        """Return the statement with its parameters, given by name."""
        known = {**self._constants, **values}
        return self.text, [known[name] for name in self._names]

    def expect(self, *names: str) -> str:
        """Return the text, for callers who pass the parameters in this order themselves."""
        if self._names != names:
            raise ValueError(f"the parameters are {self._names}, not {names}")
        return self.text


class TableStatements:
    """Statements that read and write one table by id.

    A write other than an insert changes no row if the record is stale.
    """

    def __init__(self, mapped: TableMap[Any], table: sa.TableClause, dialect: Dialect) -> None:
        self._table_map = mapped
        self._table = table
        self._dialect = dialect
        names = mapped.codec.names
        values = {name: sa.bindparam(name, type_=table.c[name].type) for name in names}
        self.get = Prepared(sa.select(table).where(table.c.id == values["id"]), dialect).expect("id")
        self._insert = Prepared(table.insert().inline().values(values), dialect).expect(*names)
        # A parameter must not have the name of a column that is set, hence the underscores.
        self._guard = sa.and_(
            table.c.id == sa.bindparam("id_", type_=table.c.id.type),
            table.c.version == sa.bindparam("version_", type_=table.c.version.type),
        )
        self._inserts: dict[tuple[str, ...], str] = {}
        self._updates: dict[tuple[str, ...], str] = {}
        sums = [names[number] for number in mapped.sums_in_order]
        unmoved = [table.c[name] == sa.bindparam(f"{name}_", type_=table.c[name].type) for name in sums]
        self._delete = Prepared(table.delete().where(self._guard, *unmoved), dialect).expect(
            "id_", "version_", *(f"{name}_" for name in sums)
        )
        self._increases = {names[number]: self._increase(names[number]) for number in mapped.sums}
        self._upserts: dict[int, str] = {}
        taken: sa.Select[Any] = sa.select(sa.literal_column("1")).select_from(table).where(table.c.id == values["id"])
        self._id_taken = Prepared(taken, dialect).expect("id")
        self._rules = [(rule, self._holder(rule)) for rule in mapped.rules]

    def of(self, write: Write) -> Statement:
        """Return the statement of a write."""
        # Check the two most frequent kinds first: a `match` takes as long as SQLite itself.
        if isinstance(write, Add):
            return self._insert, write.row
        if isinstance(write, Save):
            setting = self._table_map.setting(write.changed)
            return self.update(setting), (*self._table_map.taken(write.changed, write.row), write.id, write.version)
        match write:
            case Remove(_, record_id, version, sums):
                return self._delete, (record_id, version, *sums)
            case Increase(_, record_id, field, by):
                return self._increases[field].with_values(id_=record_id, by_=by)
            case Accrue():
                return self.accrue([write])

    def insert(self, names: tuple[str, ...]) -> str:
        """Return the text that inserts a row with these fields and null in all others."""
        known = self._inserts.get(names)
        if known is None:
            values = {name: sa.bindparam(name, type_=self._table.c[name].type) for name in names}
            insert = Prepared(self._table.insert().inline().values(values), self._dialect)
            known = self._inserts[names] = insert.expect(*names)
        return known

    def update(self, setting: tuple[str, ...]) -> str:
        """Return the text that sets these fields in the row with an id and version, created on first use."""
        known = self._updates.get(setting)
        if known is None:
            values = {name: sa.bindparam(name, type_=self._table.c[name].type) for name in setting}
            update = Prepared(self._table.update().values(values).where(self._guard), self._dialect)
            known = self._updates[setting] = update.expect(*setting, "id_", "version_")
        return known

    def accrue(self, accruals: Sequence[Accrue]) -> Statement:
        """Return one statement for these accruals, in order."""
        return self.upsert(len(accruals)), [value for accrual in accruals for value in accrual.row]

    def clashes(self, write: Write) -> Iterator[tuple[str, Statement]]:
        """Yield the unique rules that apply to a write, in the order of the catalogue, each with a statement that
        finds a row if the rule would be broken.

        A database names any of several broken rules; use cases must always get the same one.
        """
        match write:
            case Add(_, record_id, row):
                yield self._table_map.id_rule, (self._id_taken, (record_id,))
            case Save(_, record_id, _, row, _):
                pass
            case _:
                return
        for rule, holder in self._rules:
            key = rule.key(row)
            if key is not None:
                values = dict(zip(rule.fields, key, strict=True)) | rule.where
                yield rule.name, holder.with_values(**values, id_=record_id)

    def _holder(self, rule: Rule) -> Prepared:
        columns = [self._table.c[field] for field in (*rule.fields, *rule.where)]
        clauses = [column == sa.bindparam(column.name, type_=column.type) for column in columns]
        others = self._table.c.id != sa.bindparam("id_", type_=self._table.c.id.type)
        return Prepared(
            sa.select(sa.literal_column("1")).select_from(self._table).where(*clauses, others), self._dialect
        )

    def _increase(self, field: str) -> Prepared:
        column = self._table.c[field]
        total = self._whole(column + sa.bindparam("by_", type_=sa.BigInteger()))
        identified = self._table.c.id == sa.bindparam("id_", type_=self._table.c.id.type)
        return Prepared(self._table.update().values({field: total}).where(identified), self._dialect)

    def _whole(self, total: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """Return null for a sum beyond 64 bits, so that the column refuses it. SQLite would make a float of it."""
        if self._dialect.name != "sqlite":
            return total
        return sa.case((sa.func.typeof(total) == sa.literal_column("'integer'"), total))

    def upsert(self, rows: int) -> str:
        """Return the text for this number of rows, created on first use."""
        if rows not in self._upserts:
            names, columns = self._table_map.codec.names, self._table.c
            insert = self._inserting()
            values = [
                {name: sa.bindparam(f"{name}_{row}", type_=columns[name].type) for name in names} for row in range(rows)
            ]
            sums = [names[index] for index in sorted(self._table_map.sums)]
            insert = insert.values(values).on_conflict_do_update(
                index_elements=[columns.id],
                set_={name: self._whole(columns[name] + insert.excluded[name]) for name in sums},
            )
            order = [f"{name}_{row}" for row in range(rows) for name in names]
            self._upserts[rows] = Prepared(insert, self._dialect).expect(*order)
        return self._upserts[rows]

    def _inserting(self) -> Any:
        # Use only the dialect in use: each takes some megabytes.
        if self._dialect.name == "sqlite":
            from sqlalchemy.dialects import sqlite

            return sqlite.insert(self._table)
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(self._table)


def ids_of_kind(kind: str) -> tuple[str, str]:
    """Return the range of the ids of a kind of jobs: the start, and the first text after the end (ports/jobs.py:

    Job.id).
    """
    return f"{kind}:", f"{kind};"


class JobStatements:
    """Statements that claim jobs.

    `now` comes from the storage's clock, or from `now_in_database` if the database's clock decides.
    """

    def __init__(
        self, jobs: sa.TableClause, dialect: Dialect, now_in_database: sa.ColumnElement[int] | None = None
    ) -> None:
        now: sa.ColumnElement[Any] = sa.bindparam("now", type_=sa.BigInteger())
        if now_in_database is not None:
            now = sa.func.coalesce(now, now_in_database, type_=sa.BigInteger())
        free = sa.or_(jobs.c.leased_until.is_(None), jobs.c.leased_until <= now)
        low, high = (sa.bindparam(name, type_=jobs.c.id.type) for name in ("low", "high"))
        # Adding zero keeps SQLite from scanning all due jobs for the few of one kind.
        due = jobs.c.due if dialect.name != "sqlite" else jobs.c.due + sa.literal_column("0")

        def claim(order: sa.ColumnElement[Any], *which: sa.ColumnElement[bool]) -> Prepared:
            # Skip locked rows (Postgres), so that claimers do not wait for each other. This must be a CTE, because the
            # planner may run a plain subquery with a limit more than once.
            picked = (
                sa.select(jobs.c.id)
                .where(order <= now, free, *which)
                .order_by(order, jobs.c.id)
                .limit(sa.bindparam("limit", type_=sa.BigInteger()))
                .with_for_update(skip_locked=True)
                .cte("picked")
            )
            taken = jobs.update().where(jobs.c.id.in_(sa.select(picked.c.id)))
            taken = taken.values(
                attempts=jobs.c.attempts + sa.literal_column("1"),
                version=jobs.c.version + sa.literal_column("1"),
                leased_until=now + sa.bindparam("lease", type_=sa.BigInteger()),
            )
            return Prepared(taken.returning(*jobs.c), dialect)

        of_kind = (jobs.c.id >= low, jobs.c.id < high)
        of_others = (sa.or_(jobs.c.id < low, jobs.c.id >= high),)
        self._claims = {
            (False, False): claim(jobs.c.due),
            (True, False): claim(due, *of_kind),
            (False, True): claim(jobs.c.due, *of_others),
        }
        some: sa.Select[Any] = sa.select(sa.literal_column("1")).limit(sa.literal_column("1"))
        self._of_kind_due = Prepared(some.where(*of_kind, due <= now, free), dialect)
        self._of_others_due = Prepared(some.where(*of_others, jobs.c.due <= now, free), dialect)
        held, version = sa.bindparam("id_", type_=jobs.c.id.type), sa.bindparam("version_", type_=sa.BigInteger())
        until = now + sa.bindparam("lease", type_=sa.BigInteger())
        whose = sa.and_(jobs.c.id == held, jobs.c.version == version, jobs.c.leased_until.is_not(None))
        self.renew = Prepared(jobs.update().where(whose).values(leased_until=until), dialect)
        self.next_due = Prepared(
            sa.select(jobs.c.due).where(free).order_by(jobs.c.due, jobs.c.id).limit(sa.literal_column("1")), dialect
        )

    def claim(self, *, limit: int, lease: int, now: int | None, kind: str | None, but_kind: str | None) -> Statement:
        """Return the statement that claims due jobs. Raises ValueError if both `kind` and `but_kind` are given."""
        refuse_both(kind, but_kind)
        low, high = ids_of_kind(kind or but_kind or "")
        claim = self._claims[kind is not None, but_kind is not None]
        return claim.with_values(now=now, limit=limit, lease=lease, low=low, high=high)

    def any_due(self, *, now: int, kind: str | None, but_kind: str | None) -> Statement:
        """Return a statement that finds a row if such a due job exists."""
        low, high = ids_of_kind(kind or but_kind or "")
        return (self._of_others_due if kind is None else self._of_kind_due).with_values(now=now, low=low, high=high)
