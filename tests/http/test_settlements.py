"""GET /settlements, GET /settlements/{id}, its items and its CSV, POST /sandbox/settlements
(docs/settlement.md "Reconciling")."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction
from typing import Any

import httpx
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.settlement.settlement import ItemKind, Settlement, SettlementItem
from cambist.core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from cambist.core.usecases.accounts.shops import create_shop, set_shop
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.ports.rates import RateSimulation, RateSimulator
from tests.http.documents import Document
from tests.planting import beneath
from tests.refund_app import RefundApp, open_refund_app

DOCUMENT = Document(openapi_document("https://pay.example"))
NOTHING = "stl_00000000-0000-7000-8000-000000000000"
COLUMNS = "payment_id,shop_id,kind,amount_rub,rate_market,rate_merchant,fee_usdt,credit_usdt,refund_id"
WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"


@pytest.fixture
async def open_() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def get(app: RefundApp, path: str, *, mode: str = "test") -> Any:
    """A good answer, as the document promises it."""
    response = await app.app.get(path, mode=mode)
    assert response.status_code == 200, response.text
    DOCUMENT.check(response)
    return response.json()


async def settle(app: RefundApp) -> dict[str, Any]:
    """Call POST /sandbox/settlements, and return the statement."""
    response = await app.action("/sandbox/settlements")
    assert response.status_code == 200, response.text
    DOCUMENT.check(response)
    found: dict[str, Any] = response.json()
    return found


async def items(app: RefundApp, settlement: dict[str, Any], *, mode: str = "test") -> list[dict[str, Any]]:
    page = await get(app, f"/settlements/{settlement['id']}/items?per_page=100", mode=mode)
    found: list[dict[str, Any]] = page["data"]
    return found


async def say(app: RefundApp, rate: str, *, mode: str = "test", silent: bool = False) -> None:
    [source] = app.ports.rates.of_mode(mode)
    assert isinstance(source, RateSimulator)
    await source.simulate(RateSimulation(rate=Decimal(rate), silent=silent))


def refused(response: httpx.Response, status: int, code: str) -> None:
    DOCUMENT.check(response)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


def sums_up(settlement: dict[str, Any], lines: list[dict[str, Any]]) -> None:
    """The items of a settlement sum to its credit exactly (docs/settlement.md "Reconciling")."""
    for name in ("amount_rub", "fee_usdt", "credit_usdt"):
        assert sum(Decimal(line[name]) for line in lines) == Decimal(settlement[name]), name
    assert settlement["payments"] == sum(line["kind"] == "payment" for line in lines)


def iso(app: RefundApp) -> str:
    return app.ports.clock.now().strftime("%Y-%m-%dT%H:%M:%S.") + "000Z"


async def test_a_settlement_has_these_fields_and_no_others(open_: RefundApp) -> None:
    await open_.paid("100.00")
    await open_.paid("50.50")
    await open_.app.clock.advance(60)
    made = await settle(open_)
    expected = {
        "id": made["id"],
        "cutoff": iso(open_),
        "started_at": iso(open_),
        "completed_at": iso(open_),
        "rate_market": "92.50",
        "payments": 2,
        "amount_rub": "150.50",
        "fee_usdt": "0.04881080",
        "credit_usdt": "1.57821620",
        "withdrawal_id": None,
        "sandbox": True,
    }
    assert made == expected
    assert await get(open_, f"/settlements/{made['id']}") == expected
    assert await get(open_, "/settlements") == {
        "data": [expected],
        "pagination": {"page": 1, "per_page": 20, "total": 1, "total_pages": 1},
    }
    assert made["id"].startswith("stl_")


async def test_an_item_has_these_fields_and_no_others(open_: RefundApp) -> None:
    payment_id = await open_.paid("100.00")
    made = await settle(open_)
    assert await get(open_, f"/settlements/{made['id']}/items") == {
        "data": [
            {
                "payment_id": payment_id,
                "shop_id": open_.app.account.default_shop_id,
                "kind": "payment",
                "amount_rub": "100.00",
                "rate_market": "92.50",
                "rate_merchant": "95.36082474226804123711340206",
                "fee_usdt": "0.03243243",
                "credit_usdt": "1.04864864",
                "refund_id": None,
            }
        ],
        "pagination": {"page": 1, "per_page": 20, "total": 1, "total_pages": 1},
    }


async def test_a_live_settlement_has_no_sandbox_field_and_the_cutoff_of_its_day(open_: RefundApp) -> None:
    await open_.paid(mode="live")
    day = datetime(2026, 1, 2, 9, tzinfo=UTC)
    await open_.app.clock.advance((day - open_.ports.clock.now()).total_seconds())
    await settle_now(open_.ports, Mode.LIVE)
    [made] = (await get(open_, "/settlements", mode="live"))["data"]
    assert "sandbox" not in made
    assert (made["cutoff"], made["started_at"]) == ("2026-01-02T00:00:00.000Z", "2026-01-02T09:00:00.000Z")
    sums_up(made, await items(open_, made, mode="live"))


async def test_pages_are_newest_first_and_counted(open_: RefundApp) -> None:
    made = []
    for _ in range(3):
        await open_.paid()
        await open_.app.clock.advance(60)
        made.append(await settle(open_))
    first = await get(open_, "/settlements?per_page=2")
    assert first["data"] == [made[2], made[1]]
    assert first["pagination"] == {"page": 1, "per_page": 2, "total": 3, "total_pages": 2}
    assert (await get(open_, "/settlements?per_page=2&page=2"))["data"] == [made[0]]
    assert (await get(open_, "/settlements?per_page=2&page=3"))["data"] == []
    for query in ("page=0", "per_page=101", "page=x", "per_page=0"):
        refused(await open_.app.get(f"/settlements?{query}"), 400, "VALIDATION_ERROR")
        for form in ("json", "csv"):  # the file has no pages, but passes nothing over in silence
            path = f"/settlements/{made[0]['id']}/items?format={form}&{query}"
            refused(await open_.app.get(path), 400, "VALIDATION_ERROR")


async def test_items_come_in_pages_in_one_order(open_: RefundApp) -> None:
    paid = [await open_.paid(f"{100 + number}.00") for number in range(5)]
    made = await settle(open_)
    path = f"/settlements/{made['id']}/items?per_page=2"
    pages = [await get(open_, f"{path}&page={number}") for number in (1, 2, 3, 4)]
    assert [len(page["data"]) for page in pages] == [2, 2, 1, 0]
    assert [line["payment_id"] for page in pages for line in page["data"]] == sorted(paid)
    assert pages[0]["pagination"] == {"page": 1, "per_page": 2, "total": 5, "total_pages": 3}
    sums_up(made, [line for page in pages for line in page["data"]])


async def other_account(app: RefundApp) -> NewAccount:
    return await create_account(app.ports, "Other")


@pytest.mark.parametrize("tail", ["", "/items", "/items?format=csv"])
async def test_foreign_settlement_is_not_found(open_: RefundApp, tail: str) -> None:
    await open_.paid()
    made = await settle(open_)
    for settlement_id in (NOTHING, "x", "stl_x", "pay_00000000-0000-7000-8000-000000000000", made["id"] + ":", "%00"):
        refused(await open_.app.get(f"/settlements/{settlement_id}{tail}"), 404, "SETTLEMENT_NOT_FOUND")
    refused(await open_.app.get(f"/settlements/{made['id']}{tail}", mode="live"), 404, "SETTLEMENT_NOT_FOUND")
    other = await other_account(open_)
    headers = {"X-Api-Key": other.test.api_key, "X-Api-Secret": other.test.api_secret}
    foreign = await open_.app.http.get(f"/api/v1/settlements/{made['id']}{tail}", headers=headers)
    refused(foreign, 404, "SETTLEMENT_NOT_FOUND")
    listed = await open_.app.http.get("/api/v1/settlements", headers=headers)
    assert listed.json()["data"] == []
    assert (await get(open_, "/settlements", mode="live"))["data"] == []


@pytest.mark.parametrize("path", ["/settlements", f"/settlements/{NOTHING}", f"/settlements/{NOTHING}/items"])
async def test_settlements_are_not_readable_without_a_key(open_: RefundApp, path: str) -> None:
    refused(await open_.app.http.get(f"/api/v1{path}"), 401, "Unauthorized")


async def test_one_rate_for_all_and_each_shop_s_markup(open_: RefundApp) -> None:
    """The merchant rate is market rate / (1 - markup), and one rate holds for the whole batch
    (docs/settlement.md "How much", "When")."""
    account_id = open_.app.account.account_id
    markups = {open_.app.account.default_shop_id: "0.03"}
    for name, markup in (("None", "0"), ("Odd", "0.017"), ("Half", "0.5"), ("Tiny", "0.000001")):
        markups[(await create_shop(open_.ports, account_id, name, markup)).id] = markup
    await say(open_, "91.234567890123")
    for number, shop_id in enumerate(markups):
        await open_.paid(f"{1000 + number}.37", shop_id=shop_id)
    made = await settle(open_)
    lines = await items(open_, made)
    assert {line["shop_id"] for line in lines} == set(markups)
    for line in lines:
        rate, fee = Fraction("91.234567890123"), Fraction(markups[line["shop_id"]])
        assert line["rate_market"] == made["rate_market"] == "91.234567890123"
        assert abs(Fraction(line["rate_merchant"]) - rate / (1 - fee)) < Fraction(1, 10**20)
        worth = Fraction(line["amount_rub"]) / rate
        for name, part in (("credit_usdt", 1 - fee), ("fee_usdt", fee)):
            exact = worth * part
            units = exact.numerator * 10**8 // exact.denominator
            assert Decimal(line[name]).scaleb(8).to_integral_exact(ROUND_DOWN) == units
            assert len(line[name].partition(".")[2]) == 8
    sums_up(made, lines)


async def test_refunds_before_settlement_have_a_line_each_and_no_fee_on_them(open_: RefundApp) -> None:
    """Before settlement a refund lowers what is settled (docs/refunds.md "The money")."""
    payment_id = await open_.paid("100.00")
    refunds = [await open_.apply(payment_id, amount) for amount in ("40.00", "10.01")]
    await open_.app.work(2)
    made = await settle(open_)
    lines = await items(open_, made)
    assert [(line["kind"], line["amount_rub"]) for line in lines] == [
        ("payment", "100.00"),
        ("refund", "-40.00"),
        ("refund", "-10.01"),
    ]
    assert {line["payment_id"] for line in lines} == {payment_id}
    assert [line["refund_id"] for line in lines] == [None, *refunds]
    assert all(line["fee_usdt"].startswith("-") and line["credit_usdt"].startswith("-") for line in lines[1:])
    sums_up(made, lines)
    # 49.99 RUB at 92.50 and 3 %.
    assert (made["amount_rub"], made["fee_usdt"], made["credit_usdt"]) == ("49.99", "0.01621297", "0.52421945")
    payment = await get(open_, f"/payments/{payment_id}")
    assert (payment["status"], payment["amount_usdt"]) == ("settled", "0.52421945")


async def test_refund_that_fails_after_settlement_corrects_the_next_one(open_: RefundApp) -> None:
    payment_id = await open_.paid("100.00")
    refund_id = await open_.apply(payment_id, "40.00")
    await open_.app.work(2)
    first = await settle(open_)
    await open_.simulate(refund_id, "failed")
    assert (await get(open_, "/balance"))["pending_rub"] == "40.00"
    await set_shop(open_.ports, (await get(open_, f"/payments/{payment_id}"))["shop_id"], {"markup": "0.5"})
    await say(open_, "93.00")
    await open_.app.clock.advance(60)
    second = await settle(open_)
    [line] = await items(open_, second)
    assert (line["kind"], line["payment_id"], line["amount_rub"]) == ("correction", payment_id, "40.00")
    assert line["refund_id"] == refund_id
    assert (second["payments"], second["amount_rub"], second["rate_market"]) == (0, "40.00", "93.00")
    assert second["credit_usdt"] == "0.41720430", "40.00 at 93 and the 3 % of its payment, whatever the shop's is now"
    sums_up(second, [line])
    sums_up(first, await items(open_, first))
    payment = await get(open_, f"/payments/{payment_id}")
    assert payment["amount_usdt"] == first["credit_usdt"]
    assert Decimal((await get(open_, "/balance"))["available_usdt"]) == Decimal(first["credit_usdt"]) + Decimal(
        second["credit_usdt"]
    )


async def test_payment_wholly_held_by_a_refund_is_settled_when_the_refund_fails(open_: RefundApp) -> None:
    payment_id = await open_.paid("100.00")
    refund_id = await open_.apply(payment_id)
    await open_.app.work(2)
    assert (await settle(open_))["payments"] == 0
    assert (await get(open_, f"/payments/{payment_id}"))["status"] == "paid"
    await open_.simulate(refund_id, "failed")
    assert (await settle(open_))["amount_rub"] == "100.00"


async def test_payments_behind_many_wholly_held_ones_are_settled(
    open_: RefundApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch takes every payment that is due (docs/settlement.md "When")."""
    monkeypatch.setattr("cambist.core.usecases.settlement.run.CHUNK", 2)
    held = [await open_.paid("100.00") for _ in range(5)]
    for payment_id in held:
        await open_.apply(payment_id)
    await open_.app.work(2)
    free = [await open_.paid("50.00") for _ in range(3)]
    made = await settle(open_)
    assert {line["payment_id"] for line in await items(open_, made)} == set(free)
    assert [(await get(open_, f"/payments/{each}"))["status"] for each in held] == ["paid"] * 5


