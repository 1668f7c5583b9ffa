"""Exchanges: creation, reading and cancellation by merchants (docs/exchanges.md "Making one", "Rules"; docs/concepts.md
"What is refused first")."""

from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from typing import NoReturn
from uuid import UUID

import msgspec
import pytest

from cambist.adapters.rates.simulator import SimulatedRates
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Direction, Exchange, ExchangeStatus
from cambist.core.domain.exchanges.orders import ExchangeOrder
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.tron import is_tron_address
from cambist.core.usecases.exchanges.creation import create_exchange
from cambist.core.usecases.exchanges.exchanges import (
    ExchangeFilter,
    cancel_exchange,
    get_exchange,
    list_exchanges,
    set_direction,
)
from cambist.core.usecases.kyc.clients import ClientSimulation, simulate_client
from cambist.ports.deposits import DepositWatchers
from cambist.ports.jobs import Job
from cambist.ports.rates import RateSimulation
from tests.exchange_app import PHONE, RUB_100, ExchangeApp, open_exchange_app
from tests.invariants import everything

KEY = str(UUID(int=7))
OTHER = "+70000000002"


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app() as opened:
        yield opened


def no_body() -> NoReturn:
    raise AssertionError("the body was read")


async def refused(app: ExchangeApp, amount: str = "100", phone: str = PHONE) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        await app.made(amount, phone)
    return caught.value.status, caught.value.code


async def left(app: ExchangeApp) -> list[int]:
    """Return the numbers of exchanges, keys, and watches."""
    jobs = [job for job in await everything(app.ports, Job) if job.kind == "exchange.watch"]
    return [len(await everything(app.ports, Exchange)), len(await everything(app.ports, IdempotencyKey)), len(jobs)]


async def test_a_new_exchange_has_quote_deadline_and_an_address_of_its_own(app: ExchangeApp) -> None:
    """Client rate = base rate * (1 - markup/100); 15 minutes; only `tron`."""
    first, second = await app.made(), await app.made("200.5", OTHER)
    assert (first.status, first.direction) == (ExchangeStatus.AWAITING_USDT, Direction.USDT_TO_RUB)
    assert (first.amount_usdt, first.amount_rub, first.rate) == (Usdt.parse("100"), Rub(RUB_100), "90.65")
    assert (first.network, first.expires_at) == ("tron", first.created_at + timedelta(minutes=15))
    addresses = {first.crypto_deposit_address or "", second.crypto_deposit_address or ""}
    assert len(addresses) == 2
    assert all(is_tron_address(address) for address in addresses)


async def test_the_markup_is_the_accounts(app: ExchangeApp) -> None:
    await app.set(exchange_markup_percent="10")
    assert (await app.made()).amount_rub == Rub.parse("8325.00")


async def test_phone_is_stored_encrypted(app: ExchangeApp) -> None:
    exchange = await app.made()
    assert PHONE[1:].encode() not in exchange.client_phone + exchange.phone_digest
    assert PHONE[1:] not in repr(exchange)


async def test_a_repeat_answers_with_the_original_and_never_reads_the_body(app: ExchangeApp) -> None:
    made = await app.made(key=KEY)
    again = await create_exchange(app.ports, await app.caller(), KEY, no_body)
    assert (again.resource.id, again.replayed) == (made.id, True)


@pytest.mark.parametrize("end", ["cancelled", "completed", "failed", "expired"])
async def test_the_key_of_an_exchange_that_is_over_is_terminal(app: ExchangeApp, end: str) -> None:
    """A key works for ever (docs/concepts.md "Idempotency")."""
    made = await app.made(key=KEY)
    if end == "cancelled":
        await app.cancel(made.id)
    elif end == "expired":
        await app.app.work(900)
    else:
        await app.simulate(made.id, end)
    assert await app.status(made.id) == end
    with pytest.raises(Refusal) as caught:
        await create_exchange(app.ports, await app.caller(), KEY, no_body)
    assert (caught.value.status, caught.value.code) == (409, "IDEMPOTENCY_TERMINAL")


