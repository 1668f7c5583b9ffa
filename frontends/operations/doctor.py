"""Checks of `cambist doctor` besides the storage: settings, files, servers, processes."""

import os
import shutil
import stat
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ...adapters.postgres_away import SHARED
from ...core.usecases.operators.doctor import Progress, clocks_apart
from ...core.usecases.operators.findings import Finding, failed, ok, warning
from ...ports.database_urls import read_postgres_url
from ...ports.redis_urls import read_redis_url
from ...ports.registry import Role
from ..app.compose import system_clock
from ..app.maintenance import DatabaseFacts, database_damage, database_facts, key_file, open_registry, redis_facts
from ..app.public_addresses import unsafe_addresses
from ..process.insides import judge_insides
from ..process.registry import counts_alone
from ..settings.settings import Settings, is_near
from ..settings.sources import Loaded

_MEGABYTE = 1024 * 1024
_ROOM_WARNING, _ROOM_FAILED = 1024 * _MEGABYTE, 100 * _MEGABYTE
_OTHERS = 0o077
_SHOWN = 5
"""Number of damaged places in the message."""
_EVERYBODY = ("0.0.0.0/0", "::/0")


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """Input of the checks in this module."""

    loaded: Loaded
    environ: Mapping[str, str]

    @property
    def settings(self) -> Settings:
        return self.loaded.settings


async def check_settings(examined: Examined) -> Finding:
    """Check for values that are allowed but dangerous in combination."""
    settings = examined.settings
    faults = [*examined.loaded.warnings, *_faults_of_network(settings), *_faults_of_servers(settings)]
    everybody = [str(network) for network in settings.trusted_proxies if str(network) in _EVERYBODY]
    if everybody:
        return failed(
            "trusted_proxies names the whole world: whoever writes X-Forwarded-For chooses whose limit is counted",
            "name the proxies' own networks in CAMBIST_TRUSTED_PROXIES",
        )
    if settings.storage_url == "memory://":
        return failed("the storage is in memory: all is lost at the end", "set CAMBIST_DATABASE_URL, or leave it out")
    if faults:
        return warning("; ".join(faults), 'see `cambist config check` and docs/operations.md "Settings and secrets"')
    return ok(f"{sum(each.is_given for each in examined.loaded.explained)} settings are given, none is unsafe")


async def check_libraries(examined: Examined) -> Finding:  # noqa: ARG001 - as all checks
    """Check that the libraries whose private names the service uses have a tested version."""
    return judge_insides()


def _faults_of_network(settings: Settings) -> list[str]:
    faults = unsafe_addresses(settings)
    if settings.base_url.startswith("https://") and not settings.trusted_proxies:
        faults.append(
            "base_url is https, so a proxy stands before the service, but trusted_proxies is empty: all requests count "
            "as the proxy's own, against one limit"
        )
    if settings.log_level == "debug":
        faults.append("log_level is debug: meant for development")
    return faults


def _faults_of_servers(settings: Settings) -> list[str]:
    faults = []
    if settings.storage_url.startswith("postgresql://"):
        if settings.vault is None:
            faults.append("the vault's keys are in this machine's key file: another machine would need the same ones")
        faults += _faults_of_postgres("database_url", settings.storage_url)
        if settings.database_direct_url is not None:
            faults += _faults_of_postgres("database_direct_url", settings.database_direct_url)
    if settings.redis_url is not None and not is_near(settings.redis_url):
        read_redis = read_redis_url(settings.redis_url)
        if not read_redis.is_encrypted:
            faults.append("redis_url is of another machine and without TLS: rediss:// has it")
        if not read_redis.has_password:
            faults.append("redis_url has no password: whoever reaches Redis can lift every limit")
    if settings.shutdown_seconds < 1:
        faults.append("shutdown_seconds is below 1: requests under way are cut off at every restart")
    return faults


def _faults_of_postgres(name: str, url: str) -> list[str]:
    read, faults = read_postgres_url(url), []
    if not is_near(url) and "sslmode" not in read.parameters:
        faults.append(f"{name} does not ask for TLS: add ?sslmode=verify-full")
    if read.parameters.get("channel_binding") == "require" and not read.verifies_server:
        faults.append(
            f"{name} has channel_binding=require, which the driver cannot do: sslmode=verify-full proves the server "
            "instead"
        )
    return faults


