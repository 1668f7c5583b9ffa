"""Search, filters, columns, pages and saved views of the list of payments (docs/dashboard.md "Payments")."""

import csv
import io
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from cambist.core.domain.exports.exports import Export
from cambist.core.domain.people.roles import Role
from cambist.core.domain.people.views import VIEWS_MOST
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop, rename_shop
from cambist.frontends.dashboard.pages import payments
from cambist.frontends.dashboard.pages.payment_columns import COLUMNS
from tests.apps import TestApp
from tests.dashboard.browser import Browser, in_test_mode, joined
from tests.dashboard.test_exports import downloaded, links, ordered
from tests.invariants import everything

DAMAGED = (
    *("2", "", "'--", "1.%00", "<script>", "-1.x.y z", "%F0%9F%92%A9", "1.%FF", "--1.~"),
    *("9" * 400, "1." + "a" * 4000, "1.pay_1&cursor=x"),
)
MAIL = "anna@shop.example"


async def person(app: TestApp, role: Role = Role.SUPPORT, **more: Any) -> Browser:
    return await in_test_mode(await joined(app, role, **more))


def orders(browser: Browser) -> list[str]:
    """The orders of the list, as the page shows them."""
    return re.findall(r'<td data-label="Order"><a href="[^"]+">([^<]+)</a>', browser.answer.text)


def link(browser: Browser, text: str) -> str:
    found = re.search(rf'<a [^>]*href="([^"]+)"[^>]*>{re.escape(text)}</a>', browser.answer.text)
    assert found is not None, f"{text} is not a link of: {browser.text[:600]}"
    return unescape(found[1])


async def three(app: TestApp) -> None:
    await app.created({"external_id": "first", "amount_rub": "1490.00", "client_phone": "+79001234567"})
    await app.created({"external_id": "second", "amount_rub": "77.50", "client_email": "Anna@Shop.Example"})
    third = await app.created({"external_id": "1490", "amount_rub": "55.00", "client_phone": "+79001231490"})
    await app.simulate(third["id"], outcome="paid")


async def test_payment_is_found_by_all_that_people_know_of_it(app: TestApp) -> None:
    await three(app)
    support = await person(app)
    for text, expected in (
        ("first", ["first"]),
        (" second ", ["second"]),
        ("1490", ["1490"]),
        ("1490.00", ["first"]),
        ("1 490,00 ₽", ["first"]),
        ("77,5", ["second"]),
        ("4567", ["first"]),
        ("+7 900 123-45-67", ["first"]),
        (MAIL, ["second"]),
        ("nobody@shop.example", []),
        ("none", []),
        ("", ["1490", "second", "first"]),
        ("a" * 300, []),
        ("a\0b", []),
    ):
        await support.open(f"/payments?q={quote(text)}")
        assert support.answer.status_code == 200, text
        assert orders(support) == expected, text
    assert "+79001234567" not in support.text


async def test_address_of_a_search_keeps_no_whole_contact(app: TestApp) -> None:
    await three(app)
    await app.created({"external_id": "89001234567"})
    await app.created({"external_id": "a@b.example"})
    support = await person(app)
    await support.open(f"/payments?status=pending&q={MAIL}")
    assert "anna" not in str(support.answer.url).lower()
    assert orders(support) == ["second"]
    support.sees("Payments with the e-mail address that was searched for.")
    await support.send("/payments/views", name="Hers")
    assert orders(support) == ["second"]
    await support.open(link(support, "Show those of all payers"))
    assert len(orders(support)) == 4
    for text, query in (
        ("+7 900 123-14-90", "q=%2A%2A%2A1490&by=phone"),
        ("nobody@shop.example", "payer="),
        ("89001234567", "q=89001234567"),
        ("a@b.example", "q=a"),
        ("99990001490", "q=%2A%2A%2A1490&by=phone"),
    ):
        await support.open(f"/payments?q={quote(text)}")
        assert support.answer.url.query.decode().startswith(query), text
    for payer in ("x", "'", "0" * 32, "0" * 31, "%00" * 32):
        await support.open(f"/payments?payer={payer}")
        assert support.answer.status_code == 200


