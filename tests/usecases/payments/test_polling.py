"""A bank without notifications is polled often enough for a waiting payer, and within its limit (docs/adapters.md "How
often a provider is asked")."""

from collections import Counter, deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.notifications import NotificationAddress
from cambist.core.domain.payments.payments import BindingCharge, Payment, PaymentStatus
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.core.usecases.gateways.polling import Looked, hurry_poll, next_late_poll, next_poll, turned_away
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.payer import window
from cambist.core.usecases.payments.opening import WATCH
from cambist.core.usecases.payments.progress import next_status_poll
from cambist.core.usecases.payments.recurring import binding_operation
from cambist.frontends.app.compose import Adapters, FurtherBank
from cambist.ports.bank import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    Notification,
    RefundRequest,
    RefundState,
    Transfer,
)
from cambist.ports.clock import Clock
from cambist.ports.faults import NotSupported, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.mandates import MandateEvent, MandateSimulation, MandateSimulator
from tests.apps import TestApp, open_test_app
from tests.invariants import everything
from tests.planting import beneath
from tests.subscription_app import press, subscribed
from tests.tables import table

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class TellsNothing:
    """A live bank without notifications. Its clock is the app's, once there is one."""

    name = "silent"

    def __init__(self, **capabilities: Any) -> None:
        self.capabilities = BankCapabilities(refunds=False, own_lifetime=True, **capabilities)
        self.clock: Clock | None = None
        self.asked: list[tuple[str, datetime]] = []
        self.paid: dict[str, Transfer] = {}
        self.again: dict[str, Transfer] = {}
        self.hints: deque[float] = deque()
        self.away: deque[float | None] = deque()
        """The `retry_after` of the next failing polls."""

    def pay(self, operation: str, kopecks: int = 100_00) -> None:
        assert self.clock is not None
        self.paid[operation] = Transfer(id=f"t-{operation}", amount_kopecks=kopecks, at=self.clock.now())

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        link = f"https://bank.example/{request.operation}"
        return Invoice(reference=request.operation, payload=link, link=link)

    async def find_invoice(self, operation: str) -> Invoice | None:
        raise AssertionError(f"nobody needs to find {operation}")

    async def invoice_state(self, reference: str) -> InvoiceState:
        assert self.clock is not None
        self.asked.append((reference, self.clock.now()))
        if self.away:
            raise Unavailable("too many", retry_after=self.away.popleft())
        hint = self.hints.popleft() if self.hints else None
        if reference not in self.paid:
            return InvoiceState(reference=reference, status=InvoiceStatus.OPEN, check_after=hint)
        transfers = [came[reference] for came in (self.paid, self.again) if reference in came]
        return InvoiceState(reference=reference, status=InvoiceStatus.PAID, transfers=tuple(transfers))

    async def refund(self, request: RefundRequest) -> RefundState:
        raise NotSupported("it sends nothing back")

    async def find_refund(self, operation: str) -> RefundState | None:
        raise NotSupported("it sends nothing back")

    def moments(self, app: TestApp, operation: str, since: datetime) -> list[float]:
        """Return when this operation was polled, in seconds since then."""
        return [(at - since).total_seconds() for reference, at in self.asked if reference == operation]


@pytest.fixture
def bank() -> TellsNothing:
    return TellsNothing()


@pytest.fixture
async def app(bank: TellsNothing) -> AsyncIterator[TestApp]:
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as opened:
        bank.clock = opened.ports.clock
        yield opened


async def made(app: TestApp) -> Payment:
    answer = await app.create(mode="live")
    assert answer.status_code == 201, answer.text
    return await app.payment(answer.json()["id"])


@pytest.mark.parametrize("paid_at", [0, 2, 44, 119.9, 120])
async def test_payment_within_two_minutes_is_seen_within_ten_seconds(
    app: TestApp, bank: TellsNothing, paid_at: float
) -> None:
    payment = await made(app)
    await app.work(paid_at)
    bank.pay(payment.id)
    await app.work(10)
    assert (await app.payment(payment.id)).status == "paid"


async def test_payment_in_the_last_minute_is_seen_before_it_would_expire(app: TestApp, bank: TellsNothing) -> None:
    payment = await made(app)
    await app.work(15 * 60 - 31)
    bank.pay(payment.id)
    await app.work(31)
    assert (await app.payment(payment.id)).status == "paid"