async def test_settled_twice_at_once_each_payment_is_in_one_statement(open_: RefundApp) -> None:
    paid = {await open_.paid("100.00") for _ in range(5)}
    both = await asyncio.gather(settle(open_), settle(open_))
    lines = [line["payment_id"] for made in both for line in await items(open_, made)]
    assert sorted(lines) == sorted(paid)
    assert len({made["id"] for made in both}) == 2


async def csv_of(app: RefundApp, settlement_id: str, **headers: str) -> httpx.Response:
    response = await app.app.http.get(
        f"/api/v1/settlements/{settlement_id}/items?format=csv", headers=app.app.headers() | headers
    )
    assert response.status_code == 200, response.text
    return response


async def test_the_csv_says_what_the_pages_say(open_: RefundApp) -> None:
    payment_id = await open_.paid("100.00")
    await open_.apply(payment_id, "40.00")
    await open_.paid("77.77")
    await open_.app.work(2)
    made = await settle(open_)
    response = await csv_of(open_, made["id"])
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == f'attachment; filename="{made["id"]}.csv"'
    operation = DOCUMENT.operation("GET", response.request.url.path)
    assert operation is not None
    assert "text/csv" in operation["responses"]["200"]["content"]
    assert "x-ratelimit-limit" in response.headers
    header, *rest = response.text.split("\r\n")
    assert header == COLUMNS
    assert rest.pop() == ""
    assert "\n" not in "".join(rest)
    lines = list(csv.DictReader(io.StringIO(response.text, newline="")))
    # A null is an empty cell.
    assert lines == [{name: value or "" for name, value in line.items()} for line in await items(open_, made)]
    assert len(lines) == 3
    sums_up(made, lines)


