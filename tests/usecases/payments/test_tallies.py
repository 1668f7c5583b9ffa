"""Tallies and turnover are exact at every moment: after every kind of move, for parallel requests, after a crash at any
commit (ARCHITECTURE.md "Units and jobs")."""

import asyncio
import contextlib
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import PAYMENT_MOVES, Payment, PaymentStatus
from cambist.core.domain.payments.tallies import Tally, Turnover, day_of, tallies_of
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.core.usecases.payments.list import PaymentFilter, list_payments
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.payments.tallies import add_payment, check_tallies, remove_payment, save_moved
from cambist.core.usecases.payments.turnover import shops_turnover
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashingStorage, CrashPoint, Killed
from tests.planting import beneath
from tests.tables import table

S = PaymentStatus
NONE: dict[S, int] = {}


async def merchant(app: TestApp, mode: Mode = Mode.TEST) -> Caller:
    async with app.ports.storage.unit() as unit:
        account = await unit[Account].get(app.account.account_id)
    assert account is not None
    return Caller(account=account, mode=mode, key_id="svc_test_tallies")


async def create(app: TestApp, ports: Ports | None = None, *, key: int = 1, **order: Any) -> Payment:
    made = await create_payment(
        ports or app.ports,
        await merchant(app),
        str(UUID(int=key)),
        lambda: PaymentOrder(**{"amount_rub": "100.00", **order}),
    )
    return made.resource


async def simulate(app: TestApp, payment: Payment, status: InvoiceStatus, kopecks: int | None = None) -> Payment:
    return await simulate_payment(app.ports, payment, Simulation(status=status, amount_kopecks=kopecks))


async def totals(app: TestApp) -> dict[S, int]:
    """Return the totals of GET /payments for every status that has any, after a recount found no difference."""
    assert await check_tallies(app.ports) == []
    caller = await merchant(app)
    every = [await list_payments(app.ports, caller, PaymentFilter(status=status), 1, 100) for status in S]
    for status, page in zip(S, every, strict=True):
        assert [payment.status for payment in page.records] == [status] * page.total
    whole = await list_payments(app.ports, caller, PaymentFilter(), 1, 100)
    assert whole.total == len(whole.records) == sum(page.total for page in every)
    return {status: page.total for status, page in zip(S, every, strict=True) if page.total}


async def took(app: TestApp) -> list[tuple[str, int, str]]:
    """Return day, payments and amount of every row of the turnover."""
    report = await shops_turnover(app.ports, await merchant(app), "2026-01-01", "2026-12-31")
    return [(row.day, row.payments, str(row.amount)) for row in report.rows]


async def test_totals_after_every_way_a_payment_takes(app: TestApp) -> None:
    assert await totals(app) == NONE
    payments = [await create(app, key=key) for key in range(8)]
    assert await totals(app) == {S.PENDING: 8}
    assert await took(app) == []
    await simulate(app, payments[0], InvoiceStatus.PAID)
    await simulate(app, payments[1], InvoiceStatus.PROCESSING)
    await simulate(app, payments[2], InvoiceStatus.FAILED)
    await simulate(app, payments[3], InvoiceStatus.CANCELLED)
    await simulate(app, payments[4], InvoiceStatus.PAID, 60_00)
    await simulate(app, payments[5], InvoiceStatus.PAID, 70_00)
    expected = {S.PAID: 1, S.PROCESSING: 1, S.FAILED: 1, S.CANCELLED: 1, S.AMOUNT_MISMATCH: 2, S.PENDING: 2}
    assert await totals(app) == expected
    assert await took(app) == [("2026-01-01", 1, "100.00")]
    await resolve_mismatch(app.ports, payments[4].id, "paid")
    await resolve_mismatch(app.ports, payments[5].id, "failed")
    assert await took(app) == [("2026-01-01", 2, "160.00")]
    await app.work(3600)
    assert await totals(app) == {S.PAID: 2, S.FAILED: 2, S.CANCELLED: 1, S.EXPIRED: 3}
    await simulate(app, payments[6], InvoiceStatus.PAID)
    assert await totals(app) == {S.PAID: 3, S.FAILED: 2, S.CANCELLED: 1, S.EXPIRED: 2}
    assert await took(app) == [("2026-01-01", 3, "260.00")]


