"""Routes of a payment: a refused one falls to the next, an unknown outcome never does (docs/errors.md "All codes",
PAYMENT_ROUTE_UNAVAILABLE; ARCHITECTURE "Three outcomes")."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from cambist.adapters.script import Ending, Script, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.accounts.terminals import Terminal, TerminalWish
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import Opening, Payment
from cambist.core.usecases.accounts import accounts, terminals
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.payments.opening import WATCH, open_at_bank, take_invoice
from cambist.core.usecases.payments.payments import create_payment
from cambist.frontends.app.compose import Adapters, FurtherBank
from cambist.ports.bank import BankCapabilities, Invoice, InvoiceRequest, InvoiceStatus, Notification
from cambist.ports.bank_simulator import Simulation
from cambist.ports.jobs import Job
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashingStorage, CrashPoint, Killed
from tests.planting import beneath
from tests.tables import table
from tests.usecases.jobs.test_crash_sweep import caller

NO = Twist(ending=Ending.REFUSED)
AWAY = Twist(ending=Ending.UNAVAILABLE)
LOST_DONE = Twist(ending=Ending.UNKNOWN_DONE)
LOST_NOT_DONE = Twist(ending=Ending.UNKNOWN_NOT_DONE)

FIRST, SECOND = "simulator-asked-test", "second"


class TwoBanks:
    """An app whose test mode has a second bank, which supports no lifetimes."""

    def __init__(self, app: TestApp, second: Script) -> None:
        self.app = app
        self.first = app.script
        self.second = second

    async def only_payment(self) -> Payment:
        async with self.app.ports.storage.unit() as unit:
            [payment] = await unit[Payment].find()
        return payment

    async def nothing_is_left(self) -> bool:
        async with self.app.ports.storage.unit() as unit:
            return not await unit[Payment].find() and not await unit[IdempotencyKey].find()

    async def banks_with(self, payment_id: str) -> list[str]:
        """The banks that have an invoice of the payment."""
        banks = self.app.ports.banks.banks
        return [name for name in (FIRST, SECOND) if await banks[name].find_invoice(payment_id) is not None]

    async def terminal(self, **wish: Any) -> Terminal:
        account_id = self.app.account.account_id
        await accounts.set_settings(self.app.ports, account_id, {"terminals": "true"})
        return await terminals.create_terminal(self.app.ports, account_id, TerminalWish(label="T", **wish))

    def minutes(self, payment: dict[str, Any]) -> float:
        """Return the lifetime of a payment that was just created, in minutes."""
        return (_moment(payment["expires_at"]) - _moment(payment["created_at"])) / 60


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.fixture
async def two() -> AsyncIterator[TwoBanks]:
    second = Script()
    plain = BankCapabilities(own_lifetime=False, direct_link=True, simulated=True)
    banks = [FurtherBank(name=SECOND, script=second, capabilities=plain)]
    async with open_test_app(test_banks=("simulator-asked",), further_banks=banks) as app:
        yield TwoBanks(app, second)


async def test_first_bank_takes_the_payment_and_the_second_is_not_called(two: TwoBanks) -> None:
    payment = await two.app.created()
    assert ((await two.only_payment()).bank, await two.banks_with(payment["id"])) == (FIRST, [FIRST])


@pytest.mark.parametrize("end", [NO, AWAY], ids=["refused", "away"])
async def test_second_bank_takes_the_payment_if_the_first_did_not_execute(two: TwoBanks, end: Twist) -> None:
    two.first.create.append(end)
    payment = await two.app.created()
    stored = await two.only_payment()
    assert (stored.bank, stored.opening, await two.banks_with(payment["id"])) == (SECOND, Opening.OPEN, [SECOND])
    paid = await two.app.simulate(payment["id"], outcome="paid")
    assert paid.json()["status"] == "paid"


@pytest.mark.parametrize(
    ("first", "second", "status"), [(NO, NO, 400), (AWAY, NO, 503), (NO, AWAY, 503), (AWAY, AWAY, 503)]
)
async def test_when_no_route_is_left_nothing_is_either_and_the_key_is_free(
    two: TwoBanks, first: Twist, second: Twist, status: int
) -> None:
    """400: no working route; 503: the check failed for now, and the same key may be used again."""
    key = str(uuid4())
    two.first.create.append(first)
    two.second.create.append(second)
    refused = await two.app.create(key=key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (status, "PAYMENT_ROUTE_UNAVAILABLE")
    assert ("Retry-After" in refused.headers) == (status == 503)
    assert await two.nothing_is_left()
    assert (await two.app.create(key=key)).status_code == 201


@pytest.mark.parametrize("end", [LOST_DONE, LOST_NOT_DONE], ids=["done", "not done"])
async def test_an_unknown_outcome_never_leads_to_the_next_bank(two: TwoBanks, end: Twist) -> None:
    key = str(uuid4())
    two.first.create.append(end)
    for _ in range(2):
        unknown = await two.app.create(key=key)
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (502, "PROVIDER_ERROR")
    await two.app.work(7 * 3600)
    stored = await two.only_payment()
    assert (stored.bank, SECOND in await two.banks_with(stored.id)) == (FIRST, False)
    assert stored.status == ("expired" if end is LOST_DONE else "failed")


async def test_an_unknown_outcome_at_the_second_bank_stays_there(two: TwoBanks) -> None:
    two.first.create.append(NO)
    two.second.create.append(LOST_DONE)
    assert (await two.app.create()).status_code == 502
    await two.app.work(10)
    stored = await two.only_payment()
    assert (stored.bank, stored.bank_reference is not None, await two.banks_with(stored.id)) == (SECOND, True, [SECOND])


async def test_the_deadline_follows_the_bank_that_takes_the_payment(two: TwoBanks) -> None:
    """`ttl_minutes` counts only where its method can do it (docs/payments.md "Taking one")."""
    mine = await two.app.created({"ttl_minutes": 60})
    two.first.create.append(NO)
    fallen = await two.app.created({"ttl_minutes": 60})
    assert (two.minutes(mine), two.minutes(fallen)) == (60, 15)
    await two.app.work(15 * 60)
    assert (await two.app.get(f"/payments/{fallen['id']}")).json()["status"] == "expired"
    assert (await two.app.get(f"/payments/{mine['id']}")).json()["status"] == "pending"


async def test_a_wish_that_the_first_bank_could_not_keep_counts_at_the_next(two: TwoBanks) -> None:
    terminal = await two.terminal(routes=(SECOND, FIRST))
    taken = await two.app.created({"method_id": terminal.id, "ttl_minutes": 5})
    two.second.create.append(NO)
    fallen = await two.app.created({"method_id": terminal.id, "ttl_minutes": 5})
    assert (two.minutes(taken), two.minutes(fallen)) == (15, 5)


@pytest.mark.parametrize(("own", "minutes"), [(True, 20), (False, 15)])
async def test_a_terminal_without_lifetimes_of_its_own_keeps_the_usual_one(
    two: TwoBanks, own: bool, minutes: int
) -> None:
    terminal = await two.terminal(own_lifetime=own)
    payment = await two.app.created({"method_id": terminal.id, "ttl_minutes": 20})
    assert two.minutes(payment) == minutes
    above = await two.app.create({"method_id": terminal.id, "ttl_minutes": 61})
    assert (above.status_code, above.json()["error"]["code"]) == (422, "VALIDATION_ERROR")


async def test_a_terminal_has_its_own_order_of_banks(two: TwoBanks) -> None:
    terminal = await two.terminal(routes=(SECOND, FIRST))
    payment = await two.app.created({"method_id": terminal.id})
    assert await two.banks_with(payment["id"]) == [SECOND]
    two.second.create.append(NO)
    fallen = await two.app.created({"method_id": terminal.id})
    assert await two.banks_with(fallen["id"]) == [FIRST]


async def test_a_terminal_of_one_route_falls_to_no_other(two: TwoBanks) -> None:
    terminal = await two.terminal(routes=(SECOND,))
    two.second.create.append(NO)
    refused = await two.app.create({"method_id": terminal.id})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "PAYMENT_ROUTE_UNAVAILABLE")


async def test_test_mode_never_goes_to_a_live_bank_nor_live_mode_to_a_test_bank(two: TwoBanks) -> None:
    """A terminal is the same in both modes; only routes of the payment's mode count."""
    terminal = await two.terminal(routes=(SECOND, "simulator-live"))
    test = await two.app.created({"method_id": terminal.id})
    live = (await two.app.create({"method_id": terminal.id}, mode="live")).json()
    async with two.app.ports.storage.unit() as unit:
        banks = {payment.id: payment.bank for payment in await unit[Payment].find()}
    assert banks == {test["id"]: SECOND, live["id"]: "simulator-live"}
    two.second.create.append(NO)
    refused = await two.app.create({"method_id": terminal.id})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "PAYMENT_ROUTE_UNAVAILABLE")


