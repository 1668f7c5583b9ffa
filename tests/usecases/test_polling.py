"""A bank that tells nothing is asked, often enough for a payer who waits, and no more often than it may be
(docs/adapters.md "How often a provider is asked")."""

from collections import Counter, deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.core.usecases.gateways.polling import Looked, hurry_look, next_late_poll, turned_away
from cambist.core.usecases.payer import window
from cambist.core.usecases.payments.opening import WATCH
from cambist.core.usecases.payments.progress import next_look
from cambist.core.usecases.payments.recurring import binding_operation
from cambist.frontends.compose import Adapters, FurtherBank
from cambist.ports.bank import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    RefundRequest,
    RefundState,
    Transfer,
)
from cambist.ports.clock import Clock
from cambist.ports.faults import NotSupported, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.mandates import MandateEvent, MandatePretence, MandateSimulator
from tests.houses import TestHouse, open_test_house
from tests.invariants import everything
from tests.subscription_house import subscribed
from tests.tables import table

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class TellsNothing:
    """A live bank of whose payments one hears by asking. Its clock is the house's, once there is one."""

    name = "silent"

    def __init__(self, **capabilities: Any) -> None:
        self.capabilities = BankCapabilities(refunds=False, own_lifetime=True, **capabilities)
        self.clock: Clock | None = None
        self.asked: list[tuple[str, datetime]] = []
        self.paid: dict[str, Transfer] = {}
        self.hints: deque[float] = deque()
        self.away: deque[float | None] = deque()
        """With what word of its own it is away at the next looks."""

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
        return InvoiceState(reference=reference, status=InvoiceStatus.PAID, transfers=(self.paid[reference],))

    async def refund(self, request: RefundRequest) -> RefundState:
        raise NotSupported("it sends nothing back")

    async def find_refund(self, operation: str) -> RefundState | None:
        raise NotSupported("it sends nothing back")

    def moments(self, house: TestHouse, operation: str, since: datetime) -> list[float]:
        """When it was asked about this one, in seconds since then."""
        return [(at - since).total_seconds() for reference, at in self.asked if reference == operation]


@pytest.fixture
def bank() -> TellsNothing:
    return TellsNothing()


@pytest.fixture
async def house(bank: TellsNothing) -> AsyncIterator[TestHouse]:
    async with open_test_house(adapters=Adapters(banks={Mode.LIVE: [bank]})) as opened:
        bank.clock = opened.ports.clock
        yield opened


async def made(house: TestHouse) -> Payment:
    answer = await house.create(mode="live")
    assert answer.status_code == 201, answer.text
    return await house.payment(answer.json()["id"])


@pytest.mark.parametrize("paid_at", [0, 2, 44, 119.9, 120])
async def test_what_is_paid_within_two_minutes_is_seen_within_ten_seconds(
    house: TestHouse, bank: TellsNothing, paid_at: float
) -> None:
    payment = await made(house)
    await house.work(paid_at)
    bank.pay(payment.id)
    await house.work(10)
    assert (await house.payment(payment.id)).status == "paid"


async def test_what_is_paid_in_the_last_minute_is_seen_before_it_would_expire(
    house: TestHouse, bank: TellsNothing
) -> None:
    payment = await made(house)
    await house.work(15 * 60 - 31)
    bank.pay(payment.id)
    await house.work(31)
    assert (await house.payment(payment.id)).status == "paid"


async def test_late_money_is_found_within_minutes(house: TestHouse, bank: TellsNothing) -> None:
    payment = await made(house)
    await house.work(16 * 60)
    assert (await house.payment(payment.id)).status == "expired"
    bank.pay(payment.id)
    await house.work(4 * 60)
    assert (await house.payment(payment.id)).status == "paid"


async def test_the_banks_own_word_counts_at_every_look(house: TestHouse, bank: TellsNothing) -> None:
    payment = await made(house)
    bank.hints.extend([40.0, 0.0, 7.5, 1e9])
    await house.work(14 * 60)
    assert bank.moments(house, payment.id, payment.created_at)[:4] == [3.0, 43.0, 44.0, 51.5]
    await house.work(60)
    assert bank.moments(house, payment.id, payment.created_at)[4:5] == [900.0], "the deadline is never missed"


async def test_one_that_is_away_is_left_alone_for_as_long_as_it_says(house: TestHouse, bank: TellsNothing) -> None:
    payment = await made(house)
    bank.away.extend([60.0, None])
    await house.work(75)
    assert bank.moments(house, payment.id, payment.created_at)[:3] == [3.0, 63.0, pytest.approx(67.2)]


@pytest.mark.parametrize("sends_notices", [True, False])
async def test_the_last_look_is_tried_until_the_bank_answers_it(sends_notices: bool) -> None:
    bank = TellsNothing(sends_notices=sends_notices)
    async with open_test_house(adapters=Adapters(banks={Mode.LIVE: [bank]})) as house:
        bank.clock = house.ports.clock
        payment = await made(house)
        await house.work(6 * 3600 - 60)
        bank.pay(payment.id)
        bank.away.extend([None] * 5)
        await house.work(3600)
        assert (await house.payment(payment.id)).status == "paid"


