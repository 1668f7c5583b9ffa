"""The composition root: the one place that chooses adapters and wires them. Tests build their houses here too."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..adapters.bank.script import Script
from ..adapters.bank.simulator import REMITTANCE_MOST, SimulatedBank
from ..adapters.chain.simulator import SimulatedChain
from ..adapters.clock import SeededIds, ShiftingClock, SystemClock, SystemIds, VirtualClock
from ..adapters.deposits.simulator import SimulatedDeposits
from ..adapters.files.local import LocalFiles
from ..adapters.kyc.simulator import SimulatedVerifier
from ..adapters.meter.memory import MemoryMeter
from ..adapters.payouts.simulator import SimulatedSender
from ..adapters.queue.memory import MemoryQueue
from ..adapters.rates.shared import SharedSource
from ..adapters.rates.simulator import SimulatedRates
from ..adapters.storage.memory import MemoryStorage
from ..adapters.storage.worlds import WorldStorage
from ..adapters.vault.key_file import load_or_create
from ..adapters.vault.sealed import SealedVault
from ..core.domain.accounts import Account, Mode
from ..core.domain.tron import tron_address
from ..ports.bank import BankCapabilities, BankRoutes
from ..ports.bundle import Places, Ports
from ..ports.clock import Clock, Ids
from ..ports.deposits import DepositWatchers
from ..ports.jobs import Job
from ..ports.meter import Meter
from ..ports.notifier import Notifier
from ..ports.payouts import Senders
from ..ports.queue import Queue
from ..ports.rates import RateSource, RateSources
from ..ports.storage import Storage
from ..ports.vault import Vault, VaultError
from .settings import Settings
from .telemetry.telemetry import Telemetry
from .telemetry.watched import watched_ports

if TYPE_CHECKING:
    from ..adapters.rates.coingecko import CoinGeckoRates
    from ..adapters.rates.rapira import RapiraRates

_SIMULATED_LINKS = "https://qr.nspk.example"
"""Reserved for examples, so that a simulated QR never leads to a real one."""

_REFUNDS_HOLD = {Mode.LIVE: timedelta(0), Mode.TEST: timedelta(seconds=5)}
"""How long the simulated bank keeps a refund in processing by itself: in test mode long enough to be told otherwise."""

_LIVE_BANK = BankCapabilities(
    own_lifetime=True,
    direct_link=True,
    simulated=True,
    mandates=True,
    mandate_charges=False,
    remittances=True,
    remittance_max_kopecks=REMITTANCE_MOST,
)
"""Live mandates cannot be charged at present (SPEC "Charge errors", PROVIDER_NOT_CONFIGURED); in test mode they can."""

Kick = Callable[[Sequence[Job]], Awaitable[None]]


class House(msgspec.Struct, frozen=True, kw_only=True):
    """An open house: its settings and its ports."""

    settings: Settings
    ports: Ports
    telemetry: Telemetry | None = None
    """What the process counts and traces; None: nothing."""


class FurtherBank(msgspec.Struct, frozen=True, kw_only=True):
    """One more simulated bank of a mode, tried after those before it."""

    name: str
    mode: Mode = Mode.TEST
    script: Script | None = None
    capabilities: BankCapabilities | None = None


@asynccontextmanager
async def open_house(
    settings: Settings,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    notifier: Notifier | None = None,
    script: Script | None = None,
    further_banks: Sequence[FurtherBank] = (),
    telemetry: Telemetry | None = None,
) -> AsyncIterator[House]:
    """Open everything that `settings` ask for, and close it at the end.

    What is given goes in place of the usual adapter (and stays the giver's to close): a virtual clock, ids from a
    seed, a bank that follows a `script`. Each mode has one bank, and `further_banks`. With `telemetry` the ports to
    providers and receivers are watched.
    Raises: Unavailable when the database cannot be opened or its schema is not at head; VaultError.
    """
    ticking = clock or SystemClock()
    # Merchants' objects live by the one, storage, limits and leases by the other.
    shifting = ShiftingClock(ticking)
    chance = ids or SystemIds()
    meter, queue = _shared(settings, ticking)

    async def kick(jobs: Sequence[Job]) -> None:
        await queue.kick(jobs)

    kept = await _open_storage(settings, clock, kick)
    try:
        vault = await _vault(settings, kept)
    except BaseException:
        await kept.close()
        raise
    files = LocalFiles(settings.data_dir / "uploads", settings.base_url, vault, ticking)
    await files.clean()
    posting = notifier or _notifier(ticking)
    places = Places(base_url=settings.base_url, pay_url=settings.pay_url, app_url=settings.app_url)
    can = {Mode.LIVE: _LIVE_BANK}
    usual = [
        FurtherBank(name=f"simulator-{mode}", mode=mode, script=script, capabilities=can.get(mode)) for mode in Mode
    ]
    wired = [*usual, *further_banks]
    banks = {
        bank.name: SimulatedBank(
            bank.name,
            kept,
            shifting,
            chance,
            link_base=_SIMULATED_LINKS,
            script=bank.script,
            capabilities=bank.capabilities,
            refunds_hold=_REFUNDS_HOLD[bank.mode],
        )
        for bank in wired
    }
    wallets = {mode.value: SimulatedSender(f"simulator-chain-{mode}", kept, shifting, chance) for mode in Mode}
    watchers = {
        mode.value: SimulatedDeposits(f"simulator-deposits-{mode}", kept, shifting, chance, spell=tron_address)
        for mode in Mode
    }
    order = {mode.value: tuple(bank.name for bank in wired if bank.mode is mode) for mode in Mode}
    real_rates = _real_rates(settings, ticking)
    ports = Ports(
        kyc=SimulatedVerifier("simulator", kept, shifting),
        files=files,
        chain=SimulatedChain(kept, shifting),
        rates=_rates(settings, kept, shifting, real_rates),
        senders=Senders(
            senders={wallet.name: wallet for wallet in wallets.values()},
            modes={mode: wallet.name for mode, wallet in wallets.items()},
        ),
        deposits=DepositWatchers(
            watchers={watcher.name: watcher for watcher in watchers.values()},
            modes={mode: watcher.name for mode, watcher in watchers.items()},
        ),
        storage=WorldStorage(kept, shifting),
        clock=shifting,
        ids=chance,
        banks=BankRoutes(banks=banks, order=order),
        notifier=posting,
        meter=meter,
        queue=queue,
        vault=vault,
        places=places,
    )
    try:
        yield House(settings=settings, ports=watched_ports(telemetry, ports), telemetry=telemetry)
    finally:
        if notifier is None:
            await posting.close()
        for source in real_rates.values():
            await source.close()
        await meter.close()
        await kept.close()
        await queue.close()


def _shared(settings: Settings, clock: Clock) -> tuple[Meter, Queue]:
    """What processes count and wake each other with: Redis where the settings name one, else this process's memory.

    Redis and Dramatiq are imported only where they are asked for.
    """
    if settings.redis_url is None:
        return MemoryMeter(), MemoryQueue(clock)
    from ..adapters.meter.redis import RedisMeter
    from ..adapters.queue.dramatiq import DramatiqQueue

    return RedisMeter(settings.redis_url, clock), DramatiqQueue(settings.redis_url, clock)


def _notifier(clock: Clock) -> Notifier:
    """HTTP clients are imported only where something leaves the house: a test's house is open in half the time."""
    from ..adapters.notifier.http import HttpNotifier

    return HttpNotifier(clock)


def _real_rates(settings: Settings, clock: Clock) -> "Mapping[str, RapiraRates | CoinGeckoRates]":
    if set(settings.rate_sources) <= {"simulator"}:
        return {}
    from ..adapters.rates.coingecko import CoinGeckoRates
    from ..adapters.rates.rapira import RapiraRates

    return {"rapira": RapiraRates(clock), "coingecko": CoinGeckoRates(key=settings.coingecko_key)}


def _rates(settings: Settings, kept: Storage, clock: Clock, real: Mapping[str, RateSource]) -> RateSources:
    """Test mode hears its simulator only: what merchants try there depends on nobody."""
    simulated = {mode: SimulatedRates(f"simulator-rates-{mode}", kept, clock) for mode in Mode}
    live = tuple(
        simulated[Mode.LIVE] if name == "simulator" else SharedSource(real[name], clock)
        for name in settings.rate_sources
    )
    return RateSources(sources={Mode.LIVE.value: live, Mode.TEST.value: (simulated[Mode.TEST],)})


async def _open_storage(settings: Settings, clock: Clock | None, kick: Kick) -> Storage:
    """The storage that the settings name. SQL adapters are imported only where one is asked for."""
    url = settings.storage_url
    if url == "memory://":
        return MemoryStorage(clock or SystemClock(), kick)
    if url.startswith("sqlite:///"):
        from ..adapters.storage.sqlite import SqliteStorage

        return await SqliteStorage.open(Path(url.removeprefix("sqlite:///")), clock or SystemClock(), kick)
    from ..adapters.storage.postgres import PostgresStorage

    return await PostgresStorage.open(url, clock, kick)


def system_clock() -> Clock:
    """The machine's clock, for front ends that open no house."""
    return SystemClock()


def virtual_time(start: datetime) -> tuple[Clock, Ids, Callable[[float], Awaitable[None]]]:
    """For a house that somebody moves by hand: a clock that stands at `start`, ids from a seed, and how to advance."""
    clock = VirtualClock(start)
    return clock, SeededIds(), clock.advance


async def migrate(settings: Settings) -> str:
    """Bring the schema up to this version, and return its revision. A storage in memory has none.

    Raises: Unavailable when the database does not answer; NotConfigured when its schema is newer than this version.
    """
    if settings.storage_url == "memory://":
        return "memory"
    from ..adapters.storage import migrate as migrations

    return await migrations.migrate(settings.storage_url)


def key_file(settings: Settings) -> Path | None:
    """Where the vault's keys lie; None where the settings hold them, or nothing is kept."""
    if settings.vault is not None or settings.storage_url == "memory://":
        return None
    return settings.data_dir / "vault.key"


async def _vault(settings: Settings, kept: Storage) -> Vault:
    """Raises: VaultError, also where a fresh key file would stand beside accounts that were made with another."""
    if settings.vault is not None:
        return SealedVault(settings.vault.keys, settings.vault.current, settings.vault.pepper)
    path = key_file(settings)
    if path is None:
        chance = SystemIds()
        return SealedVault({1: bytes.fromhex(chance.secret(32))}, 1, bytes.fromhex(chance.secret(32)))
    # Looked for again at the end: another process may just have made the file, and then an account.
    if not path.exists() and await _has_accounts(kept) and not path.exists():
        raise VaultError(
            f"the key file {path} is missing, but the database has accounts, which fresh keys could not open: put the "
            "file back from its backup, or set CAMBIST_VAULT_KEY and CAMBIST_VAULT_PEPPER"
        )
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    return load_or_create(path)


async def _has_accounts(kept: Storage) -> bool:
    async with kept.unit() as unit:
        return bool(await unit[Account].find(limit=1))