async def test_money_later_than_six_hours_moves_no_turnover(app: TestApp) -> None:
    """It goes to suspense (docs/payments.md "Money that cannot count")."""
    payment = await create(app)
    await app.work(6 * 3600 + 1)
    assert (await simulate(app, payment, InvoiceStatus.PAID)).status is S.EXPIRED
    assert await totals(app) == {S.EXPIRED: 1}
    assert await took(app) == []


async def test_a_late_payment_counts_on_the_day_its_money_came(app: TestApp) -> None:
    """Calendar days are in UTC, by `paid_at`, not by the time of creation (docs/settlement.md "Turnover")."""
    await app.clock.advance(23.5 * 3600)
    payment = await create(app)
    await app.work(3600)
    await simulate(app, payment, InvoiceStatus.PAID)
    assert await totals(app) == {S.PAID: 1}
    assert await took(app) == [("2026-01-02", 1, "100.00")]


async def test_a_payment_that_every_bank_refused_leaves_no_trace_in_the_tallies(app: TestApp) -> None:
    app.script.create.extend([Twist(ending=Ending.REFUSED)])
    with pytest.raises(Refusal):
        await create(app)
    assert await totals(app) == NONE
    await create(app)
    assert await totals(app) == {S.PENDING: 1}


async def test_a_repeat_with_the_same_key_counts_once(app: TestApp) -> None:
    assert {(await create(app)).id for _ in range(3)} == {(await create(app)).id}
    assert await totals(app) == {S.PENDING: 1}


async def test_modes_and_accounts_are_counted_apart(app: TestApp) -> None:
    """Objects of the other mode are invisible (docs/concepts.md "Accounts, keys, modes")."""
    await create(app)
    live = await merchant(app, Mode.LIVE)
    assert (await list_payments(app.ports, live, PaymentFilter(), 1, 20)).total == 0
    other = msgspec.structs.replace(live, account=msgspec.structs.replace(live.account, id="acc_other"), mode=Mode.TEST)
    assert (await list_payments(app.ports, other, PaymentFilter(), 1, 20)).total == 0


@pytest.mark.parametrize("move", PAYMENT_MOVES.rows, ids=lambda move: f"{move.before}-{move.after}")
async def test_every_move_of_the_table_keeps_the_tallies(app: TestApp, move: Any) -> None:
    """This includes moves that only settlement and refunds make; a reversed refund takes no money a second time."""
    start = app.clock.now()
    payment = Payment(
        id="pay_1",
        account_id=app.account.account_id,
        mode=Mode.TEST,
        shop_id=app.account.default_shop_id,
        status=move.before,
        amount=Rub(100_00),
        actual_amount=Rub(60_00),
        payment_method="sbp",
        created_at=start,
        expires_at=start + timedelta(minutes=15),
        paid_at=start + timedelta(days=1),
    )
    took_before = move.before in (S.PAID, S.SETTLED, S.REFUNDED)
    async with app.ports.storage.unit() as unit:
        # As it came here: through `paid`, where it did.
        fresh = msgspec.structs.replace(payment, status=S.PENDING)
        saved = add_payment(unit, fresh)
        if took_before:
            paid = msgspec.structs.replace(saved, status=S.PAID)
            saved = save_moved(unit, saved, paid)
        if saved.status is not move.before:
            saved = save_moved(unit, saved, msgspec.structs.replace(saved, status=move.before))
        await unit.commit()
    assert await totals(app) == {move.before: 1}
    async with app.ports.storage.unit() as unit:
        moved = save_moved(unit, saved, msgspec.structs.replace(saved, status=move.after))
        await unit.commit()
    assert await totals(app) == {move.after: 1}
    took_after = move.after in (S.PAID, S.SETTLED, S.REFUNDED)
    assert await took(app) == ([("2026-01-02", 1, "60.00")] if took_after else [])
    async with app.ports.storage.unit() as unit:
        remove_payment(unit, moved)
        await unit.commit()
    assert await totals(app) == NONE
    assert await took(app) == []


