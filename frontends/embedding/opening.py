"""Opens an embedded service: `cambist.open`, and the arguments that it shares with `cambist.Mount` and
`cambist.open_sync`."""

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext

import msgspec

from ...core.usecases.accounts.key_uses import KeyUses
from ...core.usecases.accounts.limit_hits import HitCounter
from ...core.usecases.accounts.request_log import RequestLog
from ...core.usecases.accounts.written_bytes import ByteCounter
from ...ports.clock import Clock, Ids
from ...ports.notifier import Notifier
from ..app.compose import Adapters, migrate, open_app
from ..app.maintenance import key_file
from ..app.notification_addresses import begin_receiving
from ..process.marking import marks_kept
from ..settings.settings import Settings, daily_bytes
from ..settings.sources import read_vault
from ..telemetry.limit_hits import hits_kept, requests_kept
from .event_handler import EventHandler, OnEvent
from .service import Service
from .stop_signals import StopSignals

log = logging.getLogger("cambist.embedding")


def open(  # noqa: A001 - `cambist.open`; the builtin is not used here
    database: str | Settings = "memory://",
    *,
    on_event: OnEvent | None = None,
    adapters: Adapters | None = None,
    base_url: str = "",
    migrated: bool | None = None,
    vault_key: str = "",
    vault_pepper: str = "",
) -> AbstractAsyncContextManager[Service]:
    """Open the service in this process: `async with cambist.open("sqlite:///shop.db") as service:`.

    `database`: `memory://`, `sqlite:///path` (the vault's key file is stored beside it), `postgresql://user@host/name`,
    the URL of a storage from another package, or complete Settings, which also contain the vault's keys, Redis and the
    banks.
    `on_event`: called with every event of accounts that it handles (`Service.create_account`, `Service.receive`).
    `adapters`: your own banks, rate sources and so on.
    `base_url`: address of the HTTP application, if there is one; links to the payer window begin with it.
    `migrated`: whether to migrate the schema first. By default SQLite is migrated, and Postgres is left to
    `cambist migrate`.

    `vault_key`, `vault_pepper`: the vault's keys as `cambist vault new` prints them. Without them the service reads or
    creates a key file, beside a SQLite file or else in `cambist-data` of the current folder; it logs when it creates
    one.

    Raises: NotInstalled, which says what to install; ValueError for an unknown form of database or key; Unavailable if
    it does not open; VaultError; PluginError.
    """
    return Opening(
        database=database,
        on_event=on_event,
        adapters=adapters,
        base_url=base_url,
        migrated=migrated,
        vault_key=vault_key,
        vault_pepper=vault_pepper,
    )()


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of `cambist.open`; a service for tests also has a clock and ids of its own."""

    database: str | Settings = "memory://"
    on_event: OnEvent | None = None
    adapters: Adapters | None = None
    base_url: str = ""
    migrated: bool | None = None
    vault_key: str = ""
    vault_pepper: str = ""
    clock: Clock | None = None
    ids: Ids | None = None

    def __call__(self) -> AbstractAsyncContextManager[Service]:
        """Check the arguments, and return the service to be entered. Raises: as `cambist.open`."""
        database = self.database
        settings = database if isinstance(database, Settings) else _settings(database, self.base_url)
        if self.vault_key or self.vault_pepper:
            settings = msgspec.structs.replace(settings, vault=read_vault(self.vault_key, self.vault_pepper))
        if settings.database_url is not None:
            _read_database(settings.database_url)
        brings_up = settings.sqlite_path is not None if self.migrated is None else self.migrated
        own_storage = self.adapters is not None and self.adapters.storage is not None
        return _opened(self, settings, migrates=brings_up and not own_storage)


@asynccontextmanager
async def _opened(opening: Opening, settings: Settings, *, migrates: bool) -> AsyncIterator[Service]:
    adapters = opening.adapters or Adapters()

    def event_handler(notifier: Notifier) -> Notifier:
        return EventHandler(opening.on_event, notifier)

    if migrates:
        await migrate(settings)
    keys = key_file(settings)
    if keys is not None and not keys.exists():
        log.warning("the vault's keys are created in %s: back the file up, apart from the database", keys.resolve())
    async with open_app(
        settings, clock=opening.clock, ids=opening.ids, adapters=adapters, around_notifier=event_handler
    ) as app:
        await begin_receiving(settings, app.ports)
        hits, uses, requests = HitCounter(), KeyUses(), RequestLog()
        written = ByteCounter(daily_bytes(app.settings))
        signals = StopSignals()
        service = Service(app, hits, uses, requests, written, signals, hears=opening.on_event is not None)
        async with AsyncExitStack() as keeping:
            # With a clock for tests, a day would wake these up a hundred thousand times.
            if opening.clock is None:
                await keeping.enter_async_context(hits_kept(app.ports, hits, uses, written))
                await keeping.enter_async_context(requests_kept(app.ports, requests))
                await keeping.enter_async_context(nullcontext() if adapters.storage else marks_kept(app))
            try:
                yield service
            finally:
                service.end_streams()
                signals.unwatch()


def _read_database(text: str) -> str:
    """Return the validated URL of the database. Raises: ValueError."""
    from ..settings.settings import OPTIONS

    try:
        url: str = OPTIONS["database_url"].read(text)
    except ValueError as error:
        raise ValueError(f"the database {error}") from None
    return url


def _settings(database: str, base_url: str) -> Settings:
    from ..settings.settings import OPTIONS

    url = _read_database(database)
    address = OPTIONS["base_url"].read(base_url) if base_url else ""
    settings = Settings(database_url=url, base_url=address)
    path = settings.sqlite_path
    return settings if path is None else msgspec.structs.replace(settings, data_dir=path.parent)