async def test_late_money_is_found_within_minutes(app: TestApp, bank: TellsNothing) -> None:
    payment = await made(app)
    await app.work(16 * 60)
    assert (await app.payment(payment.id)).status == "expired"
    bank.pay(payment.id)
    await app.work(4 * 60)
    assert (await app.payment(payment.id)).status == "paid"


async def test_the_banks_own_word_counts_at_every_look(app: TestApp, bank: TellsNothing) -> None:
    payment = await made(app)
    bank.hints.extend([40.0, 0.0, 7.5, 1e9])
    await app.work(14 * 60)
    assert bank.moments(app, payment.id, payment.created_at)[:4] == [3.0, 43.0, 44.0, 51.5]
    await app.work(60)
    assert bank.moments(app, payment.id, payment.created_at)[4:5] == [900.0], "the deadline is never missed"


async def test_unavailable_bank_is_not_polled_for_as_long_as_it_says(app: TestApp, bank: TellsNothing) -> None:
    payment = await made(app)
    bank.away.extend([60.0, None])
    await app.work(75)
    assert bank.moments(app, payment.id, payment.created_at)[:3] == [3.0, 63.0, pytest.approx(67.2)]


@table("sends_notifications", [True, False])
async def test_the_last_look_is_tried_until_the_bank_answers_it(sends_notifications: bool) -> None:
    bank = TellsNothing(sends_notifications=sends_notifications)
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
        bank.clock = app.ports.clock
        payment = await made(app)
        await app.work(6 * 3600 - 60)
        bank.pay(payment.id)
        bank.away.extend([None] * 5)
        await app.work(3600)
        assert (await app.payment(payment.id)).status == "paid"


async def test_a_bank_that_never_answers_is_left_alone_after_a_day(app: TestApp, bank: TellsNothing) -> None:
    payment = await made(app)
    bank.away.extend([None] * 10_000)
    await app.work(25 * 3600)
    bank.asked.clear()
    await app.work(24 * 3600)
    assert (await app.payment(payment.id)).status == "expired"
    assert bank.asked == []


@table(
    ("sends_notifications", "now", "due"),
    [(True, 0, 30), (True, 899, 900), (True, 900, 930), (False, 899, 900), (False, 900, 1050)],
)
async def test_payment_under_way_is_polled_at_its_deadline_and_until_it_ends(
    sends_notifications: bool, now: float, due: float
) -> None:
    """In seconds since its creation."""
    bank = TellsNothing(sends_notifications=sends_notifications)
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
        payment = msgspec.structs.replace(await made(app), status=PaymentStatus.PROCESSING)
        await app.clock.advance(now)
        assert next_status_poll(app.ports, payment, 1, Looked()) == payment.created_at + timedelta(seconds=due)


@table(
    ("hours", "looked", "due"),
    [
        (0.25, Looked(), 1800),
        (0.5, Looked(), 2 * 3600),
        (2, Looked(), 6 * 3600),
        (6 - 1 / 3600, Looked(), 6 * 3600),
        (6, Looked(), None),
        (6, Looked(is_received=False), 6 * 3600 + 600),
        (6, Looked(is_received=False, check_after=60.0), 6 * 3600 + 60),
        (6, Looked(is_received=False, turn=BEGIN + timedelta(hours=7)), 7 * 3600),
        (24 - 1 / 3600, Looked(is_received=False), 24 * 3600 + 599),
        (24, Looked(is_received=False), None),
    ],
)
async def test_late_polls_are_three_and_the_last_is_retried_for_a_day(
    hours: float, looked: Looked, due: int | None
) -> None:
    """In seconds since its creation."""
    bank = TellsNothing(sends_notifications=True)
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
        payment = msgspec.structs.replace(await made(app), status=PaymentStatus.EXPIRED)
        assert payment.created_at == BEGIN
        await app.clock.advance(round(hours * 3600))
        found = next_late_poll(app.ports, payment, looked)
        assert found == (None if due is None else BEGIN + timedelta(seconds=due))