async def check_secrets(examined: Examined) -> Finding:
    """Check that files with secrets are readable only by their owner. Files under /run are left to the service manager:
    their permission bits may stand for access lists and mounts."""
    options = examined.loaded.options
    files = [
        Path(examined.environ[variable])
        for option in options.values()
        if option.secret and examined.environ.get(variable := f"{option.variable}_FILE")
    ]
    files = [path for path in files if not path.is_relative_to("/run")]
    config = examined.loaded.config_file
    if config is not None and any(
        each.name in options and options[each.name].secret and each.origin.startswith(f"{config}: ")
        for each in examined.loaded.explained
    ):
        files.append(config)
    own = key_file(examined.settings)
    if own is not None:
        if not own.exists():
            return warning(
                f"there is no key file {own} yet",
                "the first start makes it; if this installation has accounts, put it back from its backup",
            )
        files.append(own)
    open_ones = [str(path) for path in files if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & _OTHERS]
    if open_ones:
        return failed(f"others on this machine can read {', '.join(open_ones)}", "chmod 0600, owned by the service")
    return ok(f"{len(files)} files with secrets are their owner's only" if files else "no secret lies open in a file")


async def check_disk(examined: Examined) -> Finding:
    """Check the free disk space: a service on a full disk accepts no payments."""
    folder = _nearest(_data_folder(examined.settings))
    usage = shutil.disk_usage(folder)
    message = f"{usage.free // _MEGABYTE} MiB of {usage.total // _MEGABYTE} are free at {folder}"
    remedy = "make room: the database and uploads lie there"
    if usage.free < _ROOM_FAILED:
        return failed(message, remedy)
    return warning(message, remedy) if usage.free < _ROOM_WARNING else ok(message)


async def check_uploads(examined: Examined) -> Finding:
    """Check that clients' documents can be written: to a folder shared by all processes, or to the store of another
    package."""
    if examined.settings.files != "local":
        return ok(f"documents lie with {examined.settings.files}")
    folder = examined.settings.data_dir / "uploads"
    into = _nearest(folder)
    try:
        with tempfile.NamedTemporaryFile(dir=into, prefix=".doctor-"):
            pass
    except OSError as error:
        return failed(f"{into} cannot be written: {error.strerror}", "give the folder to the service's user")
    return ok(f"{into} can be written")


def _data_folder(settings: Settings) -> Path:
    return settings.data_dir if settings.sqlite_path is None else settings.sqlite_path.parent


