"""RUB to USDT: an operator's exchange, its invoice, the hold, and the transfer in its three outcomes
(docs/exchanges.md "RUB to USDT")."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Direction
from cambist.core.domain.exchanges.money import shares
from cambist.core.domain.ledger import BalanceType
from cambist.core.domain.money import Rub
from cambist.core.usecases.exchanges.creation import create_rub_usdt
from cambist.core.usecases.exchanges.exchanges import cancel_any_exchange, every_exchange, set_direction
from cambist.ports.bank_routes import BankRoutes
from cambist.ports.payouts import TransferState
from tests.exchange_app import PHONE, WALLET, ExchangeApp, open_exchange_app

KOPECKS = 10_000_00


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    """Yield an app whose books are compared with the objects at the end."""
    async with open_exchange_app() as opened:
        yield opened


async def until(app: ExchangeApp, status: str) -> str:
    """Return the id of an exchange of RUB to USDT that has reached this status."""
    made = await app.bought()
    if status != "awaiting_rub":
        await app.pay(made.id)
    if status == "usdt_sending":
        await app.app.work(300)
    assert await app.status(made.id) == status
    return made.id


async def test_usdt_goes_after_the_hold_and_the_merchant_earns_the_remainder(app: ExchangeApp) -> None:
    made = await app.bought()
    assert (made.status, made.direction, made.amount_rub) == ("awaiting_rub", Direction.RUB_TO_USDT, Rub(KOPECKS))
    assert made.amount_usdt.units == KOPECKS * 1_000_000 * 98 * 2 // (185 * 100) // 100 * 100
    assert made.invoice_payload
    assert made.crypto_deposit_address is None
    await app.pay(made.id)
    paid = await app.exchange(made.id)
    assert (paid.status, paid.hold_until) == ("rub_received", app.app.clock.now() + timedelta(minutes=5))
    await app.app.work(299)
    assert (await app.status(made.id), await app.on_chain()) == ("rub_received", [])
    await app.app.work(1)
    assert await app.status(made.id) == "usdt_sending"
    await app.app.work(30)
    [event] = await app.app.events(made.id)
    assert (event["status"], event["direction"], event["amount_usdt_received"]) == (
        "completed",
        "rub_to_usdt",
        str(made.amount_usdt),
    )
    earned = shares(made).merchant.units
    assert earned > 2_00000000
    stock = [KOPECKS, -made.amount_usdt.units - earned]
    assert await app.balance_types(BalanceType.AVAILABLE, BalanceType.STOCK_RUB, BalanceType.STOCK_USDT) == [
        earned,
        *stock,
    ]
    assert len(await app.on_chain()) == 1


async def test_the_signed_transfer_is_forgotten_at_the_end_and_its_hash_is_kept(app: ExchangeApp) -> None:
    exchange_id = await until(app, "usdt_sending")
    assert (await app.exchange(exchange_id)).blob is not None
    await app.app.work(30)
    exchange = await app.exchange(exchange_id)
    assert (exchange.status, exchange.blob, exchange.tx_hash is None) == ("completed", None, False)


@pytest.mark.parametrize("rest", [True, False])
async def test_an_underpaid_invoice_is_partial_and_expires_into_suspense(app: ExchangeApp, rest: bool) -> None:
    made = await app.bought()
    await app.pay(made.id, 6_000_00)
    assert await app.status(made.id) == "partial"
    if rest:
        await app.pay(made.id, 4_500_00, again=True)
    await app.app.work(1000)
    assert await app.said(made.id) == ["completed" if rest else "expired"]
    assert await app.balance_types(BalanceType.SUSPENSE) == [500_00 if rest else 6_000_00]


async def test_an_invoice_that_nobody_pays_expires(app: ExchangeApp) -> None:
    made = await app.bought()
    await app.app.work(900)
    assert await app.said(made.id) == ["expired"]
    await app.bought()


async def test_rub_after_the_end_are_suspense(app: ExchangeApp) -> None:
    exchange_id = await until(app, "awaiting_rub")
    await cancel_any_exchange(app.ports, exchange_id)
    await app.pay(exchange_id)
    assert await app.said(exchange_id) == ["cancelled"]
    assert await app.balance_types(BalanceType.SUSPENSE) == [KOPECKS]


async def test_an_operator_cancels_only_before_rub_came(app: ExchangeApp) -> None:
    exchange_id = await until(app, "rub_received")
    for refused, code in ((exchange_id, "INVALID_STATE"), ("exch_1", "EXCHANGE_NOT_FOUND")):
        with pytest.raises(Refusal) as caught:
            await cancel_any_exchange(app.ports, refused)
        assert caught.value.code == code


async def test_a_merchant_sees_it_and_does_not_cancel_what_awaits_rub(app: ExchangeApp) -> None:
    exchange_id = await until(app, "awaiting_rub")
    shown = await app.shown(exchange_id)
    assert (shown["direction"], shown["crypto_deposit_address"]) == ("rub_to_usdt", None)
    assert (await app.cancel(exchange_id)).status_code == 409
    assert [each.id for each in await every_exchange(app.ports, app.app.account.account_id)] == [exchange_id]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"amount_rub": "1e4"}, "VALIDATION_ERROR"),
        ({"address": WALLET[:-1] + "u"}, "VALIDATION_ERROR"),
        ({"client_phone": "7"}, "VALIDATION_ERROR"),
        ({"amount_rub": "0"}, "INVALID_AMOUNT"),
        ({"client_phone": "+79990000001"}, "CLIENT_NOT_REGISTERED"),
        ({"amount_rub": "999.99"}, "AMOUNT_TOO_LOW"),
        ({"amount_rub": "1000000.01"}, "AMOUNT_TOO_HIGH"),
        ({"account_id": "acc_none"}, "ACCOUNT_NOT_FOUND"),
    ],
)
async def test_invalid_exchange_of_an_operator_is_refused(app: ExchangeApp, fields: dict[str, str], code: str) -> None:
    asked = {"amount_rub": "10000.00", "client_phone": PHONE, "address": WALLET, **fields}
    account_id = asked.pop("account_id", app.app.account.account_id)
    with pytest.raises(Refusal) as caught:
        await create_rub_usdt(app.ports, account_id, Mode.TEST, **asked)
    assert caught.value.code == code


async def test_one_active_exchange_per_phone_holds_over_both_directions(app: ExchangeApp) -> None:
    await app.set(exchange="false")
    await app.bought()
    with pytest.raises(Refusal) as caught:
        await app.bought()
    assert caught.value.code == "EXCHANGE_IN_PROGRESS"
    await app.set(exchange="true")
    with pytest.raises(Refusal) as caught:
        await app.made()
    assert caught.value.code == "EXCHANGE_IN_PROGRESS"
    await set_direction(app.ports, Direction.RUB_TO_USDT, is_on=False)
    with pytest.raises(Refusal) as caught:
        await app.bought(phone="+70000000002")
    assert caught.value.code == "FEATURE_DISABLED"


@pytest.mark.parametrize(
    ("ending", "first", "end"),
    [
        (Ending.UNKNOWN_DONE, "pending", "awaiting_rub"),
        (Ending.UNKNOWN_NOT_DONE, "pending", "awaiting_rub"),
        (Ending.UNAVAILABLE, "pending", "awaiting_rub"),
        (Ending.REFUSED, "failed", "failed"),
    ],
)
async def test_an_invoice_in_its_three_ends(app: ExchangeApp, ending: Ending, first: str, end: str) -> None:
    app.app.script.create.append(Twist(ending=ending))
    made = await app.bought()
    assert made.status == first
    await app.app.work(30)
    assert await app.status(made.id) == end


@pytest.mark.parametrize(
    "ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE, Ending.REFUSED], ids=str
)
async def test_a_broadcast_whose_answer_is_lost_sends_once(app: ExchangeApp, ending: Ending) -> None:
    app.sender.script.broadcast.append(Twist(ending=ending))
    app.sender.script.state.append(Twist(ending=Ending.UNAVAILABLE))
    exchange_id = await until(app, "usdt_sending")
    await app.app.work(60)
    assert await app.said(exchange_id) == ["completed"]
    assert len(await app.on_chain()) == 1


async def test_a_transfer_that_is_proven_lost_is_signed_anew(app: ExchangeApp) -> None:
    exchange_id = await until(app, "usdt_sending")
    first = (await app.exchange(exchange_id)).tx_hash
    assert first is not None
    await app.sender.simulate(first, TransferState.FAILED)
    await app.app.work(60)
    exchange = await app.exchange(exchange_id)
    assert exchange.status == "completed"
    assert exchange.tx_hash not in (None, first)
    assert await app.said(exchange_id) == ["completed"]


async def test_transfer_not_proven_lost_is_never_signed_again(app: ExchangeApp) -> None:
    exchange_id = await until(app, "usdt_sending")
    first = (await app.exchange(exchange_id)).tx_hash
    assert first is not None
    await app.sender.simulate(first, TransferState.IN_BLOCK)
    await app.app.work(24 * 3600)
    exchange = await app.exchange(exchange_id)
    assert (exchange.status, exchange.tx_hash) == ("usdt_sending", first)


async def test_a_wallet_that_refuses_to_sign_for_good_fails_the_exchange(app: ExchangeApp) -> None:
    app.sender.script.sign.append(Twist(ending=Ending.REFUSED, reason="address"))
    made = await app.bought()
    await app.pay(made.id)
    await app.app.work(300)
    assert await app.said(made.id) == ["failed"]
    assert await app.balance_types(BalanceType.SUSPENSE, BalanceType.SENDING, BalanceType.STOCK_USDT) == [KOPECKS, 0, 0]


async def test_a_wallet_that_is_empty_is_waited_for(app: ExchangeApp) -> None:
    app.sender.script.sign.extend([Twist(ending=Ending.UNAVAILABLE)] * 3)
    exchange_id = await until(app, "usdt_sending")
    await app.app.work(15)
    assert (await app.exchange(exchange_id)).tx_hash is None
    await app.app.work(300)
    assert await app.said(exchange_id) == ["completed"]


async def test_looks_at_once_sign_and_send_once(app: ExchangeApp) -> None:
    exchange_id = await until(app, "rub_received")
    await app.app.clock.advance(300)
    await asyncio.gather(*(app.look(exchange_id) for _ in range(6)))
    await app.app.clock.advance(30)
    await asyncio.gather(*(app.look(exchange_id) for _ in range(6)))
    assert await app.said(exchange_id) == ["completed"]
    assert len(await app.on_chain()) == 1


async def test_exchange_without_a_bank_is_not_configured(app: ExchangeApp) -> None:
    whole = app.ports
    app.ports = msgspec.structs.replace(whole, banks=BankRoutes(banks={}, order={}))
    with pytest.raises(Refusal) as caught:
        await app.bought()
    assert caught.value.code == "PROVIDER_NOT_CONFIGURED"
    app.ports = whole


@pytest.mark.parametrize("status", ["awaiting_rub", "rub_received", "usdt_sending"])
async def test_the_sandbox_completes_it_from_anywhere(app: ExchangeApp, status: str) -> None:
    exchange_id = await until(app, status)
    response = await app.simulate(exchange_id, "completed")
    assert response.json()["status"] == "completed", response.text
    assert await app.said(exchange_id) == ["completed"]


@pytest.mark.parametrize("status", ["awaiting_rub", "rub_received", "usdt_sending"])
async def test_the_sandbox_fails_it_from_anywhere(app: ExchangeApp, status: str) -> None:
    exchange_id = await until(app, status)
    response = await app.simulate(exchange_id, "failed")
    assert response.json()["status"] == "failed", response.text
    assert await app.said(exchange_id) == ["failed"]
    assert (await app.simulate(exchange_id, "usdt_received")).status_code == 409
