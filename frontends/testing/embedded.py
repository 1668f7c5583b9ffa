"""An embedded service for the tests of the program that embeds it: temporary, and with a clock of its own
(docs/embedding.md "Tests").

Every method here also runs the jobs that are due, so events arrive before it returns and no test has to wait.
"""

import functools
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, get_args

from ...core.domain.errors import Refusal
from ...core.domain.payments import payments as core_payments
from ...core.domain.refunds import refunds as core_refunds
from ...core.usecases.sandbox.refunds import RefundSimulation, simulate_refund
from ...core.usecases.sandbox.sandbox import PaymentSimulation, simulate
from ...core.usecases.settlement.settlement import settle_own
from ..app.compose import Adapters, virtual_time
from ..client.payments import FailureReason, Payment
from ..client.refunds import Refund
from ..client.settlements import Settlement
from ..embedding.blocking import SyncMerchant, SyncService, open_sync
from ..embedding.event_handler import Event, OnEvent
from ..embedding.merchant import Amount, Merchant, amount_text
from ..embedding.mount import Mount
from ..embedding.opening import Opening
from ..embedding.records import settlement_record
from ..embedding.service import Service
from ..settings.settings import OPTIONS, Settings, VaultKeys
from .clock import Advance, AsyncClock, Clock

P = ParamSpec("P")
T = TypeVar("T")

Database = Literal["memory", "sqlite"]

START = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
_BASE_URL = "https://cambist.test"
_ACCOUNT = "Test merchant"
_FEATURES: Mapping[str, str | bool] = {"refunds": True, "exchange": True, "recurring": True, "direct_links": True}
_KEYS = VaultKeys(keys={1: bytes(32)}, current=1, pepper=bytes(32))
"""Keys of databases that exist during one test."""


class ServiceSandbox:
    """A service with its clock, and the payers and banks of its payments. Created by `open_service`."""

    def __init__(self, service: Service, merchant: Merchant, advance: Advance, received: list[Event]) -> None:
        self.service = service
        self.merchant = merchant
        """An account in test mode, with all features. Your program may create others."""
        self.clock = AsyncClock(service.ports, advance)
        self.received = received
        """Events given to `on_event` so far, including repeats."""

    def __repr__(self) -> str:
        return f"ServiceSandbox({self.clock.now().isoformat()})"

    async def pay(self, payment_id: str, *, amount_rub: Amount | None = None, payer_name: str | None = None) -> Payment:
        """Simulate a payer who pays the full amount, or another amount, which leads to `amount_mismatch`.

        Raises: Refusal, also NOT_FOUND for a payment at a bank that is not simulated.
        """
        amount = None if amount_rub is None else amount_text(amount_rub)
        wanted = PaymentSimulation(outcome="paid", actual_amount_rub=amount, payer_name=payer_name)
        return await self._simulated(payment_id, wanted)

    async def fail(self, payment_id: str, reason: FailureReason | str | None = None) -> Payment:
        """Simulate a refusal by the bank. Raises: Refusal."""
        wanted = PaymentSimulation(outcome="failed", failure_reason=None if reason is None else str(reason))
        return await self._simulated(payment_id, wanted)

    async def expire(self, payment_id: str) -> Payment:
        """Simulate a payment that expires unpaid. Raises: Refusal."""
        return await self._simulated(payment_id, PaymentSimulation(outcome="expired"))

    async def complete_refund(self, refund_id: str) -> Refund:
        """Approve the refund if necessary, and let the bank complete it. Raises: Refusal."""
        return await self._refunded(refund_id, "completed")

    async def fail_refund(self, refund_id: str) -> Refund:
        """Let the bank refuse the refund. Raises: Refusal."""
        return await self._refunded(refund_id, "failed")

    async def reject_refund(self, refund_id: str) -> Refund:
        """Let an operator reject the refund. Raises: Refusal."""
        return await self._refunded(refund_id, "rejected")

    async def settle(self, merchant: Merchant | None = None) -> Settlement:
        """Settle the paid payments of a merchant, by default of `self.merchant`, without waiting for the daily
        settlement. Raises: Refusal."""
        settled = await (merchant or self.merchant).do(settle_own)
        await self.service.run_due()
        return settlement_record(settled)

    async def _simulated(self, payment_id: str, wanted: PaymentSimulation) -> Payment:
        payment = await self.service.ports.storage.get(core_payments.Payment, payment_id)
        if payment is None:
            raise Refusal("PAYMENT_NOT_FOUND", "No payment of this id")
        merchant = await self.service.merchant(payment.account_id, payment.mode)
        await merchant.do(simulate, payment_id, wanted)
        await self.service.run_due()
        return await merchant.payment(payment_id)

    async def _refunded(self, refund_id: str, outcome: str) -> Refund:
        refund = await self.service.ports.storage.get(core_refunds.Refund, refund_id)
        if refund is None:
            raise Refusal("REFUND_NOT_FOUND", "No refund of this id")
        merchant = await self.service.merchant(refund.account_id, refund.mode)
        await merchant.do(simulate_refund, refund_id, lambda: RefundSimulation(outcome=outcome))
        await self.service.run_due()
        return await merchant.refund_state(refund_id)


