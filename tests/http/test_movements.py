"""GET /balance/movements, GET /withdrawals/{id}/items (docs/settlement.md "Movements", "What a payout is made of")."""

import csv
import io
from collections.abc import AsyncIterator
from decimal import ROUND_DOWN, Decimal
from typing import Any

import pytest

from cambist.core.usecases.accounts.accounts import create_account
from cambist.frontends.http.openapi.openapi import openapi_document
from tests.http.documents import Document
from tests.refund_app import RefundApp, open_refund_app
from tests.tables import table

DOCUMENT = Document(openapi_document("https://pay.example"))
WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"
ZERO = "0.00000000"
PARTS = ("available_usdt", "reserved_usdt", "pending_rub")


@pytest.fixture
async def open_() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def movements(app: RefundApp, query: str = "", *, mode: str = "test") -> Any:
    """A page, as the document promises it."""
    response = await app.app.get(f"/balance/movements?{query}", mode=mode)
    assert response.status_code == 200, response.text
    DOCUMENT.check(response)
    return response.json()


async def oldest_first(app: RefundApp, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await movements(app, f"per_page=100&{query}"))["data"]
    return found[::-1]


async def sums_up(app: RefundApp) -> list[dict[str, Any]]:
    """Return all movements, after a check that the balances add up, and that the last one equals GET /balance."""
    found = await oldest_first(app)
    sums = dict.fromkeys(PARTS, Decimal(0))
    for number, each in enumerate(found, 1):
        assert each["number"] == number
        for part in PARTS:
            sums[part] += Decimal(each[part])
            assert sums[part] == Decimal(each[f"balance_{part}"]), each
    balance = (await app.app.get("/balance")).json()
    assert {part: Decimal(balance[part]) for part in PARTS} == sums
    return found


def as_row(each: dict[str, Any]) -> dict[str, str]:
    """Return the movement as a row of the file."""
    return {name: "" if value is None else str(value) for name, value in each.items()}


def told(each: dict[str, Any]) -> tuple[str, ...]:
    return (each["kind"], each["object_type"], *(each[part] for part in PARTS))


async def test_a_payments_way_into_the_balance_and_back(open_: RefundApp) -> None:
    """Both currencies, the rate, the object, the moment, and the balance after it."""
    payment_id = await open_.settled("1000.00")
    refund_id = await open_.apply(payment_id, "100.00")
    await open_.app.work(8)
    assert (await open_.simulate(refund_id, "reversed")).status_code == 200
    receipt, settlement, taken, reversed_ = await sums_up(open_)
    assert [told(each) for each in (receipt, settlement, taken, reversed_)] == [
        ("receipt", "payment", ZERO, ZERO, "1000.00"),
        ("settlement", "payment", "10.48648648", ZERO, "-1000.00"),
        ("refund_taken", "refund", "-1.08108108", ZERO, "0.00"),
        ("refund_reversed", "refund", "1.08108108", ZERO, "0.00"),
    ]
    assert {each["object_id"] for each in (receipt, settlement)} == {payment_id}
    assert {each["object_id"] for each in (taken, reversed_)} == {refund_id}
    assert (receipt["converted_rub"], receipt["rate"], receipt["settlement_id"]) == (None, None, None)
    [statement] = (await open_.app.get("/settlements")).json()["data"]
    assert settlement["settlement_id"] == statement["id"]
    assert (taken["converted_rub"], taken["rate"]) == ("-100.00", statement["rate_market"])
    assert (reversed_["converted_rub"], reversed_["rate"]) == ("100.00", statement["rate_market"])
    for each in (settlement, taken, reversed_):
        exact = Decimal(each["converted_rub"]) / Decimal(each["rate"])
        assert exact.quantize(Decimal("1e-8"), ROUND_DOWN) == Decimal(each["available_usdt"])
    assert receipt["created_at"] < settlement["created_at"] <= taken["created_at"] < reversed_["created_at"]


async def test_a_correction_has_its_statement_and_the_rate_of_its_payment(open_: RefundApp) -> None:
    """RUB that a refund gave back after the settlement of its payment."""
    _payment_id, refund_id = await open_.processing("40.00")
    await open_.app.clock.advance(1)
    await open_.settle()
    assert (await open_.simulate(refund_id, "failed")).status_code == 200
    await open_.app.clock.advance(1)
    await open_.settle()
    found = await sums_up(open_)
    [first, second] = [each for each in found if each["kind"] == "settlement"]
    assert (first["object_type"], first["converted_rub"]) == ("payment", "60.00")
    assert (second["object_type"], second["object_id"], second["converted_rub"]) == ("refund", refund_id, "40.00")
    assert first["rate"] == second["rate"]
    newest, oldest = (await open_.app.get("/settlements")).json()["data"]
    assert (first["settlement_id"], second["settlement_id"]) == (oldest["id"], newest["id"])


