"""Rows that are unreadable for a while, written by a newer program or damaged. Gives the storage in memory the
behaviour of the database storages (docs/operations.md "Rows that cannot be read")."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from cambist.adapters.storage.memory.rows import Reader, Rows, matching
from cambist.adapters.storage.table.criteria import Query, Unread
from cambist.adapters.storage.table.table_map import TableMap
from cambist.ports.faults import Unreadable
from cambist.ports.storage import R

OBJECTS = ("payments", "refunds", "withdrawals", "exchanges", "subscriptions")
TABLES = ("jobs", "events", "deliveries", *OBJECTS)
"""Tables with rows that may be damaged."""
_WHY = "status (KeyError)"


class Damage:
    """The rows that are unreadable now."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, str]] = {}
        """Merchant account of each row, by table and id."""
        self.aside: dict[str, Any] = {}
        """Jobs moved out of their table, by id."""
        self.noted: set[tuple[str, str]] = set()
        """Table and id of the unreadable rows that a process met and none has handled since."""
        self.put_back: dict[str, datetime] = {}
        """Moments at which jobs moved out came back into their table, by id."""

    def met(self, table: str, record_ids: Iterable[str]) -> None:
        """Record that a program met these unreadable rows. Jobs are taken out of their table instead (storage.py)."""
        if table != "jobs":
            self.noted.update((table, each) for each in record_ids)

    def readable_again(self) -> list[tuple[str, str]]:
        """Return the rows met before that are readable now."""
        return sorted(each for each in self.noted if not self.hits(*each))

    def hits(self, table: str, record_id: str) -> bool:
        """Whether it cannot be read."""
        return record_id in self.rows.get(table, ())

    def written(self, table: str, record_id: str) -> None:
        """Record that a program that had read the row before has overwritten it, so it is readable again."""
        if table in self.rows:
            self.rows[table].pop(record_id, None)

    def befalls(self, account_id: str) -> bool:
        """Whether a row of this account, or a job, cannot be read now."""
        return any(owner == account_id for rows in self.rows.values() for owner in rows.values())


class DamagedReader(Reader):
    """Reads that raise Unreadable or skip the row, as the caller requested."""

    def __init__(self, rows_of: Callable[[str], Rows], damage: Damage) -> None:
        super().__init__(rows_of)
        self._damage = damage

    async def get(self, mapped: TableMap[R], record_id: str) -> R | None:
        if self._damage.hits(mapped.name, record_id) and record_id in self._rows_of(mapped.name):
            self._damage.met(mapped.name, [record_id])
            raise Unreadable(mapped.codec.kind.__name__, record_id, _WHY)
        return await super().get(mapped, record_id)

    async def find(self, mapped: TableMap[R], asked: Query) -> list[R]:
        damaged = self._damage.rows.get(mapped.name)
        if not damaged:
            return await super().find(mapped, asked)
        number = mapped.codec.index["id"]
        hit = [row for row in matching(self._rows_of(mapped.name), mapped, asked.conditions) if row[number] in damaged]
        if not hit:
            return await super().find(mapped, asked)
        self._damage.met(mapped.name, [row[number] for row in hit])
        whole = {key: row for key, row in self._rows_of(mapped.name).items() if key not in damaged}
        if asked.unread is Unread.NEXT:
            return await Reader(lambda _: whole).find(mapped, asked)
        found = await super().find(mapped, asked)
        if asked.unread is Unread.RAISE:
            for record in found:
                if record.id in damaged:
                    raise Unreadable(mapped.codec.kind.__name__, record.id, _WHY)
        return [record for record in found if record.id not in damaged]