async def rerouted(two: TwoBanks, *routes: str) -> Terminal:
    """A terminal that was agreed while other banks were wired."""
    terminal = await two.terminal()
    async with two.app.ports.storage.unit() as unit:
        after = unit[Terminal].save(msgspec.structs.replace(terminal, routes=routes))
        await unit.commit()
    return after


async def test_a_bank_that_is_no_longer_wired_is_passed_over(two: TwoBanks) -> None:
    terminal = await rerouted(two, "gone", SECOND)
    payment = await two.app.created({"method_id": terminal.id})
    assert await two.banks_with(payment["id"]) == [SECOND]


async def test_a_terminal_with_no_wired_bank_has_no_route(two: TwoBanks) -> None:
    terminal, key = await rerouted(two, "gone"), str(uuid4())
    refused = await two.app.create({"method_id": terminal.id}, key=key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "PAYMENT_ROUTE_UNAVAILABLE")
    assert await two.nothing_is_left()
    working = await two.terminal()
    assert (await two.app.create({"method_id": working.id}, key=key)).status_code == 201


async def test_overtaken_request_answers_with_the_invoice_its_watch_opened(two: TwoBanks) -> None:
    """The first bank takes 12 seconds to report that it is unavailable; the watch, after 10, is refused and continues
    with the next one."""
    two.first.create.extend([Twist(ending=Ending.UNAVAILABLE, silence=12), NO])
    asking = asyncio.create_task(two.app.create())
    await two.app.work(15)
    answer = await asking
    stored = await two.only_payment()
    assert (answer.status_code, answer.json()["id"], stored.bank) == (201, stored.id, SECOND)
    assert await two.banks_with(stored.id) == [SECOND]


