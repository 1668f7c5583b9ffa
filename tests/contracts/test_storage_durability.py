"""Our storages pass the shipped contract of units that need not be on disk. Also the settings that Postgres gets for
them."""

import asyncio
import signal

import pytest

from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.payments.payments import Payment
from cambist.frontends.conformance.storage.durability import *  # noqa: F403 - its tests
from cambist.frontends.conformance.storage.durability import put_lightly
from cambist.ports.storage import Storage
from tests.contracts.postgres_wire import noted_statements
from tests.contracts.storage_kit import StorageLocation, key, payment, put, read
from tests.servers import own_postgres

UNAWAITED = "set_config('synchronous_commit', 'off', true)"


@pytest.fixture
async def sent(server_location: StorageLocation, monkeypatch: pytest.MonkeyPatch) -> tuple[Storage, list[str]]:
    """A storage on Postgres, and the changes that it sends."""
    storage = await server_location.open()
    return storage, noted_statements(monkeypatch, "fetchval")


@pytest.mark.parametrize("many", [1, 2, 20], ids=["one row", "some", "a long unit"])
async def test_postgres_commit_waits_for_the_disk_by_default(sent: tuple[Storage, list[str]], many: int) -> None:
    """And the session's other commits do as ever. A long unit, which is work in the background, is always durable."""
    storage, statements = sent
    await put_lightly(storage, *(payment(f"pay_{number}") for number in range(many)))
    assert [UNAWAITED in text for text in statements] == [many < 20]
    await put(storage, key("k1"), key("k2"))
    assert UNAWAITED not in statements[-1]


async def test_a_group_on_postgres_waits_for_the_disk_when_one_of_it_must(sent: tuple[Storage, list[str]]) -> None:
    storage, statements = sent

    async def add(number: int, *, durable: bool) -> None:
        async with storage.unit() as unit:
            unit[Payment].add(payment(f"pay_{number}"))
            unit[IdempotencyKey].add(key(f"k{number}"))
            await unit.commit(durable=durable)

    for first, durable in ((0, ()), (10, (17,))):
        statements.clear()
        await asyncio.gather(*(add(n, durable=n in durable) for n in range(first, first + 10)))
        assert [UNAWAITED in text for text in statements] == [True, True, not durable]


async def test_a_postgres_that_crashes_keeps_what_is_durable_and_all_before_it() -> None:
    """The last, non-durable unit is stored whole or not at all."""
    with own_postgres() as server:
        await migrate(server.url)
        storage = await PostgresStorage.open(server.url)
        await put_lightly(storage, payment("pay_1"), key("k1"))
        await put(storage, payment("pay_2"))
        await put_lightly(storage, payment("pay_3"), key("k3"))
        await asyncio.to_thread(server.stop, signal.SIGQUIT)
        await asyncio.to_thread(server.start)
        await storage.close()
        again = await PostgresStorage.open(server.url)
        assert await read(again, Payment, "pay_1") == payment("pay_1")
        assert await read(again, IdempotencyKey, "k1") == key("k1")
        assert await read(again, Payment, "pay_2") == payment("pay_2")
        assert (await read(again, Payment, "pay_3") is None) == (await read(again, IdempotencyKey, "k3") is None)
        await again.close()
