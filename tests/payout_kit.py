"""Kit for tests of payouts: a merchant with a wallet and USDT, the service's wallet with its calls recorded, and access
to the ledger and the chain."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec

from cambist.adapters.payouts.simulator import SimulatedSender
from cambist.adapters.script import SenderScript
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.ledger import BalanceType, EntryKind, journal_entry
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.settlement.settlement import ItemKind, Settlement, SettlementItem, line_id
from cambist.core.domain.settlement.withdrawals import Withdrawal
from cambist.core.domain.tron import tron_address
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.ledger.ledger import balance_types, post
from cambist.core.usecases.settlement.withdrawal_progress import EXECUTE
from cambist.core.usecases.settlement.withdrawals import pay_out
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from cambist.ports.payouts import SenderCapabilities, Senders, SentTransfer, SignedTransfer, TransferState
from tests.apps import TestApp, open_test_app
from tests.invariants import check_books, noted
from tests.planting import beneath

WALLET = tron_address(bytes(range(20)))
OTHER_WALLET = tron_address(bytes(range(20, 40)))
CREDIT = Usdt.parse("100.00000123")
"""More than the network can move: TRON has six decimals."""
PAID = Usdt.parse("100.000001")
REST = CREDIT - PAID

DEARER = "d" * 64
"""The hash of the transaction that replaced a transfer (ReplacingWallet)."""

Hook = Callable[[str], Awaitable[None]]


class WatchedFinder:
    """The simulated wallet, which finds transfers but does not list them, with a record of its calls.

    A test can run code before and after each call, also after a failed one.
    """

    def __init__(self, inner: SimulatedSender) -> None:
        self.inner = inner
        self.calls: list[tuple[str, str]] = []
        """Names of the calls, each with the hash that it returned or concerned; `-` for a search, or where signing
        returned no hash."""
        self.signed: dict[str, SignedTransfer] = {}
        self.before: Hook | None = None
        self.after: Hook | None = None

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def capabilities(self) -> SenderCapabilities:
        return self.inner.capabilities

    @property
    def script(self) -> SenderScript:
        return self.inner.script

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        async with self._call("sign", "-"):
            transfer = await self.inner.sign(operation, address, units)
            self.calls[-1] = ("sign", transfer.tx_hash)
            self.signed[transfer.tx_hash] = transfer
        return transfer

    async def broadcast(self, signed: SignedTransfer) -> None:
        async with self._call("broadcast", signed.tx_hash):
            await self.inner.broadcast(signed)

    async def state(self, signed: SignedTransfer) -> TransferState:
        async with self._call("state", signed.tx_hash):
            return await self.inner.state(signed)

    async def find(self, operation: str) -> SentTransfer | None:
        async with self._call("find", "-"):
            return await self.inner.find(operation)

    def count(self, call: str) -> int:
        return Counter(name for name, _ in self.calls)[call]

    def hashes(self, call: str) -> set[str]:
        return {tx_hash for name, tx_hash in self.calls if name == call}

    @asynccontextmanager
    async def _call(self, call: str, tx_hash: str) -> AsyncIterator[None]:
        if self.before is not None:
            await self.before(call)
        self.calls.append((call, tx_hash))
        try:
            yield
        finally:
            if self.after is not None:
                await self.after(call)


class WatchedSender(WatchedFinder):
    """The same wallet, which lists, too."""

    async def sent_since(self, moment: datetime) -> list[SentTransfer]:
        async with self._call("sent_since", "-"):
            return await self.inner.sent_since(moment)


class ReplacingWallet(WatchedSender):
    """A wallet whose transfers never expire, and that replaces each with a more expensive one."""

    def __init__(self, inner: SimulatedSender) -> None:
        super().__init__(inner)
        self._ends: dict[str, datetime | None] = {}

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        made = await super().sign(operation, address, units)
        self._ends[made.tx_hash] = made.expires_at
        return msgspec.structs.replace(made, expires_at=None)

    async def broadcast(self, signed: SignedTransfer) -> None:
        await super().broadcast(msgspec.structs.replace(signed, expires_at=self._ends[signed.tx_hash]))

    async def state(self, signed: SignedTransfer) -> TransferState:
        return await super().state(msgspec.structs.replace(signed, expires_at=self._ends[signed.tx_hash]))

    async def in_place(self, signed: SignedTransfer) -> SignedTransfer:
        assert signed.expires_at is None
        return msgspec.structs.replace(signed, tx_hash=DEARER, blob=b"dearer")


class Payouts:
    """An app whose merchant is paid out in `mode`."""

    def __init__(self, app: TestApp, mode: Mode) -> None:
        self.app = app
        self.mode = mode
        self.account_id = app.account.account_id
        wired = app.ports.senders
        inner = wired.of_mode(mode)
        assert isinstance(inner, SimulatedSender)
        self.sender = WatchedSender(inner)
        senders = Senders(senders={**wired.senders, inner.name: self.sender}, modes=wired.modes)
        self.ports = app.ports = msgspec.structs.replace(app.ports, senders=senders)

    @property
    def script(self) -> SenderScript:
        return self.sender.script

    async def set_wallet(self, wallet: str) -> None:
        await set_settings(self.ports, self.account_id, {"payout_wallet": wallet})

    async def credit(self, amount: Usdt = CREDIT, *, mode: Mode | None = None, account_id: str | None = None) -> str:
        """Credit it as a settlement does, with its statement, whose id is returned. Below zero it is a debt."""
        owner, now = account_id or self.account_id, self.ports.clock.now()
        object_id = f"ref_{self.ports.ids.uuid()}"
        statement = Settlement(
            id=f"stl_{self.ports.ids.uuid()}",
            batch_id=object_id,
            account_id=owner,
            mode=mode or self.mode,
            cutoff=now,
            rate_market="80",
            started_at=now,
            completed_at=now,
            items=1,
            credit=amount,
        )
        item = SettlementItem(
            id=line_id(statement.id, object_id, object_id),
            settlement_id=statement.id,
            payment_id=object_id,
            shop_id="shop",
            kind=ItemKind.CORRECTION,
            amount=Rub(0),
            markup="0",
            fee=Usdt(0),
            credit=amount,
        )
        entry = journal_entry(
            EntryKind.SETTLEMENT,
            object_id,
            account_id=owner,
            mode=statement.mode,
            at=now,
            postings={BalanceType.CONVERTED_USDT: -amount.units, BalanceType.AVAILABLE: amount.units},
        )
        async with beneath(self.ports).unit() as unit:
            unit[Settlement].add(statement)
            unit[SettlementItem].add(item)
            post(unit, entry)
            await unit.commit()
        return statement.id

    async def statement(self, settlement_id: str) -> Settlement:
        async with self.ports.storage.unit() as unit:
            statement = await unit[Settlement].get(settlement_id)
        assert statement is not None
        return statement

    async def pay_out(self, **more: Any) -> Withdrawal | None:
        return await pay_out(self.app.ports, self.account_id, self.mode, **more)

    async def made(self) -> Withdrawal:
        """A new payout of a fresh credit, still pending."""
        await self.credit()
        withdrawal = await self.pay_out()
        assert withdrawal is not None
        return withdrawal

    async def record(self, withdrawal_id: str) -> Withdrawal:
        async with self.ports.storage.unit() as unit:
            withdrawal = await unit[Withdrawal].get(withdrawal_id)
        assert withdrawal is not None
        return withdrawal

    async def every(self) -> list[Withdrawal]:
        async with self.ports.storage.unit() as unit:
            return await unit[Withdrawal].find()

    async def balance_types(self) -> tuple[Usdt, Usdt, Usdt]:
        """Return the available, reserved and paid-out amounts."""
        async with self.ports.storage.unit() as unit:
            found = await balance_types(unit, self.account_id, self.mode)
        available, reserved, paid = (
            Usdt(found.get(each, 0)) for each in (BalanceType.AVAILABLE, BalanceType.RESERVED, BalanceType.PAID_OUT)
        )
        return available, reserved, paid

    async def jobs(self) -> list[Job]:
        async with self.ports.storage.unit() as unit:
            return await unit[Job].find(kind=EXECUTE.kind)

    async def on_chain(self) -> list[tuple[str, int]]:
        """Address and units of every transfer that stands in a block."""
        moved = []
        for note in await noted(self.ports):
            is_moved = (TransferState.IN_BLOCK, TransferState.FINAL)
            if note.provider == self.sender.name and msgspec.json.decode(note.body).get("state") in is_moved:
                signed = self.sender.signed[note.id.removeprefix(f"{self.sender.name}:")]
                body = msgspec.json.decode(signed.blob)
                moved.append((body["address"], body["units"]))
        return moved

    async def statuses(self, withdrawal_id: str) -> list[tuple[str | None, str]]:
        """Return the previous and the new status of each event, in the order of their sequence, which has no gap."""
        events = await self.app.events(withdrawal_id)
        return [(event["previous_status"], event["status"]) for event in events]


@asynccontextmanager
async def open_payouts(*, mode: Mode = Mode.TEST, wallet: bool = True, **more: Any) -> AsyncIterator[Payouts]:
    """An app with a merchant whose wallet is set, and an observed wallet of the service. At the end the books hold."""
    async with open_test_app(**{"receiver": False, **more}) as app:
        payouts = Payouts(app, mode)
        if wallet:
            await payouts.set_wallet(WALLET)
        yield payouts
        await check_books(payouts.ports)


def lost_wallet(ports: Ports) -> Ports:
    """The app after an operator unwired every wallet of the service."""
    return msgspec.structs.replace(ports, senders=Senders(senders={}, modes={}))