async def test_a_request_whose_watch_met_an_unknown_outcome_does_not_go_on(two: TwoBanks) -> None:
    two.first.create.extend([Twist(ending=Ending.UNAVAILABLE, silence=12), LOST_DONE, NO])
    asking = asyncio.create_task(two.app.create())
    await two.app.work(15)
    answer = await asking
    stored = await two.only_payment()
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "PROVIDER_ERROR")
    assert list(two.first.create) == [NO], "nor is the same bank asked once more"
    assert (stored.bank, SECOND in await two.banks_with(stored.id)) == (FIRST, False)


async def test_notification_that_precedes_a_lost_answer_ends_the_creation(two: TwoBanks) -> None:
    """The watch would poll after ten seconds."""
    two.first.create.append(Twist(ending=Ending.UNKNOWN_DONE, silence=5))
    asking = asyncio.create_task(two.app.create())
    await two.app.clock.advance(1)
    stored = await two.only_payment()
    async with two.app.ports.storage.unit() as unit:
        [watch] = await unit[Job].find(kind=WATCH.kind)
    assert watch.due == stored.created_at + timedelta(seconds=10)
    await on_notification(two.app.ports, Notification(operation=stored.id))
    await two.app.clock.advance(5)
    answer = await asking
    assert (answer.status_code, answer.json()["id"]) == (201, stored.id)
    assert (await two.only_payment()).opening is Opening.OPEN


