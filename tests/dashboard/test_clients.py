"""Clients and their verification at the dashboard (docs/dashboard.md "Clients")."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.kyc.clients import client_status
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.people.roles import PersonRight, Role
from cambist.core.usecases.kyc.clients import ClientFilter, get_client, list_clients
from cambist.core.usecases.kyc.links import open_link
from cambist.core.usecases.people.client_links import new_client_link
from cambist.core.usecases.people.sessions import may
from cambist.ports.kyc import CheckStatus
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined
from tests.dashboard.test_pages import check
from tests.invariants import everything
from tests.kyc_kit import PHONE, KycApp, open_kyc_app
from tests.people_kit import person
from tests.tables import table


@pytest_asyncio.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path) as opened:
        yield opened


async def simulated(app: TestApp, phone: str, status: str) -> None:
    body = {"phone": phone, "kyc_status": status}
    answer = await app.http.post("/api/v1/sandbox/exchange-clients", json=body, headers=app.headers())
    assert answer.status_code < 300, answer.text


async def test_clients_are_listed_masked_and_found_by_digits(app: TestApp) -> None:
    await simulated(app, "+79001234567", "verified")
    await simulated(app, "+79007654321", "rejected")
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    for language in ("en", "ru"):
        await support.open(f"/clients?lang={language}")
        check(support.page, language)
        support.sees("***4567", "***4321")
    await support.open("/clients?q=4567&lang=en")
    support.sees("***4567", "verified")
    assert "***4321" not in support.text
    await support.open("/clients?status=rejected")
    support.sees("***4321", "refused")
    assert "***4567" not in support.text
    assert "+7900" not in support.answer.text


async def test_viewer_cannot_search_by_digits(app: TestApp) -> None:
    await simulated(app, "+79001234567", "verified")
    viewer = await in_test_mode(await joined(app, Role.VIEWER))
    await viewer.open("/clients?q=999")
    viewer.sees("***4567")
    assert 'name="q"' not in viewer.answer.text


async def test_page_of_a_client_says_what_it_may_do(app: TestApp) -> None:
    for phone, status in (("+79001234567", "verified"), ("+79007654321", "blocked")):
        await simulated(app, phone, status)
    viewer = await in_test_mode(await joined(app, Role.VIEWER))
    await viewer.open("/clients?status=verified")
    await viewer.open(next(each for each in viewer.page.links if re.match("/clients/[0-9a-f-]{36}", each)))
    viewer.sees("Client ***4567", "verified", "1,000.00", "1,000,000.00", "one at a time")
    check(viewer.page, "client")
    await viewer.open("/clients?status=blocked")
    await viewer.open(next(each for each in viewer.page.links if re.match("/clients/[0-9a-f-]{36}", each)))
    viewer.sees("Client ***4321", "blocked", "Exchangesno")
    assert "+7900" not in viewer.answer.text


async def test_support_makes_a_link_that_verifies_the_client(kyc: KycApp) -> None:
    await kyc.register()
    client = await kyc.client()
    support = await joined(kyc.app, Role.SUPPORT)
    await support.open(f"/clients/{client.id}")
    support.sees("***4567", "not verified yet")
    await support.send(f"/clients/{client.id}/link")
    support.sees("Copy the link now")
    found = re.search(r"https://pay\.example/kyc\?session=([\w%=-]+)", support.answer.text)
    assert found is not None
    opened = open_link(kyc.ports, found[1].replace("%3D", "="))
    assert opened is not None
    assert (opened.account_id, opened.phone) == (kyc.account.account_id, PHONE)
    [entry] = [each for each in await everything(kyc.ports, AuditEntry) if each.action == "client.link"]
    assert (entry.object_id, entry.account_id) == (client.id, kyc.account.account_id)
    assert PHONE not in repr(entry)


@table("role", list(Role))
async def test_role_makes_links_by_the_table(kyc: KycApp, role: Role) -> None:
    if not await everything(kyc.ports, AuditEntry):
        await kyc.register()
    client = await kyc.client()
    actor = await person(kyc.app, role, mode=Mode.LIVE)
    if may(actor, PersonRight.KYC):
        assert await new_client_link(kyc.ports, actor, client.id)
        return
    with pytest.raises(Refusal) as denied:
        await new_client_link(kyc.ports, actor, client.id)
    assert denied.value.code in ("PERSON_RIGHT_MISSING", "SECOND_FACTOR_NEEDED")


async def test_link_is_refused_where_it_would_change_nothing(app: TestApp, kyc: KycApp) -> None:
    await simulated(app, "+79001234567", "pending")
    support = await person(app, Role.SUPPORT)
    [shown] = (await list_clients(app.ports, support.caller, ClientFilter(), 1, 10)).records
    with pytest.raises(Refusal) as in_test:
        await new_client_link(app.ports, support, shown.client.id)
    assert in_test.value.code == "SANDBOX_NOT_SUPPORTED"
    await kyc.register()
    client = await kyc.client()
    await kyc.decide(CheckStatus.VERIFIED)
    live = await person(kyc.app, Role.SUPPORT, mode=Mode.LIVE)
    assert client_status((await get_client(kyc.ports, live.caller, client.id)).client) == "verified"
    with pytest.raises(Refusal) as verified:
        await new_client_link(kyc.ports, live, client.id)
    assert verified.value.code == "INVALID_STATE"
    for unknown in ("x", "../etc", "01a21ea4-2c55-7c99-82bc-e03e87ee0495"):
        with pytest.raises(Refusal) as missing:
            await new_client_link(kyc.ports, live, unknown)
        assert missing.value.code == "CLIENT_NOT_FOUND"


async def test_clients_of_other_modes_and_accounts_do_not_exist(kyc: KycApp) -> None:
    await kyc.register()
    client = await kyc.client()
    support = await in_test_mode(await joined(kyc.app, Role.SUPPORT))
    await support.open(f"/clients/{client.id}")
    assert support.answer.status_code == 404
    await kyc.other_account()
    stranger = await joined(kyc.app, Role.SUPPORT, email="stranger@shop.example")
    await stranger.open(f"/clients/{client.id}")
    assert stranger.answer.status_code == 404
