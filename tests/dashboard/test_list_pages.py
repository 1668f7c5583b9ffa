"""Pages of refunds, subscriptions and exchanges by cursor (docs/dashboard.md "Payments")."""

import re
from urllib.parse import urlsplit

import pytest

from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.frontends.dashboard.pages import refunds, trade
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined
from tests.dashboard.test_payment_list import DAMAGED, link
from tests.subscription_app import subscribed


async def test_refunds_are_listed_page_by_page(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refunds, "SIZE", 1)
    await set_settings(app.ports, app.account.account_id, {"refunds": "true"})
    payment = await app.created({"amount_rub": "500.00"})
    await app.simulate(payment["id"], outcome="paid")
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for amount in ("10", "20", "30"):
        await owner.open(f"/payments/{payment['id']}")
        await owner.send("/refunds", amount_rub=amount)
        await app.clock.advance(1)

    def amounts() -> list[str]:
        return re.findall(r'<data class="money" value="([^"]+)"', owner.answer.text)

    await owner.open("/refunds")
    assert amounts() == ["30.00"]
    owner.sees("3 in all")
    await owner.open(link(owner, "Older"))
    assert amounts() == ["20.00"]
    await owner.open(link(owner, "Older"))
    assert amounts() == ["10.00"]
    assert ">Older<" not in owner.answer.text
    await owner.open(link(owner, "Newer"))
    assert amounts() == ["20.00"]
    await owner.open(link(owner, "Newest"))
    assert amounts() == ["30.00"]
    await owner.open(f"/refunds?shop_id={app.account.default_shop_id}&status=completed&q=none")
    assert amounts() == []


async def test_subscriptions_are_listed_page_by_page(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trade, "SIZE", 1)
    made = []
    for _ in range(3):
        made.append((await subscribed(app))["id"])
        await app.clock.advance(1)
    viewer = await in_test_mode(await joined(app, Role.VIEWER))
    await viewer.open("/subscriptions?status=pending_binding")
    shown = []
    for _ in range(3):
        shown += [urlsplit(each).path for each in viewer.page.links if "/subscriptions/sub_" in each]
        if ">Older<" in viewer.answer.text:
            await viewer.open(link(viewer, "Older"))
    assert shown == [f"/subscriptions/{each}" for each in reversed(made)]


async def test_damaged_cursor_of_any_list_leads_to_its_top(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for path in ("/refunds", "/subscriptions", "/exchanges"):
        for cursor in DAMAGED:
            await owner.open(f"{path}?cursor={cursor or '%20'}")
            assert owner.answer.status_code == 400, (path, cursor)
            owner.sees("start at the top of the list")
            assert urlsplit(link(owner, "To the top of the list")).path == path
        for cursor in ("0.", "-0.~", "99999999999999999.~", "-1764300000000000.ref_1"):
            await owner.open(f"{path}?cursor={cursor}")
            assert owner.answer.status_code == 200, (path, cursor)