async def test_a_wrong_sum_is_named(app: TestApp) -> None:
    payment = await create(app)
    await simulate(app, payment, InvoiceStatus.PAID)
    [day, ever] = tallies_of(msgspec.structs.replace(payment, status=S.PAID), 1)
    async with beneath(app.ports).unit() as unit:
        unit[Tally].increase(day.id, "count", 2)
        [turnover] = await unit[Turnover].find()
        unit[Turnover].increase(turnover.id, "amount", -1)
        unit[Tally].accrue(msgspec.structs.replace(ever, id=f"{ever.id}2"))
        await unit.commit()
    found = [(each.id, each.field, each.kept, each.counted) for each in await check_tallies(app.ports)]
    assert found == [
        (turnover.id, "amount", 9999, 10000),
        (day.id, "count", 3, 1),
        (f"{ever.id}2", "count", 1, 0),
    ]


@pytest.mark.parametrize("lacking", [("paid_at",), ("actual_amount",), ("paid_at", "actual_amount")])
async def test_paid_payment_without_time_or_amount_is_named(app: TestApp, lacking: tuple[str, ...]) -> None:
    payment = await create(app)
    await simulate(app, payment, InvoiceStatus.PAID)
    async with beneath(app.ports).unit() as unit:
        paid = await app.payment(payment.id)
        unit[Payment].save(msgspec.structs.replace(paid, **dict.fromkeys(lacking)))
        [turnover] = await unit[Turnover].find()
        await unit.commit()
    app.made_up = True
    found = [(each.id, each.field, each.kept, each.counted) for each in await check_tallies(app.ports)]
    uncounted = [(turnover.id, "amount", 10000, 0), (turnover.id, "payments", 1, 0)]
    assert sorted(found) == sorted([*uncounted, (payment.id, "paid_at", 0, 1)])


def test_only_the_tallies_module_adds_or_removes_payments() -> None:
    """The guard of all that: one room writes payments that appear, move or go."""
    root = Path(__file__).parents[3]
    writers = {
        path.name
        for path in (root / "core").rglob("*.py")
        if any(f"[Payment].{verb}(" in path.read_text() for verb in ("add", "remove"))
    }
    assert writers == {"tallies.py"}


# Parallel requests


async def test_50_parallel_creates_and_their_moves_keep_the_tallies(url: str, tmp_path: Path) -> None:
    """All payments are of one account, whose rows they all change; the bank refuses some, and these are removed."""
    async with open_test_app(database_url=url, data_dir=tmp_path) as app:
        caller = await merchant(app)
        app.script.create.extend(Twist(ending=Ending.REFUSED) if n % 7 == 3 else Twist() for n in range(50))
        ends = await asyncio.gather(*(create(app, key=key) for key in range(50)), return_exceptions=True)
        assert all(isinstance(end, Payment | Refusal) for end in ends), ends
        made = {end.id: end for end in ends if isinstance(end, Payment)}
        assert len(made) >= 43
        assert await totals(app) == {S.PENDING: len(made)}
        # Every payment gets three notifications about its money at once.
        kinds = (InvoiceStatus.PAID, InvoiceStatus.FAILED, InvoiceStatus.PROCESSING)
        await asyncio.gather(
            *(simulate(app, payment, kinds[n % 3]) for n, payment in enumerate(made.values()) for _ in range(3))
        )
        assert sum((await totals(app)).values()) == len(made)
        report = await shops_turnover(app.ports, caller, None, None)
        assert report.payments == (await totals(app))[S.PAID] == len(range(0, len(made), 3))


# A crash at any commit


async def story(app: TestApp, ports: Ports) -> None:
    """A payment that one bank refuses first, another amount, and the operator's decision."""
    app.ports = ports
    payment = await create(app, ports)
    payment = await simulate(app, payment, InvoiceStatus.PAID, 60_00)
    if payment.status is S.AMOUNT_MISMATCH:
        await resolve_mismatch(ports, payment.id, "paid")
    await app.work()


async def run_with_crash(bank: str, at: int, *, after: bool, refused: int) -> int:
    async with open_test_app(test_banks=(bank,)) as app:
        whole, fuse = app.ports, CrashPoint(at, after=after)
        app.script.create.extend([Twist(ending=Ending.REFUSED)] * refused)
        fused = msgspec.structs.replace(whole, storage=CrashingStorage(whole.storage, fuse))
        with contextlib.suppress(Killed, Refusal):
            await story(app, fused)
        app.ports = whole
        assert await check_tallies(whole) == [], "the crash itself"
        await app.work(LEASE + 30)
        assert await check_tallies(whole) == [], "the new process"
        app.script.create.clear()
        await story(app, whole)
        assert await totals(app) == {S.PAID: 1}
        assert await took(app) == [("2026-01-01", 1, "60.00")]
        return fuse.commits