async def test_a_payout_moves_what_is_available_to_reserved_and_out(open_: RefundApp) -> None:
    await open_.set(payout_wallet=WALLET)
    await open_.settled("1000.00")
    await open_.app.work(120)
    found = await sums_up(open_)
    assert [told(each) for each in found[2:]] == [
        ("payout_reserved", "withdrawal", "-10.48648600", "10.48648600", "0.00"),
        ("payout_sent", "withdrawal", ZERO, "-10.48648600", "0.00"),
    ]
    assert found[-1]["balance_available_usdt"] == "0.00000048"


async def test_filters_leave_what_they_name(open_: RefundApp) -> None:
    payment_id = await open_.settled("1000.00")
    refund_id = await open_.apply(payment_id, "100.00")
    await open_.app.work(8)
    everything = await oldest_first(open_)
    receipt, settlement, taken = everything

    async def left(query: str) -> list[dict[str, Any]]:
        page = await movements(open_, query)
        assert page["pagination"]["total"] == len(page["data"])
        return list(page["data"])

    assert await left("kind=settlement") == [settlement]
    assert await left("kind=SETTLEMENT&balance=pending") == [settlement]
    assert await left("balance=pending") == [settlement, receipt]
    assert await left("balance=reserved") == []
    assert await left("object_type=refund") == [taken]
    assert await left(f"object_id={payment_id}") == [settlement, receipt]
    assert await left(f"object_id={refund_id}&balance=available") == [taken]
    assert await left(f"created_from={settlement['created_at']}") == [taken, settlement]
    assert await left(f"created_to={settlement['created_at']}") == [receipt]
    assert await left(f"created_from={taken['created_at']}&created_to={receipt['created_at']}") == []
    page = await movements(open_, "per_page=2&page=2")
    assert (page["data"], page["pagination"]["total"], page["pagination"]["total_pages"]) == ([receipt], 3, 2)
    assert (await movements(open_, "page=250000"))["data"] == []


@table(
    ("query", "named"),
    [
        ("kind=review", "kind"),
        ("kind=", "kind"),
        ("object_type=suspense", "object_type"),
        ("balance=rub", "balance"),
        ("object_id=pay_1", "object_id"),
        ("object_id=stl_00000000-0000-7000-8000-000000000000", "object_id"),
        ("object_id=%00", "object_id"),
        ("created_from=today", "created_from"),
        ("created_to=2026-01-01", "created_to"),
        ("format=xml", "format"),
        ("page=0", "page"),
        ("format=csv&per_page=101", "per_page"),
    ],
)
async def test_impossible_query_is_refused_naming_the_parameter(open_: RefundApp, query: str, named: str) -> None:
    response = await open_.app.get(f"/balance/movements?{query}")
    DOCUMENT.check(response)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["details"][0]["path"]) == (400, "VALIDATION_ERROR", named)


async def test_modes_and_accounts_see_their_own_alone(open_: RefundApp) -> None:
    payment_id = await open_.paid("100.00")
    assert (await movements(open_, mode="live"))["data"] == []
    assert (await movements(open_, f"object_id={payment_id}", mode="live"))["data"] == []
    other = await create_account(open_.ports, "Other")
    headers = {"X-Api-Key": other.test.api_key, "X-Api-Secret": other.test.api_secret}
    for query in ("", f"?object_id={payment_id}"):
        response = await open_.app.http.get(f"/api/v1/balance/movements{query}", headers=headers)
        assert response.json()["data"] == []
    assert len((await movements(open_))["data"]) == 1


async def test_the_file_has_all_of_them_the_oldest_first(open_: RefundApp) -> None:
    """The fields as columns, a header row, CRLF (docs/decisions.md "Balance and statements")."""
    await open_.settled("1000.00")
    await open_.app.clock.advance(1)
    await open_.paid("50.50")
    found = await oldest_first(open_)
    response = await open_.app.get("/balance/movements?format=csv&per_page=1")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert response.headers["content-disposition"] == 'attachment; filename="movements.csv"'
    lines = response.text.split("\r\n")
    assert (len(lines), lines[-1]) == (len(found) + 2, "")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert rows == [as_row(each) for each in found]
    response = await open_.app.get("/balance/movements?format=csv&kind=settlement&balance=available")
    assert [row["kind"] for row in csv.DictReader(io.StringIO(response.text))] == ["settlement"]
    response = await open_.app.get(f"/balance/movements?format=csv&object_id={found[0]['object_id']}")
    assert [row["number"] for row in csv.DictReader(io.StringIO(response.text))] == ["1", "2"]