async def test_the_csv_of_nothing_is_its_header(open_: RefundApp) -> None:
    made = await settle(open_)
    assert (await csv_of(open_, made["id"])).text == f"{COLUMNS}\r\n"
    assert await items(open_, made) == []


async def test_the_csv_has_all_lines_however_many(open_: RefundApp) -> None:
    open_.app.made_up = True
    moment = open_.ports.clock.now()
    count = 2345
    settlement = Settlement(
        id=NOTHING,
        batch_id="test:made-up",
        account_id=open_.app.account.account_id,
        mode=Mode.TEST,
        cutoff=moment,
        rate_market="92.5",
        started_at=moment,
        items=count,
    )
    async with beneath(open_.ports).unit() as unit:
        unit[Settlement].add(settlement)
        for number in range(count):
            unit[SettlementItem].add(
                SettlementItem(
                    id=f"{NOTHING}:pay_{number:05}:0",
                    settlement_id=NOTHING,
                    payment_id=f"pay_{number:05}",
                    shop_id="a-shop",
                    kind=ItemKind.PAYMENT,
                    amount=Rub(number),
                    markup="0.03",
                    fee=Usdt(1),
                    credit=Usdt(number),
                )
            )
        await unit.commit()
    lines = list(csv.DictReader(io.StringIO((await csv_of(open_, NOTHING)).text, newline="")))
    assert [line["payment_id"] for line in lines] == [f"pay_{number:05}" for number in range(count)]
    assert sum(Decimal(line["credit_usdt"]) for line in lines) == Decimal(sum(range(count))).scaleb(-8)


