"""Accepted forms of a database URL (docs/operations.md "Postgres")."""

import pytest

from cambist.frontends.settings.readers import read_database
from cambist.frontends.settings.settings import Settings, is_near
from cambist.ports.database_urls import read_postgres_url
from tests.tables import table

HOST = "postgresql://u:p@db.example/c"


@table(
    ("url", "dsn"),
    [
        (HOST, HOST),
        (f"{HOST}?sslmode=require&channel_binding=require", f"{HOST}?sslmode=require"),
        (f"{HOST}?channel_binding=prefer&keepalives_idle=30&tcp_user_timeout=9", HOST),
        (f"{HOST}?connect_timeout=3&application_name=shop", HOST),
        (f"{HOST}?target_session_attrs=read-write", f"{HOST}?target_session_attrs=read-write"),
        (
            f"{HOST}?sslmode=verify-full&sslrootcert=/etc/ca.pem",
            f"{HOST}?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem",
        ),
        ("postgresql://u@h1:5432,h2:5433/c", "postgresql://u@h1:5432,h2:5433/c"),
        ("postgresql://u@[::1]:5432/c", "postgresql://u@[::1]:5432/c"),
        ("postgresql://u@h:1,[::1]:2,[::2]/c", "postgresql://u@/c?host=h%2C%3A%3A1%2C%3A%3A2&port=1%2C2%2C5432"),
        ("postgres://u:p@q@h/c", "postgresql://u:p%40q@h/c"),
        ("postgresql:///c?host=/run/postgresql&gssencmode=disable", "postgresql:///c?host=%2Frun%2Fpostgresql"),
    ],
)
def test_driver_gets_what_it_understands(url: str, dsn: str) -> None:
    assert read_postgres_url(url).dsn == dsn


@table(
    ("query", "words"),
    [
        ("pgbouncer=true", "parameter pgbouncer, which is not understood"),
        ("statement_cache_size=0", "parameter statement_cache_size, which"),
        ("channel_binding=require", "channel_binding=require, which needs TLS"),
        ("sslrootcert=system", "needs sslmode=verify-full"),
        ("gssencmode=require", "value of gssencmode that is not supported; supported: disable, prefer"),
        ("load_balance_hosts=random", "value of load_balance_hosts"),
        ("connect_timeout=soon", "no whole number of seconds"),
        ("port=5432,x", "parameter port"),
        ("sslmode", "name=value"),
        ("sslmode=", "sslmode without a value"),
    ],
)
def test_unknown_parameter_is_refused_by_name(query: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        read_database(f"postgresql://u:hunter2@db.example/c?{query}")
    assert "hunter2" not in str(refused.value)


@table("place", ["h:0", "h:70000", "h:port", "h1,h2:x", "h/c#part"])
def test_hosts_that_cannot_be_are_refused(place: str) -> None:
    with pytest.raises(ValueError, match="must"):
        read_database(f"postgresql://u@{place}/c")


@table(
    ("url", "near"),
    [
        ("postgresql://u@localhost/c", True),
        ("postgresql:///c?host=/run/postgresql", True),
        ("postgresql:///c", True),
        ("postgresql://u@127.0.0.1:1,[::1]:2/c", True),
        ("postgresql://u@127.0.0.1:1,db.example:2/c", False),
        ("postgresql:///c?host=localhost,db.example", False),
        ("redis://localhost/0", True),
    ],
)
def test_servers_are_near_when_all_of_them_are(url: str, near: bool) -> None:
    assert is_near(url) is near


def test_connect_timeout_of_zero_is_no_limit() -> None:
    assert read_postgres_url(f"{HOST}?connect_timeout=0").connect_timeout is None
    assert read_postgres_url(f"{HOST}?connect_timeout=7").connect_timeout == 7


@table("options", ["?timeout=30", "?mode=rw", "?cache=shared&mode=rwc", "#x", "?"])
def test_sqlite_url_takes_no_options(options: str) -> None:
    with pytest.raises(ValueError, match=r"without \? and #: SQLite takes no options"):
        read_database(f"sqlite:////data/shop.db{options}")


def test_place_of_a_database_names_no_secret() -> None:
    url = "postgresql://u:hunter2@h1:1,h2:2/c?password=hunter2"
    assert Settings(database_url=url).database_location == "h1:1,h2:2/c"
    assert "hunter2" not in repr(read_postgres_url(url))
