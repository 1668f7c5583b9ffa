"""Simultaneous requests and polls, on every storage: versions and unique rules decide (docs/concepts.md "What is
refused first"; docs/exchanges.md "Rules")."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast
from uuid import UUID

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.exchanges.money import ExchangeQuote
from cambist.core.domain.exchanges.orders import ExchangeCase
from cambist.core.domain.exchanges.payouts import part_operation
from cambist.core.domain.ledger import EntryKind, JournalEntry
from cambist.core.usecases.exchanges import creation, steps
from cambist.core.usecases.exchanges.creation import create_exchange
from cambist.core.usecases.exchanges.exchanges import cancel_exchange
from cambist.core.usecases.exchanges.opening import open_new
from cambist.core.usecases.exchanges.progress import progress
from cambist.core.usecases.exchanges.steps import transfers_of
from cambist.ports.bundle import Ports
from cambist.ports.remittances import RemittanceStatus
from cambist.ports.storage import Storage, Unit
from tests.exchange_app import PHONE, RUB_100, ExchangeApp, open_exchange_app
from tests.invariants import everything
from tests.race_barriers import Interrupted

KEY = str(UUID(int=7))


@pytest.fixture
async def app(url: str, tmp_path: Path) -> AsyncIterator[ExchangeApp]:
    """Yield an app whose books are compared with the objects at the end."""
    async with open_exchange_app(database_url=url, data_dir=tmp_path) as opened:
        yield opened


async def test_simultaneous_exchanges_of_one_phone_make_one(app: ExchangeApp) -> None:
    """One exchange a phone (docs/exchanges.md "Rules"); the rest is `409 EXCHANGE_IN_PROGRESS`."""
    done = await asyncio.gather(*(app.made(phone=PHONE) for _ in range(20)), return_exceptions=True)
    assert sorted(each.code if isinstance(each, Refusal) else type(each).__name__ for each in done) == [
        *["EXCHANGE_IN_PROGRESS"] * 19,
        "Exchange",
    ]
    assert len(await everything(app.ports, Exchange)) == 1


async def test_simultaneous_requests_with_one_key_get_the_same_exchange(app: ExchangeApp) -> None:
    done = await asyncio.gather(*(app.made(key=KEY) for _ in range(10)))
    assert len({(each.id, each.crypto_deposit_address, each.status) for each in done}) == 1
    assert done[0].status == "awaiting_usdt"


async def test_an_exchange_of_the_same_key_that_is_taken_back_stands_in_no_way(
    app: ExchangeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its maker found no deposit address, just when another request with the key saw it (seed 30105)."""
    written, seen, quotes = asyncio.Event(), asyncio.Event(), creation._quote
    makers: list[asyncio.Task[Exchange]] = []

    async def quoted(ports: Ports, case: ExchangeCase) -> ExchangeQuote | None:
        if not makers:
            makers.append(asyncio.create_task(app.made(key=KEY)))
            await written.wait()
        return await quotes(ports, case)

    async def opened(ports: Ports, exchange: Exchange) -> Exchange | None:
        if not written.is_set():
            written.set()
            await seen.wait()
            app.watcher.script.address.append(Twist(ending=Ending.UNAVAILABLE))
        return await open_new(ports, exchange)

    async def taken_back() -> None:
        seen.set()
        with pytest.raises(Refusal, match="No deposit address"):
            await makers[0]

    monkeypatch.setattr(creation, "_quote", quoted)
    monkeypatch.setattr(creation, "open_new", opened)
    storage = Interrupted(app.ports.storage, Exchange, taken_back, finding=True)
    interrupted, order = msgspec.structs.replace(app.ports, storage=cast("Storage", storage)), app.order()
    made = (await create_exchange(interrupted, await app.caller(), KEY, lambda: order)).resource
    assert (makers[0].done(), made.status) == (True, "awaiting_usdt")


