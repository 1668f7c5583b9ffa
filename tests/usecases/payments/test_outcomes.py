"""Operations of unknown outcome (ARCHITECTURE.md "Three outcomes"): a row each, from the unit in which nobody knows any
more to the one in which somebody does. That rows and payments agree is held at the end of every app
(tests/invariants.py)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.outcomes import Operation, UnknownOutcome
from cambist.core.domain.payments.payments import Opening, Payment, PaymentStatus
from cambist.core.domain.subscriptions.periods import Interval
from cambist.core.usecases.common.encrypted import pay_tag
from cambist.core.usecases.common.units import retrying
from cambist.core.usecases.gateways.outcomes import drop_known, follow_outcome
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operators import action_item, money_items, probes
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.retention import first_retention, retain
from cambist.core.usecases.sandbox.data import forget_test_data
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from cambist.ports.storage import Unit
from tests.apps import TestApp, open_test_app
from tests.charge_app import HOUR, open_charge_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import check_books, everything
from tests.race_barriers import BarrierStorage
from tests.subscription_app import bindings, open_link, subscribed
from tests.tables import table

AWAY = Twist(ending=Ending.UNAVAILABLE)
DONE = Twist(ending=Ending.UNKNOWN_DONE)
NOT_DONE = Twist(ending=Ending.UNKNOWN_NOT_DONE)


async def lost(app: TestApp, mode: str = "live") -> str:
    """The id of a payment of which its bank has not said whether it has it, and does not say for long."""
    app.script.create.append(DONE)
    app.script.find = deque([AWAY] * 50)
    assert (await app.create(mode=mode)).status_code == 502
    return str((await app.get("/payments", mode=mode)).json()["data"][0]["id"])


async def rows(app: TestApp) -> list[str]:
    return [row.id for row in await everything(app.ports, UnknownOutcome)]


async def told(app: TestApp) -> list[str]:
    """Return the ids of the action items for unknown outcomes."""
    return [need.object_id for need in (await read_action_items(app.ports)).found if need.kind == "unknown"]


async def counted(app: TestApp, mode: Mode, operation: Operation) -> int:
    found = await probes.unknown_outcomes(app.ports)
    [count] = [each.count for each in found if (each.mode, each.operation) == (mode, operation)]
    assert sum(each.count for each in found) == count
    return count


async def test_two_unknown_outcomes_at_once_make_one_row(app: TestApp) -> None:
    """A request whose bank is silent, and the payment's watch in another process (worlds 20425 and 22144)."""
    made = (await app.create(mode="live")).json()["id"]
    storage = BarrierStorage(app.ports.storage, 2)

    async def work(unit: Unit) -> None:
        payment = await unit[Payment].get(made)
        assert payment is not None
        after = msgspec.structs.replace(payment, opening=Opening.UNKNOWN, bank_reference=None)
        after = msgspec.structs.replace(after, pay_tag=pay_tag(app.ports.vault, after))
        await follow_outcome(unit, payment, after)
        unit[Payment].save(after)

    await asyncio.gather(retrying(storage, work), retrying(storage, work))
    assert await rows(app) == [made]


async def test_outcome_counts_at_once_and_is_an_action_item_after_the_last_try(app: TestApp) -> None:
    first = await lost(app)
    await app.clock.advance(1)
    second = await lost(app)
    assert sorted(await rows(app)) == sorted([first, second])
    assert await counted(app, Mode.LIVE, Operation.CREATE_INVOICE) == 2
    await app.work(5 * 3600)
    assert await told(app) == []
    await app.work(2 * 3600)
    assert [payment.status for payment in await everything(app.ports, Payment)] == [PaymentStatus.EXPIRED] * 2
    assert await told(app) == [first, second], "the oldest first"
    await app.work(64 * 3600)
    assert await told(app) == [first, second], "for three days"
    await app.work(8 * 3600)
    assert (await told(app), await counted(app, Mode.LIVE, Operation.CREATE_INVOICE)) == ([], 0)


@pytest.mark.parametrize("hours", [0, 7], ids=["before anybody asked", "after the last try"])
async def test_a_notification_of_the_bank_makes_it_known(app: TestApp, hours: int) -> None:
    payment_id = await lost(app)
    await app.work(hours * 3600)
    app.script.find.clear()
    bank: Any = app.ports.banks.named("simulator-live")
    for notification in await bank.simulate(payment_id, Simulation(status=InvoiceStatus.EXPIRED)):
        await on_notification(app.ports, notification)
    [payment] = await everything(app.ports, Payment)
    assert payment.bank_reference is not None
    assert (await rows(app), await told(app)) == ([], [])


@pytest.mark.parametrize("twist", [DONE, NOT_DONE], ids=["done", "never arrived"])
async def test_banks_answer_to_a_poll_resolves_the_outcome(app: TestApp, twist: Twist) -> None:
    app.script.create.append(twist)
    await app.create()
    assert len(await rows(app)) == 1
    await app.work(60)
    [payment] = await everything(app.ports, Payment)
    assert payment.status is (PaymentStatus.PENDING if twist is DONE else PaymentStatus.FAILED)
    assert await rows(app) == []


async def test_a_binding_that_its_bank_never_saw_is_taken_back_with_its_row(app: TestApp) -> None:
    made = await subscribed(app)
    app.script.bind.extend([NOT_DONE] * 20)
    payment = await open_link(app, made["id"])
    assert await rows(app) == [payment.id]
    assert await counted(app, Mode.TEST, Operation.BIND) == 1
    await app.work(3600)
    assert (await bindings(app, made["id"]), await rows(app)) == ([], [])


