"""The payer window's languages and amounts, and its way back to the shop (docs/window.md "Back to the shop")."""

import re
from typing import Any

import pytest

from cambist.core.domain.money import Rub
from cambist.core.usecases.accounts import accounts, shops
from cambist.frontends.http.payer.window_page import pick_language, print_amount, print_span
from cambist.frontends.http.payer.window_texts import EN, RU
from tests.apps import TestApp
from tests.tables import table
from tests.windows import Page, page_of, with_face

# Languages and amounts


def test_both_languages_have_the_same_texts_with_the_same_gaps() -> None:
    assert set(RU) == set(EN)
    for key in RU:
        assert sorted(re.findall(r"\{\w+\}", RU[key])) == sorted(re.findall(r"\{\w+\}", EN[key])), key


@table(
    ("wish", "accept", "language"),
    [
        (None, "", "ru"),
        (None, "*", "ru"),
        (None, "ru-RU,ru;q=0.9,en;q=0.8", "ru"),
        (None, "en-US,en;q=0.9", "en"),
        (None, "de-DE,de;q=0.9", "en"),
        (None, "de, ru;q=0.1", "ru"),
        (None, "en;q=0.3, ru;q=0.4", "ru"),
        (None, "ru;q=0, en", "en"),
        (None, "ru;q=garbage, en;q=0.1", "en"),
        (None, ";;;,,,q=", "en"),
        ("en", "ru", "en"),
        ("ru", "en", "ru"),
        ("de", "en", "en"),
    ],
)
def test_the_language_is_the_wish_or_the_best_that_the_browser_accepts(
    wish: str | None, accept: str, language: str
) -> None:
    assert pick_language(wish, accept) == language


async def test_a_chosen_language_goes_along_with_every_link_of_the_page(app: TestApp) -> None:
    payment = await app.created()
    page = Page((await page_of(app, payment, "?lang=en", **{"Accept-Language": "ru"})).text)
    assert page.main["data-state"] == f"/p/{payment['id']}/state?lang=en"
    assert page.all("form")[0]["action"] == f"/p/{payment['id']}/simulate?lang=en"
    assert {"?lang=ru", "?lang=en"} <= {tag["href"] for tag in page.all("a")}


@table(
    ("kopecks", "russian", "english"),
    [
        (1_234_56, "1 234,56 ₽", "₽1,234.56"),
        (30_00, "30,00 ₽", "₽30.00"),
        (5, "0,05 ₽", "₽0.05"),
        (1_000_000_00, "1 000 000,00 ₽", "₽1,000,000.00"),
    ],
)
def test_amounts_are_written_as_each_language_writes_them(kopecks: int, russian: str, english: str) -> None:
    assert print_amount(Rub(kopecks), "ru") == russian
    assert print_amount(Rub(kopecks), "en") == english


def test_spans_are_written_as_clocks_do() -> None:
    assert [print_span(s) for s in (-5, 0, 9, 60, 899, 3600)] == ["0:00", "0:00", "0:09", "1:00", "14:59", "1:00:00"]


async def test_the_first_shop_is_shown_by_the_merchant_s_name(app: TestApp) -> None:
    """Every account starts with a shop named Default, which means nothing to a payer."""
    page = Page((await page_of(app, await app.created())).text)
    assert "Merchant" in page.text
    assert "Default" not in page.text


# The return to the shop


async def returns(app: TestApp, payment: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the targets of the button and of the automatic redirect."""
    page = Page((await page_of(app, payment)).text)
    buttons = [tag["href"] for tag in page.all("a") if tag.get("id") == "return"]
    return (buttons[0] if buttons else None), page.main.get("data-return")


async def test_return_button_prefers_the_shops_address_over_the_accounts(app: TestApp) -> None:
    """The shop's address, else the account's; without one no button (docs/window.md "Back to the shop")."""
    payment = await with_face(app, "paid")
    assert await returns(app, payment) == (None, None)
    await accounts.set_settings(app.ports, app.account.account_id, {"return_url": "https://account.example/a"})
    assert await returns(app, payment) == ("https://account.example/a",) * 2
    await shops.set_shop(app.ports, app.account.default_shop_id, {"return_url": "https://shop.example/s?a=1&b=2"})
    assert await returns(app, payment) == ("https://shop.example/s?a=1&b=2",) * 2


@pytest.mark.parametrize(
    ("account_setting", "asked", "goes_by_itself"),
    [("true", None, True), ("false", None, False), ("true", False, False), ("false", True, True)],
)
async def test_auto_return_counts_five_seconds_or_leaves_only_a_button(
    app: TestApp, account_setting: str, asked: bool | None, goes_by_itself: bool
) -> None:
    """5 seconds after success (docs/window.md "Back to the shop")."""
    wish = {"return_url": "https://shop.example/", "auto_return": account_setting}
    await accounts.set_settings(app.ports, app.account.account_id, wish)
    payment = await app.created({} if asked is None else {"auto_return": asked})
    assert await returns(app, payment) == (None, None)
    await app.simulate(payment["id"], outcome="paid")
    assert await returns(app, payment) == (
        "https://shop.example/",
        "https://shop.example/" if goes_by_itself else None,
    )
    after = Page((await page_of(app, payment)).text).main.get("data-return-after")
    assert after == ("5" if goes_by_itself else None)


@pytest.mark.parametrize("face", ["failed", "cancelled", "expired", "review"])
async def test_only_success_returns_the_payer_by_itself(app: TestApp, face: str) -> None:
    """Only after success (docs/window.md "Back to the shop")."""
    await accounts.set_settings(app.ports, app.account.account_id, {"return_url": "https://shop.example/"})
    assert await returns(app, await with_face(app, face)) == ("https://shop.example/", None)
