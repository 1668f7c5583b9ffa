"""The service inside another program: open, use, close. It wraps an app of compose.py and offers the first calls of an
embedding program; all others are available as use cases."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from ...core.domain import ids
from ...core.domain.accounts.accounts import Account, Mode, account_name
from ...core.domain.errors import Refusal
from ...core.domain.operators.audit import OperatorAction
from ...core.usecases.accounts.accounts import (
    NewAccount,
    create_account,
    find_account,
    guarded_settings,
    list_accounts,
    set_settings,
)
from ...core.usecases.accounts.key_uses import KeyUses
from ...core.usecases.accounts.limit_hits import HitCounter
from ...core.usecases.accounts.request_log import RequestLog
from ...core.usecases.accounts.written_bytes import ByteCounter
from ...core.usecases.actions.audit import acting
from ...core.usecases.jobs import run_due
from ...core.usecases.notification_addresses import list_addresses
from ...core.usecases.notification_intake import hear_now
from ...core.usecases.recurring_jobs import start_recurring_jobs
from ...ports.bundle import Ports
from ...ports.faults import Conflict
from ...ports.tools import Tools
from ..app.compose import App
from ..settings.plugins import needing
from ..settings.settings import Settings
from ..worker.loop import Worker
from ..worker.process import at_work
from .event_handler import address_of
from .merchant import Merchant
from .mounted import Mounted, require_loop
from .stop_signals import StopSignals

if TYPE_CHECKING:
    from ..http.edge.streams import WindowStreams

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("cambist.embedding")

_SECRET_BYTES = 32


def _derived_id(name: str) -> str:
    """Return the id of the account that `Service.account` creates, so that it is created once."""
    return ids.derived(ids.ACCOUNT, "embedding", account_name(name))


class AccountSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An account as a list shows it."""

    account_id: str
    name: str
    created_at: datetime


class AsgiApp(Protocol):
    """An ASGI 3 application."""

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
        /,
    ) -> None: ...


