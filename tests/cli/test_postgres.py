"""The commands on Postgres: only `cambist migrate` creates the schema, and a server's refusal becomes a message."""

from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.cli.conftest import Call
from tests.poolers import own_pgbouncer
from tests.servers import database


def test_an_unmigrated_schema_is_refused_with_what_to_do(call: Call, server: str) -> None:
    with database(server) as url:
        env = {"CAMBIST_DATABASE_URL": url}
        refused = call("account", "create", "Tea", "--json", env=env)
        assert refused.status == 1
        assert refused.document["error"]["code"] == "SCHEMA_MISMATCH"
        assert "run `cambist migrate`" in refused.err
        migrated = call("migrate", "--json", env=env)
        assert (migrated.status, migrated.document) == (0, call("migrate", "--json", env=env).document)
        created = call("account", "create", "Tea", "--json", env=env)
        assert created.status == 0
        taken = call("shop", "create", created.document["account_id"], "default", "--json", env=env)
        assert (taken.status, taken.document["error"]["code"]) == (1, "VALIDATION_ERROR")
        strange = call("account", "show", "acc_\udcff\x01", "--json", env=env)
        assert (strange.status, strange.document["error"]["code"]) == (1, "ACCOUNT_NOT_FOUND")


@pytest.mark.parametrize("arguments", [("account", "list"), ("migrate",)], ids=" ".join)
def test_a_database_that_is_not_there_is_a_message(call: Call, server: str, arguments: tuple[str, ...]) -> None:
    env = {"CAMBIST_DATABASE_URL": urlunsplit(urlsplit(server)._replace(path="/cambist_none"))}
    outcome = call(*arguments, "--json", env=env)
    assert (outcome.status, outcome.document["error"]["code"]) == (1, "UNAVAILABLE")
    assert 'Postgres answers, but database "cambist_none" does not exist: make it with createdb' in outcome.err


def test_commands_work_behind_a_pooler_by_session(call: Call, server: str) -> None:
    with database(server) as url, own_pgbouncer(url, "session") as pooled:
        env = {"CAMBIST_DATABASE_URL": pooled}
        assert call("migrate", env=env).status == 0
        assert call("account", "create", "Tea", env=env).status == 0
        found = {each["name"]: each for each in call("doctor", "--json", env=env).document["checks"]}
        assert [found[name]["level"] for name in ("database", "schema", "processes")] == ["ok", "ok", "warning"], found


def test_commands_work_behind_a_pooler_by_transaction(call: Call, server: str) -> None:
    with database(server) as url, own_pgbouncer(url, "transaction") as pooled:
        env = {"CAMBIST_DATABASE_URL": pooled, "CAMBIST_DATABASE_DIRECT_URL": url}
        assert call("migrate", env=env).status == 0
        assert call("account", "create", "Tea", env=env).status == 0
        found = {each["name"]: each for each in call("doctor", "--json", env=env).document["checks"]}
        assert [found[name]["level"] for name in ("database", "schema", "processes")] == ["ok", "ok", "warning"], found
