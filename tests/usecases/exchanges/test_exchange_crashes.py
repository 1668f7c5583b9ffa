"""A crash at any point of an exchange's life ends as if there had been none: the story is run once per commit and call
of a provider, killed just before or just after it, and continued by a new process. The client is paid once."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange, invoice_operation
from cambist.core.usecases.exchanges.creation import create_exchange, create_rub_usdt
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_routes import BankRoutes
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.deposits import DepositWatchers
from cambist.ports.payouts import Senders, SignedTransfer
from tests.crash_points import CrashPoint, Killed, fused
from tests.exchange_app import PHONE, WALLET, ExchangeApp, open_exchange_app
from tests.invariants import everything
from tests.stand_in import StandIn

KEY = str(UUID(int=7))
LEASES_ARE_OVER = 90.0
"""Seconds after which no job of a dead process is held."""
_CALLS = ("address", "deposits", "broadcast", "state")


class Fused(StandIn):
    """A provider whose calls blow the fuse as commits do; its own books do not."""

    def __init__(self, provider: Any, fuse: CrashPoint) -> None:
        self._provider = provider
        self._fuse = fuse

    def _original(self) -> Any:
        return self._provider

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._provider, name)
        return self._fused(found) if name in _CALLS else found

    async def remit(self, request: Any) -> Any:
        return await self._fused(self._provider.remit)(request)

    async def find_remittance(self, operation: str) -> Any:
        return await self._fused(self._provider.find_remittance)(operation)

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        async def work(_: Any) -> SignedTransfer:
            found: SignedTransfer = await self._provider.sign(operation, address, units)
            return found

        signed: SignedTransfer = await self._fused(work)(None)
        return signed

    def _fused(self, call: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def called(argument: Any) -> Any:
            self._fuse.commits += 1
            blown = self._fuse.commits == self._fuse.at
            if blown and not self._fuse.after:
                raise Killed
            found = await call(argument)
            if blown:
                raise Killed
            return found

        return called


class FusedBank(Fused):
    """A fused bank with the methods of RemittanceBank, so that checks for methods find them."""

    async def create_invoice(self, request: Any) -> Any:
        return await self._fused(self._provider.create_invoice)(request)

    async def find_invoice(self, operation: str) -> Any:
        return await self._provider.find_invoice(operation)

    async def invoice_state(self, reference: str) -> Any:
        return await self._provider.invoice_state(reference)

    async def refund(self, request: Any) -> Any:
        return await self._fused(self._provider.refund)(request)

    async def find_refund(self, operation: str) -> Any:
        return await self._fused(self._provider.find_refund)(operation)


def fused_throughout(ports: Ports, fuse: CrashPoint) -> Ports:
    """The ports of a process that will die at a commit, or at a call of a provider."""
    banks: dict[str, Any] = {name: FusedBank(bank, fuse) for name, bank in ports.banks.banks.items()}
    senders: dict[str, Any] = {name: Fused(each, fuse) for name, each in ports.senders.senders.items()}
    watchers: dict[str, Any] = {name: Fused(each, fuse) for name, each in ports.deposits.watchers.items()}
    return msgspec.structs.replace(
        fused(ports, fuse),
        banks=BankRoutes(banks=banks, order=ports.banks.order),
        deposits=DepositWatchers(watchers=watchers, modes=ports.deposits.modes),
        senders=Senders(senders=senders, modes=ports.senders.modes),
    )


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A life of an exchange, and how it ends."""

    sent: tuple[str, ...]
    end: str
    twists: tuple[Twist, ...] = ()

    async def story(self, app: ExchangeApp, ports: Ports) -> None:
        """Create the exchange, let the client pay the outstanding money, and wait for the end."""
        app.app.ports = ports
        order, caller = app.order("10000"), await app.caller()
        with suppress(Refusal):  # the key of an exchange that is over by now
            await create_exchange(ports, caller, KEY, lambda: order)
        [exchange] = await everything(app.ports, Exchange)
        already = len(await app.watcher.deposits(exchange.crypto_deposit_address or ""))
        for amount in self.sent[already:]:
            await app.send(exchange.id, amount)
        await app.app.work(1200)

    async def check(self, app: ExchangeApp) -> None:
        [exchange] = await everything(app.ports, Exchange)
        assert exchange.status == self.end
        assert await app.said(exchange.id) == [self.end]
        paid = sum((await app.remitted()).values())
        assert paid == (exchange.amount_rub.kopecks if self.end == "completed" else 0)

    async def run(self, at: int, *, after: bool) -> int:
        """Run the story with a crash at point `at`, recover, finish it, check everything. Returns the points seen."""
        async with open_exchange_app(receiver=False) as app:
            await app.app.work()
            app.app.script.remit.extend(self.twists)
            whole, fuse = app.ports, CrashPoint(at, after=after)
            with suppress(Killed):
                await self.story(app, fused_throughout(whole, fuse))
            app.app.ports = whole
            # The new process: the dead one's leases expire, and the job resumes the work.
            await app.app.work(LEASES_ARE_OVER)
            await self.story(app, whole)
            await self.check(app)
            return fuse.commits


LOST = (Twist(ending=Ending.UNKNOWN_DONE), Twist(ending=Ending.UNKNOWN_NOT_DONE))


@pytest.mark.parametrize(
    "way",
    [
        Way(sent=("10000",), end="completed"),
        Way(sent=("4000", "7000"), end="completed", twists=LOST),
        Way(sent=("10000",), end="failed", twists=(Twist(ending=Ending.REFUSED),) * 2),
    ],
    ids=["two parts", "answers lost", "refused"],
)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_point_ends_as_if_there_had_been_none(way: Way, after: bool) -> None:
    points = await way.run(0, after=after)
    assert points >= 15
    # The last commits are polls for late money, all alike.
    for at in range(1, min(points, 40) + 1):
        await way.run(at, after=after)


async def _buy(app: ExchangeApp, ports: Ports) -> None:
    """RUB to USDT: create the exchange, pay it, and wait for the end."""
    app.app.ports = ports
    if not await everything(app.ports, Exchange):
        account_id, phone = app.app.account.account_id, PHONE
        await create_rub_usdt(ports, account_id, Mode.TEST, amount_rub="5000.00", client_phone=phone, address=WALLET)
    await app.app.work(15)
    [exchange] = await everything(app.ports, Exchange)
    await app.bank().simulate(invoice_operation(exchange.id), Simulation(status=InvoiceStatus.PAID))
    await app.app.work(600)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("lost", [False, True], ids=["answered", "answer lost"])
async def test_a_crash_while_usdt_are_sent_sends_them_once(after: bool, lost: bool) -> None:
    points, at = 1, 0
    while at <= min(points, 40):
        async with open_exchange_app(receiver=False) as app:
            await app.app.work()
            if lost:
                app.sender.script.broadcast.append(Twist(ending=Ending.UNKNOWN_DONE))
            whole, fuse = app.ports, CrashPoint(at, after=after)
            with suppress(Killed):
                await _buy(app, fused_throughout(whole, fuse))
            app.app.ports = whole
            await app.app.work(LEASES_ARE_OVER)
            await _buy(app, whole)
            [exchange] = await everything(app.ports, Exchange)
            assert await app.said(exchange.id) == ["completed"]
            assert len(await app.on_chain()) == 1
            points = fuse.commits if at == 0 else points
        at += 1
    assert points >= 10
