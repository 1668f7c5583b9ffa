"""Batches sent to Postgres: the writes of a unit as one statement, and the reads by id of one iteration of the event
loop."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy.dialects import postgresql

from cambist.adapters.storage.postgres.joined import joined
from cambist.adapters.storage.postgres.lookups import Lookups
from cambist.adapters.storage.sql.schema import TablesByName
from cambist.adapters.storage.sql.tables import Tables
from cambist.adapters.storage.table.table_map import TableMap, keep
from cambist.adapters.storage.table.writes import Accrue, Add, Save, Write
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.accounts.limit_hits import LimitHits
from cambist.core.domain.payments.payments import Payment
from cambist.ports.faults import Stale, Unavailable
from tests.contracts.postgres_wire import noted_statements
from tests.contracts.storage_kit import KIT_CATALOGUE, START, StorageLocation, Tally, key, must_read, payment, put, read

KEEPING = keep(KIT_CATALOGUE)
TABLES = Tables(TablesByName(KIT_CATALOGUE), postgresql.asyncpg.dialect())  # type: ignore[no-untyped-call]  # theirs


def add(record: Any) -> Add:
    kept = KEEPING[type(record)]
    return Add(kept, record.id, kept.codec.encode(record))


def save(record: Any) -> Save:
    kept = KEEPING[type(record)]
    return Save(kept, record.id, record.version, kept.codec.encode(record))


def accrue(record: Any) -> Accrue:
    kept = KEEPING[type(record)]
    return Accrue(kept, record.id, kept.codec.encode(record))


def hits(record_id: str, count: int) -> LimitHits:
    return LimitHits(id=record_id, minute=START, counter="money:ip", count=count)


def is_joined(*writes: Write) -> bool:
    return joined(TABLES.of_unit(writes)) is not None


class TestOneStatement:
    """Parts of one statement do not see each other, so none may need what another did."""

    def test_writes_of_different_records_are_joined(self) -> None:
        assert is_joined(add(payment("pay_1")), add(payment("pay_2")), save(payment("pay_3")), add(key("k")))
        assert is_joined(add(payment("pay_1")), accrue(Tally(id="t1", owner="a")), accrue(Tally(id="t2", owner="b")))

    def test_a_lone_statement_stays_as_it_is(self) -> None:
        assert not is_joined(add(payment("pay_1")))

    def test_writes_of_one_record_are_not(self) -> None:
        assert not is_joined(add(payment("pay_1")), save(payment("pay_1")))

    def test_a_table_that_is_accrued_and_written_is_not(self) -> None:
        assert not is_joined(add(Tally(id="t1", owner="a")), accrue(Tally(id="t1", owner="a")))

    def test_long_units_are_not(self) -> None:
        assert not is_joined(*(add(payment(f"pay_{number}")) for number in range(9)))

    def test_parameters_are_counted_on(self) -> None:
        one = joined(TABLES.of_unit([add(key("a")), add(key("b"))]))
        assert one is not None
        text, parameters = one
        width = len(KEEPING[IdempotencyKey].codec.names)
        assert len(parameters) == 2 * width
        assert f"${2 * width}" in text
        assert f"${2 * width + 1}" not in text

    async def test_a_unit_is_one_message(
        self, server_location: StorageLocation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage = await server_location.open()
        sent = noted_statements(monkeypatch, "execute", "fetch", "fetchval")
        await put(storage, payment("pay_1"), payment("pay_2"), key("k"))
        assert [text[:4] for text in sent] == ["WITH"]

    @pytest.mark.parametrize("refused", [0, 1, 2])
    async def test_a_refused_part_takes_all_back(self, server_location: StorageLocation, refused: int) -> None:
        storage = await server_location.open()
        records: list[Any] = [payment("pay_1"), payment("pay_2"), payment("pay_3")]
        await put(storage, *records)
        records[refused] = payment(f"pay_{refused + 1}", version=7)
        async with storage.unit() as unit:
            for record in records:
                unit[Payment].change(record, description="changed")
            unit[IdempotencyKey].add(key("k"))
            with pytest.raises(Stale, match=f"pay_{refused + 1}"):
                await unit.commit()
        for record in records:
            assert (await must_read(storage, Payment, record.id)).description is None
        assert await read(storage, IdempotencyKey, "k") is None


class Server:
    """A server that answers queries about idempotency keys on request."""

    def __init__(self, *ids: str) -> None:
        self._ids = set(ids)
        self.asked: list[list[str]] = []
        self.goes = asyncio.Event()
        self.goes.set()
        self.fault: Exception | None = None

    async def fetch(self, text: str, parameters: Sequence[Any]) -> Sequence[Any]:
        ids = [each.strip('"') for each in parameters[0].strip("{}").split(",")] if "ANY" in text else [parameters[0]]
        self.asked.append(ids)
        await asyncio.sleep(0)
        await self.goes.wait()
        if self.fault:
            raise self.fault
        kept = KEEPING[IdempotencyKey]
        return [kept.codec.encode(key(each)) for each in dict.fromkeys(ids) if each in self._ids]


class TestLookups:
    """Reads of one iteration of the event loop are answered together, each with the row of its own id."""

    KEYS: TableMap[Any] = KEEPING[IdempotencyKey]

    async def ask(self, lookups: Lookups, record_id: str) -> str | None:
        row = await lookups.row(self.KEYS, record_id)
        return None if row is None else str(row[self.KEYS.codec.index["id"]])

    async def test_all_but_the_first_of_one_turn_are_one_question(self) -> None:
        """The first does not know that others follow."""
        server = Server("a", "b", "d")
        lookups = Lookups(TABLES, server.fetch)
        assert await asyncio.gather(*(self.ask(lookups, each) for each in "dabca")) == ["d", "a", "b", None, "a"]
        assert server.asked == [["d"], ["a", "b", "c", "a"]]

    async def test_single_lookup_is_asked_alone(self) -> None:
        server = Server("a")
        lookups = Lookups(TABLES, server.fetch)
        assert await self.ask(lookups, "a") == "a"
        assert await self.ask(lookups, "b") is None
        assert server.asked == [["a"], ["b"]]

    async def test_lookups_made_meanwhile_are_gathered(self) -> None:
        server = Server(*"abcdefgh")
        lookups = Lookups(TABLES, server.fetch)
        server.goes.clear()
        asking = []
        for each in "abcdefgh":
            asking.append(asyncio.create_task(self.ask(lookups, each)))
            for _ in range(3):
                await asyncio.sleep(0)
        assert server.asked == [["a"], ["b"], ["c"], ["d"]]
        server.goes.set()
        assert await asyncio.gather(*asking) == list("abcdefgh")
        assert server.asked == [["a"], ["b"], ["c"], ["d"], ["e", "f", "g", "h"]]

    async def test_cancelled_lookup_does_not_disturb_the_others(self) -> None:
        server = Server("a", "b")
        lookups = Lookups(TABLES, server.fetch)
        server.goes.clear()
        gone, stays = (asyncio.create_task(self.ask(lookups, each)) for each in "ab")
        for _ in range(3):
            await asyncio.sleep(0)
        gone.cancel()
        server.goes.set()
        assert await stays == "b"

    async def test_a_fault_reaches_everybody_and_the_next_are_answered(self) -> None:
        server = Server("a", "b")
        lookups = Lookups(TABLES, server.fetch)
        server.fault = Unavailable("away")
        outcomes = await asyncio.gather(*(self.ask(lookups, each) for each in "ab"), return_exceptions=True)
        assert [type(each) for each in outcomes] == [Unavailable, Unavailable]
        assert outcomes[0] is not outcomes[1]
        server.fault = None
        assert await self.ask(lookups, "a") == "a"

    async def test_many_are_read_from_a_real_server(self, server_location: StorageLocation) -> None:
        storage = await server_location.open()
        ids = [f'pay_{number}\\"{{NULL}},' for number in range(310)]  # all special characters of an array
        await put(storage, *(payment(each) for each in ids[:300]))
        found = await asyncio.gather(*(read(storage, Payment, each) for each in ids))
        assert [each and each.id for each in found] == [*ids[:300], *[None] * 10]
