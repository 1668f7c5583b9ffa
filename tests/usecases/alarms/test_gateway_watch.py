"""Gateways whose bank fails are degraded, then down, and recover by good answers (docs/webhooks.md "Gateways"). Live
ones only."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.gateways.gateways import Gateway, GatewayReason, GatewayStatus
from cambist.core.domain.gateways.health import TRIALS, Seen
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.gateways.gateways import ShownGateway, list_gateways, set_gateway
from cambist.core.usecases.gateways.watch import health_id, may_be_tried, watched
from cambist.frontends.app.compose import FurtherBank
from cambist.ports.faults import (
    BulkheadFull,
    Fault,
    Held,
    NotConfigured,
    NotSupported,
    OutcomeUnknown,
    Refused,
    Unavailable,
)
from cambist.ports.notes import ProviderNote
from tests.apps import TestApp, open_test_app
from tests.invariants import everything
from tests.refund_app import open_refund_app
from tests.tables import table

LIVE, SECOND = "simulator-live", "second-live"
S, R = GatewayStatus, GatewayReason
AWAY, SILENT, NO = Ending.UNAVAILABLE, Ending.UNKNOWN_NOT_DONE, Ending.REFUSED


@pytest.fixture
async def app() -> AsyncIterator[TestApp]:
    async with open_test_app() as opened:
        yield opened


async def pay(app: TestApp, *endings: Ending | None, mode: str = "live") -> list[int]:
    """Create a payment for each outcome of the bank's call; None is success. Return the HTTP statuses."""
    statuses = []
    for ending in endings:
        if ending is not None:
            app.script.create.append(Twist(ending=ending))
        statuses.append((await app.create(mode=mode)).status_code)
    return statuses


async def gateway(app: TestApp, gateway_id: str = LIVE, mode: Mode = Mode.LIVE) -> ShownGateway:
    [found] = [each for each in await list_gateways(app.ports, mode) if each.gateway_id == gateway_id]
    return found


async def state(app: TestApp, gateway_id: str = LIVE) -> tuple[GatewayStatus, GatewayReason | None]:
    found = await gateway(app, gateway_id)
    return found.status, found.reason


async def told(app: TestApp) -> list[tuple[str, str]]:
    return [(each["status"], each["reason"]) for each in await app.events(LIVE)]


async def test_faults_make_it_degraded_then_down_and_good_answers_bring_it_back(app: TestApp) -> None:
    await pay(app, *[None] * 8, AWAY)
    assert await state(app) == (S.OPERATIONAL, None), "too few calls to tell"
    await pay(app, AWAY)
    assert await state(app) == (S.DEGRADED, R.PROVIDER_ERRORS)
    await app.work(61)
    assert await told(app) == [("degraded", "provider_errors")], "announced once it has held for a minute"
    await app.work(200)
    await pay(app, *[AWAY] * 10)
    assert await state(app) == (S.DOWN, R.PROVIDER_ERRORS)
    await app.work(240)
    await pay(app, None, None)
    assert await state(app) == (S.DOWN, R.PROVIDER_ERRORS), "two are too few"
    await pay(app, None)
    assert await state(app) == (S.OPERATIONAL, None)
    await app.work(61)
    assert await told(app) == [
        ("degraded", "provider_errors"),
        ("down", "provider_errors"),
        ("operational", None),
    ]


async def test_a_call_without_a_certain_end_is_a_timeout(app: TestApp) -> None:
    assert set(await pay(app, *[SILENT] * 10)) == {502}
    assert await state(app) == (S.DOWN, R.PROVIDER_TIMEOUT)


async def test_reads_count_as_well(app: TestApp) -> None:
    """Unavailable at a read is a provider error: nine payments are well, their bank then answers no question."""
    await pay(app, *[None] * 9)
    app.script.state.extend([Twist(ending=AWAY)] * 9)
    await app.work(15 * 60 + 1)
    async with app.ports.storage.unit() as unit:
        note = await unit[ProviderNote].get(health_id(LIVE))
    assert note is not None
    assert [each.errors for each in msgspec.json.decode(note.body, type=Seen)] == [9]


async def test_a_refusal_is_an_answer(app: TestApp) -> None:
    await pay(app, *[NO] * 20)
    assert await state(app) == (S.OPERATIONAL, None)


async def test_refusals_bring_it_back_as_other_answers_do(app: TestApp) -> None:
    await pay(app, *[AWAY] * 10)
    await app.work(240)
    await pay(app, *[NO] * 3)
    assert await state(app) == (S.OPERATIONAL, None)


async def test_faults_count_however_many_calls_went_well_before(app: TestApp) -> None:
    await pay(app, *[None] * 21, *[AWAY] * 6)
    assert await state(app) == (S.DEGRADED, R.PROVIDER_ERRORS)


@pytest.mark.parametrize("status", [None, S.DEGRADED, S.OPERATIONAL], ids=["never set", "by hand", "set back"])
async def test_a_bank_that_is_well_costs_no_row(app: TestApp, status: GatewayStatus | None) -> None:
    if status is not None:
        await set_gateway(app.ports, LIVE, S.DEGRADED)
        await set_gateway(app.ports, LIVE, status)
    await pay(app, *[None] * 30)
    assert await app.ports.storage.get(ProviderNote, health_id(LIVE)) is None


