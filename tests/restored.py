"""A world that remembers more than the database: a bank and a wallet with books of their own, and apps over a
database that can be put back to an earlier copy of itself, as an operator does who restores a backup."""

import asyncio
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import msgspec

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.clock import VirtualClock
from cambist.adapters.deposits.simulator import SimulatedDeposits
from cambist.adapters.ids import SeededIds
from cambist.adapters.payouts.simulator import SimulatedSender
from cambist.adapters.script import Script
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.adapters.storage.sqlite.fingerprints import FileFingerprints
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.ledger import BalanceType
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.settlement.settlement import Settlement
from cambist.core.domain.settlement.withdrawals import Withdrawal
from cambist.core.domain.subscriptions.orders import SubscriptionOrder
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.domain.tron import tron_address
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.installation.marking import mark_anew
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.kyc.clients import ClientSimulation, simulate_client
from cambist.core.usecases.ledger.ledger import balance_types
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.core.usecases.subscriptions.charges import read_charge_window
from cambist.core.usecases.subscriptions.subscriptions import create_subscription
from cambist.frontends.app.compose import migrate, open_app
from cambist.frontends.app.own_adapters import Adapters
from cambist.frontends.settings.settings import Settings
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.mandates import MandateEvent, MandateSimulation
from cambist.ports.notes import ProviderNote
from cambist.ports.payouts import TransferState
from cambist.ports.storage import Storage
from tests.apps import Postman
from tests.invariants import check_books
from tests.payout_kit import WALLET, WatchedFinder, WatchedSender
from tests.quiesce import at_rest
from tests.servers import client_programs

Rows = dict[str, dict[str, Any]]
Copy = Rows | Path


class World:
    """The outside world, which a restore of the database does not affect. `kind` is `memory`, `sqlite`, or `postgres`
    with the URL of an empty database."""

    def __init__(self, kind: str, place: Path, url: str | None = None) -> None:
        self.clock = VirtualClock(settle=at_rest)
        self.ids = SeededIds()
        self.books = MemoryStorage(self.clock)
        self.script = Script()
        self.bank = SimulatedBank("bank", self.books, self.clock, self.ids, script=self.script)
        self.banks = [self.bank, SimulatedBank("other", self.books, self.clock, self.ids)]
        """The first is tried first."""
        self.wallet: WatchedFinder = WatchedSender(SimulatedSender("wallet", self.books, self.clock, self.ids))
        self.deposits = SimulatedDeposits("deposits", self.books, self.clock, self.ids, spell=tron_address)
        self.account_id = ""
        self._place = place
        self._kind = kind
        self._url = url
        self._memory: MemoryStorage | None = None
        self._copies = 0

    @property
    def _file(self) -> Path:
        return self._place / "app.db"

    @asynccontextmanager
    async def opened(self, copy: Copy | None = None, *, held: bool = False) -> AsyncIterator["App"]:
        """Yield a process over the database, which is first restored to the copy; without one over a new database.
        `held`: the copy stays held, as for an operator."""
        settings = Settings(database_url=self._url or f"sqlite:///{self._file}", data_dir=self._place)
        if self._kind != "memory":
            if isinstance(copy, Path):
                await asyncio.to_thread(self._put_back, copy)
            await migrate(settings)
        adapters = Adapters(banks={Mode.LIVE: self.banks}, payouts=self.wallet, deposits=self.deposits)
        if self._kind == "memory":
            adapters = msgspec.structs.replace(adapters, storage=lambda wake_up: self._filled(wake_up, copy))
        async with open_app(settings, clock=self.clock, ids=self.ids, notifier=Postman(), adapters=adapters) as opened:
            if copy is not None and self._kind == "sqlite" and not held:
                # These tests check the protections that work without the hold, and after it.
                beside = FileFingerprints(self._file)
                await mark_anew(
                    opened.ports.storage, opened.ports.vault, beside, self.clock, opened.ports.ids, resuming=True
                )
            app = App(self, opened.ports)
            if copy is None:
                await app.furnish()
            yield app

    async def _filled(self, wake_up: Any, copy: Copy | None) -> Storage:
        self._memory = MemoryStorage(self.clock, wake_up)
        for name, rows in (copy if isinstance(copy, dict) else {}).items():
            table = self._memory._tables[name]
            for record_id, row in rows.items():
                table.put(record_id, row)
        return self._memory

    def copy(self) -> Copy:
        """Copy the present database."""
        if self._memory is not None:
            return {name: dict(table.rows) for name, table in self._memory._tables.items()}
        self._copies += 1
        target = self._place / f"copy-{self._copies}.db"
        if self._url is not None:
            pg_dump = client_programs(self._url) / "pg_dump"
            subprocess.run([pg_dump, "--format=custom", f"--file={target}", self._url], check=True)
            return target
        with closing(sqlite3.connect(self._file)) as source, closing(sqlite3.connect(target)) as made:
            source.backup(made)
        return target

    def _put_back(self, copy: Path) -> None:
        if self._url is not None:
            options = ("--no-owner", "--clean", "--if-exists", f"--dbname={self._url}")
            subprocess.run([client_programs(self._url) / "pg_restore", *options, copy], check=True)
            return
        for each in (self._file, self._file.with_name("app.db-wal"), self._file.with_name("app.db-shm")):
            each.unlink(missing_ok=True)
        self._file.write_bytes(copy.read_bytes())

    async def paid_out(self) -> list[tuple[str, str, int]]:
        """Return operation, address and units of every transfer in a block."""
        moved = []
        async with self.books.unit() as unit:
            notes = {
                note.id: msgspec.json.decode(note.body) for note in await unit[ProviderNote].find(provider="wallet")
            }
        for tx_hash, signed in self.wallet.signed.items():
            if notes.get(f"wallet:{tx_hash}", {}).get("state") in (TransferState.IN_BLOCK, TransferState.FINAL):
                body = msgspec.json.decode(signed.blob)
                moved.append((signed.operation, body["address"], body["units"]))
        return moved

    async def refunded(self) -> list[tuple[str, int]]:
        """Operation and kopecks of every refund in the bank's books."""
        async with self.books.unit() as unit:
            pages = [msgspec.json.decode(note.body) for note in await unit[ProviderNote].find(provider="bank")]
        return [(each["operation"], each["amount_kopecks"]) for page in pages for each in page.get("refunds", ())]

    async def remitted(self) -> list[str]:
        """The operation of every remittance in the banks' books."""
        async with self.books.unit() as unit:
            notes = [
                note
                for bank in self.banks
                for note in await unit[ProviderNote].find(provider=f"{bank.name}/remittances")
            ]
        return [note.id.partition(":")[2] for note in notes]

    async def debited(self) -> list[str]:
        """The operation of every charge in the bank's books."""
        async with self.books.unit() as unit:
            pages = [msgspec.json.decode(note.body) for note in await unit[ProviderNote].find(provider="bank")]
        return [page["operation"] for page in pages if page.get("charge") is not None]