def _nearest(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent: the folder is made when it is needed."""
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return folder


async def check_database(examined: Examined) -> Finding:
    """Check that the database is reachable, has a known version, and writes to disk what it commits."""
    facts = await database_facts(examined.settings)
    if facts is None and examined.settings.storage_url == "memory://":
        return warning("the storage is in memory", "set CAMBIST_DATABASE_URL, or leave it out")
    if facts is None:
        return warning("the storage is from another package, which is not looked into", "see what its package says")
    return judge_database(facts, is_live=not examined.settings.allow_live_simulators)


_LOST: Mapping[str, str] = {
    "off": "a power cut loses what was written last",
    "local": "a failover loses what no standby has yet",
    "remote_write": "a failover to a standby that crashed at the same moment loses what it had not flushed",
}
"""What can be lost, by values of `synchronous_commit` below `on`."""


def judge_database(facts: DatabaseFacts, *, is_live: bool) -> Finding:
    """Judge the database by its facts. `is_live`: live mode takes real money."""
    name = f"{facts.kind} {facts.version} answers"
    said = facts.settings
    lazy = [each for each in ("fsync", "full_page_writes") if said.get(each) == "off"]
    if lazy:
        return failed(f"{name}, with {', '.join(lazy)} off: a power cut loses payments", "switch them on in Postgres")
    if said.get("transaction_read_only") == "on":
        return failed(f"{name}, but takes no writes", "name the primary in CAMBIST_DATABASE_URL, not a replica")
    if said.get("waiting_for_standby", "0") != "0":
        return failed(
            f"{name}, but {said['waiting_for_standby']} commits wait for a synchronous standby that does not answer",
            "start the standby, or take it out of synchronous_standby_names: without it a failover loses payments",
        )
    if said.get("shared_sessions") == "on":
        return failed(
            f"{name}, but {SHARED}",
            "set CAMBIST_DATABASE_DIRECT_URL to a URL without the pooler, or pool_mode = session in pgbouncer.ini",
        )
    if said.get("lost_settings"):
        return failed(
            f"{name}, but its sessions do not keep what cambist sets: {said['lost_settings']}",
            "have the pooler before Postgres pool by session, or connect without it",
        )
    commits = said.get("synchronous_commit", "on")
    if commits in _LOST:
        judge = failed if is_live else warning
        return judge(
            f"{name}, with synchronous_commit {commits} as the default: cambist sets it for its own sessions, but for "
            f"all others {_LOST[commits]}",
            "set synchronous_commit = on in postgresql.conf, and for the database and its role",
        )
    if "max_connections" in said:
        held, most = int(said["connections"]), int(said["max_connections"])
        if held > most * 0.8:
            return warning(f"{name}; {held} of {most} connections are in use", "raise max_connections")
    if said.get("location") == "":
        return warning(
            f"{name}, but hides its control data: a failover or a restored copy is not recognised",
            "GRANT EXECUTE ON FUNCTION pg_control_system() to the role of CAMBIST_DATABASE_URL, where you may",
        )
    if said.get("journal_mode", "wal") != "wal":
        return warning(f"{name}, without a write-ahead log", "start the service once; it sets the file up")
    return ok(name)


async def check_schema(examined: Examined) -> Finding:
    """Check that the schema has the revision that this program needs."""
    facts = await database_facts(examined.settings)
    if facts is None:
        return ok("no schema of this program is there")
    if facts.revision == facts.head:
        return ok(f"the schema is at {facts.head}")
    if facts.revision is None:
        return failed("the database has no schema yet", "run `cambist migrate`")
    if facts.revision < facts.head:
        return failed(f"the schema is at {facts.revision}, this program needs {facts.head}", "run `cambist migrate`")
    return failed(f"the schema is at {facts.revision}, newer than this program ({facts.head})", "update the program")


async def check_redis(examined: Examined) -> Finding:
    """Check that Redis is reachable, that its clock agrees, and that it does not evict counters. Persistence does not
    matter: its data may be lost."""
    url = examined.settings.redis_url
    if url is None:
        return ok("no Redis is set: one process counts requests by itself")
    clock = system_clock()
    before = clock.now()
    seconds, said = await redis_facts(url)
    after = clock.now()
    return judge_redis(datetime.fromtimestamp(seconds, UTC), before + (after - before) / 2, said)


def judge_redis(theirs: datetime, ours: datetime, said: Mapping[str, str]) -> Finding:
    """Judge Redis by its clock and its configuration."""
    clocks = clocks_apart("this machine's clock", "Redis' clock", theirs - ours)
    if clocks.remedy is not None:
        return clocks
    policy = said.get("maxmemory_policy", "unknown")
    name = f"Redis {said.get('redis_version', '')} answers, maxmemory-policy {policy}"
    if policy.startswith("allkeys"):
        return warning(
            f"{name}: when it is full it forgets counters, and limits are looser",
            "set maxmemory-policy noeviction, and memory enough",
        )
    if said.get("silent_sentinels"):
        return warning(
            f"{name}, but these Sentinels do not answer, or do not know its service: {said['silent_sentinels']}",
            "start them, or correct CAMBIST_REDIS_URL: without a majority nothing replaces a dead Redis",
        )
    if "silent_sentinels" in said and said.get("connected_slaves") == "0":
        return warning(
            f"{name}, but has no replica: nothing can replace it",
            "start the replica, see docs/high-availability.md",
        )
    return ok(name)


async def check_processes(examined: Examined) -> Finding:
    """Check that a worker runs, and that all serving processes count requests together."""
    registry = open_registry(examined.settings)
    if registry is None:
        return ok("nobody counts who shares this storage: let one process serve from it")
    try:
        counting, working = await registry.others(Role.COUNTING), await registry.others(Role.WORKING)
    finally:
        await registry.close()
    if len(counting) > 1 and counts_alone(examined.settings):
        return failed(
            f"{len(counting)} processes serve, and here no CAMBIST_REDIS_URL is set: each may count by itself",
            "set CAMBIST_REDIS_URL for all of them",
        )
    if counting and not working:
        return failed(
            f"{len(counting)} processes serve, and none works on jobs", "start `cambist worker`: nothing is delivered"
        )
    if not working:
        return warning("no process of this installation runs", "start `cambist serve`, or `cambist api` and `worker`")
    if not counting:
        return warning(f"{len(working)} workers run, and none serves", "start `cambist api`")
    return ok(f"serving: {len(counting)}, working: {len(working)}")


CHECKS: Mapping[str, Callable[[Examined], Awaitable[Finding]]] = {
    "settings": check_settings,
    "libraries": check_libraries,
    "secrets": check_secrets,
    "disk": check_disk,
    "uploads": check_uploads,
    "database": check_database,
    "schema": check_schema,
    "redis": check_redis,
    "processes": check_processes,
}


async def check_pages(examined: Examined, progress: Progress) -> Finding:
    """Check every page of the database for damage. Disks lose data silently, and backups copy the damage."""
    looked = await database_damage(examined.settings, progress)
    if looked is None:
        return ok("the storage has no pages of this program")
    damage, whole = looked
    if not damage:
        return ok(whole)
    more = f" and {len(damage) - _SHOWN} more" if len(damage) > _SHOWN else ""
    return failed(
        f"the database is damaged: {'; '.join(damage[:_SHOWN])}{more}",
        "stop the service, keep the files, restore the last sound backup (docs/operations.md), look at the disk",
    )


THOROUGH: Mapping[str, Callable[[Examined, Progress], Awaitable[Finding]]] = {"pages": check_pages}
"""Additional checks, which may take long."""

REMEDIES: Mapping[str, str] = {
    "database": "is it running, is CAMBIST_DATABASE_URL right, may this machine connect?",
    "redis": "is it running, is CAMBIST_REDIS_URL right? Payments go on without it; limits are looser",
}
"""Remedies for a check that could not run."""