@pytest.mark.parametrize("wanted", ["", "CSV", "xml", "csv,json"])
async def test_another_format_is_refused(open_: RefundApp, wanted: str) -> None:
    made = await settle(open_)
    response = await open_.app.get(f"/settlements/{made['id']}/items?format={wanted}")
    refused(response, 400, "VALIDATION_ERROR")
    assert response.json()["error"]["details"][0]["path"] == "format"
    assert (await get(open_, f"/settlements/{made['id']}/items?format=json"))["data"] == []


async def test_the_sandbox_settles_nothing_into_a_statement_of_nothing(open_: RefundApp) -> None:
    made = await settle(open_)
    assert (made["payments"], made["amount_rub"], made["fee_usdt"], made["credit_usdt"]) == (
        0,
        "0.00",
        "0.00000000",
        "0.00000000",
    )
    assert made["completed_at"] is not None
    assert (await get(open_, f"/settlements/{made['id']}")) == made
    assert (await settle(open_))["id"] != made["id"]


async def test_the_sandbox_is_not_there_for_live_keys(open_: RefundApp) -> None:
    refused(await open_.action("/sandbox/settlements", mode="live"), 404, "NOT_FOUND")
    refused(await open_.app.http.post("/api/v1/sandbox/settlements"), 401, "Unauthorized")
    assert (await get(open_, "/settlements", mode="live"))["data"] == []


