"""A simulator's button cannot pay a live payment: simulators work in live mode only if the installation allows them or
is on this machine alone (docs/operations.md "Going live")."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.accounts.accounts import create_account, get_account, set_settings
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.operators.findings import Level
from cambist.frontends.app.compose import App, migrate, open_app
from cambist.frontends.app.simulators import judge_simulators, tell_of_simulators
from cambist.frontends.server.app import create_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import NotConfigured
from tests.apps import TestApp, open_test_app
from tests.tables import table

PUBLIC = "https://api.example.com"
ALL = ("banks", "rate_sources", "kyc", "chain", "deposits", "payouts")


@pytest.fixture
async def app() -> AsyncIterator[TestApp]:
    async with open_test_app(base_url=PUBLIC, allow_live_simulators=None) as opened:
        yield opened


@table(
    ("given", "allowed"),
    [
        ({}, True),
        ({"host": "0.0.0.0"}, True),
        ({"base_url": "http://localhost:8080"}, True),
        ({"base_url": "http://[::1]:8080"}, True),
        ({"base_url": "http://api.localhost:8080"}, True),
        ({"base_url": PUBLIC}, False),
        ({"base_url": "http://192.168.1.5:8080"}, False),
        ({"host": "192.168.1.5"}, False),
        ({"pay_url": "https://pay.example.com"}, False),
        ({"app_url": "https://app.example.com"}, False),
        ({"base_url": "https://127.0.0.1.example.com"}, False),
        ({"base_url": "https://localhost.example.com"}, False),
        ({"base_url": "https://notlocalhost"}, False),
        ({"base_url": PUBLIC, "allow_live_simulators": True}, True),
        ({"allow_live_simulators": False}, False),
    ],
)
def test_only_what_is_on_this_machine_alone_permits_it_by_itself(given: dict[str, Any], allowed: bool) -> None:
    assert Settings(**given).allow_live_simulators is allowed


async def test_live_payments_are_refused_and_test_mode_works(app: TestApp) -> None:
    refused = await app.create(mode="live", key=str(uuid4()))
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "PROVIDER_NOT_CONFIGURED")
    payment = await app.created()
    assert (await app.simulate(payment["id"], outcome="paid")).json()["status"] == "paid"
    assert "gateways" not in (await app.http.get("/health")).json().get("degraded", [])


async def test_the_refused_key_is_free_once_there_is_a_bank(tmp_path: Path) -> None:
    key = str(uuid4())
    async with installation(tmp_path, Settings(data_dir=tmp_path, base_url=PUBLIC)) as (_, client, keys):
        assert (await paid_for(client, keys, key)).status_code == 503
    async with installation(tmp_path, Settings(data_dir=tmp_path)) as (_, client, keys):
        assert (await paid_for(client, keys, key)).status_code == 201


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("subscriptions", {"amount_rub": "100.00", "interval": "month", "description": "Tea"}),
        ("exchanges", {"amount_usdt": "100", "client_phone": "+79001234567", "client_bank_id": "bank100000000004"}),
        ("kyc/register", {"phone": "+79001234567"}),
        ("kyc/check", {"phone": "+79001234567"}),
    ],
)
async def test_live_mode_answers_unsupported_requests_as_documented(
    app: TestApp, path: str, body: dict[str, Any]
) -> None:
    wish = {"recurring": "true", "exchange": "true", "kyc": "required", "terminals": "false"}
    await set_settings(app.ports, app.account.account_id, wish)
    headers = app.headers("live", Idempotency_Key=str(uuid4()))
    answer = await app.http.post(f"/api/v1/{path}", json=body, headers=headers)
    assert answer.status_code < 500 or answer.status_code == 503, answer.text
    assert answer.status_code == 200 or answer.json()["error"]["code"]


async def test_live_mode_has_no_rate_and_no_wallet_that_simulates(app: TestApp) -> None:
    answer = await app.get("/rates", mode="live")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "RATE_UNAVAILABLE")
    for missing in (app.ports.senders.of_mode, app.ports.deposits.of_mode):
        with pytest.raises(NotConfigured):
            missing(Mode.LIVE.value)
    with pytest.raises(NotConfigured, match="simulator"):
        await app.ports.kyc.find_check("x")


async def test_days_go_by_without_a_fault(app: TestApp, caplog: pytest.LogCaptureFixture) -> None:
    """The daily settlement and all recurring jobs, on an app whose live mode has nobody."""
    await app.work()
    for _ in range(3):
        await app.clock.advance(24 * 3600)
        await run_due(app.ports)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_the_panel_of_a_payment_from_before_the_refusal_does_nothing(tmp_path: Path) -> None:
    """It was made where simulators were allowed; the database went on to where they are not."""
    async with installation(tmp_path, Settings(data_dir=tmp_path)) as (_, client, keys):
        first, second = [(await paid_for(client, keys, str(uuid4()))).json()["id"] for _ in range(2)]
        assert "<form" in (await client.get(f"/p/{first}")).text
        assert (await client.post(f"/p/{first}/simulate", data={"action": "pay"})).status_code == 303
    async with installation(tmp_path, Settings(data_dir=tmp_path, base_url=PUBLIC)) as (opened, client, keys):
        assert "<form" not in (await client.get(f"/p/{second}")).text
        assert (await client.post(f"/p/{second}/simulate", data={"action": "pay"})).status_code == 404
        await run_due(opened.ports)
        for payment_id, status in ((first, "paid"), (second, "pending")):
            found = await client.get(f"/api/v1/payments/{payment_id}", headers=keys)
            assert found.json()["status"] == status


@pytest.mark.parametrize("allowed", [None, True])
async def test_log_and_doctor_name_every_one_and_the_setting(
    allowed: bool | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(database_url="memory://", data_dir=tmp_path, base_url=PUBLIC, allow_live_simulators=allowed)
    async with open_app(settings) as opened:
        assert {each.partition(":")[0] for each in opened.live_simulators} == set(ALL)
        finding = judge_simulators(opened)
        tell_of_simulators(opened)
    assert finding.level is Level.WARNING
    [said] = [record.getMessage() for record in caplog.records if record.name == "cambist.simulators"]
    for name in (*ALL, "CAMBIST_ALLOW_LIVE_SIMULATORS"):
        assert name in said
    assert ("no real money moves" in said) is (allowed is True)


async def test_installation_with_real_providers_gets_no_warning(tmp_path: Path) -> None:
    opened = App(settings=Settings(base_url=PUBLIC), ports=None)  # type: ignore[arg-type]  # not looked at
    assert judge_simulators(opened).level is Level.OK


@asynccontextmanager
async def installation(
    folder: Path, settings: Settings
) -> AsyncIterator[tuple[App, httpx.AsyncClient, Mapping[str, str]]]:
    """On SQLite, with a merchant, whose live keys the folder keeps, and a client."""
    await migrate(settings)
    async with open_app(settings) as opened:
        kept = folder / "live.keys"
        if not kept.exists():
            made = await create_account(opened.ports, "Merchant")
            kept.write_text(f"{made.account_id} {made.live.api_key} {made.live.api_secret}", "utf-8")
        account_id, key, secret = kept.read_text("utf-8").split()
        assert (await get_account(opened.ports, account_id)).account.id == account_id
        transport = httpx.ASGITransport(create_app(opened.ports))  # type: ignore[arg-type]  # litestar's and httpx's ASGI types differ in name only
        async with httpx.AsyncClient(transport=transport, base_url=settings.base_url) as client:
            yield opened, client, {"X-Api-Key": key, "X-Api-Secret": secret}


async def paid_for(client: httpx.AsyncClient, keys: Mapping[str, str], key: str) -> httpx.Response:
    headers = {**keys, "Idempotency-Key": key}
    return await client.post("/api/v1/payments", json={"amount_rub": "5000.00"}, headers=headers)
