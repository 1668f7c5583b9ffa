"""A fleet for drills: two cells behind one HAProxy, led by the maps of `cambist cell map`. The first cell is the
machines of `deploy/ha`; the second has one Postgres."""

import asyncio
import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from tests.drills.machines import Machines, running_machines
from tests.patience import HANGS
from tests.redis_servers import own_redis
from tests.servers import PostgresServer, _free_port, own_postgres
from tests.stories.processes import WORKS, Installation, Service, eventually, installation

_FRONT = """
global
    maxconn 2000
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 60s
    option redispatch
    retries 2
frontend cells
    bind 127.0.0.1:{port}
    http-request set-var(txn.cell) req.hdr(x-api-key),map_str({folder}/cells-keys.map)
    http-request set-var(txn.cell) req.hdr(x-api-key),map_beg({folder}/cells-prefixes.map) \
unless {{ var(txn.cell) -m found }}
    http-request set-var(txn.cell) req.hdr(host),field(1,:),lower,map_str({folder}/cells-hosts.map,c1) \
unless {{ var(txn.cell) -m found }}
    use_backend cambist_%[var(txn.cell)]
"""


class Fleet:
    """Both cells at work."""

    def __init__(self, folder: Path, machines: Machines, postgres: PostgresServer) -> None:
        self.folder = folder
        self.machines = machines
        self.postgres = postgres
        self.places: dict[str, list[Installation]] = {"c1": [], "c2": []}
        self.apis: dict[str, list[Service]] = {"c1": [], "c2": []}
        self._port = _free_port()
        self._front: subprocess.Popen[bytes] | None = None

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def ask(self, cell: str, question: str, *given: object) -> Any:
        """Return one value of a cell's database."""
        if cell == "c1":
            return await self.machines.ask(question, *given)
        connection = await asyncpg.connect(self.postgres.url)
        try:
            return await connection.fetchval(question, *given)
        finally:
            await connection.close()

    def write_directory(self) -> None:
        """Write the directory, as an operator does, and each cell's settings."""
        lines = []
        for name, places in self.places.items():
            given = {key: value for key, value in places[0].environ.items() if key.startswith("CAMBIST_")}
            text = "".join(f"{key}={shlex.quote(value)}\n" for key, value in given.items())
            (self.folder / f"{name}.env").write_text(text)
            servers = ", ".join(f'"{server}"' for server in self._servers(name))
            lines += [f"[cells.{name}]", f'settings = "{name}.env"', f"servers = [{servers}]"]
        lines += ["[map]", 'haproxy = "."']
        if self._front is not None:
            lines.append(f'reload = ["kill", "-USR2", "{self._front.pid}"]')
        (self.folder / "cells.toml").write_text("\n".join(lines))

    def _servers(self, cell: str) -> list[str]:
        return [f"127.0.0.1:{place.environ['CAMBIST_PORT']}" for place in self.places[cell]]

    def start_front(self) -> None:
        """Start HAProxy; the maps are there."""
        text = _FRONT.format(folder=self.folder, port=self._port)
        for cell in self.places:
            text += f"backend cambist_{cell}\n    option httpchk GET /livez\n"
            for number, server in enumerate(self._servers(cell)):
                text += f"    server {cell}-{number} {server} check inter 500ms fall 2 rise 1\n"
        (self.folder / "haproxy.cfg").write_text(text)
        program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin") or "haproxy"
        with (self.folder / "haproxy.log").open("ab") as log:
            self._front = subprocess.Popen(
                [program, "-W", "-db", "-f", self.folder / "haproxy.cfg"], stdout=log, stderr=log
            )

    async def is_in_front(self) -> bool:
        """Whether HAProxy takes connections."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def end_front(self) -> None:
        if self._front is not None:
            self._front.send_signal(signal.SIGTERM)
            self._front.wait(HANGS)


@asynccontextmanager
async def running_fleet(folder: Path) -> AsyncIterator[Fleet]:
    """Two cells with two API processes and two workers each, and HAProxy before them."""
    async with AsyncExitStack() as stack:
        machines = await stack.enter_async_context(running_machines())
        postgres, redis = stack.enter_context(own_postgres()), stack.enter_context(own_redis())
        fleet = Fleet(folder, machines, postgres)
        first, second = machines.data
        vault = {name: first.secret(name) for name in ("vault_key", "vault_pepper")}
        more = {"trusted_proxies": "127.0.0.0/8", "base_url": fleet.base, "allow_live_simulators": "true", **vault}
        for each in (first, second):
            urls = {name: each.secret(name) for name in ("database_url", "redis_url")}
            fleet.places["c1"].append(_place(stack, folder / f"c1-{each.name}", cell="c1", **urls, **more))
        urls = {"database_url": postgres.url, "redis_url": redis.url}
        fleet.places["c2"] += [_place(stack, folder / f"c2-{number}", cell="c2", **urls, **more) for number in (1, 2)]
        for name, places in fleet.places.items():
            await places[0].migrate()
            fleet.apis[name] = [place.start_api() for place in places]
        workers = [place.start("worker") for places in fleet.places.values() for place in places]
        for api in (each for apis in fleet.apis.values() for each in apis):
            await asyncio.to_thread(api.ready)
        for worker in workers:
            await eventually(lambda worker=worker: _said(worker))  # type: ignore[misc]
        fleet.write_directory()
        done = fleet.places["c1"][0].call("cell", "map", "--directory", str(folder / "cells.toml"))
        assert "cells-keys.map" in done.out + done.err, done
        fleet.start_front()
        stack.callback(fleet.end_front)
        fleet.write_directory()
        await eventually(fleet.is_in_front)
        yield fleet


def _place(stack: AsyncExitStack, folder: Path, **settings: str) -> Installation:
    folder.mkdir()
    return stack.enter_context(installation(folder, port=str(_free_port()), **settings))


async def _said(worker: object) -> bool:
    return bool(WORKS.search(worker.err) or WORKS.search(worker.out))  # type: ignore[attr-defined]


def cpu_seconds(roots: Sequence[int]) -> float:
    """Return the CPU time that these processes and all of their children have used, the ended ones included."""
    ticks, todo, seen = 0, list(roots), set[int]()
    while todo:
        pid = todo.pop()
        if pid in seen:
            continue
        seen.add(pid)
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            todo += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except (OSError, ValueError):
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