class TestBindings:
    """A payer who binds waits at a page, too."""

    @table(("sends_notifications", "seconds"), [(False, 10), (True, 60)])
    async def test_confirmation_without_notification_is_seen_within(
        self, sends_notifications: bool, seconds: int
    ) -> None:
        told = BankCapabilities(own_lifetime=True, mandates=True, sends_notifications=sends_notifications)
        async with open_test_app(further_banks=[FurtherBank(name="real", capabilities=told)]) as app:
            await set_gateway(app.ports, "simulator-test", GatewayStatus.DOWN)
            made = await subscribed(app)
            await press(app, made["id"])
            await app.work(120)
            [payment] = await everything(app.ports, Payment)
            assert payment.bank == "real"
            bank = app.ports.banks.named("real")
            assert isinstance(bank, MandateSimulator)
            operation = binding_operation(payment.id)
            await bank.simulate_mandate(operation, MandateSimulation(event=MandateEvent.CONFIRM))
            await app.work(seconds)
            assert (await app.get(f"/subscriptions/{made['id']}")).json()["status"] == "active"


EVERY_MINUTE = [30.0, *(60.0 * minute for minute in range(1, 16))]


async def notified(app: TestApp) -> None:
    """Let a notification of the bank have been verified before."""
    now = app.clock.now()
    async with beneath(app.ports).unit() as unit:
        unit[NotificationAddress].add(NotificationAddress(id="silent", secret=b"", created_at=now, received_at=now))
        await unit.commit()


class TestNotifications:
    """A bank that sends notifications is polled as well: one may be lost, or its address not entered there."""

    @pytest.fixture
    def bank(self) -> TellsNothing:
        return TellsNothing(sends_notifications=True)

    async def test_bank_that_notifies_is_polled_sparsely(self, app: TestApp, bank: TellsNothing) -> None:
        await notified(app)
        payment = await made(app)
        await app.work(16 * 60)
        moments = bank.moments(app, payment.id, payment.created_at)
        assert moments == [30.0, 60.0, 120.0, 180.0, 240.0, 300.0, 600.0, 900.0]

    async def test_bank_that_never_notified_is_polled_every_minute(self, app: TestApp, bank: TellsNothing) -> None:
        payment = await made(app)
        await app.work(16 * 60)
        assert bank.moments(app, payment.id, payment.created_at) == EVERY_MINUTE

    async def test_first_notification_thins_the_polls_of_open_payments(self, app: TestApp, bank: TellsNothing) -> None:
        payment = await made(app)
        await app.work(361)
        await notified(app)
        await app.work(600)
        assert bank.moments(app, payment.id, payment.created_at)[-4:] == [360.0, 420.0, 600.0, 900.0]

    async def test_hint_of_the_bank_goes_before_the_schedule(self, app: TestApp, bank: TellsNothing) -> None:
        payment = await made(app)
        bank.hints.extend([100.0, 1000.0])
        await app.work(16 * 60)
        assert bank.moments(app, payment.id, payment.created_at) == [30.0, 130.0, 900.0]

    @pytest.mark.parametrize("retry_after", [None, 600.0, 1e9])
    async def test_failed_poll_is_repeated_within_a_minute(
        self, app: TestApp, bank: TellsNothing, retry_after: float | None
    ) -> None:
        """However long the bank wants to be left alone: a payer waits."""
        await notified(app)
        payment = await made(app)
        bank.away.extend([retry_after] * 30)
        await app.work(15 * 60 - 1)
        asked = bank.moments(app, payment.id, payment.created_at)
        pauses = [later - earlier for earlier, later in pairwise([0.0, *asked])]
        assert max(pauses) <= 60
        assert len(asked) <= 16

    async def test_failed_poll_after_the_deadline_is_left_to_the_bank(self, app: TestApp, bank: TellsNothing) -> None:
        payment = await made(app)
        bank.away.extend([600.0] * 17)
        await app.work(1600)
        assert bank.moments(app, payment.id, payment.created_at)[-2:] == [900.0, 1500.0]

    async def test_payment_that_ended_is_polled_once_more_at_its_deadline(
        self, app: TestApp, bank: TellsNothing
    ) -> None:
        """A second transfer may come for as long as the invoice can be paid, and its notification be lost."""
        payment = await made(app)
        await app.work(40)
        bank.pay(payment.id)
        await on_notification(app.ports, Notification(operation=payment.id))
        assert (await app.payment(payment.id)).status == "paid"
        await app.work(24 * 3600)
        assert bank.moments(app, payment.id, payment.created_at) == [30.0, 40.0, 900.0]

    async def test_poll_that_finds_the_money_plans_the_same_last_poll(self, app: TestApp, bank: TellsNothing) -> None:
        payment = await made(app)
        bank.pay(payment.id)
        await app.work(24 * 3600)
        assert bank.moments(app, payment.id, payment.created_at) == [30.0, 900.0]

    async def test_second_transfer_without_notification_goes_to_suspense(
        self, app: TestApp, bank: TellsNothing
    ) -> None:
        payment = await made(app)
        bank.pay(payment.id)
        await app.work(40)
        bank.again[payment.id] = Transfer(id="t-second", amount_kopecks=100_00, at=app.clock.now())
        await app.work(900)
        [suspense] = await everything(app.ports, Suspense)
        assert (suspense.payment_id, suspense.reason) == (payment.id, "second_transfer")

    @table(("seconds", "due"), [(0, 30), (899, 900), (900, None), (24 * 3600, None)])
    async def test_binding_whose_link_lives_for_a_day_leaves_the_close_schedule(
        self, seconds: int, due: int | None
    ) -> None:
        """After a quarter of an hour binding_progress.py polls it every ten minutes."""
        async with open_test_app(adapters=Adapters(banks=[TellsNothing(sends_notifications=True)])) as app:
            payment = await made(app)
            ends_at = payment.created_at + timedelta(hours=25)
            binding = msgspec.structs.replace(payment, binding=BindingCharge.FIRST, expires_at=ends_at)
            await app.clock.advance(seconds)
            at = next_poll(app.ports, binding, Looked(is_proven=False))
            assert at == (None if due is None else payment.created_at + timedelta(seconds=due))

    async def test_poll_costs_one_write_beside_its_claim(self, app: TestApp, bank: TellsNothing) -> None:
        """Besides the claim: the job's next moment."""
        payment = await made(app)
        before = await app.payment(payment.id)
        await app.work(300)
        assert (await app.payment(payment.id)) == before
        [job] = [each for each in await everything(app.ports, Job) if each.argument == payment.id]
        assert (job.attempts, job.version) == (6, job.attempts * 2 + 1)