async def test_cancel_and_deposit_at_once_have_one_winner(app: ExchangeApp) -> None:
    """A cancelled exchange pays nothing out, whatever came. An exchange that has its USDT is not cancelled."""
    for number in range(10):
        made = await app.made(phone=f"+7000000000{number}")
        results = await asyncio.gather(
            app.send(made.id),
            cancel_exchange(app.ports, await app.caller(), made.id),
            progress(app.ports, made),
            progress(app.ports, made),
            return_exceptions=True,
        )
        cancelled = isinstance(results[1], Exchange)
        await app.look(made.id)
        assert await app.status(made.id) == ("cancelled" if cancelled else "rub_sending")
        assert len(await app.remitted()) <= number + 1
        assert (part_operation(made.id, 1) in await app.remitted()) is not cancelled


async def test_looks_at_once_book_and_pay_once(app: ExchangeApp) -> None:
    made = await app.made()
    await app.send(made.id, "60")
    await app.send(made.id, "50")
    await asyncio.gather(*(progress(app.ports, made) for _ in range(8)))
    await app.app.clock.advance(2)
    exchange = await app.exchange(made.id)
    await asyncio.gather(*(progress(app.ports, exchange) for _ in range(8)))
    assert await app.said(made.id) == ["completed"]
    assert await app.remitted() == {part_operation(made.id, 1): RUB_100}
    entries = await everything(app.ports, JournalEntry)
    assert len([entry for entry in entries if entry.kind is EntryKind.EXCHANGE_COMPLETED]) == 1
    assert len([entry for entry in entries if entry.kind is EntryKind.EXCHANGE_RECEIVED]) == 2


async def test_late_usdt_seen_by_many_at_once_are_booked_once(app: ExchangeApp) -> None:
    made = await app.made()
    await app.cancel(made.id)
    await app.send(made.id, "7")
    exchange = await app.exchange(made.id)
    await asyncio.gather(*(progress(app.ports, exchange) for _ in range(8)))
    assert [transfer.suspended for transfer in await app.transfers()] == [7_00000000]


@pytest.mark.parametrize("ends", ["failed", "expired"])
async def test_poll_reads_again_if_another_ended_the_exchange_meanwhile(
    app: ExchangeApp, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read the exchange before that, so the deposits it finds are less than the amount that the exchange holds."""
    made = await app.made()
    await app.send(made.id, "100" if ends == "failed" else "60")
    await app.look(made.id)
    if ends == "failed":
        await app.bank().simulate_remittance(part_operation(made.id, 1), RemittanceStatus.FAILED, "recipient")
    else:
        await app.app.clock.advance(900)
    others: list[str] = []

    async def read_late(unit: Unit, exchange_id: str) -> list[ExchangeTransfer]:
        if not others:
            others.append("polls")
            others.append(await app.look(exchange_id))
        return await transfers_of(unit, exchange_id)

    monkeypatch.setattr(steps, "transfers_of", read_late)
    assert await app.look(made.id) == ends
    assert others == ["polls", ends]
    assert await app.said(made.id) == [ends]
    [transfer] = await app.transfers()
    assert (transfer.counted, transfer.suspended) == (0, transfer.amount)


async def test_deposit_that_never_counted_is_not_released(app: ExchangeApp) -> None:
    """The stored exchange counts more money than arrived for it: nothing is written."""
    made = await app.made()
    await app.send(made.id, "60")
    await app.look(made.id)
    [transfer] = await app.transfers()
    async with app.ports.storage.unit() as unit:
        unit[ExchangeTransfer].save(msgspec.structs.replace(transfer, counted=0))
        await unit.commit()
    await app.app.clock.advance(900)
    with pytest.raises(ValueError, match="more is released"):
        await app.look(made.id)
    assert await app.status(made.id) == "partial"
    async with app.ports.storage.unit() as unit:
        [damaged] = await unit[ExchangeTransfer].find()
        unit[ExchangeTransfer].save(msgspec.structs.replace(damaged, counted=transfer.counted))
        await unit.commit()
