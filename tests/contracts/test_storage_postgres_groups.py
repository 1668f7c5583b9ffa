"""Group commit on Postgres (adapters/storage/postgres/groups.py)."""

import asyncio
from typing import Any

import asyncpg
import pytest

from cambist.adapters.storage.postgres import groups as postgres_groups
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.accounts.limit_hits import LimitHits
from cambist.core.domain.payments.payments import Payment
from cambist.ports.faults import Conflict, Stale, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.storage import Storage
from tests.contracts.postgres_wire import noted_statements
from tests.contracts.storage_kit import START, StorageLocation, job, key, must_read, payment, put, read


def hits(record_id: str, count: int) -> LimitHits:
    return LimitHits(id=record_id, minute=START, counter="money:ip", count=count)


class TestGroups:
    """Units that wait together are one statement, and no unit blocks another."""

    @pytest.fixture
    async def storage(self, server_location: StorageLocation) -> Storage:
        return await server_location.open()

    @pytest.fixture
    def sent(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The statements of units, as they go to the server."""
        return noted_statements(monkeypatch, "fetchval")

    async def test_units_that_wait_together_are_written_together(self, storage: Storage, sent: list[str]) -> None:
        await asyncio.gather(*(put(storage, payment(f"pay_{n}"), key(f"k{n}")) for n in range(40)))
        assert len(sent) == 3  # two go at once, and alone
        for number in range(40):
            assert await read(storage, Payment, f"pay_{number}") is not None
            assert await read(storage, IdempotencyKey, f"k{number}") is not None

    async def test_column_that_is_null_in_every_row_is_left_out(self, storage: Storage, sent: list[str]) -> None:
        await asyncio.gather(*(put(storage, payment(f"pay_{number}")) for number in range(20)))
        assert any('"description"' not in text for text in sent)

    async def test_a_refused_unit_fails_alone(self, storage: Storage) -> None:
        await put(storage, key("taken"))
        outcomes = await asyncio.gather(
            *(put(storage, payment(f"pay_{n}"), key("taken" if n == 27 else f"k{n}")) for n in range(40)),
            return_exceptions=True,
        )
        assert [number for number, outcome in enumerate(outcomes) if outcome is not None] == [27]
        assert isinstance(outcomes[27], Conflict)
        assert outcomes[27].rule == "idempotency_keys_id"
        assert await read(storage, Payment, "pay_27") is None
        assert await read(storage, Payment, "pay_39") is not None

    async def test_two_writers_of_one_row_have_one_winner(self, storage: Storage) -> None:
        await put(storage, *(payment(f"pay_{n}") for n in range(10)))

        async def describe(number: int) -> None:
            async with storage.unit() as unit:
                unit[Payment].change(payment(f"pay_{number % 10}"), description=str(number))
                await unit.commit()

        outcomes = await asyncio.gather(*(describe(number) for number in range(20)), return_exceptions=True)
        for number in range(10):
            won = number if outcomes[number] is None else number + 10
            lost = outcomes[number + 10 if won == number else number]
            assert outcomes[won] is None
            assert isinstance(lost, Stale)
            stored = await must_read(storage, Payment, f"pay_{number}")
            assert (stored.description, stored.version) == (str(won), 1)

    async def test_sums_are_added_up(self, storage: Storage) -> None:
        async def count(number: int) -> None:
            async with storage.unit() as unit:
                unit[LimitHits].accrue(hits(f"c{number % 3}", 1), hits("all", number))
                await unit.commit()

        await asyncio.gather(*(count(number) for number in range(30)))
        assert [(await must_read(storage, LimitHits, f"c{n}")).count for n in range(3)] == [10, 10, 10]
        assert (await must_read(storage, LimitHits, "all")).count == sum(range(30))

    async def test_a_sum_beyond_64_bits_is_its_own_units_fault(self, storage: Storage) -> None:
        async def count(name: str, number: int) -> None:
            async with storage.unit() as unit:
                unit[LimitHits].accrue(hits(name, number))
                await unit.commit()

        await count("full", 2**63 - 1)
        outcomes = await asyncio.gather(
            *(count("full" if n == 5 else f"c{n}", 1) for n in range(10)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [type(None)] * 5 + [ValueError] + [type(None)] * 4

    async def test_sum_beyond_64_bits_refuses_only_the_last_unit(self, storage: Storage) -> None:
        async def count(number: int) -> None:
            async with storage.unit() as unit:
                unit[LimitHits].accrue(hits("together" if number >= 4 else f"c{number}", 2**62))
                unit[IdempotencyKey].add(key(f"k{number}"))
                await unit.commit()

        outcomes = await asyncio.gather(*(count(number) for number in range(6)), return_exceptions=True)
        assert outcomes[:4] == [None] * 4
        assert sorted(type(outcome).__name__ for outcome in outcomes[4:]) == ["NoneType", "ValueError"]
        assert (await must_read(storage, LimitHits, "together")).count == 2**62

    async def test_waiting_units_are_written_before_the_storage_closes(
        self, storage: Storage, server_location: StorageLocation
    ) -> None:
        tasks = [asyncio.create_task(put(storage, key(f"k{n}"))) for n in range(150)]
        await asyncio.sleep(0)
        await storage.close()
        await asyncio.gather(*tasks)
        again = await server_location.open()
        assert await read(again, IdempotencyKey, "k149") is not None

    async def test_unit_cancelled_while_waiting_is_not_written(self, storage: Storage) -> None:
        tasks = [asyncio.create_task(put(storage, key(f"k{n}"))) for n in range(10)]
        await asyncio.sleep(0)
        tasks[9].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert await read(storage, IdempotencyKey, "k8") is not None
        assert await read(storage, IdempotencyKey, "k9") is None

    async def test_jobs_are_woken_up_for_who_was_cancelled_too_late(
        self, server_location: StorageLocation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage = await server_location.open()
        plain = asyncpg.Connection.fetchval
        under_way = asyncio.Event()

        async def noted(self: Any, text: str, *values: Any, **options: Any) -> Any:
            if "unnest" in text:
                under_way.set()
            return await plain(self, text, *values, **options)

        monkeypatch.setattr(asyncpg.Connection, "fetchval", noted)
        tasks = [asyncio.create_task(put(storage, job(f"j{n}"), key(f"k{n}"))) for n in range(10)]
        await under_way.wait()
        tasks[9].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert tasks[9].cancelled()
        assert await read(storage, Job, "j9") is not None
        await storage.close()
        assert ["j9"] in server_location.woken_up

    async def test_a_storage_that_is_stuck_refuses(self, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgres_groups, "QUEUE", 5)
        outcomes = await asyncio.gather(*(put(storage, key(f"k{n}")) for n in range(10)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [type(None)] * 7 + [Unavailable] * 3

    async def test_a_connection_that_breaks_loses_no_unit_of_a_group(
        self, storage: Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whether the group was committed is unknown; each of its units is made, once."""
        plain = asyncpg.Connection.fetchval
        left = [2, 2]

        async def breaking(self: Any, text: str, *values: Any, **options: Any) -> Any:
            if "unnest" not in text or not left:
                return await plain(self, text, *values, **options)
            if left.pop() == 2 and len(left) == 0:
                await plain(self, text, *values, **options)
            raise asyncpg.ConnectionDoesNotExistError("cut")

        monkeypatch.setattr(asyncpg.Connection, "fetchval", breaking)
        for turn in range(2):
            await asyncio.gather(*(put(storage, payment(f"pay_{turn}_{n}"), key(f"k{turn}_{n}")) for n in range(12)))
        assert left == []
        async with storage.unit() as unit:
            assert await unit[Payment].total() == await unit[IdempotencyKey].total() == 24
