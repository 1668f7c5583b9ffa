"""Reports at the dashboard: list, totals, documents and files (docs/reports.md)."""

import io

from fontTools.ttLib import TTFont

from cambist.adapters.documents import pdf as writer
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.reports.documents import TEXTS
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined

DAY = 24 * 3600


async def test_bookkeeper_reads_a_day_its_documents_and_files(app: TestApp) -> None:
    await start_recurring_jobs(app.ports)
    for _ in range(2):
        await app.simulate((await app.created({"amount_rub": "1000.00"}))["id"], outcome="paid")
    await app.work(2 * DAY)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/reports")
    owner.sees("ready", "day")
    [settled, *_] = [each["id"] for each in (await app.get("/reports")).json()["data"] if each["rows"]]
    await owner.open(f"/reports/{settled}")
    owner.sees("Balance at the beginning", "2,000.00", "60.00", "SHA-256", "CSV for the bookkeeper")
    await owner.open(f"/reports/{settled}/act?lang=ru")
    owner.sees("Акт об оказанных услугах", "60,00", "Вознаграждение в рублях", "Тестовый режим")
    for kind in ("act", "agent_report"):
        await owner.open(f"/reports/{settled}/{kind}/pdf")
        assert owner.answer.headers["content-type"] == "application/pdf"
        assert owner.answer.content.startswith(b"%PDF-")
        assert (await app.get(f"/reports/{settled}/document?kind={kind}")).content.startswith(b"%PDF-")
    await owner.open(f"/reports/{settled}/proof")
    assert owner.answer.json()["account"] == app.account.account_id
    await owner.open(f"/reports/{settled}/nothing")
    assert owner.answer.status_code == 404
    await owner.open(f"/reports/{settled}/file?format=accounting")
    assert owner.answer.content.startswith("\ufeff№ движения;".encode())
    for form, status in (("XLSX", 200), ("pdf", 400)):
        await owner.open(f"/reports/{settled}/file?format={form}")
        assert owner.answer.status_code == status
        assert (await app.get(f"/reports/{settled}/file?format={form}")).status_code == status
    await owner.open("/reports")
    await owner.send("/reports", first_day="2026-01-01", last_day="2026-01-02")
    owner.sees("The report is still being written")
    await app.work(1)
    await owner.open(owner.path)
    owner.sees("Totals", "payment received")


async def test_shop_people_and_roles_without_money_get_no_reports(app: TestApp) -> None:
    support = await in_test_mode(await joined(app, Role.SUPPORT, email="support@report.example"))
    await support.open("/reports")
    assert support.answer.status_code == 403


def test_fonts_have_every_character_of_the_documents() -> None:
    for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"):
        known = TTFont(io.BytesIO((writer._FOLDER / name).read_bytes())).getBestCmap()
        assert known is not None
        for texts in TEXTS.values():
            assert set("".join(texts.values())) - {"{", "}"} <= {chr(each) for each in known}
