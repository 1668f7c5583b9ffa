"""A backup is restored after the world has gone on: two merchants with one wallet, a refund that its bank executed,
and the daily settlement. Nobody is paid twice (docs/operations.md "A held copy")."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.ledger import BalanceType
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.refunds.orders import RefundOrder
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.common.quarantine import read_hold
from cambist.core.usecases.installation.comparison import compare
from cambist.core.usecases.installation.resume import resume_compared
from cambist.core.usecases.ledger.ledger import balance_types
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.refunds.refunds import create_refund
from tests.payout_kit import WALLET
from tests.restored import App, World

DAY = 24 * 3600
HELD = 10 * 3600
"""Seconds for which the copy is held, past the hour of the daily settlement."""
STEP = 100
"""Units of USDT below which the network moves nothing."""


class Paid(NamedTuple):
    """Money that moved in a world by the end."""

    payouts: int
    """Units of USDT."""
    refunds: list[int]
    left: list[int]
    """Available to each merchant."""


@pytest.fixture
def worlds(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[World, World]:
    """A world whose database is restored, and one in memory that nothing happens to."""
    url = request.getfixturevalue("postgres_database") if request.param == "postgres" else None
    places = [tmp_path / "restored", tmp_path / "whole"]
    for place in places:
        place.mkdir()
    return World(request.param, places[0], url), World("memory", places[1])


@pytest.mark.parametrize(("worlds", "is_repeated"), [("sqlite", True), ("postgres", False)], indirect=["worlds"])
async def test_a_restored_backup_pays_nobody_twice(worlds: tuple[World, World], is_repeated: bool) -> None:
    world, whole = worlds
    assert await restored(world, is_repeated=is_repeated) == await uninterrupted(whole)


async def uninterrupted(world: World) -> Paid:
    """Return the result without a restore."""
    async with world.opened() as app:
        merchants, payments = await begun(app)
        await refunded(app, merchants[0], payments[0], app.ports.ids.uuid())
        await app.work(2 * DAY)
        return await ended(app, merchants)


async def restored(world: World, *, is_repeated: bool) -> Paid:
    """The same, with a backup from before the refund that is restored after the payouts."""
    async with world.opened() as app:
        merchants, payments = await begun(app)
        backup, key = await asyncio.to_thread(world.copy), app.ports.ids.uuid()
        refund_id = await refunded(app, merchants[0], payments[0], key)
        await app.work(2 * DAY)
    paid = await world.paid_out()
    assert len(paid) == 2
    async with world.opened(backup, held=True) as app:
        hold = await read_hold(app.ports)
        assert hold is not None
        if is_repeated:
            assert await refunded(app, merchants[0], payments[0], key) == refund_id
        await app.work(HELD)
        assert await app.statements() == [], "a held copy settles nothing"
        found = await compare(app.ports, hold.as_of)
        assert found.open == []
        # The second merchant was paid twice as much.
        owners = dict(zip((operation for operation, _, _ in sorted(paid, key=units_of)), merchants, strict=True))
        attributed = {each.operation: each.account_id for each in found.lacking if each.kind == "transfer"}
        assert attributed == {operation: each.account_id for operation, each in owners.items()}
        await resume_compared(app.ports, found)
        refund = await app.ports.storage.get(Refund, refund_id)
        assert refund is not None
        assert refund.status is RefundStatus.COMPLETED
        done = await ended(app, merchants)
        assert (await world.paid_out())[:2] == paid
        return done


def units_of(paid: tuple[str, str, int]) -> int:
    return paid[2]


async def begun(app: App) -> tuple[list[Caller], list[Payment]]:
    """Return two merchants with one wallet; the first was paid 1000 RUB, the second 2000."""
    await start_recurring_jobs(app.ports)
    other = await create_account(app.ports, "Other")
    await set_settings(app.ports, other.account_id, {"payout_wallet": WALLET})
    merchants = [await caller(app, account_id) for account_id in (app.world.account_id, other.account_id)]
    return merchants, [await paid_by(app, merchants[0], "1000.00"), await paid_by(app, merchants[1], "2000.00")]


async def caller(app: App, account_id: str) -> Caller:
    account = await app.ports.storage.get(Account, account_id)
    assert account is not None
    return Caller(account=account, mode=Mode.LIVE, key_id="a-key")


async def paid_by(app: App, merchant: Caller, amount: str) -> Payment:
    order = PaymentOrder(amount_rub=amount)
    made = await create_payment(app.ports, merchant, app.ports.ids.uuid(), lambda: order)
    await app.pay(made.resource)
    await app.work(1)
    return made.resource


async def refunded(app: App, merchant: Caller, payment: Payment, key: str) -> str:
    order = RefundOrder(payment_id=payment.id, amount_rub="100.00")
    made = await create_refund(app.ports, merchant, key, lambda: order)
    await app.work(60)
    return made.resource.id


async def ended(app: App, merchants: list[Caller]) -> Paid:
    """Pay each merchant 100 RUB more, and settle the days after."""
    for each in merchants:
        await paid_by(app, each, "100.00")
    await app.work(3 * DAY)
    await app.check()
    left = []
    for each in merchants:
        async with app.ports.storage.unit() as unit:
            left.append((await balance_types(unit, each.account_id, Mode.LIVE)).get(BalanceType.AVAILABLE, 0))
    assert all(0 <= each < STEP for each in left)
    world = app.world
    payouts = sum(units for _, _, units in await world.paid_out())
    return Paid(payouts, [kopecks for _, kopecks in await world.refunded()], left)