async def test_status_set_by_an_operator_is_not_overruled(app: TestApp) -> None:
    await set_gateway(app.ports, LIVE, S.DEGRADED, R.MAINTENANCE)
    await pay(app, *[AWAY] * 20)
    assert await state(app) == (S.DEGRADED, R.MAINTENANCE)
    await app.work(240)
    await pay(app, *[None] * 20)
    assert await state(app) == (S.DEGRADED, R.MAINTENANCE)
    await set_gateway(app.ports, LIVE, S.OPERATIONAL)
    await pay(app, *[AWAY] * 20)
    assert await state(app) == (S.DEGRADED, R.PROVIDER_ERRORS)


async def test_faults_of_test_mode_are_what_merchants_play_and_judge_nobody(app: TestApp) -> None:
    await pay(app, *[AWAY] * 20, mode="test")
    assert {each.status for each in await list_gateways(app.ports, Mode.TEST)} == {S.OPERATIONAL}


async def test_one_judged_down_gets_some_payments_and_the_next_route_the_others() -> None:
    async with open_test_app(further_banks=[FurtherBank(name=SECOND, mode=Mode.LIVE)]) as app:
        await pay(app, *[AWAY] * 10)
        assert await state(app) == (S.DOWN, R.PROVIDER_ERRORS)
        await app.work(240)
        await pay(app, *[AWAY] * 2)
        app.script.create.clear()
        async with app.ports.storage.unit() as unit:
            before = {each.id for each in await unit[Payment].find()}
        app.script.create.extend([Twist(ending=AWAY)] * 3)
        await pay(app, *[None] * 12)
        async with app.ports.storage.unit() as unit:
            made = [each for each in await unit[Payment].find() if each.id not in before]
        assert {each.bank for each in made} == {SECOND}
        assert not app.script.create, "it was tried"
        await app.work(240)
        await pay(app, *[None] * 6)
        assert await state(app) == (S.OPERATIONAL, None)


async def test_the_only_gateway_gets_all_payments_even_when_judged_down(app: TestApp) -> None:
    assert set(await pay(app, *[AWAY] * 20)) == {503}
    assert await pay(app, *[None] * 5) == [201] * 5
    assert await state(app) == (S.DOWN, R.PROVIDER_ERRORS)
    assert await pay(app, *[None] * 20) == [201] * 20


async def test_first_of_several_gateways_judged_down_gets_the_payment() -> None:
    async with open_test_app(further_banks=[FurtherBank(name=SECOND, mode=Mode.LIVE)]) as app:
        for name in (LIVE, SECOND):
            down = Gateway(id=name, status=S.DOWN, reason=R.PROVIDER_ERRORS, since=app.clock.now())
            async with app.ports.storage.unit() as unit:
                unit[Gateway].add(down)
                await unit.commit()
            for _ in range(TRIALS):
                assert await may_be_tried(app.ports, name)
        await pay(app, None)
        assert [payment.bank for payment in await everything(app.ports, Payment)] == [LIVE]


@table(
    ("fault", "is_noted"),
    [
        (OutcomeUnknown("silent"), True),
        (Unavailable("away"), True),
        (Refused("no"), False),
        (NotConfigured("off"), False),
        (NotSupported("cannot"), False),
        (Held("a copy"), False),
        (BulkheadFull("too many at once"), False),
    ],
)
async def test_fault_reaches_the_caller_and_only_the_banks_faults_are_recorded(fault: Fault, is_noted: bool) -> None:
    async with open_test_app() as app:
        with pytest.raises(type(fault)):
            async with watched(app.ports, Mode.LIVE, LIVE):
                raise fault
        assert (await app.ports.storage.get(ProviderNote, health_id(LIVE)) is not None) is is_noted


@table("read", [False, True], ids=["sent", "asked about"])
async def test_faults_of_refunds_count_as_those_of_payments(read: bool) -> None:
    """A bank is judged by all its answers (docs/decisions.md "OpenAPI, gateways, listen"): here by refunds and their
    polls."""
    async with open_refund_app() as refunds:
        app, script = refunds.app, refunds.app.script
        await refunds.set(refund_approval="auto")
        payments = [await refunds.paid(mode="live") for _ in range(10)]
        if read:
            script.refund.extend([Twist(ending=SILENT)] * 10)
        (script.find_refund if read else script.refund).extend([Twist(ending=AWAY)] * 10)
        for payment_id in payments:
            await refunds.apply(payment_id, mode="live")
        await app.work(10 if read else 0)
        async with app.ports.storage.unit() as unit:
            note = await unit[ProviderNote].get(health_id(LIVE))
        assert note is not None
        [seen] = msgspec.json.decode(note.body, type=Seen)
        assert (seen.errors, seen.timeouts) == (10, 10 if read else 0)
        assert (await state(app))[0] is not S.OPERATIONAL