async def test_unknown_charge_is_shown_for_as_long_as_it_holds_its_period(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_charge_app() as charges:
        subscription_id = await charges.subscribed(Interval.DAY, 3)
        await charges.open_next(subscription_id)
        charges.app.script.charge.append(DONE)
        charges.app.script.find_charge = deque([AWAY] * 100)
        with pytest.raises(Refusal, match="not known"):
            await charges.charge(subscription_id)
        await charges.app.work(5 * 24 * 3600)
        [*_, charge] = await charges.payments(subscription_id)
        assert await told(charges.app) == [charge.id]
        assert await counted(charges.app, Mode.TEST, Operation.CHARGE) == 1
        payment_id = await lost(charges.app)
        await charges.app.work(7 * 3600)
        assert await told(charges.app) == [charge.id, payment_id]
        with monkeypatch.context() as patched:
            for room in (action_item, money_items):
                patched.setattr(room, "MOST", 1)
            assert await told(charges.app) == [charge.id], "the oldest of all operations"
        charges.app.script.find_charge.clear()
        await charges.app.work(6 * HOUR.total_seconds())
        assert await rows(charges.app) == [payment_id]


async def test_test_data_is_forgotten_with_what_nobody_knows_of(app: TestApp) -> None:
    await lost(app, mode="test")
    async with app.ports.storage.unit() as unit:
        account = await unit[Account].get(app.account.account_id)
    assert account is not None
    await forget_test_data(app.ports, Caller(account=account, mode=Mode.TEST, key_id="a-key"))
    assert await rows(app) == []


async def create(app: TestApp, ports: Ports) -> None:
    """Create a payment, as the use case of POST /payments does."""
    async with app.ports.storage.unit() as unit:
        account = await unit[Account].get(app.account.account_id)
    assert account is not None
    caller = Caller(account=account, mode=Mode.TEST, key_id="a-key")
    with suppress(Refusal):
        await create_payment(ports, caller, str(uuid4()), lambda: PaymentOrder(amount_rub="100.00"))


async def _swept(twist: Twist, fuse: CrashPoint) -> int:
    """A creation of unknown outcome until it is known, with a crash on the way. Returns commits seen."""
    async with open_test_app(receiver=False) as app:
        whole = app.ports
        app.script.create.append(twist)
        with suppress(Killed):
            app.ports = fused(whole, fuse)
            await create(app, app.ports)
            await app.work(60)
        app.ports = whole
        await check_books(whole)
        # The lease of the dead one ends first.
        await app.work(LEASE)
        await app.work(600)
        assert await rows(app) == []
    return fuse.commits


@table("after", [False, True], ids=["before", "after"])
@table("twist", [DONE, NOT_DONE], ids=["done", "never arrived"])
async def test_a_crash_at_any_commit_leaves_rows_that_fit_their_payments(twist: Twist, after: bool) -> None:
    commits = await _swept(twist, CrashPoint(0, after=after))
    assert commits >= 4, "the payment, its row, the bank's word, the watch"
    for at in range(1, commits + 1):
        await _swept(twist, CrashPoint(at, after=after))


class _Asking:
    """A storage that records which kinds of records its units read."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.kinds: set[type[Any]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Any]:
        async with self._storage.unit() as unit:
            yield _AskingUnit(unit, self.kinds)


class _AskingUnit:
    def __init__(self, unit: Any, kinds: set[type[Any]]) -> None:
        self._unit = unit
        self._kinds = kinds

    def __getitem__(self, kind: Any) -> Any:
        self._kinds.add(kind)
        return self._unit[kind]

    async def commit(self, *, durable: bool = True) -> None:
        await self._unit.commit(durable=durable)


@pytest.mark.parametrize("twist", [None, NOT_DONE], ids=["goes well", "unknown"])
async def test_a_creation_that_goes_well_asks_for_no_row(app: TestApp, twist: Twist | None) -> None:
    app.script.create.extend([] if twist is None else [twist])
    storage: Any = _Asking(app.ports.storage)
    await create(app, msgspec.structs.replace(app.ports, storage=storage))
    assert Payment in storage.kinds
    assert (UnknownOutcome in storage.kinds) is (twist is not None)


async def test_rows_that_an_older_version_left_behind_are_deleted(app: TestApp) -> None:
    """Such a process, in a rolling restart, moves payments and knows no rows."""
    waiting = await lost(app)
    known = (await app.create(mode="live")).json()["id"]
    async with app.ports.storage.unit() as unit:
        [row] = await unit[UnknownOutcome].find()
        for payment_id in (known, "pay_of_no_payment"):
            unit[UnknownOutcome].add(msgspec.structs.replace(row, id=payment_id))
        unit[Job].add(first_retention(app.clock.now()))
        await unit.commit()
    async with app.ports.storage.unit() as unit:
        job = await unit[Job].get("webhook.retain")
    assert job is not None
    await retain(app.ports, job)
    assert await rows(app) == [waiting]


async def test_unknown_outcomes_are_checked_in_batches(app: TestApp) -> None:
    every = [await lost(app) for _ in range(3)]

    async def after(row_id: str, limit: int) -> str | None:
        return await retrying(app.ports.storage, partial(drop_known, after=row_id, limit=limit))

    assert [await after("", 2), await after(every[1], 2), await after("", 1)] == [every[1], None, every[0]]
