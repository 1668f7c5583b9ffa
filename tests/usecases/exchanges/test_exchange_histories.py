"""Any history of deposits and faults ends with books that agree with the objects and the bank: value in is value out
plus remainder; one active exchange per phone; no client paid twice (ARCHITECTURE.md "Money"; docs/exchanges.md
"Rules"). Each test compares the books with the objects at its end (tests/exchange_invariants.py)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange, operation_exchange
from cambist.core.domain.exchanges.payouts import paid_out
from cambist.core.domain.exchanges.returns import ReturnStatus
from cambist.core.domain.ledger import BalanceType, Currency
from cambist.core.domain.money import Usdt
from cambist.core.usecases.exchanges.exchanges import cancel_exchange
from cambist.core.usecases.exchanges.returns import return_money
from cambist.ports.faults import Refused, Unavailable
from cambist.ports.payouts import TransferState
from cambist.ports.remittances import RemittanceStatus
from tests.exchange_app import ExchangeApp, open_exchange_app
from tests.invariants import everything

OperatorAction = Callable[[int, int], Awaitable[object]]
_U, _R = BalanceType.SUSPENSE_USDT, BalanceType.SUSPENSE
_WHERE = {
    Currency.USDT: (
        BalanceType.STOCK_USDT,
        BalanceType.AVAILABLE,
        _U,
        BalanceType.EXCHANGING_USDT,
        BalanceType.ROUNDING,
        BalanceType.SENDING,
    ),
    Currency.RUB: (
        BalanceType.STOCK_RUB,
        _R,
        BalanceType.EXCHANGING_RUB,
        BalanceType.REMITTING,
        BalanceType.LOSSES_RUB,
    ),
}
BACK = "TLyqzVGLV1srkB7dToTAEqgDSfPtXRJZYH"
_AMOUNTS = ("11.04", "100", "333.33333333", "10000")
_ENDINGS = (Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE, Ending.REFUSED)


class History:
    """Three clients and whatever happens to their exchanges."""

    def __init__(self, app: ExchangeApp) -> None:
        self.app = app
        self.made: list[str] = []
        self.sent = 0
        self.actions: Mapping[str, OperatorAction] = {
            "create": self.create,
            "buy": self.buy,
            "pay": self.pay,
            "chain": self.chain,
            "send": self.send,
            "drop": self.drop,
            "cancel": self.cancel,
            "look": self.look,
            "lose": self.lose,
            "away": self.away,
            "bank": self.bank,
            "back": self.back,
            "take": self.take,
            "work": self.work,
        }

    def one(self, which: int) -> str:
        if not self.made:
            raise Refused("none yet")
        return self.made[which % len(self.made)]

    async def create(self, which: int, much: int) -> None:
        done = await asyncio.gather(
            *(self.app.made(_AMOUNTS[much % 4], f"+7000000000{which % 3}") for _ in range(1 + much % 2)),
            return_exceptions=True,
        )
        for each in done:
            if isinstance(each, Exchange):
                self.made.append(each.id)
            elif not isinstance(each, Refusal):
                raise each

    async def buy(self, which: int, much: int) -> None:
        self.made.append((await self.app.bought(f"{1000 + much * 777}.00", f"+7000000000{which % 3}")).id)

    async def pay(self, which: int, much: int) -> None:
        asked = (await self.app.exchange(self.one(which))).amount_rub
        await self.app.pay(self.one(which), max(1, asked.kopecks * (much % 13) // 10), again=True)

    async def chain(self, which: int, much: int) -> None:
        tx_hash = (await self.app.exchange(self.one(which))).tx_hash
        if much % 3 == 0:
            twist = Twist(ending=tuple(Ending)[which % len(Ending)])
            (self.app.sender.script.broadcast if much % 2 else self.app.sender.script.state).append(twist)
        elif tx_hash is not None:
            await self.app.sender.simulate(tx_hash, TransferState.FINAL if much % 2 else TransferState.IN_BLOCK)

    async def send(self, which: int, much: int) -> None:
        exchange = await self.app.exchange(self.one(which))
        asked = exchange.amount_usdt
        if exchange.crypto_deposit_address is None:
            return
        amount = Usdt(max(1, asked.units * (much % 13) // 10))
        await self.app.send(self.one(which), str(amount), final=much % 3 > 0)

    async def drop(self, which: int, _: int) -> None:
        address = (await self.app.exchange(self.one(which))).crypto_deposit_address or "none"
        for deposit in await self.app.watcher.deposits(address):
            if not deposit.is_final:
                await self.app.watcher.simulate_drop(address, deposit.tx_hash)

    async def cancel(self, which: int, _: int) -> None:
        await cancel_exchange(self.app.ports, await self.app.caller(), self.one(which))

    async def look(self, which: int, much: int) -> None:
        await asyncio.gather(*(self.app.look(self.one(which)) for _ in range(1 + much % 3)))

    async def lose(self, which: int, much: int) -> None:
        script = self.app.app.script
        script.remit.append(Twist(ending=_ENDINGS[which % 4]))
        if much % 2:
            script.find_remittance.append(Twist(ending=Ending.UNAVAILABLE))

    async def away(self, which: int, much: int) -> None:
        script = self.app.watcher.script
        script.deposits.append(Twist(ending=Ending.UNAVAILABLE, doubled=which % 2 == 0))
        if much % 4 == 0:
            script.address.append(Twist(ending=Ending.UNAVAILABLE))

    async def bank(self, which: int, much: int) -> None:
        word = tuple(RemittanceStatus)[much % 3]
        await self.app.at_bank(f"{self.one(which)}/{1 + much % 2}", word)

    async def back(self, which: int, much: int) -> None:
        exchange = await self.app.exchange(self.one(which))
        twist = Twist(ending=_ENDINGS[much % 4])
        self.app.app.script.refund.extend([twist] * (much % 2))
        await return_money(self.app.ports, exchange.id, BACK if exchange.takes_usdt else None)

    async def take(self, which: int, _: int) -> None:
        await self.app.pay(self.one(which), taken_back=True)

    async def work(self, which: int, much: int) -> None:
        await self.app.app.work((which + 1) * much * 3)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("create", "create", "send", "send", "drop", "cancel", "look", "lose", "away", "bank", "work"),
                *("buy", "pay", "chain", "take", "back", "back"),
            ]
        ),
        st.integers(0, 5),
        st.integers(0, 40),
    ),
    min_size=4,
    max_size=25,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
@example(steps=[("buy", 0, 0), ("pay", 0, 10), ("work", 3, 25), ("take", 0, 0)])
@example(steps=[("buy", 0, 0), *[("work", 5, 40)] * 2, ("pay", 0, 10), ("back", 0, 0), ("work", 0, 20), ("take", 0, 0)])
async def test_any_history_ends_with_books_that_hold(steps: list[tuple[str, int, int]]) -> None:
    async with open_exchange_app(receiver=False) as app:
        history = History(app)
        for name, which, much in steps:
            with suppress(Refusal, Refused, Unavailable):
                await history.actions[name](which, much)
        await _check_bank(app)
        script = app.app.script
        script.remit.clear()
        script.find_remittance.clear()
        script.refund.clear()
        await app.app.work(24 * 3600)
        await _check_bank(app)
        for exchange in await everything(app.ports, Exchange):
            assert await app.said(exchange.id) == ([exchange.status] if exchange.is_final else []), exchange
        await _check_value(app)


async def _check_bank(app: ExchangeApp) -> None:
    """The bank never pays a client more than was quoted, and only a client whose USDT arrived in full."""
    paid = await app.remitted()
    for exchange in await everything(app.ports, Exchange):
        mine = sum(amount for operation, amount in paid.items() if operation_exchange(operation) == exchange.id)
        assert mine <= exchange.amount_rub.kopecks, exchange
        assert mine == 0 or exchange.amount_usdt_received >= exchange.amount_usdt, exchange
        if exchange.status == "completed" and exchange.takes_usdt:
            assert mine == exchange.amount_rub.kopecks, exchange


async def _check_value(app: ExchangeApp) -> None:
    """Each unit of received USDT belongs to the service or the merchant, is in suspense, under way or dust, or was sent
    to a client. The same holds for RUB, of which some may be lost."""
    transfers, exchanges = await app.transfers(), await everything(app.ports, Exchange)
    for currency, where in _WHERE.items():
        mine = [transfer for transfer in transfers if transfer.currency is currency]
        returns = [each.sent_back for each in mine if each.sent_back is not None]
        back = sum(each.amount for each in returns if each.status is ReturnStatus.RETURNED)
        came = sum(each.amount - each.taken_back for each in mine) - back
        done = [each for each in exchanges if each.status == "completed" and not each.takes_usdt]
        paid = sum(paid_out(each.parts).kopecks for each in exchanges)
        gone = sum(each.amount_usdt.units for each in done) if currency is Currency.USDT else paid
        assert sum(await app.balance_types(*where)) == came - gone, currency
    assert all(not exchange.takes_usdt or exchange.tx_hash is None for exchange in exchanges)
