"""Registers of days, months and periods (docs/reports.md)."""

import asyncio
import csv
import io
import zipfile
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import uuid4
from xml.etree import ElementTree

import httpx
import pytest

from cambist.core.domain.exports.exports import ExportChunk
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.reports.reports import ORDERED_KEPT, Report
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.reports import writing
from cambist.core.usecases.reports.formats import HEADS, KINDS
from cambist.core.usecases.reports.rows import COLUMNS, fee_in_roubles
from cambist.ports.jobs import Job
from tests.apps import TestApp
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.report_histories import lived
from tests.tables import table

DAY = 24 * 3600
FIRST, LAST = "2026-11-21", "2026-11-30"


async def order(app: TestApp, first: str = FIRST, last: str = LAST, *, key: str | None = None) -> httpx.Response:
    headers = {**app.headers(), "Idempotency-Key": key or str(uuid4())}
    body = {"first_day": first, "last_day": last}
    return await app.http.post("/api/v1/reports", json=body, headers=headers)


async def days(app: TestApp, kind: str = "day") -> list[dict[str, Any]]:
    """Oldest first."""
    found: list[dict[str, Any]] = (await app.get(f"/reports?kind={kind}&per_page=100")).json()["data"]
    return found[::-1]


async def file(app: TestApp, report: dict[str, Any], query: str = "") -> bytes:
    answer = await app.get(f"/reports/{report['id']}/file{query}")
    assert answer.status_code == 200, answer.text
    return answer.content


def rows_of(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.decode(), newline="")))


@table("seed", [3, 17, 40])
async def test_registers_are_what_the_journal_says(seed: int) -> None:
    assert await lived(seed) == []


async def test_each_day_gets_one_register_and_the_month_has_all_rows(app: TestApp) -> None:
    await start_recurring_jobs(app.ports)
    for _ in range(2):
        await app.simulate((await app.created())["id"], outcome="paid")
    await app.work(DAY)
    [first] = await days(app)
    before = await file(app, first)
    assert (first["status"], first["rows"], first["sha256"]) == ("ready", 2, sha256(before).hexdigest())
    await app.work(2 * DAY)
    same, settled, empty = await days(app)
    assert (same, await file(app, same)) == (first, before), "a later movement is in its own day"
    [total] = settled["totals"]
    assert (total["kind"], total["count"]) == ("settlement", 2)
    assert settled["closing"]["available_usdt"] == total["available_usdt"] == empty["opening"]["available_usdt"]
    assert (empty["rows"], await file(app, empty)) == (0, (",".join(COLUMNS) + "\r\n").encode())
    await app.work(31 * DAY)
    month, every = (await days(app, "month"))[0], await days(app)
    assert month["rows"] == sum(each["rows"] for each in every if each["first_day"] <= month["last_day"])
    assert rows_of(await file(app, month))[:2] == rows_of(before)


async def test_formats_columns_and_shops_come_of_one_stored_text(app: TestApp) -> None:
    shop = await create_shop(app.ports, app.account.account_id, "=Second", "0.1")
    ids = []
    for text, shop_id in (("=cmd|' /C calc'!A0", None), ("plain", shop.id)):
        body = {"external_id": text} | ({} if shop_id is None else {"shop_id": shop_id})
        ids.append((await app.created(body))["id"])
        await app.simulate(ids[-1], outcome="paid")
    await app.http.post("/api/v1/sandbox/settlements", headers=app.headers())
    today = app.clock.now().date().isoformat()
    report = (await order(app, today, today)).json()
    early = await app.get(f"/reports/{report['id']}/file")
    assert (report["status"], early.json()["error"]["code"]) == ("pending", "REPORT_NOT_READY")
    await app.work(1)
    rows = rows_of(await file(app, report))
    assert {row["external_id"] for row in rows} == {"'=cmd|' /C calc'!A0", "plain"}
    of_shop = rows_of(await file(app, report, f"?shop_id={shop.id}&columns=payment_id,shop_name"))
    assert of_shop == [{"payment_id": ids[1], "shop_name": "=Second"}] * 2
    accounting = (await file(app, report, "?format=accounting")).decode("utf-8-sig")
    assert accounting.encode("utf-8-sig") == await file(app, report, "?format=accounting")
    lines = list(csv.reader(io.StringIO(accounting, newline=""), delimiter=";"))
    assert lines[0] == [HEADS[each] for each in COLUMNS]
    end = lines.index([])
    assert len(lines[1:end]) == len(rows)
    assert lines[1][1] == KINDS["receipt"]
    paid = next(line for line in lines[end:] if line and line[0] == KINDS["receipt"])
    whole = sum((Decimal(row["amount_rub"]) for row in rows if row["kind"] == "receipt"), Decimal(0))
    assert (paid[1], Decimal(paid[2].replace(",", "."))) == ("2", whole)
    assert lines[-1][0] == "Остаток на конец"
    with zipfile.ZipFile(io.BytesIO(await file(app, report, "?format=xlsx"))) as book:
        assert book.testzip() is None
        tree = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    cells = [["".join(cell.itertext()) for cell in row] for row in tree.iter(f"{space}row")]
    assert len(cells) == len(rows) + 1
    assert not list(tree.iter(f"{space}f")), "a sheet has no formula"
    assert rows[0]["external_id"] in cells[1]


