"""Kinds of subjects that send USDT through the engine of signed transfers, each with a subject ready to be signed, and
a fourth kind that exists only in tests and has the minimum that a row needs."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec

from cambist.adapters.payouts.simulator import SimulatedSender
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.settlement.withdrawals import Withdrawal
from cambist.core.usecases.exchanges.returns import return_money
from cambist.core.usecases.exchanges.sending import SENT, begin_sending
from cambist.core.usecases.exchanges.usdt_return import USDT_RETURNS
from cambist.core.usecases.settlement.withdrawal_progress import PAYOUTS
from cambist.core.usecases.signed_transfers.engine import Standing, bring
from cambist.core.usecases.signed_transfers.row import Sending, SignedTransfers, stored
from cambist.ports.bundle import Ports
from cambist.ports.notes import ProviderNote
from cambist.ports.payouts import Senders, SignedTransfer, TransferState
from cambist.ports.storage import Unit
from cambist.ports.vault import Vault
from tests.apps import TestApp, open_test_app
from tests.exchange_app import open_exchange_app
from tests.invariants import noted
from tests.payout_kit import OTHER_WALLET, WALLET, WatchedSender, open_payouts

KINDS = ("payout", "exchange", "return", "gift")


class Gift(msgspec.Struct, frozen=True, kw_only=True):
    """Record of the fourth kind; the tests store it as the body of a note."""

    sender: str
    is_tagged: bool = True
    over: str = ""
    times_taken: int = 0
    tx_hash: str | None = None
    blob: bytes | None = None
    signed_until: datetime | None = None


class _Gifts(SignedTransfers[ProviderNote]):
    record = ProviderNote
    races = ()

    def sending(self, note: ProviderNote) -> Sending | None:
        gift = read_gift(note)
        if gift.over:
            return None
        return Sending(
            operation=note.id,
            sender=gift.sender,
            network="tron",
            address=WALLET,
            units=100,
            signed=stored(note.id, gift),
            awaits_taken=not gift.times_taken,
        )

    def is_as_decided(self, vault: Vault, note: ProviderNote) -> bool:
        return read_gift(note).is_tagged

    async def store(self, ports: Ports, unit: Unit, note: ProviderNote, by: SignedTransfer) -> ProviderNote:
        return _save(unit, note, tx_hash=by.tx_hash, blob=by.blob, signed_until=by.expires_at)

    def replaced(self, note: ProviderNote, by: SignedTransfer) -> ProviderNote:
        gift = msgspec.structs.replace(read_gift(note), tx_hash=by.tx_hash, blob=by.blob, signed_until=by.expires_at)
        return msgspec.structs.replace(note, body=msgspec.json.encode(gift))

    async def taken(self, ports: Ports, unit: Unit, note: ProviderNote) -> ProviderNote:
        return _save(unit, note, times_taken=read_gift(note).times_taken + 1)

    async def final(self, ports: Ports, unit: Unit, note: ProviderNote) -> ProviderNote:
        return _save(unit, note, over="final")

    async def never(self, ports: Ports, unit: Unit, note: ProviderNote) -> ProviderNote:
        return _save(unit, note, tx_hash=None, blob=None, signed_until=None)

    async def refused(self, ports: Ports, unit: Unit, note: ProviderNote, failure: str) -> ProviderNote:
        return _save(unit, note, over=failure)


GIFTS = _Gifts()


def read_gift(note: ProviderNote) -> Gift:
    return msgspec.json.decode(note.body, type=Gift)


def _save(unit: Unit, note: ProviderNote, **changes: Any) -> ProviderNote:
    gift = msgspec.structs.replace(read_gift(note), **changes)
    return unit[ProviderNote].save(msgspec.structs.replace(note, body=msgspec.json.encode(gift)))


class Subject:
    """One subject of a kind, with the wallet that sends it and a record of the wallet's calls. Only the test runs the
    engine."""

    def __init__(self, app: TestApp) -> None:
        self.app = app
        wired = app.ports.senders
        sender = wired.of_mode("test")
        inner = sender.inner if isinstance(sender, WatchedSender) else sender
        assert isinstance(inner, SimulatedSender)
        self.wallet = WatchedSender(inner)
        senders = Senders(senders={**wired.senders, inner.name: self.wallet}, modes=wired.modes)
        self.ports = msgspec.structs.replace(app.ports, senders=senders)
        self.row: SignedTransfers[Any] = GIFTS
        self.id = ""

    def is_of(self, row: SignedTransfers[Any], subject_id: str) -> "Subject":
        self.row, self.id = row, subject_id
        return self

    async def now(self) -> Any:
        found = await self.ports.storage.get(self.row.record, self.id)
        assert found is not None
        return found

    async def sending(self) -> Sending | None:
        return self.row.sending(await self.now())

    async def tx_hash(self) -> str | None:
        """Return the hash of the transfer in flight. Return None without a transfer, or if it is not signed."""
        sending = await self.sending()
        return None if sending is None or sending.signed is None else sending.signed.tx_hash

    async def is_over(self) -> bool:
        return await self.sending() is None

    async def run(self, ports: Ports | None = None, attempts: int = 1) -> float | None:
        """One run of the engine; after how many seconds the next is worthwhile."""
        standing: Standing[Any] = await bring(self.row, ports or self.ports, await self.now(), attempts)
        assert standing.subject == await self.now()
        return None if standing.pause is None else standing.pause.total_seconds()

    async def until_over(self, ports: Ports | None = None) -> None:
        """Runs, each at its time, until there is nothing more to do."""
        for _ in range(200):
            pause = await self.run(ports)
            if pause is None:
                return
            await self.app.clock.advance(pause)
        raise AssertionError("it never ends")

    async def on_chain(self, state: TransferState) -> None:
        """Set the state of the pending transfer on the network."""
        await self.wallet.inner.simulate(await self.tx_hash() or "", state)

    async def moved(self) -> list[str]:
        """Return the hash of every transfer in a block."""
        notes = [note for note in await noted(self.ports) if note.provider == self.wallet.name]
        there = (TransferState.IN_BLOCK, TransferState.FINAL)
        return [
            note.id.removeprefix(f"{self.wallet.name}:")
            for note in notes
            if msgspec.json.decode(note.body).get("state") in there
        ]

    async def put(self, record: Any) -> None:
        """Write the record over the stored one, as a restored backup or another program would."""
        async with self.ports.storage.unit() as unit:
            unit[self.row.record].save(msgspec.structs.replace(record, version=(await self.now()).version))
            await unit.commit()

    async def remove(self) -> None:
        async with self.ports.storage.unit() as unit:
            unit[self.row.record].remove(await self.now())
            await unit.commit()

    async def untag(self) -> None:
        """Take away what the vault said of it."""
        present = await self.now()
        if isinstance(present, ProviderNote):
            gift = msgspec.structs.replace(read_gift(present), is_tagged=False)
            return await self.put(msgspec.structs.replace(present, body=msgspec.json.encode(gift)))
        field = "return_tag" if isinstance(present, ExchangeTransfer) else "tag"
        return await self.put(msgspec.structs.replace(present, **{field: None}))


@asynccontextmanager
async def open_subject(kind: str) -> AsyncIterator[Subject]:
    """A subject that is decided on and not signed yet; at the end the books hold."""
    async with AsyncExitStack() as stack:
        if kind == "payout":
            payouts = await stack.enter_async_context(open_payouts())
            made: Withdrawal = await payouts.made()
            yield Subject(payouts.app).is_of(PAYOUTS, made.id)
        elif kind == "gift":
            app = await stack.enter_async_context(open_test_app(receiver=False))
            subject = Subject(app).is_of(GIFTS, "gift_1")
            gift = msgspec.json.encode(Gift(sender=subject.wallet.name))
            async with subject.ports.storage.unit() as unit:
                now = subject.ports.clock.now()
                unit[ProviderNote].add(ProviderNote(id=subject.id, provider="gifts", body=gift, created_at=now))
                await unit.commit()
            yield subject
        else:
            exchanges = await stack.enter_async_context(open_exchange_app(receiver=False))
            if kind == "exchange":
                bought: Exchange = await exchanges.bought()
                await exchanges.pay(bought.id)
                await exchanges.app.clock.advance(300)
                await begin_sending(exchanges.ports, await exchanges.exchange(bought.id))
                yield Subject(exchanges.app).is_of(SENT, bought.id)
            else:
                late = await exchanges.made()
                await exchanges.cancel(late.id)
                await exchanges.send(late.id, "7")
                await exchanges.look(late.id)
                [planned] = await return_money(exchanges.ports, late.id, OTHER_WALLET)
                yield Subject(exchanges.app).is_of(USDT_RETURNS, planned.id)