async def test_request_answers_as_its_key_if_the_watch_met_an_unknown_outcome(two: TwoBanks) -> None:
    """The bank's later answer does not matter: a repeat got 502, and every further repeat gets the same answer."""
    two.first.create.extend([Twist(silence=5), LOST_NOT_DONE])
    key = str(uuid4())
    asking = asyncio.create_task(two.app.create(key=key))
    await two.app.work(1)
    stored = await two.only_payment()
    with pytest.raises(Refusal, match="without a definite result"):
        await open_at_bank(two.app.ports, stored)
    meanwhile = await two.app.create(key=key)
    await two.app.work(10)
    answers = [meanwhile, await asking, await two.app.create(key=key)]
    assert [(each.status_code, each.json()) for each in answers] == [(502, meanwhile.json())] * 3
    stored = await two.only_payment()
    assert (stored.opening, stored.bank_reference is not None) == (Opening.UNKNOWN, True)


async def test_an_answer_that_comes_late_keeps_its_own_bank_and_deadline(two: TwoBanks) -> None:
    """Two flows call two banks at once. Whichever answers first, reference, bank and deadline belong together, and
    nobody sees the other's invoice."""
    two.first.create.append(Twist(ending=Ending.UNAVAILABLE, silence=5))
    asking = asyncio.create_task(two.app.create({"ttl_minutes": 60}))
    await two.app.clock.advance(1)
    asked = await two.only_payment()
    async with beneath(two.app.ports).unit() as unit:
        moved_on = unit[Payment].save(
            msgspec.structs.replace(asked, bank=SECOND, expires_at=asked.created_at + timedelta(minutes=15))
        )
        await unit.commit()
    late = Invoice(reference="first:late", payload="late", link="https://late.example/")
    await take_invoice(two.app.ports, asked, late)
    ours = await take_invoice(two.app.ports, moved_on, Invoice(reference="second:x", payload="x", link="https://x/"))
    assert (ours.bank, ours.bank_reference, ours.expires_at) == (FIRST, "first:late", asked.expires_at)
    await two.app.clock.advance(10)
    assert (await asking).status_code == 201


async def _story(app: TestApp, fused: Any, key: str) -> None:
    await create_payment(
        fused, await caller(fused, app.account.account_id), key, lambda: PaymentOrder(amount_rub="100.00")
    )


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3])
async def test_a_crash_anywhere_on_the_way_to_the_second_bank_leaves_one_invoice(
    two: TwoBanks, at: int, after: bool
) -> None:
    """Three commits: the creation, the next route, the opening."""
    two.first.create.extend([NO] * 3)
    app, key = two.app, str(UUID(int=9))
    fuse = CrashPoint(at, after=after)
    fused = msgspec.structs.replace(app.ports, storage=CrashingStorage(app.ports.storage, fuse))
    with pytest.raises(Killed):
        await _story(app, fused, key)
    await app.work(LEASE + 30)
    await _story(app, app.ports, key)
    stored = await two.only_payment()
    assert (stored.bank, stored.opening) == (SECOND, Opening.OPEN)
    assert await two.banks_with(stored.id) == [SECOND]


async def test_bank_gets_the_deadline_that_the_merchant_sees(two: TwoBanks) -> None:
    asked: list[InvoiceRequest] = []
    second = two.app.ports.banks.banks[SECOND]
    create = second.create_invoice

    async def watched(request: InvoiceRequest) -> Invoice:
        asked.append(request)
        return await create(request)

    second.create_invoice = watched  # type: ignore[method-assign]  # a spy on this one object
    two.first.create.append(NO)
    await two.app.created({"ttl_minutes": 60})
    assert [request.expires_at for request in asked] == [(await two.only_payment()).expires_at]


async def test_drawing_bank_is_not_called_to_create_an_invoice() -> None:
    """One durable step: the payment is written with its invoice, and watched from its deadline on."""
    fuse = CrashPoint(0, after=False)
    async with open_test_app() as app:
        whole = app.ports
        who = await caller(whole, app.account.account_id)
        app.script.find.append(AWAY)
        ports = msgspec.structs.replace(whole, storage=CrashingStorage(whole.storage, fuse))
        made = (await create_payment(ports, who, str(uuid4()), lambda: PaymentOrder(amount_rub="100.00"))).resource
        assert fuse.commits == 1
        assert (made.opening, made.bank) == (Opening.OPEN, "simulator-test")
        assert made.bank_reference is not None
        async with whole.storage.unit() as unit:
            [watch] = await unit[Job].find(kind=WATCH.kind)
            assert await unit[Payment].get(made.id) == made
        assert watch.due == made.expires_at
        assert len(app.script.find) == 1
        await app.told(made, Simulation(status=InvoiceStatus.PAID))
        assert (await app.payment(made.id)).status == "paid"