async def test_payment_id_leads_to_its_page(app: TestApp) -> None:
    payment = (await app.created())["id"]
    support = await person(app)
    for text in (payment, payment.upper(), payment.removeprefix("pay_")):
        await support.open(f"/payments?q={text}")
        assert support.path == f"/payments/{payment}"
    await support.open("/payments?q=pay_00000000-0000-0000-0000-000000000000")
    assert support.answer.status_code == 404
    support.sees("There is no such payment")


async def test_person_chooses_what_the_text_means(app: TestApp) -> None:
    await three(app)
    support = await person(app)
    await support.open("/payments?q=1490")
    support.sees("Searched as", "Order number", "Phone", "Amount")
    await support.open(link(support, "Amount"))
    assert orders(support) == ["first"]
    await support.open(link(support, "Phone"))
    assert orders(support) == ["1490"]


async def test_form_filters_and_chooses_columns_by_a_short_address(app: TestApp) -> None:
    await three(app)
    support = await person(app)
    await support.open("/payments")
    form = next(each for each in support.page.forms if each.method == "get")
    given = {name: values[0] for name, values in form.values.items() if name != "col"}
    query = "&".join(f"{name}={value}" for name, value in {**given, "status": "paid"}.items())
    await support.open(f"/payments?{query}&col=phone&col=amount&col=method")
    assert support.answer.url.query == b"status=paid&cols=order.method.phone.amount"
    assert orders(support) == ["1490"]
    support.sees("***1490", "SBP")
    assert "Created" not in re.findall(r"<th[^>]*>([^<]+)</th>", support.answer.text)
    await support.open("/payments?col=created&col=status&col=shop&col=amount")
    assert support.answer.url.query == b"", "the usual columns need no mention"
    await support.open("/payments?cols=garbage.amount.<script>")
    assert re.findall(r"<th[^>]*>([^<]+)</th>", support.answer.text) == ["Order", "Amount"]


async def test_every_column_is_shown(app: TestApp) -> None:
    await three(app)
    support = await person(app)
    names = [*COLUMNS]
    for language in ("en", "ru"):
        await support.open(f"/payments?lang={language}&cols={'.'.join(names)}")
        assert support.answer.status_code == 200
        assert len(re.findall(r"<th ", support.answer.text)) == len(names)


async def test_period_moves_with_the_days(app: TestApp) -> None:
    await app.created({"external_id": "old"})
    await app.clock.advance(2 * 24 * 3600)
    await app.created({"external_id": "new"})
    support = await person(app)
    await support.open("/payments?period=today")
    assert orders(support) == ["new"]
    await support.open("/payments?period=7-days")
    assert orders(support) == ["new", "old"]
    await support.open("/payments?period=today&from=2020-01-01")
    assert orders(support) == ["new", "old"], "named days win"
    for odd in ("period=ever", "from=2020-13-45", "to=9999-12-31", "from=0001-01-01", "to=20261128"):
        await support.open(f"/payments?{odd}")
        assert orders(support) == ["new", "old"], odd


async def test_pages_lead_to_each_other(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payments, "SIZE", 3)
    for number in range(8):
        await app.created({"external_id": f"order-{number}"})
    support = await person(app)
    await support.open("/payments")
    assert orders(support) == ["order-7", "order-6", "order-5"]
    support.sees("8 in all")
    await support.open(link(support, "Older"))
    assert orders(support) == ["order-4", "order-3", "order-2"]
    await app.created({"external_id": "order-8"})
    await support.open(link(support, "Older"))
    assert orders(support) == ["order-1", "order-0"]
    assert ">Older<" not in support.answer.text
    await support.open(link(support, "Newer"))
    assert orders(support) == ["order-4", "order-3", "order-2"]
    await support.open(link(support, "Newer"))
    assert orders(support) == ["order-7", "order-6", "order-5"]
    await support.open(link(support, "Newer"))
    assert orders(support) == ["order-8", "order-7", "order-6"], "the top is a full page"
    await support.open(f"/payments?q=order-1&cursor={parse_qs(urlsplit(link(support, 'Older')).query)['cursor'][0]}")
    assert orders(support) == ["order-1"]


