"""The units of a settlement, and changes between two of them (docs/settlement.md "Reconciling")."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.settlement.settlement import Correction, Settlement, SettlementItem
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.sandbox.data import forget_test_data
from cambist.core.usecases.settlement import chunks, settlement
from cambist.core.usecases.settlement.run import HELD, Run
from cambist.core.usecases.settlement.settlement import settle_own
from cambist.core.usecases.webhooks.outbox import RELEASE
from cambist.ports.bank import RefundStatus
from cambist.ports.bundle import Ports
from cambist.ports.faults import Stale
from cambist.ports.jobs import Job
from tests.apps import WEBHOOK_SECRET, WEBHOOK_URL, TestApp, open_test_app
from tests.invariants import check_books, everything
from tests.planting import beneath
from tests.refund_app import RefundApp, open_refund_app
from tests.usecases.settlement.test_settlement import caller, paid, payment

Happens = Callable[[], Awaitable[object]]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.core.usecases.settlement.run.CHUNK", 1)


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run a callback after the first unit, another one after the second, and so on."""

    def have(*happens: Happens) -> None:
        left = [*happens]

        async def settle_chunk(ports: Ports, run: Run) -> bool:
            more = await chunks.settle_chunk(ports, run)
            if left:
                await left.pop(0)()
            return more

        monkeypatch.setattr(settlement, "settle_chunk", settle_chunk)

    return have


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def batch_job(app: TestApp) -> Job:
    [job] = [each for each in await everything(app.ports, Job) if each.kind == settlement.SETTLE]
    assert isinstance(job, Job)
    return job


async def test_older_payment_reported_during_the_settlement_is_settled_too(
    app: TestApp, between: Callable[..., None]
) -> None:
    """The bank may answer late; a payment that became due before the cutoff belongs to this settlement."""
    older = (await app.created())["id"]
    for _ in range(2):
        await app.clock.advance(1)
        await paid(app)
    between(lambda: app.simulate(older, outcome="paid"))
    statement = await settle_own(app.ports, await caller(app))
    assert (statement.payments, (await payment(app, older)).status) == (3, "settled")
    await check_books(app.ports)


async def test_an_address_that_is_set_on_the_way_gets_the_events_from_then_on(between: Callable[..., None]) -> None:
    """Earlier events were held, and are released when the address is set; none is held after that."""
    async with open_test_app(receiver=False) as app:
        first, second = await paid(app), await paid(app)
        account_id = app.account.account_id

        async def set_and_released() -> None:
            wish = {"webhook_url": WEBHOOK_URL, "webhook_secret": WEBHOOK_SECRET}
            await set_settings(app.ports, account_id, wish)
            await app.work()
            job = await app.ports.storage.get(Job, RELEASE.id_of(account_id))
            assert job is not None
            async with app.ports.storage.unit() as unit:
                unit[Job].remove(job)  # it polled again and ended
                await unit.commit()

        between(set_and_released)
        await settle_own(app.ports, await caller(app))
        await app.work()
        told = [(body["payment_id"], body["status"]) for body in app.postman.bodies]
        assert sorted(told) == sorted((each, status) for each in (first, second) for status in ("paid", "settled"))


async def test_runner_that_lost_the_batch_writes_nothing_more(app: TestApp, between: Callable[..., None]) -> None:
    """Another runner has it: the next unit finds that out, and goes no further."""
    payments = [await paid(app) for _ in range(3)]

    async def taken_over() -> None:
        job = await batch_job(app)
        async with app.ports.storage.unit() as unit:
            unit[Job].save(msgspec.structs.replace(job, attempts=job.attempts + 1))
            await unit.commit()

    between(taken_over)
    with pytest.raises(Stale):
        await settle_own(app.ports, await caller(app))
    assert sorted([(await payment(app, each)).status for each in payments]) == ["paid", "paid", "settled"]
    await app.work(HELD.total_seconds() + 60)
    assert {(await payment(app, each)).status for each in payments} == {"settled"}
    await check_books(app.ports)


@pytest.mark.parametrize("mine", [True, False])
async def test_caller_that_settles_holds_the_batch_from_the_first_moment(app: TestApp, mine: bool) -> None:
    """No worker begins on it. A batch opened for workers has no lease."""
    now = app.ports.clock.now()
    await settlement.open_batch(app.ports, "test:1", Mode.TEST, now, mine=mine)
    job = await batch_job(app)
    assert (job.leased_until, job.attempts, job.due) == (now + HELD if mine else None, int(mine), now)


