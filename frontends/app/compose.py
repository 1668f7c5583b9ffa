"""The composition root: the only module that chooses adapters and wires them. Tests open their apps here too."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime

import msgspec

from ...adapters.bank.simulator.simulator import SimulatedBank
from ...adapters.clock import ShiftingClock, SystemClock, VirtualClock
from ...adapters.counters.memory import MemoryCounters
from ...adapters.documents.pdf import PdfDocuments
from ...adapters.files.local import LocalFiles
from ...adapters.ids import SeededIds, SystemIds
from ...adapters.passkeys.webauthn import WebauthnPasskeys
from ...adapters.passwords.argon2 import Argon2Passwords
from ...adapters.proofs.ed25519 import Ed25519Signer
from ...adapters.queue.memory import MemoryQueue
from ...adapters.script import Script
from ...adapters.spreadsheets.xlsx import XlsxSpreadsheets
from ...adapters.storage.account_time import TestClockStorage
from ...adapters.storage.encrypted_notes import EncryptedNotes
from ...adapters.storage.fence import Fence
from ...adapters.vault.memory import MemoryVault
from ...core.domain.accounts.accounts import Account
from ...core.usecases.assertions import AssertingStorage
from ...core.usecases.installation.marking import recognise
from ...core.usecases.vault_checks import PEPPER, settle_vault_checks, vault_misfits
from ...ports.bundle import FourEyes, Ports, Urls
from ...ports.clock import Clock, Ids
from ...ports.counters import RateCounters
from ...ports.faults import Unavailable
from ...ports.jobs import Job
from ...ports.notifier import Notifier
from ...ports.queue import Queue
from ...ports.storage import Storage
from ...ports.tools import FileTools, StorageTools, WakeUp
from ...ports.vault import Vault, VaultError, VaultMisfit
from ...ports.witnesses import Witnessed
from ..layers.guard.guard import Guard, guarded_ports
from ..layers.quarantine import held_ports
from ..settings.plugins import has_own_schema, needing, opened_storage, scheme_of
from ..settings.readers import masked_url
from ..settings.settings import Settings
from ..telemetry.telemetry import Telemetry
from ..telemetry.traced import traced_ports
from .maintenance import KEY_FILE, open_beside
from .notification_addresses import notification_networks
from .own_adapters import Adapters
from .providers import Providers
from .simulated_banks import FurtherBank
from .stopping import closed_soon

__all__ = [
    "Adapters",
    "App",
    "FurtherBank",
    "migrate",
    "open_app",
    "system_clock",
    "system_ids",
    "virtual_time",
]

_NONE_GIVEN = Adapters()


class App(msgspec.Struct, frozen=True, kw_only=True):
    """An open app: its settings and its ports."""

    settings: Settings
    ports: Ports
    kept: Storage | None = None
    """The storage without the layers of use cases, for the move of an account (core/usecases/cells)."""
    telemetry: Telemetry | None = None
    """Metrics and traces of the process; None: none."""
    witnessed: Witnessed | None = None
    """The storage, if its server may be replaced by a promoted one."""
    live_simulators: tuple[str, ...] = ()
    """Simulators of live mode: used there, or missing there if the settings do not allow them (simulators.py)."""


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    notifier: Notifier | None = None,
    around_notifier: Callable[[Notifier], Notifier] | None = None,
    script: Script | None = None,
    further_banks: Sequence[FurtherBank] = (),
    adapters: Adapters = _NONE_GIVEN,
    telemetry: Telemetry | None = None,
    patient: bool = False,
    recognising: bool = True,
    fitting: bool = True,
) -> AsyncIterator[App]:
    """Open everything that the `settings` require, and close it at the end.

    An argument replaces the usual adapter, and the caller closes it: a virtual clock, ids from a seed, a bank that
    follows a `script`, `adapters`. A mode has the banks of its setting and `further_banks`. `around_notifier` wraps the
    notifier. With `telemetry`, calls to providers and receivers are measured. With `patient` (an operator's command),
    wait longer for a database with other writers. A database that is a copy is held
    (core/usecases/installation/marking.py), unless `recognising` is off, for a database that is only inspected. With
    `fitting` off, vault keys of another database are accepted.

    Raises: Unavailable when the database cannot be opened or its schema is not at head; VaultError; PluginError for an
    external adapter that cannot be used; NotInstalled with the extra to install.
    """
    ticking = clock or SystemClock()
    # Merchants' objects use the shifting clock; storage, limits and leases use the machine's.
    shifting = ShiftingClock(ticking)
    chance = ids or SystemIds()
    counters, queue = _shared(settings, ticking)

    def wake_up(jobs: Sequence[Job]) -> Awaitable[None]:
        return queue.wake_up(jobs)

    async with AsyncExitStack() as closing:
        closing.push_async_callback(closed_soon, "the queue", queue.close)
        opening = (
            adapters.storage(wake_up) if adapters.storage else _open_storage(settings, clock, wake_up, patient=patient)
        )
        kept = await opening
        closing.push_async_callback(kept.close)
        closing.push_async_callback(closed_soon, "the counters", counters.close)
        # Data that outlives the process needs keys that do too.
        keeping = settings if adapters.storage is None else msgspec.structs.replace(settings, database_url=None)
        vault = await _vault(keeping, kept)
        if recognising and adapters.storage is None and has_own_schema(settings.storage_url):
            await recognise(kept, vault, open_beside(settings), ticking, SystemIds(), _witnessed(kept))
        if fitting and keeping.storage_url != "memory://":
            await _require_fitting(keeping, kept, vault, ticking, writing=recognising)
        local_files = LocalFiles(settings.data_dir / "uploads", settings.base_url, vault, ticking)
        await local_files.clean()
        urls = Urls(base_url=settings.base_url, pay_url=settings.pay_url, app_url=settings.app_url)
        tools = FileTools(storage=EncryptedNotes(kept, vault), clock=shifting, ids=chance, base_url=urls.base_url)
        providers = Providers(settings, adapters, tools, ticking, local_files)
        closing.push_async_callback(providers.close)
        posting = notifier or providers.notifier()
        fenced = kept if settings.cell is None else Fence(kept, ticking)
        ports = Ports(
            kyc=providers.kyc(),
            former_kyc=providers.former_kyc(),
            has_verifier=providers.has_verifier,
            files=providers.files,
            chain=providers.chain(),
            rates=providers.rates(),
            senders=providers.senders(),
            deposits=providers.deposits(),
            register=providers.register(),
            storage=TestClockStorage(AssertingStorage(fenced, _breaches(telemetry), vault), shifting),
            clock=shifting,
            ids=chance,
            banks=providers.banks(script, further_banks),
            notifier=around_notifier(posting) if around_notifier else posting,
            counters=counters,
            queue=queue,
            vault=vault,
            urls=urls,
            cell=settings.cell,
            alarms=providers.alarms(),
            passwords=Argon2Passwords(),
            passkeys=WebauthnPasskeys(urls.app_url),
            spreadsheets=XlsxSpreadsheets(),
            head_signer=Ed25519Signer(vault.fingerprint("signing key of report heads")),
            documents=PdfDocuments(settings.issuer),
            mailer=providers.mailer,
            messenger=providers.messenger(),
            test_data_days=settings.test_data_days,
            four_eyes=FourEyes(
                actions=frozenset(settings.four_eyes),
                refund_above=settings.four_eyes_refund_above.kopecks,
                days=settings.four_eyes_days,
            ),
            started=ticking.now(),
        )
        guard = Guard(ticking, own=(SimulatedBank,))
        closing.push_async_callback(guard.close)
        guarded = guarded_ports(guard, ports)
        hearing = msgspec.structs.replace(guarded, notification_networks=notification_networks(settings, guarded))
        seen = traced_ports(telemetry, hearing)
        yield App(
            settings=settings,
            ports=held_ports(seen, kept),
            kept=kept,
            telemetry=telemetry,
            witnessed=_witnessed(kept),
            live_simulators=tuple(providers.live_simulators),
        )


def _witnessed(kept: Storage) -> Witnessed | None:
    return kept if isinstance(kept, Witnessed) else None


def _breaches(telemetry: Telemetry | None) -> Callable[[str], None]:
    """Return the counter of units refused at their commit."""
    return (lambda _: None) if telemetry is None else telemetry.counters.assertions.add


def _shared(settings: Settings, clock: Clock) -> tuple[RateCounters, Queue]:
    """Return the counters and the wake-up queue: Redis if the settings name one, else in this process's memory.

    Redis and Dramatiq are imported only when needed.
    """
    if settings.redis_url is None:
        return MemoryCounters(), MemoryQueue(clock)
    with needing("queue", "CAMBIST_REDIS_URL"):
        from ...adapters.counters.redis import RedisCounters
        from ...adapters.queue.dramatiq import DramatiqQueue

    return RedisCounters(settings.redis_url, clock), DramatiqQueue(settings.redis_url, clock)


async def _open_storage(settings: Settings, clock: Clock | None, wake_up: WakeUp, *, patient: bool) -> Storage:
    """Open the storage named in the settings, and import only that one."""
    url = settings.storage_url
    if url == "memory://":
        from ...adapters.storage.memory.memory import MemoryStorage  # a service on a database does not need it

        return MemoryStorage(clock or SystemClock(), wake_up)
    path = settings.sqlite_path
    if path is not None:
        with needing("sql", "SQLite"):
            from ...adapters.storage.sqlite.sqlite import SqliteStorage

        return await SqliteStorage.open(path, clock or SystemClock(), wake_up, patient=patient)
    if not has_own_schema(url):
        elsewhere = StorageTools(url=url, clock=clock or SystemClock(), wake_up=wake_up)
        return await opened_storage(scheme_of(url), elsewhere)
    with needing("sql", "Postgres"):
        from ...adapters.storage.postgres.postgres import PostgresStorage

    try:
        return await PostgresStorage.open(
            url,
            clock,
            wake_up,
            direct_url=settings.database_direct_url,
            custom_plans=settings.database_plans == "custom",
            clock_apart=settings.database_clock == "apart",
        )
    except Unavailable as fault:
        raise Unavailable(f"{fault} ({masked_url(url)})") from fault


def system_clock() -> Clock:
    """Return the machine's clock, for frontends that open no app."""
    return SystemClock()


def system_ids() -> Ids:
    """Return ids and secrets from the operating system, for frontends that open no app."""
    return SystemIds()


def virtual_time(start: datetime) -> tuple[Clock, Ids, Callable[[float], Awaitable[None]]]:
    """Return virtual time for an app that is advanced by hand: a clock that stands at `start`, ids from a seed, and the
    function to advance it."""
    clock = VirtualClock(start)
    return clock, SeededIds(), clock.advance


async def migrate(settings: Settings) -> str:
    """Upgrade the schema to this version, and return its revision. A storage in memory has no schema, and a storage of
    another package upgrades itself when it is opened.

    Raises: Unavailable when the database does not answer; NotConfigured when its schema is newer than this version.
    """
    if not has_own_schema(settings.storage_url):
        return scheme_of(settings.storage_url)
    with needing("sql", "a database"):
        from ...adapters.storage import migrate as migrations

    return await migrations.migrate(settings.session_url)


async def _vault(settings: Settings, kept: Storage) -> Vault:
    """Return the vault. Raises: VaultError, also when a new key file would be made for accounts that need another
    one."""
    if settings.vault is None and settings.storage_url == "memory://":
        return MemoryVault()
    with needing("sql", "sealing what is kept"):
        from ...adapters.vault.aes import AesVault
        from ...adapters.vault.key_file import load_or_create
    if settings.vault is not None:
        return AesVault(settings.vault.keys, settings.vault.current, settings.vault.pepper)
    path = settings.data_dir / KEY_FILE
    # Check again at the end: another process may just have made the key file and then an account.
    if not path.exists() and await _has_accounts(kept) and not path.exists():
        raise VaultError(
            f"the key file {path} is missing, but the database has accounts, which fresh keys could not open: put the "
            "file back from its backup, or set CAMBIST_VAULT_KEY and CAMBIST_VAULT_PEPPER (in cambist.open: vault_key "
            "and vault_pepper)"
        )
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    return load_or_create(path)


async def _require_fitting(settings: Settings, kept: Storage, vault: Vault, clock: Clock, *, writing: bool) -> None:
    """Compare the vault with the check values in the database. `writing`: add missing ones.

    Raises: VaultMisfit, which names the setting; Unavailable.
    """
    if writing:
        found = await settle_vault_checks(kept, vault, clock, SystemIds())
    else:
        found = await vault_misfits(kept, vault)
    if found:
        raise VaultMisfit(vault_misfit(settings, found))


def vault_misfit(settings: Settings, found: Sequence[str]) -> str:
    """Return a message that names the setting with a pepper or key of another database, the consequence, and the
    remedy."""
    pepper, keys = "CAMBIST_VAULT_PEPPER", "CAMBIST_VAULT_KEY"
    if settings.vault is None:
        pepper = keys = f"the key file {settings.data_dir / KEY_FILE}"
    said = []
    if PEPPER in found:
        said.append(f"{pepper} has another pepper than this database: no API key would be accepted")
    others = [name for name in found if name.startswith("key ")]
    if others:
        said.append(f"{keys} has another {', '.join(others)} than the one that sealed in this database")
    if "keys" in found:
        said.append(f"{keys} has none of the keys that sealed in this database")
    return f"{'; '.join(said)}. Give the pepper and the keys that belong to this database"


async def _has_accounts(kept: Storage) -> bool:
    async with kept.unit() as unit:
        return bool(await unit[Account].find(limit=1))
