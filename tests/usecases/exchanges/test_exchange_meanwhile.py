"""A change made to an exchange during a provider's call is kept, even if the answer comes late. Also the action items
for exchanges that cannot be done (docs/exchanges.md "Rules")."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange, ExchangeStatus
from cambist.core.usecases.exchanges.exchanges import cancel_any_exchange, cancel_exchange, every_exchange
from cambist.core.usecases.exchanges.opening import give_up, open_address, open_invoice, open_new
from cambist.core.usecases.exchanges.returns import list_suspended, return_money
from cambist.core.usecases.exchanges.steps import WATCH_EXCHANGE
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from tests.exchange_app import PHONE, ExchangeApp, open_exchange_app
from tests.payout_kit import lost_wallet
from tests.providers_kit import inside
from tests.usecases.exchanges.test_exchange_return import BACK, late_rub, late_usdt

S = ExchangeStatus
UNKNOWN = "acc_00000000-0000-4000-8000-000000000001"


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app(receiver=False) as opened:
        yield opened


async def refused(work: Awaitable[object]) -> str:
    with pytest.raises(Refusal) as caught:
        await work
    return caught.value.code


async def _give_up(ports: Ports, exchange: Exchange) -> Exchange | None:
    return await give_up(ports, exchange.id)


OPENINGS: dict[str, tuple[bool, Callable[[Ports, Exchange], Awaitable[Exchange | None]]]] = {
    "address": (True, open_address),
    "address is away": (True, open_new),
    "invoice": (False, open_invoice),
    "invoice is refused": (False, open_invoice),
    "time is over": (True, _give_up),
}
"""Whether the exchange takes USDT, and the step that follows if it was pending when it was read."""


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("name", OPENINGS)
async def test_exchange_that_moved_meanwhile_is_neither_opened_nor_ended(
    app: ExchangeApp, name: str, gone: bool
) -> None:
    takes_usdt, opening = OPENINGS[name]
    made = await (app.made() if takes_usdt else app.bought())
    read = msgspec.structs.replace(made, status=S.PENDING, version=made.version - 1)
    if gone:
        async with app.ports.storage.unit() as unit:
            unit[Exchange].remove(made)
            await WATCH_EXCHANGE.drop(unit, made.id)
            await unit.commit()
    if name == "address is away":
        app.watcher.script.address.append(Twist(ending=Ending.UNAVAILABLE))
    if name == "invoice is refused":
        app.app.script.create.append(Twist(ending=Ending.REFUSED))
    if name == "time is over":
        await app.app.clock.advance(3600)
    if gone and name == "address is away":
        assert await refused(opening(app.ports, read)) == "PROVIDER_UNAVAILABLE"
    else:
        assert await opening(app.ports, read) == (None if gone else made)
    assert await app.ports.storage.get(Exchange, made.id) == (None if gone else made)


@pytest.mark.parametrize(("left", "status"), [(1, "pending"), (0, "failed")])
async def test_exchange_without_an_invoice_fails_at_its_deadline(app: ExchangeApp, left: int, status: str) -> None:
    app.app.script.create.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
    made = await app.bought()
    assert made.status is S.PENDING
    await app.app.clock.advance((made.expires_at - app.app.clock.now()).total_seconds() - left)
    await give_up(app.ports, made.id)
    assert await app.status(made.id) == status


@pytest.mark.parametrize(("asked", "told"), [(None, 30), (0.2, 1), (1.4, 1), (1.6, 2), (90.0, 90)])
async def test_a_watcher_that_says_when_to_come_back_is_believed(
    app: ExchangeApp, asked: float | None, told: int
) -> None:
    app.watcher.script.address.append(Twist(ending=Ending.UNAVAILABLE, retry_after=asked))
    with pytest.raises(Refusal) as caught:
        await app.made()
    assert caught.value.retry_after == told


async def test_watch_of_an_exchange_leaves_the_request_ten_seconds(app: ExchangeApp) -> None:
    made = await app.made()
    job = await app.ports.storage.get(Job, WATCH_EXCHANGE.id_of(made.id))
    assert job is not None
    assert job.due == made.created_at + timedelta(seconds=10)


class TestCancelling:
    async def test_two_cancellations_at_once_cancel_once(self, app: ExchangeApp) -> None:
        made, caller = await app.made(), await app.caller()
        ended = await asyncio.gather(
            *(cancel_exchange(app.ports, caller, made.id) for _ in range(2)), return_exceptions=True
        )
        [first] = [each for each in ended if isinstance(each, Exchange)]
        [second] = [each for each in ended if isinstance(each, Refusal)]
        assert (first.status, second.code) == ("cancelled", "INVALID_STATE")

    async def test_cancelling_an_ended_exchange_is_refused_while_its_chain_is_away(self, app: ExchangeApp) -> None:
        made, caller = await app.made(), await app.caller()
        await cancel_exchange(app.ports, caller, made.id)
        app.watcher.script.deposits.append(Twist(ending=Ending.UNAVAILABLE))
        assert await refused(cancel_exchange(app.ports, caller, made.id)) == "INVALID_STATE"

    async def test_invoice_of_a_cancelled_exchange_is_closed_at_once(self, app: ExchangeApp) -> None:
        made = await app.bought()
        await cancel_any_exchange(app.ports, made.id)
        job = await app.ports.storage.get(Job, WATCH_EXCHANGE.id_of(made.id))
        assert job is not None
        assert job.due == app.app.clock.now()


class TestOperators:
    async def test_their_list_is_of_both_modes_the_newest_first(self, app: ExchangeApp) -> None:
        account_id = app.app.account.account_id
        made = []
        for phone in (PHONE, "+70000000002", "+70000000003"):
            made.append((await app.bought(phone=phone)).id if phone == PHONE else (await app.made(phone=phone)).id)
            await app.app.clock.advance(1)
        async with app.ports.storage.unit() as unit:
            newest = await unit[Exchange].get(made[-1])
            assert newest is not None
            unit[Exchange].add(msgspec.structs.replace(newest, id=f"{newest.id[:-1]}x", mode="live", active_slot=None))
            await unit.commit()
        app.app.made_up = True
        shown = [each.id for each in await every_exchange(app.ports, account_id)]
        assert shown == [f"{made[-1][:-1]}x", *made[::-1]]
        assert [each.id for each in await every_exchange(app.ports, account_id, limit=2)] == shown[:2]

    async def test_an_account_that_is_not_there_has_no_lists(self, app: ExchangeApp) -> None:
        assert await refused(every_exchange(app.ports, UNKNOWN)) == "ACCOUNT_NOT_FOUND"
        assert await refused(list_suspended(app.ports, UNKNOWN)) == "ACCOUNT_NOT_FOUND"

    async def test_exchange_of_rub_does_not_begin_without_a_wallet(self, app: ExchangeApp) -> None:
        app.ports = lost_wallet(app.ports)
        assert await refused(app.bought()) == "PROVIDER_NOT_CONFIGURED"

    async def test_usdt_are_not_returned_without_a_wallet(self, app: ExchangeApp) -> None:
        exchange_id = await late_usdt(app)
        assert await refused(return_money(lost_wallet(app.ports), exchange_id, BACK)) == "PROVIDER_NOT_CONFIGURED"

    async def test_a_bank_that_sends_nothing_back_is_asked_for_nothing(
        self, app: ExchangeApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        exchange_id = await late_rub(app)
        bank, gone = app.bank(), msgspec.structs.replace(app.ports.banks, banks={})
        with pytest.raises(Refusal, match="sends none back"):
            await return_money(msgspec.structs.replace(app.ports, banks=gone), exchange_id)
        monkeypatch.setattr(inside(bank), "_capabilities", msgspec.structs.replace(bank.capabilities, refunds=False))
        with pytest.raises(Refusal, match="sends none back"):
            await return_money(app.ports, exchange_id)

    async def test_return_before_the_end_of_an_exchange_is_refused(self, app: ExchangeApp) -> None:
        made = await app.made()
        with pytest.raises(Refusal, match="awaiting_usdt: its unapplied money is known only at its end"):
            await return_money(app.ports, made.id, BACK)
