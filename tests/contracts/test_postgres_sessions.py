"""Sessions of Postgres are set up by statements, so that a pooler before it lets them through."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import asyncpg
import pytest

from cambist.adapters.postgres_away import away
from cambist.adapters.postgres_sessions import connect
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.adapters.storage.postgres.sessions import READS, UNITS
from cambist.core.usecases.operators.findings import Level
from cambist.frontends.app.maintenance import database_facts
from cambist.frontends.operations.doctor import judge_database
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import NotConfigured, Unavailable
from tests.poolers import own_pgbouncer
from tests.servers import _execute, _run, own_postgres
from tests.stories.processes import eventually
from tests.tables import table


@pytest.fixture
def pooled(migrated_database: str) -> Iterator[str]:
    with own_pgbouncer(migrated_database, "session") as url:
        yield url


@pytest.fixture
def shared(migrated_database: str) -> Iterator[str]:
    with own_pgbouncer(migrated_database, "transaction") as url:
        yield url


async def _settings_of(storage: PostgresStorage, names: "list[str]", *, reading: bool) -> dict[str, str]:
    ask = storage._ask if reading else storage._fetch
    rows = await ask("SELECT name, current_setting(name) FROM unnest($1::text[]) AS asked (name)", (names,))
    return {row[0]: row[1] for row in rows}


async def test_settings_hold_behind_a_pooler_by_session(pooled: str) -> None:
    storage = await PostgresStorage.open(pooled)
    try:
        assert await _settings_of(storage, list(UNITS), reading=False) == UNITS
        assert await _settings_of(storage, list(READS), reading=True) == READS
    finally:
        await storage.close()


async def test_doctor_names_a_pooler_by_transaction(shared: str) -> None:
    facts = await database_facts(Settings(database_url=shared))
    assert facts is not None
    finding = judge_database(facts, is_live=True)
    assert (finding.level, "transaction mode" in finding.message) == (Level.FAILED, True), finding


async def test_storage_does_not_open_behind_a_pooler_by_transaction(shared: str) -> None:
    with pytest.raises(NotConfigured, match="transaction mode"):
        await PostgresStorage.open(shared)


class TestPoolerByTransaction:
    """With CAMBIST_DATABASE_DIRECT_URL past it (adapters/postgres_pooled.py). The storage's whole contract is tried
    there, too (tests/contracts/conftest.py)."""

    async def test_settings_hold_in_each_transaction_and_stay_in_no_session(
        self, shared: str, migrated_database: str
    ) -> None:
        storage = await PostgresStorage.open(shared, direct_url=migrated_database)
        try:
            names = [*UNITS, "synchronous_commit"]
            assert await _settings_of(storage, names, reading=False) == {**UNITS, "synchronous_commit": "on"}
            kept = {name: value for name, value in READS.items() if not name.startswith("default")}
            assert await _settings_of(storage, list(kept), reading=True) == kept
            assert (await storage._ask("SELECT current_setting('transaction_read_only')", ()))[0][0] == "on"
            other = await asyncpg.connect(shared, statement_cache_size=0)
            default = await asyncpg.connect(migrated_database)
            for name in (*UNITS, *READS):
                question = f"SELECT current_setting('{name}')"
                assert await other.fetchval(question) == await default.fetchval(question), name
            assert (
                await other.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE '%asyncpg_stmt%'")
                == 0
            )
            await other.close()
            await default.close()
        finally:
            await storage.close()

    async def test_promoted_server_is_noticed_on_connections_that_stay(self) -> None:
        """The pooler keeps our connections and opens others to the server, which are on another timeline."""
        with own_postgres() as server, own_pgbouncer(server.url, "transaction") as url:
            await asyncio.to_thread(_run_migration, server.url)
            storage = await PostgresStorage.open(url, direct_url=server.url)
            try:
                before = await _marked(storage)
                await asyncio.to_thread(server.promote)
                await eventually(lambda: _works(storage))
                assert storage.location() == "", "nothing is known about the promoted server yet"
                after = await _marked(storage)
                assert storage.follows(before, after)
            finally:
                await storage.close()

    async def test_doctor_reads_the_server_itself(self, shared: str, migrated_database: str) -> None:
        facts = await database_facts(Settings(database_url=shared, database_direct_url=migrated_database))
        assert facts is not None
        assert judge_database(facts, is_live=True).level is Level.OK

    async def test_direct_url_that_leads_to_the_pooler_is_refused(self, shared: str) -> None:
        with pytest.raises(NotConfigured, match="transaction mode"):
            await PostgresStorage.open(shared, direct_url=shared)
        facts = await database_facts(Settings(database_url=shared, database_direct_url=shared))
        assert facts is not None
        assert judge_database(facts, is_live=True).level is Level.FAILED

    async def test_pooler_that_resets_its_sessions_is_refused_by_name(self, migrated_database: str) -> None:
        options = ("server_reset_query_always = 1", "server_reset_query = DISCARD ALL")
        with (
            own_pgbouncer(migrated_database, "transaction", *options) as url,
            pytest.raises(NotConfigured, match="server_reset_query_always"),
        ):
            await PostgresStorage.open(url, direct_url=migrated_database)

    async def test_server_that_hides_its_control_data_is_refused_by_name(
        self, migrated_database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def hidden(_: object) -> None:
            return None

        monkeypatch.setattr("cambist.adapters.storage.postgres.postgres.place_of", hidden)
        with (
            own_pgbouncer(migrated_database, "transaction") as url,
            pytest.raises(NotConfigured, match="pg_control_system"),
        ):
            await PostgresStorage.open(url, direct_url=migrated_database)


def _run_migration(url: str) -> None:
    asyncio.run(migrate(url))


async def _marked(storage: PostgresStorage) -> str:
    """Mark the process, and return the location."""
    await storage.mark()
    location = storage.location()
    assert location
    return location


async def _works(storage: PostgresStorage) -> bool:
    with suppress(Unavailable):
        await storage.check()
        return True
    return False


async def test_statement_of_another_session_names_the_pooler() -> None:
    fault = away(asyncpg.DuplicatePreparedStatementError('prepared statement "s1" already exists\nHINT: ten lines'))
    assert "transaction mode" in str(fault)
    assert "\n" not in str(away(asyncpg.UndefinedTableError("no table\nDETAIL: a row")))


async def test_lost_settings_are_named(migrated_database: str) -> None:
    facts = await database_facts(Settings(database_url=migrated_database))
    assert facts is not None
    assert (facts.settings["lost_settings"], facts.settings["shared_sessions"]) == ("", "off")


@table(
    ("default", "kept"),
    [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
def test_sessions_wait_for_every_synchronous_standby(migrated_database: str, default: str, kept: str) -> None:
    name = migrated_database.rpartition("/")[2]

    async def found() -> str:
        connection = await connect(migrated_database)
        setting: str = await connection.fetchval("SELECT current_setting('synchronous_commit')")
        await connection.close()
        return setting

    _run(_execute(migrated_database, f"ALTER DATABASE {name} SET synchronous_commit = {default}"))
    try:
        assert _run(found()) == kept
        facts = _run(database_facts(Settings(database_url=migrated_database)))
        assert facts is not None
        level = Level.OK if default in ("on", "remote_apply") else Level.FAILED
        assert judge_database(facts, is_live=True).level is level
    finally:
        _run(_execute(migrated_database, f"ALTER DATABASE {name} RESET synchronous_commit"))


async def test_one_of_several_hosts_that_answers_is_enough(migrated_database: str) -> None:
    head, at, place = migrated_database.partition("@")
    url = f"{head}{at}127.0.0.1:1,{place}?target_session_attrs=read-write&connect_timeout=3&channel_binding=prefer"
    storage = await PostgresStorage.open(url)
    try:
        await storage.check()
    finally:
        await storage.close()


async def test_url_with_an_unknown_parameter_is_refused_before_connecting() -> None:
    with pytest.raises(NotConfigured, match="parameter pgbouncer, which is not understood"):
        await PostgresStorage.open("postgresql://u@127.0.0.1:1/c?pgbouncer=true")
