"""The files of `deploy/ha` fit one another and the program (docs/high-availability.md)."""

import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from cambist.frontends.settings.sources import load
from cambist.ports.redis_urls import read_redis_url
from deploy.ha.configure import configure

CLUSTER: dict[str, Any] = tomllib.loads((Path(__file__).parents[2] / "deploy/ha/cluster.toml").read_text("utf-8"))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    configure(CLUSTER, tmp_path)
    return tmp_path


def _patroni(made: Path, machine: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((made / machine / "etc/patroni/config.yml").read_text("utf-8"))
    return found


def test_another_run_writes_the_same_files(made: Path) -> None:
    before = {path: path.read_text("utf-8") for path in made.rglob("*") if path.is_file()}
    configure(CLUSTER, made)
    assert {path: path.read_text("utf-8") for path in made.rglob("*") if path.is_file()} == before


def test_only_the_owner_can_read_what_contains_passwords(made: Path) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.rglob("*") if path.is_file()} == {0o600}


def test_both_machines_get_the_same_secrets_that_the_program_reads(made: Path) -> None:
    folders = [made / machine / "etc/cambist/secrets" for machine in ("db1", "db2")]
    secrets = [{path.name: path.read_text("utf-8") for path in folder.iterdir()} for folder in folders]
    assert secrets[0] == secrets[1]
    settings = load({f"CAMBIST_{name.upper()}": value for name, value in secrets[0].items()}, {}, made).settings
    assert settings.vault is not None
    assert settings.redis_url is not None
    assert len(read_redis_url(settings.redis_url).sentinels) == len(CLUSTER["machines"])


def test_lock_of_the_primary_outlives_its_renewals(made: Path) -> None:
    """Patroni's own rule, and the one that a former primary must not overwrite the lock (Patroni 3.0.2 with etcd3)."""
    for machine in ("db1", "db2"):
        patroni = _patroni(made, machine)
        dcs = patroni["bootstrap"]["dcs"]
        assert dcs["loop_wait"] + 2 * dcs["retry_timeout"] <= dcs["ttl"]
        assert dcs["synchronous_mode"]
        assert "etcd3" not in patroni
        assert "ETCD_ENABLE_V2=true" in (made / machine / "etc/default/etcd").read_text("utf-8")


def test_only_the_machines_with_data_connect_to_postgres(made: Path) -> None:
    addresses = {f"{each['address']}/32" for each in CLUSTER["machines"].values() if each.get("has_data", True)}
    lines = [line.split() for line in _patroni(made, "db1")["postgresql"]["pg_hba"]]
    assert {line[3] for line in lines if line[0] == "host"} == addresses
    assert {line[-1] for line in lines if line[0] == "host"} == {"scram-sha-256"}


def test_witness_holds_no_data(made: Path) -> None:
    files = {str(path.relative_to(made / "witness")) for path in (made / "witness").rglob("*") if path.is_file()}
    assert files == {"etc/default/etcd", "etc/redis/sentinel.conf"}


def test_every_replica_follows_the_first_redis(made: Path) -> None:
    first = CLUSTER["machines"]["db1"]["address"]
    assert "replicaof" not in (made / "db1/etc/redis/redis.conf").read_text("utf-8")
    assert f"replicaof {first} 6379" in (made / "db2/etc/redis/redis.conf").read_text("utf-8")
    for machine in CLUSTER["machines"]:
        sentinel = (made / machine / "etc/redis/sentinel.conf").read_text("utf-8")
        assert f"monitor cambist {first} 6379 2\n" in sentinel
