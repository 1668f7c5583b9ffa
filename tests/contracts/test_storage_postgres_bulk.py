"""Many writes as one statement on Postgres (adapters/storage/postgres/bulk.py). The contract of all storages covers the
meaning of long units (frontends/conformance/storage/long_units.py)."""

from typing import Any

import asyncpg
import msgspec
import pytest

from cambist.adapters.storage.postgres import bulk as postgres_bulk
from cambist.adapters.storage.postgres.bulk import Bulk, _text, parted
from cambist.adapters.storage.postgres.commits import Commits
from cambist.adapters.storage.sql.plan import Part, What
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import TableMap
from cambist.adapters.storage.table.writes import Increase, Remove, Write
from cambist.core.domain.payments.payments import Payment
from cambist.ports.faults import Stale
from cambist.ports.storage import Storage
from tests.contracts.postgres_wire import noted_statements
from tests.contracts.storage_kit import StorageLocation, Tally, key, payment, put, read
from tests.contracts.test_storage_postgres_together import KEEPING, accrue, add, hits, save


class TestStatement:
    async def test_remembered_statement_forms_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Chance decides which units wait together, and so the number of forms."""
        monkeypatch.setattr(postgres_bulk, "_FORMS", 3)
        bulk = Bulk()
        forms: list[list[Write]] = [
            [add(payment("pay_1"))],
            [add(key("k"))],
            [save(payment("pay_2"))],
            [add(payment("pay_1")), add(key("k"))],
            [add(key("k")), save(payment("pay_2"))],
        ]
        texts = set()
        for writes in forms:
            texts.add(bulk.statement(writes)[0])
            assert len(bulk._texts) <= 3
        assert len(texts) == len(forms)

    async def test_a_form_is_the_same_however_many_rows_there_are(self) -> None:
        """Otherwise Postgres would plan the statement anew for each number of rows."""
        bulk = Bulk()
        texts = {bulk.statement([add(payment(f"pay_{n}")) for n in range(many)])[0] for many in (1, 17, 200)}
        assert len(texts) == 1

    def test_write_unfit_for_bulk_is_a_type_error(self) -> None:
        with pytest.raises(TypeError, match="Remove"):
            Bulk().statement([Remove(KEEPING[Payment], "pay_1", 0)])

    @pytest.mark.parametrize("what", What)
    async def test_the_server_takes_every_form_of_every_table(self, migrated_database: str, what: What) -> None:
        server = await asyncpg.connect(migrated_database)
        for table in CATALOGUE:
            kept: TableMap[Any] = TableMap(table.kind, table)
            if what is What.ACCRUE and not kept.sums:
                continue
            fields = kept.setting(()) if what is What.SAVE else kept.codec.names
            await server.prepare(_text([Part(what, kept, fields, [])]))
        await server.close()


def test_repeated_and_other_writes_of_a_unit_keep_their_order() -> None:
    twice, other = add(Tally(id="t1", owner="a")), Increase(KEEPING[Tally], "t1", "count", 1)
    gone, sums = Remove(KEEPING[Payment], "pay_9", 0), accrue(hits("h1", 1))
    apart: list[Write] = [add(payment("pay_1")), save(payment("pay_2")), add(Tally(id="t2", owner="b"))]
    together, rest = parted([twice, apart[0], gone, apart[1], other, apart[2], sums])
    assert (together, rest) == (apart, [twice, gone, other, sums])


class TestLongUnits:
    @pytest.fixture
    async def storage(self, server_location: StorageLocation) -> Storage:
        return await server_location.open()

    @pytest.fixture
    def sent(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The statements of units, as they go to the server."""
        return noted_statements(monkeypatch, "fetchval", "execute")

    async def test_rows_take_one_round_trip_however_many(self, storage: Storage, sent: list[str]) -> None:
        await put(storage, *(payment(f"pay_{number}") for number in range(300)), *(key(f"k{n}") for n in range(300)))
        assert len(sent) == 1
        sent.clear()
        async with storage.unit() as unit:
            for number in range(300):
                unit[Payment].change(payment(f"pay_{number}"), settlement_id="set_1")
            unit[Tally].add(Tally(id="t1", owner="a"))
            unit[Tally].increase("t1", "count", 300)
            await unit.commit()
        assert [text.split()[0] for text in sent] == ["BEGIN;", "WITH", "INSERT", "UPDATE", "COMMIT;"]

    async def test_refused_bulk_is_repeated_write_by_write(self, storage: Storage, sent: list[str]) -> None:
        """Repeat it alone to get the error."""
        stored = [payment(f"pay_{number:02}") for number in range(20)]
        await put(storage, *stored)
        sent.clear()
        async with storage.unit() as unit:
            for number, each in enumerate(stored):
                unit[Payment].save(each if number < 5 else msgspec.structs.replace(each, version=7))
            with pytest.raises(Stale, match="pay_05"):
                await unit.commit()
        assert [text.split()[0] for text in sent] == ["WITH", "BEGIN;", *["UPDATE"] * 6, "ROLLBACK;"]
        assert await read(storage, Payment, "pay_00") == stored[0]

    async def test_deadlocked_bulk_is_repeated_write_by_write_in_its_turn(
        self, storage: Storage, sent: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In bulk it would meet the same one again and again."""
        tried: list[int] = []

        async def crosswise(_: Commits, _connection: Any, _mark: Any, writes: Any) -> None:
            tried.append(len(writes))
            raise asyncpg.DeadlockDetectedError("two units wait for each other")

        monkeypatch.setattr(Commits, "_in_bulk", crosswise)
        await put(storage, *(payment(f"pay_{number}") for number in range(20)))
        assert tried == [20]
        assert [text.split("(")[0].split()[0] for text in sent] == ["BEGIN;", "SELECT", *["INSERT"] * 20, "COMMIT;"]
        assert await read(storage, Payment, "pay_19") is not None
