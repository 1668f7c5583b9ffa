"""A provider that does not take our credentials reaches an operator, and merchants are asked to retry (docs/adapters.md
"When the provider fails")."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.gateways.gateways import GatewayReason, GatewayStatus
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.doctor import check_credentials
from cambist.core.usecases.operators.findings import Level
from cambist.core.usecases.operators.provider_checks import LIMIT, check_providers
from cambist.core.usecases.operators.provider_facts import Credentials, provider_facts
from cambist.frontends.operations.provider_checks import providers_checked
from cambist.ports.alarms import AlarmChannels
from cambist.ports.bank import BankCapabilities
from cambist.ports.bundle import Ports
from cambist.ports.faults import NotConfigured, OutcomeUnknown, Unavailable
from tests.apps import TestApp
from tests.payout_kit import lost_wallet
from tests.quiesce import at_rest
from tests.usecases.alarms.test_gateway_watch import LIVE, pay, state, told

S, R = GatewayStatus, GatewayReason
REFUSED = Ending.NOT_CONFIGURED


class TestTheGateway:
    async def test_one_call_takes_it_down_and_the_merchant_may_come_back(self, app: TestApp) -> None:
        app.script.create.append(Twist(ending=REFUSED))
        key = "5f0c5f7e-3d3c-4f0f-8f0a-0b7a0d3c2b1a"
        answer = await app.create(mode="live", key=key)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "PAYMENT_ROUTE_UNAVAILABLE")
        assert answer.headers["Retry-After"] == "30"
        assert await state(app) == (S.DOWN, R.PROVIDER_ERRORS)
        assert (await app.create(mode="live", key=key)).status_code == 201, "the key is free"
        await app.work(60)
        assert await told(app) == [("down", "provider_errors")]

    async def test_an_operator_sees_it(self, app: TestApp) -> None:
        await pay(app, REFUSED)
        [item] = (await read_action_items(app.ports)).found
        assert (item.kind, item.object_id) == ("gateway", LIVE)

    async def test_good_answers_bring_it_back(self, app: TestApp) -> None:
        await pay(app, REFUSED, None, None, None)
        assert await state(app) == (S.DOWN, R.PROVIDER_ERRORS)
        await app.clock.advance(240)
        await pay(app, None, None, None)
        assert await state(app) == (S.OPERATIONAL, None)

    async def test_a_look_takes_it_down_and_the_payment_stays(self, app: TestApp) -> None:
        made = (await app.create(mode="live")).json()
        app.script.state.append(Twist(ending=REFUSED))
        await app.work(900)
        assert await state(app) == (S.DOWN, R.PROVIDER_ERRORS)
        assert (await app.payment(made["id"])).status == "expired"

    async def test_a_question_about_an_unknown_creation_takes_it_down(self, app: TestApp) -> None:
        app.script.create.append(Twist(ending=Ending.UNKNOWN_DONE))
        await pay(app, None)
        app.script.find.append(Twist(ending=REFUSED))
        await app.work(10)
        assert not app.script.find
        assert await state(app) == (S.DOWN, R.PROVIDER_ERRORS)

    async def test_status_set_by_an_operator_stands(self, app: TestApp) -> None:
        await set_gateway(app.ports, LIVE, S.DEGRADED, R.MAINTENANCE)
        await pay(app, REFUSED)
        assert await state(app) == (S.DEGRADED, R.MAINTENANCE)

    async def test_test_mode_is_not_watched(self, app: TestApp) -> None:
        app.script.create.append(Twist(ending=REFUSED))
        assert (await app.create({"amount_rub": "404.05"})).status_code in (201, 503)
        assert await state(app) == (S.OPERATIONAL, None)


def with_check(ports: Ports, check: Any) -> Ports:
    """The ports, whose live bank can be checked so."""
    banks = dict(ports.banks.banks)
    name, bank = LIVE, banks[LIVE]
    members = {"name": name, "capabilities": bank.capabilities, "check": staticmethod(check)}
    checked: Any = type("Checked", (), members)()
    banks[name] = checked
    return msgspec.structs.replace(ports, banks=msgspec.structs.replace(ports.banks, banks=banks))


def raising(fault: Exception) -> Any:
    async def check() -> None:
        raise fault

    return check


async def well() -> None:
    """The credentials are taken."""


class TestCheck:
    @pytest.mark.parametrize(
        ("fault", "level", "status"),
        [
            (NotConfigured("set THE_TOKEN"), Level.FAILED, S.DOWN),
            (Unavailable("no route"), Level.WARNING, S.OPERATIONAL),
            (OutcomeUnknown("cut off"), Level.WARNING, S.OPERATIONAL),
        ],
        ids=lambda each: type(each).__name__ if isinstance(each, Exception) else None,
    )
    async def test_doctor_reports_the_fault_of_a_credentials_check(
        self, app: TestApp, fault: Exception, level: Level, status: GatewayStatus
    ) -> None:
        finding = await check_credentials(with_check(app.ports, raising(fault)))
        assert finding.level is level
        assert f"bank {LIVE}: {fault}" in finding.message
        assert (await state(app))[0] is status

    async def test_doctor_names_providers_that_accept_and_providers_without_a_check(self, app: TestApp) -> None:
        finding = await check_credentials(with_check(app.ports, well))
        assert finding.level is Level.OK
        taken, _, unasked = finding.message.partition("; without a check: ")
        assert taken == f"our credentials are taken by bank {LIVE}"
        for port in ("payouts", "deposits", "rates", "kyc", "chain"):
            assert f"{port} " in unasked

    async def test_hanging_provider_delays_no_other(self, app: TestApp) -> None:
        given_up = []

        async def hangs() -> None:
            try:
                await app.ports.clock.sleep(10 * LIMIT)
            except asyncio.CancelledError:
                given_up.append(LIVE)
                raise

        task = asyncio.ensure_future(check_providers(with_check(app.ports, hangs)))
        await at_rest()
        await app.clock.advance(LIMIT)
        [bank] = [each for each in await task if each.port == "bank"]
        assert (str(bank.fault), given_up) == (f"no answer within {LIMIT:.0f} s", [LIVE])

    async def test_a_start_asks_once_and_does_not_wait(self, app: TestApp) -> None:
        asked = []

        async def hangs() -> None:
            asked.append(1)
            await app.ports.clock.sleep(10 * LIMIT)

        async with providers_checked(with_check(app.ports, hangs)):
            await at_rest()
            assert asked == [1]


async def test_every_port_of_live_mode_is_asked(app: TestApp) -> None:
    ports = {each.port for each in await check_providers(app.ports)}
    assert ports == {"bank", "payouts", "deposits", "rates", "kyc", "chain"}
    assert Mode.LIVE.value in app.ports.banks.order


async def test_providers_and_alarms_are_checked_without_a_wallet(app: TestApp) -> None:
    channel: Any = SimpleNamespace(name="mail", check=raising(NotConfigured("no password")))
    wired = msgspec.structs.replace(lost_wallet(app.ports), alarms=AlarmChannels(channels={"mail": channel}))
    checks = {each.port: each for each in await check_providers(wired)}
    assert set(checks) == {"bank", "deposits", "rates", "kyc", "chain", "alarms"}
    assert (str(checks["alarms"]), str(checks["alarms"].fault)) == ("alarms mail", "no password")
    assert [each.port for each in checks.values() if each.is_checkable] == ["alarms"]


async def test_facts_cover_live_mode_and_real_banks_of_test_mode(app: TestApp) -> None:
    told = await provider_facts(app.ports)
    assert {each.mode for each in told} == {Mode.LIVE}
    assert [each.name for each in told if each.port == "bank"] == [LIVE]
    [bank] = await provider_facts(app.ports, LIVE)
    assert (bank.credentials, bank.is_well) == (Credentials.NOT_CHECKED, True)
    real: Any = SimpleNamespace(name="real", capabilities=BankCapabilities(simulated=False))
    order = {**app.ports.banks.order, Mode.TEST.value: ("real",)}
    banks = msgspec.structs.replace(app.ports.banks, banks={**app.ports.banks.banks, "real": real}, order=order)
    [bank] = await provider_facts(msgspec.structs.replace(app.ports, banks=banks), "real")
    assert (bank.mode, bank.port) == (Mode.TEST, "bank")


@pytest.mark.parametrize(
    ("skew", "is_well"), [(None, True), (30.0, True), (-30.0, True), (30.001, False), (-30.001, False)]
)
async def test_provider_is_well_up_to_half_a_minute_of_clock_skew(
    app: TestApp, skew: float | None, is_well: bool
) -> None:
    [bank] = await provider_facts(app.ports, LIVE)
    assert msgspec.structs.replace(bank, clock_skew=skew).is_well is is_well
    assert not msgspec.structs.replace(bank, clock_skew=skew, fault="away").is_well