async def test_forgetting_is_a_movement_too(open_: RefundApp) -> None:
    """The moved amounts go back the way they came (docs/sandbox.md "Forgetting"). A forgotten object shows no rate."""
    await open_.settled("1000.00")
    response = await open_.app.http.delete("/api/v1/sandbox/data", headers=open_.app.headers())
    assert response.status_code == 200
    found = await sums_up(open_)
    assert [told(each) for each in found[2:]] == [("sandbox_cleared", "payment", "-10.48648648", ZERO, "0.00")]
    assert [each["rate"] for each in found] == [None, None, None]


async def lines(app: RefundApp, withdrawal_id: str, query: str = "per_page=100") -> Any:
    """A page of a payout's lines, as the document promises it."""
    response = await app.app.get(f"/withdrawals/{withdrawal_id}/items?{query}")
    assert response.status_code == 200, response.text
    DOCUMENT.check(response)
    return response.json()


async def test_the_lines_of_a_payout_sum_to_it(open_: RefundApp) -> None:
    """Lines: income since the previous payout, refunds, the remainder before, and the remainder now."""
    await open_.set(payout_wallet=WALLET)
    await open_.settled("1000.00")
    await open_.app.work(120)
    await open_.set(payout_wallet="")
    payment_id = await open_.settled("500.00")
    refund_id = await open_.apply(payment_id, "100.00")
    await open_.app.work(8)
    await open_.set(payout_wallet=WALLET)
    other_id = await open_.settled("100.00")
    await open_.app.work(120)
    second, first = (await open_.app.get("/withdrawals")).json()["data"]
    found = (await lines(open_, first["id"]))["data"]
    assert [(each["kind"], each["amount_usdt"]) for each in found] == [
        ("settlement", "10.48648648"),
        ("carried_out", "-0.00000048"),
    ]
    page = await lines(open_, second["id"])
    assert [(each["kind"], each["object_id"], each["amount_usdt"]) for each in page["data"]] == [
        ("carried_in", None, "0.00000048"),
        ("settlement", payment_id, "5.24324324"),
        ("refund_taken", refund_id, "-1.08108108"),
        ("settlement", other_id, "1.04864864"),
        ("carried_out", None, "-0.00000028"),
    ]
    assert page["pagination"]["total"] == 5
    assert sum(Decimal(each["amount_usdt"]) for each in page["data"]) == Decimal(second["amount_usdt"])
    pages = [(await lines(open_, second["id"], f"per_page=2&page={number}"))["data"] for number in (1, 2, 3, 4)]
    assert [each for some in pages for each in some] == page["data"]
    assert pages[3] == []
    response = await open_.app.get(f"/withdrawals/{second['id']}/items?format=csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert rows == [
        {name: "" if value is None else str(value) for name, value in each.items()} for each in page["data"]
    ]


async def test_a_payout_that_came_to_nothing_is_a_line_of_the_next(open_: RefundApp) -> None:
    await open_.set(payout_wallet=WALLET)
    await open_.settled("1000.00")
    [failed] = (await open_.app.get("/withdrawals")).json()["data"]
    await open_.app.work(3)
    assert (
        await open_.action(f"/sandbox/withdrawals/{failed['id']}/simulate", {"outcome": "failed"})
    ).status_code == 200
    await open_.app.clock.advance(1)
    await open_.settle()
    newest, _ = (await open_.app.get("/withdrawals")).json()["data"]
    found = (await lines(open_, newest["id"]))["data"]
    assert [(each["kind"], each["object_id"], each["amount_usdt"]) for each in found] == [
        ("carried_in", None, "0.00000048"),
        ("payout_released", failed["id"], "10.48648600"),
        ("carried_out", None, "-0.00000048"),
    ]


async def test_lines_of_a_payout_that_is_not_there(open_: RefundApp) -> None:
    response = await open_.app.get("/withdrawals/wd_00000000-0000-7000-8000-000000000000/items?format=csv")
    DOCUMENT.check(response)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "WITHDRAWAL_NOT_FOUND")