async def test_writing_goes_on_after_a_crash_at_any_commit(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "AT_ONCE", 2)
    for _ in range(5):
        await app.simulate((await app.created())["id"], outcome="paid")
    today = app.clock.now().date().isoformat()
    whole = (await order(app, today, today)).json()
    await app.work(1)
    expected = await file(app, whole)
    assert len(rows_of(expected)) == 5
    found = await app.ports.storage.get(Report, whole["id"])
    assert found is not None
    assert found.chunks == 3
    for number in range(8):
        again = (await order(app, today, today)).json()
        job = await app.ports.storage.get(Job, writing.WRITE_REPORT.id_of(again["id"]))
        assert job is not None
        with pytest.raises(Killed):
            await writing.write_report(fused(app.ports, CrashPoint(number // 2 + 1, after=bool(number % 2))), job)
        await app.work(1)
        assert await file(app, again) == expected, number


async def test_ordered_report_is_made_once_and_expires(app: TestApp) -> None:
    key, today = str(uuid4()), app.clock.now().date().isoformat()
    orders = await asyncio.gather(*(order(app, today, today, key=key) for _ in range(3)))
    assert sorted(answer.status_code for answer in orders) == [200, 200, 201]
    first, again = orders[0], await order(app, today, today, key=key)
    assert all(answer.json() == again.json() for answer in orders)
    await app.work(1)
    await start_recurring_jobs(app.ports)
    await app.work(ORDERED_KEPT.total_seconds() + 3601)
    assert (await app.get(f"/reports/{first.json()['id']}")).json()["error"]["code"] == "REPORT_NOT_FOUND"
    assert await everything(app.ports, Report) == await everything(app.ports, ExportChunk) == []


@table(
    ("first", "last"),
    [("2026-11-22", "2026-11-21"), ("2026-11-21", "2199-01-01"), ("20261121", "2026-11-21"), ("2024-01-01", LAST)],
)
async def test_impossible_periods_are_refused(first: str, last: str, app: TestApp) -> None:
    answer = await order(app, first, last)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR"), (first, last)


async def test_balance_of_any_moment_is_the_one_after_its_last_movement(app: TestApp) -> None:
    moments = [app.clock.now()]
    for _ in range(3):
        await app.simulate((await app.created({"amount_rub": "100.00"}))["id"], outcome="paid")
        await app.clock.advance(60)
        moments.append(app.clock.now())
    for number, moment in enumerate(moments):
        found = (await app.get(f"/balance/at?at={moment.isoformat().replace('+', '%2B')}")).json()
        assert (found["pending_rub"], found["movement_number"]) == (f"{number * 100}.00", number)
    assert (await app.get("/balance/at?at=yesterday")).json()["error"]["code"] == "VALIDATION_ERROR"


def test_fee_in_roubles_is_rounded_once() -> None:
    assert fee_in_roubles(Rub(100_00), Usdt(1_04864864), "92.50") == Rub(3_00)
    assert fee_in_roubles(Rub(1), Usdt(0), "92.50") == Rub(1)
