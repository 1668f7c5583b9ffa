"""Write the configuration of each machine of a highly available installation (docs/high-availability.md).

    python3 deploy/ha/configure.py deploy/ha/cluster.toml FOLDER

FOLDER gets a folder for each machine, with files as they lie under / there, and `database.sql`. The passwords are made
the first time and kept in FOLDER, so that another run writes the same files again. Needs only Python 3.11.
"""

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

TEMPLATES = Path(__file__).parent / "templates"
FILES = {
    "etcd": "etc/default/etcd",
    "sentinel.conf": "etc/redis/sentinel.conf",
}
"""Templates of every machine, with the paths of what is made of them."""
DATA_FILES = {
    "patroni.yml": "etc/patroni/config.yml",
    "haproxy.cfg": "etc/haproxy/haproxy.cfg",
    "redis.conf": "etc/redis/redis.conf",
}
"""Further templates, of machines with data."""
PORTS = {
    "postgres_port": 5432,
    "balancer_port": 5000,
    "patroni_port": 8008,
    "etcd_port": 2379,
    "etcd_peer_port": 2380,
    "redis_port": 6379,
    "sentinel_port": 26379,
}
SECRETS = tuple(f"{each}_password" for each in ("superuser", "replication", "rewind", "patroni", "cambist", "redis"))
KEYS = ("vault_key", "vault_pepper")


def main() -> None:
    """Read the description, and write the files."""
    if len(sys.argv) != 3:
        sys.exit("usage: configure.py CLUSTER.toml FOLDER")
    configure(tomllib.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2]))


def configure(cluster: Mapping[str, Any], folder: Path) -> None:
    """Write the files of all machines into `folder`."""
    name, version = cluster["name"], cluster["postgres_version"]
    machines = [
        {
            "name": name,
            "machine": machine,
            "has_data": True,
            **PORTS,
            "postgres_data": f"/var/lib/postgresql/{version}/{name}",
            "postgres_programs": f"/usr/lib/postgresql/{version}/bin",
            "postgres_sockets": "/var/run/postgresql",
            "postgres_pgpass": f"/var/lib/postgresql/{name}.pgpass",
            "etcd_data": f"/var/lib/etcd/{name}",
            "redis_data": "/var/lib/redis",
            **given,
        }
        for machine, given in cluster["machines"].items()
    ]
    data = [each for each in machines if each["has_data"]]
    known = {name: _kept(folder / "passwords" / name) for name in (*SECRETS, *KEYS)}
    shared = {
        **known,
        "etcd_members": _joined(machines, "{machine}=http://{address}:{etcd_peer_port}"),
        "etcd_hosts": _joined(machines, "{address}:{etcd_port}"),
        "postgres_access": "\n".join(_access(machines)),
        "balanced": "\n".join(
            "    server {machine} {address}:{postgres_port} check port {patroni_port}".format_map(each) for each in data
        ),
        "first_redis": "{address} {redis_port}".format_map(data[0]),
    }
    for each in machines:
        follows = each in data[1:]
        values = {**shared, **each, "replica_of": f"replicaof {shared['first_redis']}" if follows else ""}
        for template, path in {**FILES, **(DATA_FILES if each in data else {})}.items():
            _write(folder / each["machine"] / path, _filled(template, values))
        if each in data:
            place = folder / each["machine"] / "etc/cambist/secrets"
            password = known["redis_password"]
            sentinels = _joined(machines, "{address}:{sentinel_port}")
            _write(
                place / "database_url",
                f"postgresql://cambist:{known['cambist_password']}@127.0.0.1:{each['balancer_port']}/cambist",
            )
            _write(
                place / "redis_url",
                f"redis+sentinel://:{password}@{sentinels}/{name}/0?sentinel_password={password}",
            )
            _write(place / "vault_key", f"1:{known['vault_key']}")
            _write(place / "vault_pepper", known["vault_pepper"])
    _write(folder / "database.sql", _filled("database.sql", shared))


def _access(machines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of pg_hba.conf: only these machines connect, each role to its own database."""
    addresses = sorted({each["address"] for each in machines if each["has_data"]})
    return [
        f"    - host {database} {role} {address}/32 scram-sha-256"
        for address in addresses
        for database, role in (
            ("replication", "replicator"),
            ("postgres", "rewinder"),
            ("all", "postgres"),
            ("cambist", "cambist"),
        )
    ]


def _joined(machines: Sequence[Mapping[str, Any]], form: str) -> str:
    return ",".join(form.format_map(each) for each in machines)


def _filled(template: str, values: Mapping[str, Any]) -> str:
    return Template((TEMPLATES / template).read_text("utf-8")).substitute(values)


def _kept(path: Path) -> str:
    """Return a secret of 32 random bytes, made the first time."""
    if not path.exists():
        _write(path, os.urandom(32).hex())
    return path.read_text("utf-8")


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read, because most of them contain passwords."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