async def test_the_sandbox_settles_the_account_s_own_test_payments_only(open_: RefundApp) -> None:
    live = await open_.paid(mode="live")
    other = await other_account(open_)
    headers = {"X-Api-Key": other.test.api_key, "X-Api-Secret": other.test.api_secret}
    theirs = await open_.app.http.post(
        "/api/v1/payments",
        json={"amount_rub": "100.00"},
        headers=headers | {"Idempotency-Key": "0b8f3a52-6f0a-4a3c-9f4f-0a0f4e1d2c3b"},
    )
    their_id = theirs.json()["id"]
    path = f"/api/v1/sandbox/payments/{their_id}/simulate"
    await open_.app.http.post(path, json={"outcome": "paid"}, headers=headers)
    await open_.paid()
    assert (await settle(open_))["payments"] == 1
    assert (await get(open_, f"/payments/{live}", mode="live"))["status"] == "paid"
    assert (await open_.app.http.get(f"/api/v1/payments/{their_id}", headers=headers)).json()["status"] == "paid"


async def test_settlement_does_not_start_without_a_rate(open_: RefundApp) -> None:
    """No rate, nothing starts (docs/settlement.md "When")."""
    payment_id = await open_.paid()
    await say(open_, "92.50", silent=True)
    await open_.app.clock.advance(600)
    response = await open_.action("/sandbox/settlements")
    refused(response, 503, "RATE_UNAVAILABLE")
    assert 30 <= int(response.headers["retry-after"]) <= 60
    assert (await get(open_, "/settlements"))["data"] == []
    assert (await get(open_, f"/payments/{payment_id}"))["status"] == "paid"
    await say(open_, "92.50")
    assert (await settle(open_))["payments"] == 1


async def test_the_payment_and_its_webhook_show_the_credit(open_: RefundApp) -> None:
    payment_id = await open_.paid("100.00")
    before = await get(open_, f"/payments/{payment_id}")
    assert (before["status"], before["amount_usdt"], before["settled_at"]) == ("paid", None, None)
    await open_.app.clock.advance(60)
    await settle(open_)
    after = await get(open_, f"/payments/{payment_id}")
    assert after == before | {"status": "settled", "amount_usdt": "1.04864864", "settled_at": iso(open_)}
    await open_.app.work()
    webhooks = [webhook for webhook in open_.app.postman.bodies if webhook.get("payment_id") == payment_id]
    assert [(webhook["previous_status"], webhook["status"]) for webhook in webhooks] == [
        ("pending", "paid"),
        ("paid", "settled"),
    ]
    assert webhooks[-1]["amount_usdt"] == "1.04864864"
    open_.app.check_signatures()


async def test_payments_keep_their_markup_when_their_shop_loses_it(open_: RefundApp) -> None:
    shop = await create_shop(open_.ports, open_.app.account.account_id, "Further", "0.02")
    await open_.paid("100.00", shop_id=shop.id)
    await open_.paid("50.00")
    await set_shop(open_.ports, shop.id, {"markup": ""})
    assert (await settle(open_))["amount_rub"] == "150.00"
    assert (await get(open_, "/balance"))["pending_rub"] == "0.00"


async def test_the_withdrawal_of_a_settlement_is_named_in_it(open_: RefundApp) -> None:
    await set_settings(open_.ports, open_.app.account.account_id, {"payout_wallet": WALLET})
    await open_.paid("100.00")
    made = await settle(open_)
    assert made["withdrawal_id"] is not None
    withdrawal = await get(open_, f"/withdrawals/{made['withdrawal_id']}")
    assert withdrawal["settlement_id"] == made["id"]
    await open_.app.work(timedelta(hours=1).total_seconds())


async def test_a_refund_says_what_it_took_of_the_available_usdt(open_: RefundApp) -> None:
    """The merchant can then explain the new balance (docs/refunds.md "The money")."""
    early, late = await open_.paid("100.00"), await open_.paid("200.00")
    before = await open_.apply(early, "40.00")
    await open_.app.work(2)
    await settle(open_)
    available = Decimal((await get(open_, "/balance"))["available_usdt"])
    after = await open_.apply(late, "50.00")
    assert (await get(open_, f"/refunds/{after}"))["amount_usdt"] is None, "nothing is taken yet"
    await open_.app.work(2)
    shown = await get(open_, f"/refunds/{after}")
    assert (shown["amount_usdt"], shown["rate_market"]) == ("0.54054054", "92.50")
    assert Decimal((await get(open_, "/balance"))["available_usdt"]) == available - Decimal(shown["amount_usdt"])
    taken = await get(open_, f"/refunds/{before}")
    assert (taken["amount_usdt"], taken["rate_market"]) == (None, None)
