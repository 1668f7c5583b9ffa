"""A binding from its record to its bank: who may open one, the request to the bank, and several bindings of one
subscription that are independent of each other (docs/subscriptions.md "How the payer binds")."""

from datetime import timedelta

import msgspec
import pytest

from cambist.adapters.script import Ending, Script, Twist
from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.errors import Refusal
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.payments.payments import Opening, Payment
from cambist.core.domain.payments.payments import PaymentStatus as P
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.domain.subscriptions.subscriptions import SubscriptionStatus as S
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.core.usecases.payments.recurring import bound_by
from cambist.core.usecases.subscriptions.binding_opening import is_alive, open_binding, opens_here
from cambist.core.usecases.subscriptions.binding_progress import on_binding_notification
from cambist.core.usecases.subscriptions.bindings import WATCH_BINDING, ask, ask_for, take_back, take_binding
from cambist.frontends.app.compose import FurtherBank
from cambist.ports.bank import BankCapabilities
from cambist.ports.jobs import Job
from cambist.ports.mandates import Binding as AtBank
from tests.apps import TestApp, open_test_app
from tests.planting import beneath
from tests.subscription_app import bindings, bound, call, choose_calendar, open_link, record, subscribe, subscribed
from tests.tables import table

DAY = 86400


async def saved(app: TestApp, record: Payment | Subscription, **changes: object) -> None:
    """Store a changed record."""
    async with beneath(app.ports).unit() as unit:
        unit[type(record)].save(msgspec.structs.replace(record, **changes))
        await unit.commit()


@pytest.mark.parametrize(
    ("scheme", "status", "now", "opens"),
    [
        (Scheme.WINDOW, S.PENDING_BINDING, DAY - 1, True),
        (Scheme.WINDOW, S.PENDING_BINDING, DAY, False),
        (Scheme.CALENDAR, S.PENDING_BINDING, 0, False),
        (Scheme.WINDOW, S.ACTIVE, 0, False),
        (Scheme.CALENDAR, S.ACTIVE, 0, False),
        (Scheme.WINDOW, S.PAUSED, 0, False),
        (Scheme.WINDOW, S.CANCELLED, 0, False),
    ],
)
async def test_a_payer_binds_here_while_a_binding_of_our_window_is_awaited(
    app: TestApp, scheme: Scheme, status: S, now: float, opens: bool
) -> None:
    """`now`: seconds since it was made; a first binding is awaited for a day."""
    found = await record(app, (await subscribed(app))["id"])
    subscription = msgspec.structs.replace(found, status=status, scheme=scheme)
    assert opens_here(subscription, found.created_at + timedelta(seconds=now)) is opens


async def test_a_binding_is_alive_until_its_deadline_while_it_is_the_present_one(app: TestApp) -> None:
    made = await subscribed(app)
    payment = await open_link(app, made["id"])
    mine = await record(app, made["id"])
    assert mine.binding is not None
    other = msgspec.structs.replace(mine, binding=msgspec.structs.replace(mine.binding, payment_id="pay_other"))
    end, tick = payment.expires_at, timedelta(microseconds=1)
    rows = [
        (mine, payment.status, end - tick, True),
        (mine, P.PROCESSING, end - tick, True),
        (mine, payment.status, end, False),
        (mine, P.PAID, end - tick, False),
        (mine, P.EXPIRED, end - tick, False),
        (other, payment.status, end - tick, False),
        (msgspec.structs.replace(mine, binding=None), payment.status, end - tick, False),
    ]
    for subscription, status, now, alive in rows:
        assert is_alive(subscription, msgspec.structs.replace(payment, status=status), now) is alive, (status, now)


@pytest.mark.parametrize("calendar", [False, True])
async def test_payer_is_asked_to_come_back_while_no_bank_is_in_service(app: TestApp, calendar: bool) -> None:
    made = None if calendar else await subscribed(app)
    await set_gateway(app.ports, "simulator-test", GatewayStatus.DOWN)
    if made is None:
        await choose_calendar(app)
        answer = await subscribe(app)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "PAYMENT_ROUTE_UNAVAILABLE")
        assert answer.headers["Retry-After"] == "30"
        return
    with pytest.raises(Refusal) as caught:
        await open_binding(app.ports, made["id"])
    assert (caught.value.code, caught.value.status, caught.value.retry_after) == ("PAYMENT_ROUTE_UNAVAILABLE", 503, 30)
    assert await bindings(app, made["id"]) == []


async def test_watch_of_a_binding_leaves_the_request_ten_seconds(app: TestApp) -> None:
    payment = await open_link(app, (await subscribed(app))["id"])
    job = await app.ports.storage.get(Job, WATCH_BINDING.id_of(payment.id))
    assert job is not None
    assert job.due == payment.created_at + timedelta(seconds=10)


async def test_period_of_a_binding_follows_the_subscriptions_scheme(app: TestApp) -> None:
    """For a calendar the period is the month, for our window the day of the binding. A subscription that is bound anew
    stays in its own period."""
    await app.clock.advance(3 * DAY)
    first = (await open_link(app, (await subscribed(app))["id"])).period_ref
    bought = await bound(app)
    await app.clock.advance(40 * DAY)
    found = await record(app, bought["id"])
    await saved(app, found, status=S.PAUSED, rebind_required=True, paused_at=app.clock.now())
    assert (await call(app, bought["id"], "rebind", Idempotency_Key="5f0c5f7e-3d3c-4f0f-8f0a-0b7a0d3c2b1a")).is_success
    anew = (await open_link(app, bought["id"])).period_ref
    await choose_calendar(app)
    [calendar] = await bindings(app, (await subscribed(app))["id"])
    assert (first, anew, calendar.period_ref) == ("a20260104-month1", "a20260204-month1", "2026-02")


