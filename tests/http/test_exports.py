"""Files that programs order (docs/concepts.md "Exports")."""

import csv
import io
import zipfile
from typing import Any
from uuid import uuid4

import httpx

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.exports.exports import BY_API, KEPT_MOST, Export
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.ports.jobs import Job
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined
from tests.invariants import everything
from tests.tables import table


async def order(app: TestApp, body: Any, *, key: str | None = None, mode: str = "test") -> httpx.Response:
    headers = {**app.headers(mode), "Idempotency-Key": key or str(uuid4())}
    return await app.http.post("/api/v1/exports", json=body, headers=headers)


async def ready(app: TestApp, body: Any) -> dict[str, Any]:
    """A finished export, as GET shows it."""
    made = await order(app, body)
    assert made.status_code == 201, made.text
    assert (made.json()["status"], made.json()["download_url"], made.json()["size"]) == ("pending", None, None)
    await app.work(3)
    found: dict[str, Any] = (await app.get(f"/exports/{made.json()['id']}")).json()
    return found


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


async def test_program_orders_payments_and_downloads_them_by_key_or_link(app: TestApp) -> None:
    for number in range(3):
        payment = await app.created({"external_id": f"order-{number}"})
        if number:
            await app.simulate(payment["id"], outcome="paid")
    export = await ready(app, {"kind": "payments", "format": "csv", "filter": {"status": "paid"}})
    assert (export["status"], export["rows"], export["rows_expected"]) == ("ready", 2, 2)
    by_key = await app.get(f"/exports/{export['id']}/file")
    assert by_key.headers["content-type"] == "text/csv; charset=utf-8"
    assert int(by_key.headers["content-length"]) == export["size"] == len(by_key.content)
    whole = (await app.get("/payments?format=csv&status=paid")).text
    assert by_key.text == whole, "the file is that of the list"
    link = export["download_url"].removeprefix("https://pay.example")
    assert (await app.http.get(link)).content == by_key.content
    await app.clock.advance(15 * 60 + 1)
    expired = await app.http.get(link)
    assert (expired.status_code, expired.json()["error"]["code"]) == (404, "EXPORT_NOT_FOUND")
    fresh = (await app.get(f"/exports/{export['id']}")).json()["download_url"].removeprefix("https://pay.example")
    assert (await app.http.get(fresh)).status_code == 200
    for altered in (fresh[:-1], fresh + "0", fresh.replace(".", ".9", 1), "/api/v1/export-files/x", link):
        assert (await app.http.get(altered)).status_code == 404, altered


async def test_statement_has_every_movement_with_the_balance_after_it(app: TestApp) -> None:
    for _ in range(3):
        await app.simulate((await app.created())["id"], outcome="paid")
    await app.http.post("/api/v1/sandbox/settlements", headers=app.headers())
    listed = rows_of((await app.get("/balance/movements?format=csv")).text)
    export = await ready(app, {"kind": "statement", "format": "csv"})
    text = (await app.get(f"/exports/{export['id']}/file")).text
    assert rows_of(text) == listed[::-1]
    assert len(listed) > 3
    receipts = await ready(app, {"kind": "statement", "format": "xlsx", "filter": {"kind": "receipt"}})
    file = (await app.get(f"/exports/{receipts['id']}/file")).content
    with zipfile.ZipFile(io.BytesIO(file)) as book:
        assert book.read("xl/worksheets/sheet1.xml").count(b"<row ") == 4
    one = await ready(app, {"kind": "statement", "format": "csv", "filter": {"object_id": listed[0]["object_id"]}})
    found = rows_of((await app.get(f"/exports/{one['id']}/file")).text)
    assert found == [each for each in listed[::-1] if each["object_id"] == listed[0]["object_id"]]