class TestThePage:
    """A person who opens the page, or returns to it from the bank, may have paid."""

    @pytest.fixture
    def bank(self) -> TellsNothing:
        return TellsNothing(sends_notifications=True)

    async def test_a_page_that_is_opened_has_the_bank_asked(self, app: TestApp, bank: TellsNothing) -> None:
        payment = await made(app)
        await app.work(300)
        bank.pay(payment.id)
        assert (await app.payment(payment.id)).status == "pending"
        assert (await app.http.get(f"/p/{payment.id}")).status_code == 200
        await app.work()
        assert (await app.payment(payment.id)).status == "paid"

    async def test_returning_payer_has_the_payment_polled_at_once(self, app: TestApp, bank: TellsNothing) -> None:
        payment = await made(app)
        await app.work(300)
        bank.pay(payment.id)
        assert (await app.http.get(f"/p/{payment.id}/state")).json()["status"] == "pending"
        await app.work()
        assert (await app.payment(payment.id)).status == "paid"

    async def test_however_often_it_is_opened_the_bank_is_asked_once_in_ten_seconds(
        self, app: TestApp, bank: TellsNothing
    ) -> None:
        payment = await made(app)
        for _ in range(40):
            await app.http.get(f"/p/{payment.id}")
            await app.work(1)
        assert 3 <= len(bank.asked) <= 4, "three by the page, one by the schedule"

    async def test_page_opened_at_once_polls_nobody(self, app: TestApp, bank: TellsNothing) -> None:
        """A payer cannot pay within ten seconds, but programs open links to show a preview."""
        payment = await made(app)
        for _ in range(9):
            await app.http.get(f"/p/{payment.id}")
            await app.work(1)
        assert bank.asked == []

    async def test_page_that_is_opened_for_hours_stays_within_its_polls(self, app: TestApp, bank: TellsNothing) -> None:
        payment = await made(app)
        for _ in range(6 * 360 - 1):
            await hurry_poll(app.ports, WATCH, payment)
            await app.work(10)
        assert len(bank.asked) <= 160

    async def test_pages_take_a_fifth_of_the_bank_s_polls(self) -> None:
        """Opening many links leaves the remaining polls to payers who wait."""
        bank = TellsNothing(sends_notifications=True, polls_per_minute=60)
        async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
            bank.clock = app.ports.clock
            payments = [await made(app) for _ in range(30)]
            await app.work(20)
            for payment in payments:
                await hurry_poll(app.ports, WATCH, payment)
            await app.work()
            assert len(bank.asked) == 2

    async def test_a_page_that_stays_open_has_nobody_asked(self, app: TestApp, bank: TellsNothing) -> None:
        payment = await made(app)
        await app.clock.advance(20)
        await window.standing(app.ports, payment.id)
        await app.work()
        assert bank.asked == []

    async def test_ended_payment_is_not_polled(self, app: TestApp, bank: TellsNothing) -> None:
        payment = await made(app)
        bank.pay(payment.id)
        await app.work(900)
        bank.asked.clear()
        await app.http.get(f"/p/{payment.id}")
        await app.work(60)
        assert bank.asked == []

    @table(
        ("changes", "simulated", "is_hurried"),
        [
            ({}, False, True),
            ({"mode": Mode.TEST}, False, False),
            ({"bank_reference": None}, False, False),
            ({}, True, False),
        ],
    )
    async def test_only_a_real_bank_that_has_it_is_asked(
        self, changes: dict[str, Any], simulated: bool, is_hurried: bool
    ) -> None:
        bank = TellsNothing(sends_notifications=True, simulated=simulated)
        async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
            payment = msgspec.structs.replace(await made(app), **changes)
            await app.clock.advance(29)
            await hurry_poll(app.ports, WATCH, payment)
            job = await app.ports.storage.get(Job, WATCH.id_of(payment.id))
            assert job is not None
            assert (job.due == app.clock.now()) is is_hurried

    async def test_the_page_is_shown_although_the_storage_fails(
        self, app: TestApp, bank: TellsNothing, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment = await made(app)

        async def fails(*_: object) -> None:
            raise Unavailable("the disk is full")

        monkeypatch.setattr("cambist.core.usecases.gateways.polling.retrying", fails)
        assert (await app.http.get(f"/p/{payment.id}")).status_code == 200


class TestTheBudget:
    """All polls of a minute together stay below the bank's limit, and some are reserved for payers who wait at a
    page."""

    LIMIT = 60

    @pytest.fixture
    def bank(self) -> TellsNothing:
        return TellsNothing(polls_per_minute=self.LIMIT)

    async def test_many_open_invoices_keep_inside_the_limit_and_each_ends(
        self, app: TestApp, bank: TellsNothing
    ) -> None:
        payments = []
        for _ in range(2):
            payments += [await made(app) for _ in range(60)]
            await app.work(61)
        bank.pay(payments[7].id)
        await app.work(3600)
        in_minutes = Counter(at.replace(second=0, microsecond=0) for _, at in bank.asked)
        assert max(in_minutes.values()) <= self.LIMIT
        statuses = Counter([(await app.payment(each.id)).status.value for each in payments])
        assert statuses == {"paid": 1, "expired": 119}

    @table(
        ("changes", "seconds", "simulated", "taken"),
        [
            ({}, 0, False, 10),
            ({}, 299, False, 10),
            ({}, 300, False, 6),
            ({}, 899, False, 6),
            ({}, 900, False, 10),
            ({"status": PaymentStatus.EXPIRED}, 0, False, 6),
            ({"status": PaymentStatus.EXPIRED}, 900, False, 6),
            ({"mode": Mode.TEST}, 300, False, 99),
            ({}, 300, True, 99),
            ({"bank": "of-before"}, 300, False, 99),
        ],
    )
    async def test_polls_in_ten_seconds_are_limited_with_more_for_urgent_ones(
        self, changes: dict[str, Any], seconds: int, simulated: bool, taken: int
    ) -> None:
        """Of ten; only in live mode, and of a bank that is set."""
        bank = TellsNothing(polls_per_minute=self.LIMIT, simulated=simulated)
        async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
            payment = msgspec.structs.replace(await made(app), **changes)
            await app.clock.advance(seconds)
            assert [await turned_away(app.ports, payment) for _ in range(99)].count(None) == taken

    async def test_the_last_look_of_one_that_is_turned_away_comes_later(self) -> None:
        bank = TellsNothing(polls_per_minute=1)
        async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
            bank.clock = app.ports.clock
            payments = [await made(app) for _ in range(3)]
            await app.work(6 * 3600 - 60)
            for payment in payments:
                bank.pay(payment.id)
            await app.work(600)
            assert {(await app.payment(each.id)).status.value for each in payments} == {"paid"}

    async def test_old_ones_take_nothing_of_what_is_kept_for_a_payer_who_waits(
        self, app: TestApp, bank: TellsNothing
    ) -> None:
        for _ in range(100):
            await made(app)
        await app.work(310)
        payment = await made(app)
        await app.work(20)
        bank.pay(payment.id)
        await app.work(10)
        assert (await app.payment(payment.id)).status == "paid"