UUID = "0198c3f2-7d1a-7e4b-9f60-000000000001"


@table(
    ("operation", "payment_id"),
    [
        (f"bnd_{UUID}", f"pay_{UUID}"),
        (f"sub_{UUID}", None),
        (f"acc_{UUID}:{UUID}", None),
        (f"pay_{UUID}", None),
        ("bnd_1", None),
    ],
)
def test_a_banks_word_leads_to_the_binding_by_the_form_of_its_operation(operation: str, payment_id: str | None) -> None:
    assert bound_by(operation) == payment_id


class TestOfTwo:
    """The first QR lapsed, and its bank answers when the payer has opened another."""

    async def two(self, app: TestApp) -> tuple[Payment, Payment]:
        made = await subscribed(app)
        first = await open_link(app, made["id"])
        await app.clock.advance(15 * 60)
        second = await open_link(app, made["id"])
        assert second.id != first.id
        await saved(app, first, opening=Opening.ASKING, bank_reference=None, qr_payload=None, bank_link=None)
        return await app.payment(first.id), second

    async def test_a_late_answer_is_of_its_own_binding(self, app: TestApp) -> None:
        first, second = await self.two(app)
        before = await record(app, first.subscription_id or "")
        made = AtBank(reference="late", payload="p", link="https://bank.example/late")
        taken = await take_binding(app.ports, first, made)
        assert taken is not None
        assert (taken.bank_reference, taken.bank_link) == ("late", "https://bank.example/late")
        assert await record(app, first.subscription_id or "") == before
        assert await take_binding(app.ports, second, made) == second, "it has its own already"

    async def test_opening_unknown_to_the_bank_is_withdrawn_alone(self, app: TestApp) -> None:
        first, second = await self.two(app)
        before = await record(app, first.subscription_id or "")
        async with app.ports.storage.unit() as unit:
            await take_back(app.ports, unit, first)
            await unit.commit()
        assert await bindings(app, before.id) == [second]
        assert await record(app, before.id) == before
        assert await app.ports.storage.get(Job, WATCH_BINDING.id_of(first.id)) is None
        async with app.ports.storage.unit() as unit:
            await take_back(app.ports, unit, second)
            await unit.commit()
        assert (await record(app, before.id)).binding is None


async def test_open_binding_is_not_requested_again(app: TestApp) -> None:
    payment = await open_link(app, (await subscribed(app))["id"])
    app.script.bind.append(Twist(ending=Ending.REFUSED))
    await ask_for(app.ports, payment.id)
    await ask_for(app.ports, "pay_gone")
    assert len(app.script.bind) == 1
    for ending in (Ending.REFUSED, Ending.UNKNOWN_NOT_DONE):
        app.script.bind.clear()
        app.script.bind.append(Twist(ending=ending))
        assert await ask(app.ports, payment) == payment, "whoever asks all the same moves nothing"
    assert await app.payment(payment.id) == payment


ROUTES = [("first", "50.00", "third-test"), ("none", "50.00", "second-test"), ("first", "500.00", "second-test")]


@table(("charge", "amount", "bank"), ROUTES)
async def test_next_bank_after_a_refusal_is_one_that_takes_the_first_charge(
    charge: str, amount: str, bank: str
) -> None:
    can = BankCapabilities(simulated=True, mandates=True, mandate_charges=True, min_kopecks=100_00)
    further = [FurtherBank(name="second-test", capabilities=can, script=Script()), FurtherBank(name="third-test")]
    async with open_test_app(further_banks=further) as app:
        made = await subscribed(app, amount_rub=amount, binding_charge=charge)
        app.script.bind.append(Twist(ending=Ending.REFUSED))
        assert (await open_link(app, made["id"])).bank == bank


async def test_first_bank_is_asked_if_the_last_one_is_no_longer_wired() -> None:
    async with open_test_app(further_banks=[FurtherBank(name="second-test")]) as app:
        made = await subscribed(app)
        app.script.bind.append(Twist(ending=Ending.UNAVAILABLE))
        payment = await open_link(app, made["id"])
        await saved(app, payment, bank="gone")
        asked = await ask(app.ports, await app.payment(payment.id))
        assert asked is not None
        assert asked.bank == "simulator-test"


@pytest.mark.parametrize(
    ("ending", "heard"), [(Ending.UNKNOWN_NOT_DONE, False), (Ending.UNAVAILABLE, False), (Ending.UNKNOWN_DONE, True)]
)
async def test_link_that_comes_after_the_answer_makes_an_event(app: TestApp, ending: Ending, heard: bool) -> None:
    """The link comes with a poll, or with a notification if `heard` (docs/subscriptions.md "How the payer binds")."""
    await choose_calendar(app)
    app.script.bind.append(Twist(ending=ending))
    made = await subscribed(app)
    assert (made["binding_url"], made["binding_url_pending"]) == (None, True)
    if heard:
        binding = (await record(app, made["id"])).binding
        assert binding is not None
        await on_binding_notification(app.ports, binding.operation)
    else:
        await app.work(15)
    [event] = await app.events(made["id"])
    assert (event["previous_status"], event["status"]) == ("pending_binding", "pending_binding")
    assert (event["binding_url"] is not None, event["binding_url_pending"]) == (True, False)