class Service:
    """An open service. Created by `cambist.open`."""

    def __init__(
        self,
        app: App,
        hits: HitCounter,
        uses: KeyUses,
        requests: RequestLog,
        written: ByteCounter,
        signals: StopSignals,
        *,
        hears: bool,
    ) -> None:
        self._app = app
        self._hits = hits
        self._uses = uses
        self._requests = requests
        self._written = written
        self._hears = hears
        self._streams: list[WindowStreams] = []
        self._signals = signals
        self._account_ids: dict[str, str] = {}
        self._workers: list[Worker] = []
        self._loop = asyncio.get_running_loop()

    def __repr__(self) -> str:
        return f"<Service on {self.settings!r}>"

    @property
    def ports(self) -> Ports:
        """Ports for use cases of the core. This class has methods only for the most common ones. Raises: RuntimeError
        in another event loop than the one that opened the service, whose connections it cannot use."""
        require_loop(self._loop)
        return self._app.ports

    @property
    def settings(self) -> Settings:
        return self._app.settings

    def tools(self, mode: Mode | str = Mode.LIVE) -> Tools:
        """Return the tools that an adapter of that mode is created with (docs/adapters.md), for adapters passed as
        objects, and for their tests."""
        ports = self.ports
        return Tools(
            mode=Mode(mode).value,
            storage=ports.storage,
            clock=ports.clock,
            ids=ports.ids,
            base_url=ports.urls.base_url,
            files=ports.files,
        )

    async def do(
        self, use_case: Callable[Concatenate[Ports, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a use case that takes ports, as operators do. `Merchant.do` is for use cases that also take a caller."""
        return await use_case(self.ports, *args, **kwargs)

    def acting(self, operator: str, action: str, *, reason: str = "") -> Ports:
        """Return ports for one operator action: it is written to the audit log and may wait for a second operator
        (docs/operations.md "Two pairs of eyes"). Raises: Refusal VALIDATION_ERROR."""
        return acting(self.ports, OperatorAction(operator=operator, name=action, reason=reason))

    async def create_account(self, name: str, /, **settings: str | bool) -> NewAccount:
        """Create a merchant with a default shop and a key pair for each mode. The secrets are returned only this once.

        `settings` are those of `cambist account set`: `refunds=True, refund_approval="manual"`. If the service was
        opened with `on_event` and no `webhook_url` is given, `on_event` handles the account's events.
        Raises: Refusal VALIDATION_ERROR, also if a setting needs two operators.
        """
        texts = self._texts(settings)
        made = await create_account(self.ports, name)
        await self._set_up(made.account_id, texts)
        return made

    def _texts(self, settings: Mapping[str, str | bool]) -> Mapping[str, str]:
        texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in settings.items()}
        waiting = guarded_settings(texts) & self.ports.four_eyes.actions if texts else None
        if waiting:
            raise Refusal("VALIDATION_ERROR", f"{', '.join(sorted(waiting))}: two operators are needed; set it later")
        return texts

    async def _set_up(self, account_id: str, texts: Mapping[str, str]) -> None:
        if texts:
            await set_settings(self.ports, account_id, texts)
        # Last, because an account without an address is one whose creation was interrupted.
        if self._hears and "webhook_url" not in texts:
            await self.receive(account_id)

    async def accounts(self) -> list[AccountSummary]:
        """Return all accounts, oldest first."""
        return [
            AccountSummary(account_id=each.id, name=each.name, created_at=each.created_at)
            for each in await list_accounts(self.ports)
        ]

    async def account(self, name: str, /, *, create: bool = False, **settings: str | bool) -> str:
        """Return the id of the account with this name; of several, the oldest. With `create`, a missing account is
        created with these settings. The id is remembered, so a program may call this each time it needs it.

        Processes that create it at the same moment create one account. A creation that was interrupted is completed.
        Raises: Refusal ACCOUNT_NOT_FOUND, and as `create_account`.
        """
        if name not in self._account_ids:
            found = await self._named(name)
            if create and (found is None or self._is_unfinished(found)):
                texts = self._texts(settings)
                with suppress(Conflict):
                    await create_account(self.ports, name, account_id=_derived_id(name))
                await self._set_up(_derived_id(name), texts)
                found = await self._named(name)
            if found is None:
                raise Refusal("ACCOUNT_NOT_FOUND", "No account of this name")
            self._account_ids[name] = found.id
        return self._account_ids[name]

    async def _named(self, name: str) -> Account | None:
        kept = account_name(name)
        return next((each for each in await list_accounts(self.ports) if each.name == kept), None)

    def _is_unfinished(self, account: Account) -> bool:
        is_ours = account.id == _derived_id(account.name)
        return is_ours and self._hears and account.settings.webhook_url is None

    async def receive(self, account_id: str) -> None:
        """Let `on_event` handle an account's events from now on, in place of its webhook address.

        Events held for lack of an address are delivered too. Raises: Refusal ACCOUNT_NOT_FOUND.
        """
        wish = {"webhook_url": address_of(account_id), "webhook_secret": self.ports.ids.secret(_SECRET_BYTES)}
        await set_settings(self.ports, account_id, wish)

    async def merchant(self, account_id: str, mode: Mode | str = Mode.TEST) -> Merchant:
        """Return an account in a mode: `test`, which moves no money, or `live`. Raises: Refusal ACCOUNT_NOT_FOUND."""
        async with self.ports.storage.unit() as unit:
            await find_account(unit, account_id)
        return Merchant(self.ports, account_id, Mode(mode), self._loop)

    async def heard(self, operation: str) -> None:
        """Poll an operation at its provider now, because a notification said that it changed.

        A notification is only a hint: forged, repeated, early and unknown ones change nothing (docs/adapters.md "A
        bank: three outcomes"). Raises: Fault, if the provider does not answer; let it send the notification again.
        """
        await hear_now(self.ports, operation)

    async def notification_addresses(self) -> dict[str, str]:
        """Return the notification address of each adapter, to be entered at its provider. They start with `base_url`,
        where `asgi` is mounted. Each contains a secret (docs/adapters.md "Notifications"). Raises: VaultError."""
        return {each.adapter: each.address for each in await list_addresses(self.ports) if each.address is not None}

    async def run_due(self) -> int:
        """Run all due jobs (webhooks, expiries, recoveries) and the jobs that they create, and return their number. For
        scripts and tests; a program that stays up uses `working`. Beside `working`, wait also for the jobs that it
        runs."""
        await start_recurring_jobs(self.ports)
        done = 0
        while True:
            ran = await run_due(self.ports)
            done += ran
            waited = [await worker.finished() for worker in self._workers]
            if not ran and not any(waited):
                return done

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run jobs in the background while the block runs, at their times, and finish running ones at the end.

        Several processes may work on one database. Raises: if the worker dies, the block is cancelled with the failure
        as the cause.
        """
        inside = asyncio.current_task()

        def died() -> None:
            if inside is not None:
                inside.cancel("the worker died")

        async with at_work(self._app, died) as worker:
            self._workers.append(worker)
            try:
                yield
            finally:
                self._workers.remove(worker)

    def asgi(self) -> AsgiApp:
        """Return the HTTP application (API, payer window, /openapi.json) for mounting in another application. It counts
        requests per process, unless the settings name Redis. Raises: NotInstalled."""
        with needing("http", "the HTTP application"):
            from ..http.edge.streams import WindowStreams
            from ..server.app import create_app
            from ..telemetry.requests import RequestWatch
        streams = WindowStreams(opens=partial(self._signals.watch, self._end_streams_soon))
        self._streams.append(streams)
        watch = RequestWatch(
            self.ports.clock, hits=self._hits, uses=self._uses, requests=self._requests, written=self._written
        )
        settings = self.settings
        return Mounted(
            create_app(
                self.ports,
                trusted_proxies=settings.trusted_proxies,
                streams=streams,
                watch=watch,
                pages_per_minute=settings.pages_per_minute,
                notifications_per_minute=settings.notifications_per_minute,
                has_front=False,
            ),
            self._loop,
        )

    def _end_streams_soon(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.end_streams)

    def end_streams(self) -> None:
        """Close open payer windows, so that a web server can stop at once. Closing the service does so, and so do
        SIGTERM and SIGINT where the event loop runs in the main thread; call it yourself in other hosts."""
        for streams in self._streams:
            streams.end()