@table(("bank", "refused", "least"), [("simulator", 0, 4), ("simulator-asked", 0, 5), ("simulator-asked", 1, 2)])
async def test_a_crash_at_any_commit_keeps_the_tallies(bank: str, refused: int, least: int) -> None:
    commits = await run_with_crash(bank, 0, after=False, refused=refused)
    assert commits >= least
    for at in range(1, commits + 1):
        for after in (False, True):
            await run_with_crash(bank, at, after=after, refused=refused)


# Any history

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "create",
                "refused",
                "paid",
                "short",
                "processing",
                "failed",
                "cancelled",
                "accept",
                "reject",
                "wait",
                "work",
            ]
        ),
        st.integers(0, 5),
        st.integers(1, 400),
    ),
    max_size=30,
)
REPORTS = {
    "paid": InvoiceStatus.PAID,
    "short": InvoiceStatus.PAID,
    "processing": InvoiceStatus.PROCESSING,
    "failed": InvoiceStatus.FAILED,
    "cancelled": InvoiceStatus.CANCELLED,
}


class History:
    """A merchant with three shops, and random steps."""

    def __init__(self, app: TestApp, shops: list[str]) -> None:
        self.app = app
        self.shops = shops
        self.payments: list[Payment] = []

    async def step(self, action: str, which: int, much: int) -> None:
        if action in ("create", "refused"):
            await self._create(which, much, refused=action == "refused")
        elif action == "wait":
            await self.app.clock.advance(much * 60)
        elif action == "work":
            await self.app.work(much * 60)
        elif self.payments:
            await self._happen(action, self.payments[which % len(self.payments)], much)

    async def _create(self, which: int, much: int, *, refused: bool) -> None:
        if refused:
            self.app.script.create.append(Twist(ending=Ending.REFUSED))
        order: dict[str, Any] = {"shop_id": self.shops[which % len(self.shops)], "amount_rub": f"{much + 100}.00"}
        with pytest.raises(Refusal) if refused else contextlib.nullcontext():
            self.payments.append(await create(self.app, key=len(self.payments), **order))

    async def _happen(self, action: str, payment: Payment, much: int) -> None:
        if action in ("accept", "reject"):
            try:
                await resolve_mismatch(self.app.ports, payment.id, "paid" if action == "accept" else "failed")
            except Refusal as refusal:
                if refusal.code != "INVALID_STATUS":
                    raise
            return
        await simulate(self.app, payment, REPORTS[action], much if action == "short" else None)

    async def check(self) -> None:
        """The shops' days add up to the amounts in the events, and to the account's total (docs/settlement.md
        "Turnover")."""
        assert await check_tallies(self.app.ports) == []
        told: Counter[tuple[str, str]] = Counter()
        paid = 0
        for payment in self.payments:
            async with self.app.ports.storage.unit() as unit:
                present = await unit[Payment].get(payment.id)
            for event in await self.app.events(payment.id):
                if event["status"] == "paid":
                    assert present is not None
                    assert present.paid_at is not None
                    told[day_of(present.paid_at), event["shop_id"]] += Rub.parse(event["actual_amount_rub"]).kopecks
                    paid += 1
        caller = await merchant(self.app)
        report = await shops_turnover(self.app.ports, caller, "2026-01-01", "2026-12-31")
        assert {(row.day, row.shop_id): row.amount.kopecks for row in report.rows} == told
        assert (report.payments, report.amount.kopecks) == (paid, told.total())
        for shop in self.shops:
            page = await list_payments(self.app.ports, caller, PaymentFilter(shop_id=shop), 1, 100)
            assert page.total == len([each for each in self.payments if each.shop_id == shop])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_shops_add_up_to_the_account_after_any_history(steps: list[tuple[str, int, int]]) -> None:
    """Late payments, mismatches (counted only once accepted), refusals by the bank, days that pass."""

    async def live() -> None:
        async with open_test_app(receiver=False) as app:
            shops = [await create_shop(app.ports, app.account.account_id, name, "0.03") for name in ("A", "B")]
            history = History(app, [app.account.default_shop_id, *(shop.id for shop in shops)])
            for action, which, much in steps:
                await history.step(action, which, much)
            await history.check()

    asyncio.run(live())
