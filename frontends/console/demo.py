"""`cambist console --demo`: a simulated service in memory where payments arrive, webhooks go out and refunds wait.

It has two merchants, the service's own simulators, and a player who acts as merchants and payers. Events follow a fixed
cycle, so that each kind appears within a minute.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count, cycle

from ...core.domain.accounts.accounts import Account, Caller, Mode
from ...core.domain.accounts.rate_limit import WINDOW, window
from ...core.domain.errors import Refusal
from ...core.domain.payments.orders import PaymentOrder
from ...core.domain.payments.payments import Payment
from ...core.domain.refunds.orders import RefundOrder
from ...core.usecases.accounts import accounts, shops
from ...core.usecases.accounts.limit_hits import HOUR, HitCounter
from ...core.usecases.accounts.rate_limits import admit
from ...core.usecases.payments.payments import create_payment
from ...core.usecases.refunds.refunds import create_refund
from ...core.usecases.sandbox.sandbox import simulate_payment
from ...core.usecases.settlement.settlement import settle_now
from ...ports.bank import InvoiceStatus
from ...ports.bank_simulator import Simulation
from ...ports.bundle import Ports
from ...ports.faults import Fault
from ...ports.notifier import Answer, DeliveryResult, WebhookRequest
from ..app.compose import open_app
from ..settings.settings import Settings
from ..telemetry.limit_hits import hits_kept
from ..worker.process import at_work
from .context import ConsoleContext

_WALLET = "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf"
_SILENT = "https://silent.example/hooks"
"""Webhook URL of a receiver that never answers."""

_AMOUNTS = ("1490.00", "350.00", "12000.00", "99.90", "7800.50", "640.00", "2500.00", "45000.00", "189.00")
_OUTCOMES = ("paid", "paid", "paid", "failed", "paid", "paid", "refund", "paid", "wait", "paid", "mismatch", "paid")
_PAUSE = 0.7
_SEEDED = 48
_IMPATIENT = (("198.51.100.7", "polls instead of hearing webhooks", 2), ("203.0.113.9", None, 5))
"""Clients that exceed the rate limit: address, key, and number of requests with every payment."""
_LIMITS_HIT = (0, 0, 3, 14, 6, 0, 0, 1, 0, 9, 22, 41, 17, 4, 0, 0, 0, 2, 0, 0)
"""Rate-limit hits in the minutes before the console opens."""

log = logging.getLogger("cambist.demo")


class _Receivers:
    """Simulated webhook receivers: one answers and one is unreachable."""

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        if webhook.url == _SILENT:
            return DeliveryResult(answer=Answer.CONNECTION, note="connection refused", took_ms=3)
        return DeliveryResult(answer=Answer.RESPONDED, status=200, took_ms=41)

    async def close(self) -> None:
        """Do nothing: no connection is open."""


@asynccontextmanager
async def living(operator: str) -> AsyncIterator[ConsoleContext]:
    """Run a seeded service until the block ends."""
    async with open_app(Settings(database_url="memory://"), notifier=_Receivers()) as app:
        merchants = [await _merchant(app.ports, "Coffee & Co"), await _merchant(app.ports, "Silent Ltd", _SILENT)]
        hits = HitCounter()
        player = _Player(app.ports, merchants, hits)
        async with at_work(app, lambda: log.error("the worker died")), hits_kept(app.ports, hits):
            await player.seed()
            playing = asyncio.create_task(player.play())
            try:
                yield ConsoleContext(ports=app.ports, operator=operator, demo=True)
            finally:
                playing.cancel()
                with suppress(asyncio.CancelledError):
                    await playing


async def _merchant(ports: Ports, name: str, url: str = "https://merchant.example/hooks") -> Account:
    made = await accounts.create_account(ports, name)
    wish = {
        "webhook_url": url,
        "webhook_secret": ports.ids.secret(32),
        "refunds": "true",
        "refund_approval": "manual",
        "payout_wallet": _WALLET,
    }
    account = await accounts.set_settings(ports, made.account_id, wish)
    with suppress(Refusal):
        await shops.create_shop(ports, account.id, "Online", "0.025")
    return account


class _Player:
    """Simulates merchants and payers."""

    def __init__(self, ports: Ports, merchants: Sequence[Account], hits: HitCounter) -> None:
        self._ports = ports
        self._hits = hits
        self._callers = cycle(
            Caller(account=merchants[0] if number % 4 else merchants[1], mode=mode, key_id="demo")
            for number, mode in enumerate((Mode.LIVE, Mode.LIVE, Mode.TEST, Mode.LIVE, Mode.LIVE))
        )
        self._amounts = cycle(_AMOUNTS)
        self._outcomes = cycle(_OUTCOMES)
        self._orders = count(1001)

    async def seed(self) -> None:
        """Create the data that exists when the console opens."""
        minute = window(int(self._ports.clock.now().timestamp()))
        for back, times in zip(range(1, HOUR), cycle(_LIMITS_HIT), strict=False):
            if times:
                self._hits.add("general:ip" if back % 2 else "general:key", (minute - back) * WINDOW, times)
        await self._hits.flush(self._ports)
        for number in range(_SEEDED):
            await self._one()
            if number == _SEEDED // 2:
                for mode in Mode:
                    with suppress(Refusal):
                        await settle_now(self._ports, mode, cutoff=self._ports.clock.now())

    async def play(self) -> None:
        """Create one payment after another for ever."""
        while True:
            await self._ports.clock.sleep(_PAUSE)
            await self._one()
            await self._ask_too_often()

    async def _ask_too_often(self) -> None:
        for address, key, times in _IMPATIENT:
            for _ in range(times):
                verdict = await admit(self._ports, "GET", "/payments", address, key)
                if verdict.over:
                    self._hits.count(verdict)

    async def _one(self) -> None:
        try:
            await self._payment(next(self._callers), next(self._outcomes))
        except (Refusal, Fault) as fault:
            log.info("the player was refused: %s", fault)

    async def _payment(self, caller: Caller, outcome: str) -> None:
        ports = self._ports
        number = next(self._orders)
        order = PaymentOrder(
            amount_rub=next(self._amounts), external_id=f"order-{number}", client_phone=f"+7900555{number % 10000:04}"
        )
        made = await create_payment(ports, caller, ports.ids.uuid(), lambda: order)
        payment = made.resource
        if outcome == "wait":
            return
        if outcome == "failed":
            await self._tell(payment, InvoiceStatus.FAILED, None)
            return
        came = payment.amount.kopecks - 100_00 if outcome == "mismatch" else payment.amount.kopecks
        await self._tell(payment, InvoiceStatus.PAID, came)
        if outcome == "refund":
            refund = RefundOrder(payment_id=payment.id, reason="The customer changed their mind")
            await create_refund(ports, caller, ports.ids.uuid(), lambda: refund)

    async def _tell(self, payment: Payment, status: InvoiceStatus, kopecks: int | None) -> None:
        """Let the simulated bank report a status. It serves the live mode too, which has a simulated bank here."""
        name = "IVAN I." if status is InvoiceStatus.PAID else None
        simulation = Simulation(status=status, amount_kopecks=kopecks, payer_name=name)
        await simulate_payment(self._ports, payment, simulation)
