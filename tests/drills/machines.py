"""Three machines of a highly available installation on this one, from the files of `deploy/ha`: etcd, Patroni with
Debian's Postgres, HAProxy, Redis and Sentinel, on ports of their own. As root, because each program runs as its own
user."""

import asyncio
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg

from deploy.ha.configure import configure
from tests.patience import HANGS
from tests.servers import _free_port, installed_binaries
from tests.stories.processes import eventually

PROGRAMS = ("patroni", "etcd", "haproxy", "pgbouncer", "redis-server", "redis-sentinel")
_MAIN = ("etcd", "patroni", "redis", "sentinel")
"""Parts of a machine that dies. HAProxy belongs to the machine of the API processes."""

_TIMELINE = "CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"
_ALONE = "current_setting('synchronous_standby_names') = ''"


def missing() -> str | None:
    """Return what is missing for the machines."""
    if os.geteuid() != 0:
        return "needs root"
    gone = [each for each in PROGRAMS if shutil.which(each, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if installed_binaries() is None:
        gone.append("postgresql")
    return f"not installed: {', '.join(gone)}" if gone else None


class Machine:
    """One of the machines."""

    def __init__(self, name: str, folder: Path, given: Mapping[str, Any]) -> None:
        self.name = name
        self.given = given
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[Any]] = {}

    @property
    def has_data(self) -> bool:
        return bool(self.given["has_data"])

    def secret(self, name: str) -> str:
        """A secret of cambist on this machine."""
        return (self._folder / "etc/cambist/secrets" / name).read_text("utf-8")

    def start(self, *, balancer: bool = False) -> None:
        """Start all parts that do not run."""
        etc = self._folder / "etc"
        lines = (etc / "default/etcd").read_text("utf-8").splitlines()
        environ = dict(line.split("=", 1) for line in lines if line.startswith("ETCD_"))
        self._start("etcd", "etcd", ["etcd"], **environ)
        self._start("sentinel", "redis", ["redis-sentinel", str(etc / "redis/sentinel.conf")])
        if self.has_data:
            self._start("redis", "redis", ["redis-server", str(etc / "redis/redis.conf")])
            self._start("patroni", "postgres", ["patroni", str(etc / "patroni/config.yml")])
        if balancer:
            self._start("haproxy", "root", ["haproxy", "-W", "-db", "-f", str(etc / "haproxy/haproxy.cfg")])

    def _start(self, part: str, user: str, command: list[str], **environ: str) -> None:
        if part in self._processes:
            return
        rights = {} if user == "root" else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
        with (self._folder / f"{part}.log").open("ab") as log:
            self._processes[part] = subprocess.Popen(
                command,
                cwd=self._folder,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **environ},
                stdout=log,
                stderr=log,
                **rights,  # type: ignore[call-overload]
            )

    def _pids(self) -> list[int]:
        """Return the processes of this machine, those first that would start others."""
        found = [self._processes[part].pid for part in reversed(_MAIN) if part in self._processes]
        with suppress(OSError):
            found.append(int((Path(self.given["postgres_data"]) / "postmaster.pid").read_text().split()[0]))
        for pid in list(found):
            with suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return list(dict.fromkeys(found))

    def send(self, number: signal.Signals) -> None:
        """Send a signal to everything on this machine but HAProxy."""
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def signal_etcd(self, number: signal.Signals) -> None:
        """Send a signal to etcd alone."""
        self._processes["etcd"].send_signal(number)

    def kill(self) -> None:
        """End everything at once, as a machine that loses its power."""
        self.send(signal.SIGKILL)
        for part in _MAIN:
            if part in self._processes:
                self._processes.pop(part).wait(HANGS)

    def end(self) -> None:
        self.kill()
        for process in self._processes.values():
            process.terminate()
            process.wait(HANGS)

    def log(self, part: str) -> str:
        return (self._folder / f"{part}.log").read_text("utf-8", "replace")