async def test_bounded_search_says_how_far_it_came(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.core.usecases.common.keyset.SCANNED", 3)
    await app.created({"external_id": "wanted", "amount_rub": "777.00"})
    for number in range(6):
        await app.created({"external_id": f"order-{number}"})
        await app.clock.advance(1)
    support = await person(app)
    await support.open("/payments?q=777.00")
    support.sees("rows were searched, as far as", "There may be more.")
    assert orders(support) == []
    await support.open(link(support, "Search further"))
    assert orders(support) == ["wanted"]
    assert "rows were searched" not in support.text


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_damaged_cursor_gets_a_page_that_leads_to_the_top(app: TestApp, language: str) -> None:
    await three(app)
    support = await person(app)
    for cursor in DAMAGED:
        await support.open(f"/payments?status=paid&lang={language}&cursor={cursor or '%20'}")
        assert support.answer.status_code == 400, cursor
        text = "Start at the top of the list" if language == "en" else "Начните с начала списка"
        support.sees(text)
        assert "<script>" not in support.answer.text
        await support.open(link(support, "To the top of the list" if language == "en" else "К началу списка"))
        assert support.answer.status_code == 200
        assert "1490" in support.text


async def test_cursor_of_another_list_shows_nothing_of_it(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payments, "SIZE", 1)
    await three(app)
    mine = await person(app)
    await mine.open("/payments")
    cursor = parse_qs(urlsplit(link(mine, "Older")).query)["cursor"][0]
    app.account = await create_account(app.ports, "Other")
    await app.created({"external_id": "theirs"})
    stranger = await in_test_mode(await joined(app, Role.OWNER, email="other@shop.example"))
    for text in (cursor, f"-{cursor}", cursor.replace("pay_", "acc_"), "0.", "-0.~", "99999999999999999.~"):
        await stranger.open(f"/payments?cursor={text}")
        assert stranger.answer.status_code == 200, text
        assert set(orders(stranger)) <= {"theirs"}, text


async def test_searches_find_nothing_of_others(app: TestApp) -> None:
    await three(app)
    hidden = await create_shop(app.ports, app.account.account_id, "Hidden", "0.05")
    await app.created({"external_id": "secret", "shop_id": hidden.id, "amount_rub": "333.00", "client_email": MAIL})
    limited = await person(app, Role.ADMIN, shops=(app.account.default_shop_id,))
    for query in ("q=secret", "q=333.00", f"q={MAIL}", f"shop_id={hidden.id}", "", f"q={MAIL}&by=email"):
        await limited.open(f"/payments?{query}")
        assert "secret" not in orders(limited), query
    first = app.account
    app.account = await create_account(app.ports, "Other")
    stranger = await in_test_mode(await joined(app, Role.OWNER, email="other@shop.example"))
    for query in ("q=first", "q=1490.00", f"q={MAIL}", "q=4567", f"shop_id={first.default_shop_id}"):
        await stranger.open(f"/payments?{query}")
        assert orders(stranger) == [], query


async def test_export_has_what_the_search_finds(app: TestApp) -> None:
    await three(app)
    finance = await person(app, Role.FINANCE)
    for query, expected, shown in (
        ("q=1490&by=amount", ["first"], "1490.00 ₽"),
        ("q=first", ["first"], "first"),
        ("q=4567", ["first"], "***4567"),
        (f"q={MAIL}", ["second"], "E-mail"),
        ("payment_method=sbp&period=today", ["1490", "second", "first"], "SBP"),
    ):
        await ordered(finance, f"/payments?{query}")
        finance.sees(shown)
        await app.work(1)
        await finance.open("/exports")
        file = (await downloaded(finance, links(finance)[0])).decode("utf-8-sig")
        assert [row["external_id"] for row in csv.DictReader(io.StringIO(file, newline=""))] == expected, query
    assert not any("anna" in repr(each.filter).lower() for each in await everything(app.ports, Export))
    await finance.open(f"/payments?q={'a' * 300}")
    assert not any(form.action == "/exports" for form in finance.page.forms)


async def test_view_is_saved_opened_renamed_and_deleted(app: TestApp) -> None:
    await three(app)
    support = await person(app)
    await support.open("/payments")
    assert "Save this view" not in support.text, "there is nothing to save"
    await support.open("/payments?status=paid&period=7-days&cols=order.phone.amount&cursor=9999999999999999.~")
    await support.send("/payments/views", name=" Paid   this week ")
    support.sees("Saved.")
    assert support.answer.url.params["status"] == "paid"
    assert "cursor" not in support.answer.url.params
    assert orders(support) == ["1490"]
    assert "Save this view" not in support.text
    await support.open("/payments")
    await support.open(link(support, "Paid this week"))
    assert orders(support) == ["1490"]
    support.sees("***1490")
    assert re.search(r'aria-current="true">Paid this week<', support.answer.text)
    await support.open(link(support, "Manage views"))
    support.sees("Status: paid; Period: 7 days; Columns: Order, Payer's phone, Amount")
    await support.open(link(support, "Rename or delete"))
    path = support.path
    await support.send(path, name="")
    assert support.answer.status_code == 400
    support.sees("Name: 1 to 60 characters")
    await support.send(path, name="<b>Week</b>")
    support.sees("Saved.", "<b>Week</b>")
    await support.open(path)
    await support.send(f"{path}/delete")
    support.sees("Removed.", "No views yet.")
    await support.open(path)
    assert support.answer.status_code == 404


async def test_refused_view_keeps_list_and_name(app: TestApp) -> None:
    await three(app)
    support = await person(app)
    for number in range(VIEWS_MOST):
        await support.open(f"/payments?q=order-{number}")
        await support.send("/payments/views", name=f"View {number}")
        support.sees("Saved.")
    await support.open("/payments?status=paid")
    await support.send("/payments/views", name="One more")
    assert support.answer.status_code == 409
    support.sees("You have 20 views already: delete one first")
    assert orders(support) == ["1490"]
    form = next(each for each in support.page.forms if each.action == "/payments/views")
    assert (form.values["name"], form.values["query"]) == (["One more"], ["status=paid"])
    await support.send("/payments/views", name="View 3")
    support.sees("Saved.")
    assert support.answer.url.query == b"status=paid&done=saved"


async def test_views_of_others_do_not_exist(app: TestApp) -> None:
    owner, support = await person(app, Role.OWNER), await person(app)
    await owner.open("/payments?status=failed")
    await owner.send("/payments/views", name="Of the owner")
    await owner.open("/payments/views")
    path = urlsplit(link(owner, "Rename or delete")).path
    await support.open("/payments")
    assert "Of the owner" not in support.text
    await support.open(path)
    assert support.answer.status_code == 404
    await support.open("/profile")
    csrf = support.page.forms[0].values["csrf"][0]
    await support.post(path, {"csrf": csrf, "name": "Stolen"})
    assert support.answer.status_code == 404
    await support.post(f"{path}/delete", {"csrf": csrf})
    await owner.open("/payments")
    owner.sees("Of the owner")


async def test_view_holds_nothing_but_a_filter(app: TestApp) -> None:
    support = await person(app)
    await support.open("/payments?status=paid")
    await support.send(
        "/payments/views", name="Odd", query="done=created&lang=ru&cursor=1.x&x=//evil.example&status=failed"
    )
    await support.open("/payments")
    assert link(support, "Odd") == "/payments?status=failed"
    await support.open("/payments?status=paid")
    await support.send("/payments/views", name="Long", query=f"q={'%D1%8F' * 5000}")
    assert support.answer.status_code == 400
    await support.open("/payments?status=paid")
    await support.send("/payments/views", name="Empty", query="")
    await support.open("/payments/views")
    support.sees("all payments")


async def test_view_of_a_shop_that_is_gone_says_so(app: TestApp) -> None:
    shop = await create_shop(app.ports, app.account.account_id, "Second", "0.05")
    await rename_shop(app.ports, shop.id, "Flowers")
    support = await person(app)
    await support.open(f"/payments?shop_id={shop.id}")
    await support.send("/payments/views", name="Flowers only")
    await support.open("/payments/views")
    support.sees("Shop: Flowers")
    await support.open("/payments?shop_id=00000000-0000-0000-0000-000000000000")
    support.sees("You do not see the shop of this filter")