async def test_a_bank_that_never_answers_is_left_alone_after_a_day(house: TestHouse, bank: TellsNothing) -> None:
    payment = await made(house)
    bank.away.extend([None] * 10_000)
    await house.work(25 * 3600)
    bank.asked.clear()
    await house.work(24 * 3600)
    assert (await house.payment(payment.id)).status == "expired"
    assert bank.asked == []


@pytest.mark.parametrize(
    ("sends_notices", "now", "due"),
    [(True, 0, 900), (True, 899, 900), (True, 900, 930), (False, 899, 900), (False, 900, 1050)],
)
async def test_what_is_under_way_is_looked_at_at_its_deadline_and_then_for_as_long_as_it_takes(
    sends_notices: bool, now: float, due: float
) -> None:
    """In seconds since its creation."""
    bank = TellsNothing(sends_notices=sends_notices)
    async with open_test_house(adapters=Adapters(banks={Mode.LIVE: [bank]})) as house:
        payment = msgspec.structs.replace(await made(house), status=PaymentStatus.PROCESSING)
        await house.clock.advance(now)
        assert next_look(house.ports, payment, 1, Looked()) == payment.created_at + timedelta(seconds=due)


@table(
    ("hours", "looked", "due"),
    [
        (0.25, Looked(), 1800),
        (0.5, Looked(), 2 * 3600),
        (2, Looked(), 6 * 3600),
        (6 - 1 / 3600, Looked(), 6 * 3600),
        (6, Looked(), None),
        (6, Looked(is_heard=False), 6 * 3600 + 600),
        (6, Looked(is_heard=False, check_after=60.0), 6 * 3600 + 60),
        (6, Looked(is_heard=False, turn=BEGIN + timedelta(hours=7)), 7 * 3600),
        (24 - 1 / 3600, Looked(is_heard=False), 24 * 3600 + 599),
        (24, Looked(is_heard=False), None),
    ],
)
async def test_late_looks_are_three_and_the_last_one_is_tried_until_it_is_answered_or_a_day_is_over(
    hours: float, looked: Looked, due: int | None
) -> None:
    """In seconds since its creation."""
    bank = TellsNothing(sends_notices=True)
    async with open_test_house(adapters=Adapters(banks={Mode.LIVE: [bank]})) as house:
        payment = msgspec.structs.replace(await made(house), status=PaymentStatus.EXPIRED)
        assert payment.created_at == BEGIN
        await house.clock.advance(round(hours * 3600))
        found = next_late_poll(house.ports, payment, looked)
        assert found == (None if due is None else BEGIN + timedelta(seconds=due))


class TestBindings:
    """A payer who binds waits at a page, too."""

    @pytest.mark.parametrize(("sends_notices", "status"), [(False, "active"), (True, "pending_binding")])
    async def test_what_is_confirmed_unheard_is_seen_within_ten_seconds(self, sends_notices: bool, status: str) -> None:
        told = BankCapabilities(own_lifetime=True, mandates=True, sends_notices=sends_notices)
        async with open_test_house(further_banks=[FurtherBank(name="real", capabilities=told)]) as house:
            await set_gateway(house.ports, "simulator-test", GatewayStatus.DOWN)
            made = await subscribed(house)
            assert (await house.http.get(f"/s/{made['id']}")).status_code == 200
            await house.work(120)
            [payment] = await everything(house.ports, Payment)
            assert payment.bank == "real"
            bank = house.ports.banks.named("real")
            assert isinstance(bank, MandateSimulator)
            operation = binding_operation(payment.id)
            await bank.pretend_mandate(operation, MandatePretence(event=MandateEvent.CONFIRM))
            await house.work(10)
            assert (await house.get(f"/subscriptions/{made['id']}")).json()["status"] == status


class TestNotices:
    @pytest.fixture
    def bank(self) -> TellsNothing:
        return TellsNothing(sends_notices=True)

    async def test_a_bank_that_tells_is_asked_at_the_deadline_only(self, house: TestHouse, bank: TellsNothing) -> None:
        payment = await made(house)
        await house.work(16 * 60)
        assert bank.moments(house, payment.id, payment.created_at) == [900.0]

    async def test_its_own_word_counts_all_the_same(self, house: TestHouse, bank: TellsNothing) -> None:
        payment = await made(house)
        await window.view(house.ports, payment.id)
        bank.hints.append(100.0)
        await house.work(16 * 60)
        assert bank.moments(house, payment.id, payment.created_at) == [0.0, 100.0, 900.0]