class Machines:
    """All of them. `ask` reaches the primary of the moment."""

    def __init__(self, machines: list[Machine], folder: Path) -> None:
        self.all = machines
        self.data = [each for each in machines if each.has_data]
        self._folder = folder
        self._password = (folder / "passwords/superuser_password").read_text("utf-8")

    async def members(self) -> dict[str, str]:
        """Return the roles by machine, as Patroni sees them: `leader`, `sync_standby`, `replica`."""
        for each in self.data:
            with suppress(OSError, ValueError):
                found = await asyncio.to_thread(_read, f"http://127.0.0.1:{each.given['patroni_port']}/cluster")
                return {member["name"]: member["role"] for member in found["members"] if member["state"] == "running"}
        return {}

    async def primary(self) -> Machine:
        """Return the primary, once there is one that takes writes. A former primary that wakes up takes itself for one
        for a moment, on an older timeline."""

        async def found() -> tuple[str, Machine] | None:
            timelines = [(await self._of(each, _TIMELINE), each) for each in self.data]
            return max((each for each in timelines if each[0]), key=lambda each: each[0], default=None)

        return (await eventually(found, every=0.1))[1]

    async def other(self) -> Machine:
        """Return the machine of the standby."""
        primary = await self.primary()
        return next(each for each in self.data if each is not primary)

    async def is_whole(self) -> bool:
        """Whether a synchronous standby follows the primary."""
        return sorted((await self.members()).values()) == ["leader", "sync_standby"]

    async def is_alone_without(self, hit: Machine) -> bool:
        """Whether the other machine is the primary, and waits for no standby."""
        [other] = [each for each in self.data if each is not hit]
        return bool(await self._of(other, f"({_TIMELINE}) <> '' AND {_ALONE}"))

    async def _of(self, machine: Machine, expression: str) -> Any:
        """Return a value of a server; None if it does not answer."""
        with suppress(OSError, asyncpg.PostgresError, TimeoutError):
            connection = await self._connect("postgres", machine, within=2)
            try:
                return await connection.fetchval(f"SELECT {expression}", timeout=2.0)
            finally:
                connection.terminate()
        return None

    async def ask(self, question: str, *given: Any) -> Any:
        connection = await self._connect("cambist", await self.primary())
        try:
            return await connection.fetchval(question, *given)
        finally:
            await connection.close()

    async def prepare(self) -> None:
        """Run `database.sql`, as an administrator does."""
        connection = await self._connect("postgres", await self.primary())
        try:
            for statement in (self._folder / "database.sql").read_text("utf-8").split(";"):
                if statement.strip():
                    await connection.execute(statement)
        finally:
            await connection.close()

    async def _connect(self, database: str, machine: Machine, within: int = 10) -> Any:
        return await asyncpg.connect(
            host="127.0.0.1",
            port=machine.given["postgres_port"],
            user="postgres",
            password=self._password,
            database=database,
            timeout=within,
        )

    async def switch_over(self) -> None:
        """Exchange primary and standby, as planned."""
        primary, other = await self.primary(), await self.other()
        config = self._folder / primary.name / "etc/patroni/config.yml"
        command = ["patronictl", "-c", str(config), "switchover", "cambist", "--force"]
        command += ["--master", primary.name, "--candidate", other.name]
        done = await asyncio.to_thread(subprocess.run, command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def _read(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=2) as answer:
        return json.loads(answer.read())


@asynccontextmanager
async def running_machines() -> AsyncIterator[Machines]:
    """The machines, with a synchronous standby and an empty database; nothing is left at the end."""
    folder = Path(tempfile.mkdtemp(prefix="cambist-ha-"))
    folder.chmod(0o755)
    programs = installed_binaries()
    assert programs is not None
    given = {name: _on_this_machine(folder / name, has_data=name != "witness") for name in ("db1", "db2", "witness")}
    configure({"name": "cambist", "postgres_version": programs.parent.name, "machines": given}, folder)
    for name in given:
        _give_away(folder / name)
    machines = Machines([Machine(name, folder / name, each) for name, each in given.items()], folder)
    try:
        for each in machines.all:
            each.start(balancer=each.has_data)
        await eventually(machines.is_whole, every=0.2)
        await machines.prepare()
        yield machines
    finally:
        for each in machines.all:
            each.end()
        shutil.rmtree(folder, ignore_errors=True)


def _on_this_machine(folder: Path, *, has_data: bool) -> dict[str, Any]:
    ports = ("postgres", "balancer", "patroni", "etcd", "etcd_peer", "redis", "sentinel")
    return {
        "address": "127.0.0.1",
        "has_data": has_data,
        **{f"{each}_port": _free_port() for each in ports},
        "postgres_data": str(folder / "postgres/data"),
        "postgres_sockets": str(folder / "postgres"),
        "postgres_pgpass": str(folder / "postgres/pgpass"),
        "etcd_data": str(folder / "etcd/data"),
        "redis_data": str(folder / "redis"),
    }


def _give_away(folder: Path) -> None:
    """Give the files to the users whose programs read and write them."""
    for user in ("postgres", "etcd", "redis"):
        (folder / user).mkdir(mode=0o700)
        shutil.chown(folder / user, user)
    for pattern, user in (("etc/patroni/*", "postgres"), ("etc/redis", "redis"), ("etc/redis/*", "redis")):
        for path in folder.glob(pattern):
            shutil.chown(path, user)