async def test_the_header_wins_over_the_legacy_key_of_the_body(app: ExchangeApp) -> None:
    order = msgspec.structs.replace(app.order(), idempotency_key=str(UUID(int=8)))
    made = await create_exchange(app.ports, await app.caller(), KEY, lambda: order)
    again = await create_exchange(app.ports, await app.caller(), KEY, no_body)
    assert again.resource.id == made.resource.id


async def test_one_active_exchange_per_phone_in_each_mode_until_it_is_over(app: ExchangeApp) -> None:
    made = await app.made()
    assert await refused(app) == (409, "EXCHANGE_IN_PROGRESS")
    await app.made(phone=OTHER)
    await app.cancel(made.id)
    await app.made()


async def test_a_direction_that_is_off_is_off_for_all_and_the_key_stays_free(app: ExchangeApp) -> None:
    """The same key may be sent again (docs/errors.md "All codes"). Exchanges in progress continue."""
    under_way = await app.made(phone=OTHER)
    await set_direction(app.ports, Direction.USDT_TO_RUB, is_on=False)
    with pytest.raises(Refusal) as caught:
        await app.made(key=KEY)
    assert (caught.value.status, caught.value.code) == (503, "FEATURE_DISABLED")
    await app.send(under_way.id)
    await app.app.work(12)
    assert await app.status(under_way.id) == "completed"
    await set_direction(app.ports, Direction.USDT_TO_RUB, is_on=True)
    await app.made(key=KEY)


async def test_the_switch_of_one_direction_leaves_the_other_alone(app: ExchangeApp) -> None:
    await set_direction(app.ports, Direction.RUB_TO_USDT, is_on=False)
    await app.made()


async def test_exchange_is_not_created_without_a_rate(app: ExchangeApp) -> None:
    source = app.ports.rates.of_mode("test")[0]
    assert isinstance(source, SimulatedRates)
    await source.simulate(RateSimulation(rate=Decimal("92.50"), silent=True))
    assert await refused(app) == (502, "RATE_INVALID")
    assert await left(app) == [0, 0, 0]


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (Ending.UNAVAILABLE, (503, "PROVIDER_UNAVAILABLE")),
        (Ending.NOT_CONFIGURED, (503, "PROVIDER_NOT_CONFIGURED")),
    ],
)
async def test_exchange_without_an_address_leaves_nothing_behind(
    app: ExchangeApp, ending: Ending, expected: tuple[int, str]
) -> None:
    app.watcher.script.address.append(Twist(ending=ending))
    with pytest.raises(Refusal) as caught:
        await app.made(key=KEY)
    assert (caught.value.status, caught.value.code) == expected
    assert await left(app) == [0, 0, 0]
    assert (await app.made(key=KEY)).status == "awaiting_usdt"


async def test_exchanges_are_not_configured_without_a_watcher(app: ExchangeApp) -> None:
    wired = app.ports
    app.ports = msgspec.structs.replace(wired, deposits=DepositWatchers(watchers={}, modes={}))
    assert await refused(app) == (503, "PROVIDER_NOT_CONFIGURED")
    app.ports = wired
    assert await left(app) == [0, 0, 0]


@pytest.mark.parametrize(
    ("phone", "expected"),
    [("+79990000001", (422, "CLIENT_NOT_REGISTERED")), (PHONE, (403, "CLIENT_BLOCKED"))],
)
async def test_the_client_must_be_registered_and_not_blocked(
    app: ExchangeApp, phone: str, expected: tuple[int, str]
) -> None:
    wish = ClientSimulation(phone=PHONE, kyc_status="blocked")
    await simulate_client(app.ports, await app.caller(), wish)
    assert await refused(app, phone=phone) == expected


@pytest.mark.parametrize(
    ("status", "allowed"),
    [("awaiting_usdt", True), ("partial", False), ("usdt_received", False), ("completed", False), ("cancelled", False)],
)
async def test_a_merchant_cancels_only_before_usdt_came(app: ExchangeApp, status: str, allowed: bool) -> None:
    made = await app.made()
    if status == "partial":
        await app.simulate(made.id, "usdt_received", amount_usdt="1")
    elif status == "cancelled":
        await app.cancel(made.id)
    elif status != "awaiting_usdt":
        await app.simulate(made.id, status)
    assert await app.status(made.id) == status
    response = await app.cancel(made.id)
    assert response.status_code == (200 if allowed else 409)
    if allowed:
        assert response.json()["status"] == "cancelled"
        assert await app.said(made.id) == ["cancelled"]
    else:
        assert response.json()["error"]["code"] == "INVALID_STATE"