class TestThePage:
    """Somebody who opens the page, or comes back to it from the bank, is somebody who may have paid."""

    @pytest.fixture
    def bank(self) -> TellsNothing:
        return TellsNothing(sends_notices=True)

    async def test_a_page_that_is_opened_has_the_bank_asked(self, house: TestHouse, bank: TellsNothing) -> None:
        payment = await made(house)
        await house.work(300)
        bank.pay(payment.id)
        assert (await house.http.get(f"/p/{payment.id}")).status_code == 200
        await house.work()
        assert (await house.payment(payment.id)).status == "paid"

    async def test_so_has_one_that_is_back(self, house: TestHouse, bank: TellsNothing) -> None:
        payment = await made(house)
        await house.work(300)
        bank.pay(payment.id)
        assert (await house.http.get(f"/p/{payment.id}/state")).json()["status"] == "pending"
        await house.work()
        assert (await house.payment(payment.id)).status == "paid"

    async def test_however_often_it_is_opened_the_bank_is_asked_once_in_ten_seconds(
        self, house: TestHouse, bank: TellsNothing
    ) -> None:
        payment = await made(house)
        for _ in range(30):
            await house.http.get(f"/p/{payment.id}")
            await house.work(1)
        assert 3 <= len(bank.asked) <= 4

    async def test_a_page_that_stays_open_has_nobody_asked(self, house: TestHouse, bank: TellsNothing) -> None:
        payment = await made(house)
        await window.standing(house.ports, payment.id)
        await house.work()
        assert bank.asked == []

    async def test_one_that_is_over_has_nobody_asked(self, house: TestHouse, bank: TellsNothing) -> None:
        payment = await made(house)
        bank.pay(payment.id)
        await house.work(900)
        bank.asked.clear()
        await house.http.get(f"/p/{payment.id}")
        await house.work(60)
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
        bank = TellsNothing(sends_notices=True, simulated=simulated)
        async with open_test_house(adapters=Adapters(banks={Mode.LIVE: [bank]})) as house:
            payment = msgspec.structs.replace(await made(house), **changes)
            await house.clock.advance(30)
            await hurry_look(house.ports, WATCH, payment)
            job = await house.ports.storage.get(Job, WATCH.id_of(payment.id))
            assert job is not None
            assert (job.due == house.clock.now()) is is_hurried

    async def test_the_page_is_shown_although_the_storage_fails(
        self, house: TestHouse, bank: TellsNothing, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment = await made(house)

        async def fails(*_: object) -> None:
            raise Unavailable("the disk is full")

        monkeypatch.setattr("cambist.core.usecases.gateways.polling.retrying", fails)
        assert (await house.http.get(f"/p/{payment.id}")).status_code == 200


class TestTheBudget:
    """All looks of a minute together stay below what the bank allows; who waits at a page has looks kept for him."""

    LIMIT = 60

    @pytest.fixture
    def bank(self) -> TellsNothing:
        return TellsNothing(looks_per_minute=self.LIMIT)

    async def test_many_open_invoices_keep_inside_the_limit_and_each_ends(
        self, house: TestHouse, bank: TellsNothing
    ) -> None:
        payments = []
        for _ in range(2):
            payments += [await made(house) for _ in range(60)]
            await house.work(61)
        bank.pay(payments[7].id)
        await house.work(3600)
        in_minutes = Counter(at.replace(second=0, microsecond=0) for _, at in bank.asked)
        assert max(in_minutes.values()) <= self.LIMIT
        statuses = Counter([(await house.payment(each.id)).status.value for each in payments])
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
    async def test_so_many_looks_of_ten_seconds_are_for_all_and_so_many_more_for_who_waits_or_is_due(
        self, changes: dict[str, Any], seconds: int, simulated: bool, taken: int
    ) -> None:
        """Of ten; only in live mode, and of a bank that is set."""
        bank = TellsNothing(looks_per_minute=self.LIMIT, simulated=simulated)
        async with open_test_house(adapters=Adapters(banks={Mode.LIVE: [bank]})) as house:
            payment = msgspec.structs.replace(await made(house), **changes)
            await house.clock.advance(seconds)
            assert [await turned_away(house.ports, payment) for _ in range(99)].count(None) == taken

    async def test_the_last_look_of_one_that_is_turned_away_comes_later(self) -> None:
        bank = TellsNothing(looks_per_minute=1)
        async with open_test_house(adapters=Adapters(banks={Mode.LIVE: [bank]})) as house:
            bank.clock = house.ports.clock
            payments = [await made(house) for _ in range(3)]
            await house.work(6 * 3600 - 60)
            for payment in payments:
                bank.pay(payment.id)
            await house.work(600)
            assert {(await house.payment(each.id)).status.value for each in payments} == {"paid"}

    async def test_old_ones_take_nothing_of_what_is_kept_for_a_payer_who_waits(
        self, house: TestHouse, bank: TellsNothing
    ) -> None:
        for _ in range(100):
            await made(house)
        await house.work(310)
        payment = await made(house)
        await house.work(20)
        bank.pay(payment.id)
        await house.work(10)
        assert (await house.payment(payment.id)).status == "paid"