def _of_sandbox(
    method: Callable[Concatenate[ServiceSandbox, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncServiceSandbox", P], T]:
    @functools.wraps(method)
    def call(self: "SyncServiceSandbox", /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def ask(_: Service) -> T:
            return await method(self.inner, *args, **kwargs)

        return self.service.run(ask)

    return call


class SyncServiceSandbox:
    """The same for a synchronous program. Created by `open_sync_service`."""

    def __init__(self, service: SyncService, inner: ServiceSandbox) -> None:
        self.service = service
        self.inner = inner
        """The sandbox in the service's event loop."""
        self.merchant = service.merchant(inner.merchant.account_id, inner.merchant.mode)
        """An account in test mode, with all features. Your program may create others."""
        self.clock = Clock(inner.clock.now, self._move)
        self.received = inner.received
        """Events given to `on_event` so far, including repeats."""

    def __repr__(self) -> str:
        return f"SyncServiceSandbox({self.clock.now().isoformat()})"

    pay = _of_sandbox(ServiceSandbox.pay)
    fail = _of_sandbox(ServiceSandbox.fail)
    expire = _of_sandbox(ServiceSandbox.expire)
    complete_refund = _of_sandbox(ServiceSandbox.complete_refund)
    fail_refund = _of_sandbox(ServiceSandbox.fail_refund)
    reject_refund = _of_sandbox(ServiceSandbox.reject_refund)

    def settle(self, merchant: SyncMerchant | None = None) -> Settlement:
        """Settle the paid payments of a merchant, by default of `self.merchant`, without waiting for the daily
        settlement. Raises: Refusal."""

        async def ask(service: Service) -> Settlement:
            return await self.inner.settle((merchant or self.merchant).within(service))

        return self.service.run(ask)

    def _move(self, seconds: float) -> None:
        async def ask(_: Service) -> None:
            await self.inner.clock.advance(seconds=seconds)

        self.service.run(ask)


class _Temporary:
    """Virtual time, a temporary database and a record of the events, for one service."""

    def __init__(
        self,
        database: Database,
        folder: str,
        start: datetime,
        on_event: OnEvent | None,
        adapters: Adapters | None,
        base_url: str,
    ) -> None:
        if database not in get_args(Database):
            raise ValueError(f"the database of a test is one of: {', '.join(get_args(Database))}")
        self._folder = Path(folder)
        self._url = "memory://" if database == "memory" else f"sqlite:///{self._folder / 'test.db'}"
        self._on_event = on_event
        self._adapters = adapters
        self._base_url = base_url
        self._clock, self._ids, self._advance = virtual_time(start)
        self._received: list[Event] = []

    def change(self, opening: Opening) -> Opening:
        """Return an opening with these parts. All providers are simulated but its own `adapters`."""
        on_event = self._on_event or opening.on_event
        former = opening.database.base_url if isinstance(opening.database, Settings) else opening.base_url

        def receive(event: Event) -> Any:
            self._received.append(event)
            return None if on_event is None else on_event(event)

        return Opening(
            database=Settings(
                database_url=self._url,
                base_url=OPTIONS["base_url"].read(self._base_url or former or _BASE_URL),
                data_dir=self._folder,
                allow_live_simulators=True,
                vault=_KEYS,
            ),
            on_event=receive,
            adapters=self._adapters or opening.adapters,
            clock=self._clock,
            ids=self._ids,
        )

    async def sandbox(self, service: Service, settings: Mapping[str, str | bool] | None) -> ServiceSandbox:
        """Return the sandbox of the open service, with a new account."""
        account = await service.create_account(_ACCOUNT, **{**_FEATURES, **(settings or {})})
        await service.run_due()
        return ServiceSandbox(service, await service.merchant(account.account_id), self._advance, self._received)


@asynccontextmanager
async def open_service(
    mount: Mount | None = None,
    /,
    *,
    on_event: OnEvent | None = None,
    adapters: Adapters | None = None,
    base_url: str = "",
    database: Database = "memory",
    start: datetime = START,
    settings: Mapping[str, str | bool] | None = None,
) -> AsyncIterator[ServiceSandbox]:
    """Open a service for one test: `async with cambist.testing.open_service(on_event=heard) as sandbox:`.

    `mount`: your program's own `cambist.Mount`. During the block it serves this service, which keeps the mount's
    `on_event`, `adapters` and `base_url` unless they are given here. The mount's database and settings are not used.
    `database`: "memory", or "sqlite" for a file in a temporary folder.
    `start`: the initial time of the clock.
    `settings`: account settings of `sandbox.merchant`.

    No worker runs: the methods of the sandbox run the jobs that are due, and so does `sandbox.service.run_due()`.
    Raises: RuntimeError if the mount is open already; NotInstalled.
    """
    with tempfile.TemporaryDirectory(prefix="cambist-") as folder:
        temporary = _Temporary(database, folder, start, on_event, adapters, base_url)
        async with (mount or Mount()).replaced(temporary.change) as service:
            yield await temporary.sandbox(service, settings)


@contextmanager
def open_sync_service(
    service: SyncService | None = None,
    /,
    *,
    on_event: Callable[[Event], object] | None = None,
    adapters: Adapters | None = None,
    base_url: str = "",
    database: Database = "memory",
    start: datetime = START,
    settings: Mapping[str, str | bool] | None = None,
) -> Iterator[SyncServiceSandbox]:
    """Open a service for one test of a synchronous program.

    `service`: your program's own service, from `cambist.open_sync`. During the block it is the one of the test. The
    other arguments are those of `open_service`. `on_event` is called in another thread than the test's.
    Raises: RuntimeError if the service is open already; NotInstalled.
    """
    with tempfile.TemporaryDirectory(prefix="cambist-") as folder:
        temporary = _Temporary(database, folder, start, None, adapters, base_url)
        used = service or open_sync(on_event=on_event)
        with used.replaced(temporary.change):

            async def begin(opened: Service) -> ServiceSandbox:
                return await temporary.sandbox(opened, settings)

            yield SyncServiceSandbox(used, used.run(begin))