@pytest.mark.parametrize("final", [True, False])
async def test_deposit_not_yet_polled_also_stops_a_cancel(app: ExchangeApp, final: bool) -> None:
    """Not after USDT came (docs/exchanges.md "Rules")."""
    made = await app.made()
    await app.send(made.id, final=final)
    with pytest.raises(Refusal) as caught:
        await cancel_exchange(app.ports, await app.caller(), made.id)
    assert caught.value.code == "INVALID_STATE"
    await app.app.work(120)
    assert await app.status(made.id) == "completed"


async def test_a_cancel_waits_for_a_chain_that_is_away(app: ExchangeApp) -> None:
    made = await app.made()
    app.watcher.script.deposits.append(Twist(ending=Ending.UNAVAILABLE))
    with pytest.raises(Refusal) as caught:
        await cancel_exchange(app.ports, await app.caller(), made.id)
    assert (caught.value.code, caught.value.retry_after) == ("PROVIDER_UNAVAILABLE", 30)
    assert await app.status(made.id) == "awaiting_usdt"


async def test_exchange_expires_once_every_timely_deposit_was_seen(app: ExchangeApp) -> None:
    """A watcher may see a deposit some time after it arrived."""
    made = await app.made()
    setattr(app.watcher, "lag", timedelta(seconds=120))  # noqa: B010 - of those that are late alone
    await app.app.clock.advance((made.expires_at - app.app.clock.now()).total_seconds() + 119)
    assert await app.look(made.id) == "awaiting_usdt"
    await app.app.clock.advance(1)
    assert await app.look(made.id) == "expired"


async def test_usdt_after_a_cancel_are_suspense(app: ExchangeApp) -> None:
    made = await app.made()
    await app.cancel(made.id)
    await app.send(made.id, "30")
    await app.app.work(600)
    [transfer] = await app.transfers()
    assert (transfer.suspended, transfer.reason) == (30_00000000, "after_cancelled")
    assert await app.said(made.id) == ["cancelled"]


async def test_reading_is_of_the_own_account_and_mode(app: ExchangeApp) -> None:
    made = await app.made()
    assert (await get_exchange(app.ports, await app.caller(), made.id)).id == made.id
    for exchange_id in (made.id, "exch_1", "x\0"):
        with pytest.raises(Refusal) as caught:
            await get_exchange(app.ports, await app.caller(Mode.LIVE), exchange_id)
        assert caught.value.code == "EXCHANGE_NOT_FOUND"


async def test_lists_go_by_status_newest_first(app: ExchangeApp) -> None:
    made = []
    for number in range(3):
        made.append((await app.made(phone=f"+7000000000{number}")).id)
        await app.app.clock.advance(1)
    await app.cancel(made[1])
    who = await app.caller()
    whole = await list_exchanges(app.ports, who, ExchangeFilter(), 1, 2)
    assert ([each.id for each in whole.records], whole.total) == ([made[2], made[1]], 3)
    awaiting = await list_exchanges(app.ports, who, ExchangeFilter(status="Awaiting_USDT"), 1, 20)
    assert [each.id for each in awaiting.records] == [made[2], made[0]]
    assert (await list_exchanges(app.ports, await app.caller(Mode.LIVE), ExchangeFilter(), 1, 20)).total == 0
    with pytest.raises(Refusal) as caught:
        await list_exchanges(app.ports, who, ExchangeFilter(status="gone"), 1, 20)
    assert caught.value.code == "VALIDATION_ERROR"
    assert all(status in caught.value.message for status in ExchangeStatus)


def test_an_order_hides_the_phone() -> None:
    order = ExchangeOrder(amount_usdt="1", client_phone=PHONE, client_bank_id="bank1")
    assert PHONE not in repr(order)