@pytest.mark.parametrize("check_after", [None, 3.0, 10_000.0])
async def test_drawn_invoice_of_a_bank_without_notifications_is_polled_sooner(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, check_after: float | None
) -> None:
    bank = app.ports.banks.named("simulator-test")
    drawn = Invoice(reference="simulator-test:r", payload="p", link="l", check_after=check_after)
    monkeypatch.setattr(bank, "draw_invoice", lambda _: drawn)
    payment = await app.payment((await app.created())["id"])
    async with app.ports.storage.unit() as unit:
        [watch] = await unit[Job].find(kind=WATCH.kind)
    soon = app.clock.now() + timedelta(seconds=check_after or 10_000)
    assert watch.due == min(payment.expires_at, soon)


async def test_drawing_bank_is_called_for_amounts_that_it_wants_to_see(app: TestApp) -> None:
    """404.02 triggers an outcome at the bank, so the bank must get the call (docs/sandbox.md "Amounts that act by
    themselves")."""
    payment = await app.created({"amount_rub": "404.02"})
    assert await app.ports.banks.named("simulator-test").find_invoice(payment["id"]) is not None
    plain = await app.created()
    assert await app.ports.banks.named("simulator-test").find_invoice(plain["id"]) is None


LIMITS = [
    ((5_000_00, 9_000_00), (1, 700_00), "499.00", SECOND),
    ((5_000_00, 9_000_00), (1, 700_00), "5000.00", FIRST),
    ((5_000_00, 9_000_00), (1, None), "9000.00", FIRST),
    ((5_000_00, 9_000_00), (1, None), "9000.01", SECOND),
    ((1, 700_00), (700_01, None), "700.00", FIRST),
    ((1, 700_00), (700_01, None), "700.01", SECOND),
    ((5_000_00, 9_000_00), (1, 700_00), "700.01", "amount_rub is 5000.00 to 9000.00 or 0.01 to 700.00"),
    ((5_000_00, None), (9_000_00, None), "4999.99", "amount_rub is at least 5000.00 or at least 9000.00"),
]


@table(("first", "second", "amount", "end"), LIMITS)
async def test_a_bank_that_takes_no_such_amount_is_passed_over_unasked(
    first: tuple[int, int | None], second: tuple[int, int | None], amount: str, end: str
) -> None:
    """docs/adapters.md "Fields of a request"."""
    banks = []
    for name, (least, most) in ((FIRST, first), (SECOND, second)):
        can = BankCapabilities(simulated=True, min_kopecks=least, max_kopecks=most)
        # If a bank is called outside its limits, its lost answer keeps the next bank from being used.
        unasked = Script()
        if name != end:
            unasked.create.append(LOST_DONE)
        banks.append(FurtherBank(name=name, capabilities=can, asked=True, script=unasked))
    async with open_test_app(adapters=Adapters(banks={Mode.TEST: []}), further_banks=banks) as app:
        key = str(uuid4())
        answer = await app.create({"amount_rub": amount}, key=key)
        two = TwoBanks(app, Script())
        if answer.status_code == 201:
            assert (await two.only_payment()).bank == end
            return
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_AMOUNT")
        assert answer.json()["error"]["message"] == f"No bank takes this amount: {end}"
        assert await two.nothing_is_left(), "the key is free"


async def test_next_bank_after_a_refusal_is_one_that_takes_the_amount() -> None:
    refusing, last = Script(), Script()
    refusing.create.append(NO)
    banks = [
        FurtherBank(name=FIRST, asked=True, script=refusing),
        FurtherBank(name="small", asked=True, capabilities=BankCapabilities(simulated=True, max_kopecks=50_00)),
        FurtherBank(name=SECOND, asked=True, script=last),
    ]
    async with open_test_app(adapters=Adapters(banks={Mode.TEST: []}), further_banks=banks) as app:
        await app.created()
        assert (await TwoBanks(app, last).only_payment()).bank == SECOND