async def test_repeated_key_answers_with_the_first_export(app: TestApp) -> None:
    key = str(uuid4())
    first = await order(app, {"kind": "payments", "format": "csv"}, key=key)
    again = await order(app, {"kind": "refunds", "format": "xlsx"}, key=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert len(await everything(app.ports, Export)) == len(
        [each for each in await everything(app.ports, Job) if each.kind == "export.write"]
    ) == 1  # fmt: skip
    taken = await app.create(key=key)
    assert taken.json()["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    without = await app.http.post("/api/v1/exports", json={}, headers=app.headers())
    assert without.json()["error"]["code"] == "MISSING_IDEMPOTENCY_KEY"


async def test_at_most_three_are_written_at_once(app: TestApp) -> None:
    body = {"kind": "payments", "format": "csv"}
    assert [(await order(app, body)).status_code for _ in range(4)] == [201, 201, 201, 409]
    await app.work(3)
    for _ in range(KEPT_MOST - 3):
        assert (await order(app, body)).status_code == 201
        await app.work(1)
    full = await order(app, body)
    assert (full.status_code, full.json()["error"]["code"]) == (409, "EXPORTS_BUSY")
    listed = (await app.get(f"/exports?per_page={KEPT_MOST - 1}&page=1")).json()
    assert listed["pagination"]["total"] == KEPT_MOST
    assert [each["created_at"] for each in listed["data"]] == sorted(
        (each["created_at"] for each in listed["data"]), reverse=True
    )
    gone = f"/api/v1/exports/{listed['data'][0]['id']}"
    assert [(await app.http.delete(gone, headers=app.headers())).status_code for _ in range(2)] == [200, 404]
    assert (await order(app, body)).status_code == 201
    assert (await order(app, body)).status_code == 409, "one was deleted"
    await app.work(24 * 3600)
    assert (await order(app, body)).status_code == 201


@table(
    ("body", "path"),
    [
        ({}, "kind"),
        ({"kind": "payments"}, "format"),
        ({"kind": "people", "format": "csv"}, "kind"),
        ({"kind": "payments", "format": "pdf"}, "format"),
        ({"kind": "payments", "format": "csv", "filter": {"amount_rub": "1"}}, "filter.amount_rub"),
        ({"kind": "payments", "format": "csv", "filter": {"email_digest": "1"}}, "filter.email_digest"),
        ({"kind": "payments", "format": "csv", "filter": {"status": "paied"}}, "status"),
        ({"kind": "refunds", "format": "csv", "filter": {"created_from": "x"}}, "created_from"),
        ({"kind": "statement", "format": "csv", "filter": {"shop_id": "x"}}, "filter.shop_id"),
        ({"kind": "statement", "format": "csv", "filter": {"kind": "gift"}}, "kind"),
        ({"kind": "statement", "format": "csv", "filter": "all"}, "filter"),
        ({"kind": "payments", "format": "csv", "user_id": "usr_1"}, "user_id"),
    ],
)
async def test_invalid_order_names_its_field(app: TestApp, body: Any, path: str) -> None:
    await set_settings(app.ports, app.account.account_id, {"refunds": "true"})
    answer = await order(app, body)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    assert path in answer.text, answer.text
    assert await everything(app.ports, Export) == []


async def test_refunds_that_are_off_have_no_file(app: TestApp) -> None:
    answer = await order(app, {"kind": "refunds", "format": "csv"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_export_belongs_to_programs_of_one_account_and_mode(app: TestApp) -> None:
    await app.created()
    export = await ready(app, {"kind": "payments", "format": "csv"})
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/exports")
    owner.sees("No exports.")
    assert (await owner.open(f"/exports/{export['id']}/file")).answer.status_code == 404
    await owner.open("/payments")
    await owner.send("/exports", format="csv")
    await app.work(1)
    [own] = [each for each in await everything(app.ports, Export) if each.owner_id != BY_API]
    mine = app.account
    for path in (f"/exports/{own.id}", f"/exports/{own.id}/file", "/exports/exp_unknown"):
        assert (await app.get(path)).status_code == 404, path
    assert (await app.get(f"/exports/{export['id']}", mode=Mode.LIVE)).status_code == 404
    app.account = await create_account(app.ports, "Other")
    for path in (f"/exports/{export['id']}", f"/exports/{export['id']}/file"):
        assert (await app.get(path)).status_code == 404, path
    app.account = mine


async def test_person_exports_the_movements_of_the_balance(app: TestApp) -> None:
    await app.simulate((await app.created())["id"], outcome="paid")
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    assert (await support.open("/balance")).answer.status_code == 403
    finance = await in_test_mode(await joined(app, Role.FINANCE))
    await finance.open("/balance")
    await finance.send("/exports", format="csv")
    finance.sees("Movements of the balance, CSV: all")
    await app.work(1)
    await finance.open("/exports")
    link = next(each for each in finance.page.links if each.endswith("/file"))
    text = (await finance.http.get(link)).content.decode("utf-8-sig")
    assert [row["kind"] for row in rows_of(text)] == ["receipt"]