class App:
    """A process of the service, and the merchant's live mode in it."""

    def __init__(self, world: World, ports: Ports) -> None:
        self.world = world
        self.ports = ports

    async def furnish(self) -> None:
        """Create a merchant with a wallet, whose refunds need no approval."""
        made = await accounts.create_account(self.ports, "Merchant")
        self.world.account_id = made.account_id
        wish = {"payout_wallet": WALLET, "refunds": "true", "refund_approval": "auto", "exchange": "true"}
        await accounts.set_settings(self.ports, made.account_id, wish)

    async def caller(self) -> Caller:
        account = await self.ports.storage.get(Account, self.world.account_id)
        assert account is not None
        return Caller(account=account, mode=Mode.LIVE, key_id="a-key")

    async def know_client(self, phone: str) -> None:
        """Verify the client with this phone number."""
        wish = ClientSimulation(phone=phone, kyc_status="verified")
        await simulate_client(self.ports, await self.caller(), wish)

    async def pay(self, payment: Payment, *, again: bool = False) -> None:
        """Let the payer pay, and handle the bank's notification."""
        present = await self.ports.storage.get(Payment, payment.id)
        assert present is not None
        await simulate_payment(self.ports, present, Simulation(status=InvoiceStatus.PAID, again=again))

    async def bound(self) -> str:
        """A subscription of 100 RUB a month whose second period has just opened; its id."""
        caller = await self.caller()
        order = SubscriptionOrder(
            amount_rub="100.00",
            interval="month",
            interval_count=1,
            description="Tea",
            external_id="tea-club",
            binding_charge="none",
        )
        made = await create_subscription(self.ports, caller, self.ports.ids.uuid(), lambda: order, lambda: None)
        await open_binding(self.ports, made.resource.id)
        found = await self.ports.storage.get(Subscription, made.resource.id)
        assert found is not None
        assert found.binding is not None
        simulation = MandateSimulation(event=MandateEvent.CONFIRM)
        for notification in await self.world.bank.simulate_mandate(found.binding.operation, simulation):
            await on_notification(self.ports, notification)
        opens = (await read_charge_window(self.ports, caller, found.id)).next_allowed_at
        assert opens is not None
        await self.work((opens - self.world.clock.now()).total_seconds())
        return found.id

    async def withdrawals(self) -> list[Withdrawal]:
        async with self.ports.storage.unit() as unit:
            return await unit[Withdrawal].find(order="created_at")

    async def balance_type(self, balance_type: BalanceType) -> int:
        """Return the merchant's balance of this ledger account."""
        async with self.ports.storage.unit() as unit:
            return (await balance_types(unit, self.world.account_id, Mode.LIVE)).get(balance_type, 0)

    async def exchanges(self) -> list[Exchange]:
        async with self.ports.storage.unit() as unit:
            return await unit[Exchange].find(order="created_at")

    async def statements(self) -> list[Settlement]:
        async with self.ports.storage.unit() as unit:
            return await unit[Settlement].find(order="started_at")

    async def work(self, seconds: float = 0) -> None:
        """Let the time pass and do every job that falls due on the way."""
        clock = self.world.clock
        end = clock.now().timestamp() + seconds
        while True:
            await run_due(self.ports)
            due = await self.ports.storage.next_due()
            if due is None or due.timestamp() > end:
                break
            await clock.advance(max(0.0, (due - clock.now()).total_seconds()))
        await clock.advance(max(0.0, end - clock.now().timestamp()))

    async def check(self) -> None:
        """The books agree with the objects."""
        await check_books(self.ports)