@pytest.mark.parametrize(
    ("held", "version", "attempts"),
    [
        pytest.param(None, 1, 4, id="nobody has it"),
        pytest.param(60, 0, 3, id="whoever opened it for itself"),
        pytest.param(0, 1, 4, id="its lease has ended"),
        pytest.param(1, 1, None, id="another process has it"),
    ],
)
async def test_taking_a_batch_over_counts_as_another_runner(
    app: TestApp, held: int | None, version: int, attempts: int | None
) -> None:
    """The attempt distinguishes runners: a resumed runner finds that another one owns the batch."""
    now = app.ports.clock.now()
    batch = await settlement.open_batch(app.ports, "test:1", Mode.TEST, now)
    job = await batch_job(app)
    until = None if held is None else now + timedelta(seconds=held)
    async with beneath(app.ports).unit() as unit:
        unit[Job].remove(job)
        await unit.commit()
    async with beneath(app.ports).unit() as unit:
        unit[Job].add(msgspec.structs.replace(job, leased_until=until, attempts=3, version=version))
        await unit.commit()
    if attempts is None:
        with pytest.raises(Refusal, match="Another process is settling"):
            await settlement._take_over(app.ports, batch)
    else:
        taken = await settlement._take_over(app.ports, batch)
        assert (taken.attempts, taken.leased_until) == (attempts, now + HELD)


async def test_each_unit_holds_the_batch_for_a_minute_more(app: TestApp, between: Callable[..., None]) -> None:
    """So a settlement may take longer than a lease, and no other runner starts it."""
    for _ in range(3):
        await paid(app)
    left = []

    async def holds() -> None:
        held_until = (await batch_job(app)).leased_until
        assert held_until is not None
        left.append((held_until - await app.ports.storage.now()).total_seconds())

    between(lambda: app.clock.advance(50), holds)
    await settle_own(app.ports, await caller(app))
    assert left == [HELD.total_seconds()] == [60.0]


async def test_merchants_with_nothing_due_are_passed_over_under_the_lease(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No second runner starts meanwhile, however many they are."""
    for number in range(5):
        await create_account(app.ports, f"Merchant {number}")
    left = []

    async def pay_out(*_: object, **__: object) -> None:
        await app.clock.advance(20)
        held_until = (await batch_job(app)).leased_until
        assert held_until is not None
        left.append((held_until - await app.ports.storage.now()).total_seconds())

    monkeypatch.setattr(settlement, "pay_out", pay_out)
    await settlement.settle_now(app.ports, Mode.LIVE)
    assert left == [40.0] * 6


async def test_a_settlement_whose_data_is_deleted_at_its_end_says_so(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    await paid(app)
    who = await caller(app)

    async def pay_out(*_: object, **__: object) -> None:
        await forget_test_data(app.ports, who)

    monkeypatch.setattr(settlement, "pay_out", pay_out)
    with pytest.raises(Refusal, match="deleted meanwhile"):
        await settle_own(app.ports, who)


async def test_all_corrections_that_are_due_are_settled_however_many(refunds: RefundApp) -> None:
    """Also where no payment is: refunds that failed after their payments were settled."""
    failed = [(await refunds.processing("40.00"))[1] for _ in range(3)]
    await refunds.settle()
    for refund_id in failed:
        await refunds.tell(refund_id, RefundStatus.FAILED)
    assert (await refunds.balance()).pending == Rub(120_00)
    await refunds.app.clock.advance(1)
    await refunds.settle()
    assert (await refunds.balance()).pending == Rub(0)
    corrected = await everything(refunds.ports, Correction)
    [statement] = [each for each in await everything(refunds.ports, Settlement) if not each.payments]
    assert {each.settlement_id for each in corrected} == {statement.id}
    assert (statement.items, statement.amount) == (3, Rub(120_00))


async def test_a_refund_of_a_kopeck_has_its_line(refunds: RefundApp) -> None:
    _, refund_id = await refunds.completed("0.01")
    await refunds.settle()
    lines = {each.kind: each for each in await everything(refunds.ports, SettlementItem)}
    assert (lines["payment"].amount, lines["refund"].amount) == (Rub(100_00), Rub(-1))
    assert refund_id in lines["refund"].id
    [statement] = await everything(refunds.ports, Settlement)
    assert (statement.items, statement.amount) == (2, Rub(99_99))
    assert statement.credit == lines["payment"].credit + lines["refund"].credit
