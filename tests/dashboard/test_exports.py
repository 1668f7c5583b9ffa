"""Exports at the dashboard: ordered on a list, followed, downloaded, deleted (docs/dashboard.md "Exports")."""

import csv
import io
import zipfile
from typing import Any
from uuid import UUID

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.people.roles import PersonRight, Role, grant
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.frontends.dashboard.pages import exports as page
from tests.apps import TestApp
from tests.dashboard.browser import Browser, in_test_mode, joined
from tests.invariants import everything
from tests.people_kit import PASSWORD
from tests.tables import table


async def ordered(browser: Browser, path: str = "/payments", file_format: str = "csv") -> Browser:
    """Order a file on the page of a list."""
    await browser.open(path)
    return await browser.send("/exports", format=file_format)


def links(browser: Browser) -> list[str]:
    return [link for link in browser.page.links if link.endswith("/file")]


async def downloaded(browser: Browser, link: str) -> bytes:
    await browser.open(link)
    assert browser.answer.status_code == 200, browser.text
    assert len(browser.answer.content) == int(browser.answer.headers["content-length"])
    return browser.answer.content


async def test_person_exports_the_filtered_payments(app: TestApp) -> None:
    for number in range(3):
        payment = await app.created({"external_id": f"order-{number}"})
        if number:
            await app.simulate(payment["id"], outcome="paid")
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await ordered(owner, "/payments?status=paid")
    assert owner.path == "/exports"
    owner.sees("being written", "0 of 2", "paid", "Refresh")
    assert links(owner) == []
    await app.work(1)
    await owner.open("/exports")
    owner.sees("ready", "Payments, CSV", "Available until")
    [link] = links(owner)
    file = (await downloaded(owner, link)).decode("utf-8-sig")
    assert owner.answer.headers["content-disposition"] == 'attachment; filename="payments-2026-01-01.csv"'
    assert owner.answer.headers["cache-control"] == "no-store"
    rows = list(csv.DictReader(io.StringIO(file, newline="")))
    assert [row["external_id"] for row in rows] == ["order-2", "order-1"]
    actions = [each.action for each in await everything(app.ports, AuditEntry) if each.action.startswith("export.")]
    assert sorted(actions) == ["export.download", "export.order"]


async def test_person_exports_refunds_as_a_workbook(app: TestApp) -> None:
    await set_settings(app.ports, app.account.account_id, {"refunds": "true"})
    payment = await app.created({"external_id": "order-9"})
    await app.simulate(payment["id"], outcome="paid")
    owner = await in_test_mode(await joined(app, Role.FINANCE))
    await owner.open(f"/payments/{payment['id']}")
    await owner.send("/refunds", amount_rub="10")
    await ordered(owner, "/refunds?lang=ru", "xlsx")
    owner.sees("Возвраты, XLSX", "пишется")
    await app.work(1)
    await owner.open("/exports?lang=ru")
    [link] = [link for link in owner.page.links if "/file" in link]
    with zipfile.ZipFile(io.BytesIO(await downloaded(owner, link))) as book:
        assert b"order-9" in book.read("xl/worksheets/sheet1.xml")


@table("role", list(Role))
async def test_only_roles_with_the_right_see_exports(app: TestApp, role: Role) -> None:
    await app.created()
    browser = await in_test_mode(await joined(app, role, email=f"{role}@export.example"))
    may = grant(role, PersonRight.EXPORT, Mode.TEST) is not None
    await browser.open("/payments")
    assert any(form.action == "/exports" for form in browser.page.forms) is may
    assert ("/exports" in browser.page.links) is may
    await browser.open("/exports")
    assert browser.answer.status_code == (200 if may else 403)


async def test_file_of_another_person_does_not_exist(app: TestApp) -> None:
    await app.created()
    owner = await in_test_mode(await joined(app, Role.OWNER))
    admin = await in_test_mode(await joined(app, Role.ADMIN))
    await ordered(owner)
    await app.work(1)
    await owner.open("/exports")
    [link] = links(owner)
    await admin.open("/exports")
    assert links(admin) == []
    await admin.open(link)
    assert admin.answer.status_code == 404
    await admin.open("/exports")
    form = await admin.open("/payments")
    csrf = form.page.forms[0].values["csrf"][0]
    await admin.post("/exports/delete", {"csrf": csrf, "export_id": link.split("/")[-2]})
    assert admin.answer.status_code == 404


async def test_unconfirmed_person_confirms_and_comes_back_to_the_list(app: TestApp) -> None:
    await app.created({"external_id": "order-1"})
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await ordered(owner)
    await app.work(1)
    await app.clock.advance(601)
    await owner.open("/payments?q=order-1&page=1")
    owner.sees("Confirm that it is you, to export")
    await owner.open(next(link for link in owner.page.links if "/confirm" in link))
    await owner.send("/confirm", password=PASSWORD)
    assert str(owner.answer.url).endswith("/payments?q=order-1")
    assert any(form.action == "/exports" for form in owner.page.forms)
    await app.clock.advance(601)
    await owner.open("/exports")
    assert links(owner) == []
    owner.sees("Confirm that it is you, to download")
    await owner.open(next(link for link in owner.page.links if "/confirm" in link))
    await owner.send("/confirm", password=PASSWORD)
    assert owner.path == "/exports"
    assert len(links(owner)) == 1


async def test_export_is_deleted_and_a_failed_one_says_why(app: TestApp, monkeypatch: Any) -> None:
    await app.created()
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await ordered(owner)
    monkeypatch.setattr("cambist.core.usecases.exports.writing.ROWS_MOST", {"csv": 0})
    await app.work(1)
    await owner.open("/exports")
    owner.sees("failed", "more rows came than a file may have: narrow the filter")
    await owner.send("/exports/delete")
    owner.sees("Removed.", "No exports.")
    assert owner.page.headings == ["Exports"]


async def test_fourth_export_at_once_is_refused_with_advice(app: TestApp) -> None:
    await app.created()
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for _ in range(3):
        await ordered(owner)
    await ordered(owner)
    assert owner.answer.status_code == 409
    owner.sees("3 exports of the account are being written: wait until one is ready")


async def test_link_of_an_expired_file_says_so_and_leads_on(app: TestApp) -> None:
    await app.created()
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await ordered(owner)
    await app.work(1)
    await owner.open("/exports")
    [link] = links(owner)
    await app.work(24 * 3600)
    await owner.open("/login")
    await owner.send("/login", email="owner@shop.example", password=PASSWORD)
    await in_test_mode(owner)
    await owner.open(link)
    assert (owner.answer.status_code, owner.answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    owner.sees("There is no such file, or it has expired: order it again.")
    assert owner.page.links.count("/exports") == 2, "in the menu, and beside the sentence"
    await owner.open("/exports")
    owner.sees("No exports.")


async def test_double_click_orders_one_export(app: TestApp) -> None:
    await app.created()
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/payments")
    form = next(each for each in owner.page.forms if each.action == "/exports")
    for _ in range(2):
        await owner.post("/exports", {**form.values, "format": "csv"})
    assert owner.text.count("Payments, CSV") == 2, "one row, and its choice in the form below"
    await owner.post("/exports", {**form.values, "key": str(UUID(int=1)), "list": "secrets"})
    assert owner.answer.status_code == 400


async def test_large_list_is_offered_as_csv_only(app: TestApp, monkeypatch: Any) -> None:
    await app.created()
    monkeypatch.setattr(page, "ROWS_MOST", {"csv": 1, "xlsx": 0})
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/payments")
    assert "XLSX" not in owner.text
    owner.sees("CSV")
