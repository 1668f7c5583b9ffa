"""Every sentence of docs/concepts.md "Shops" that an operator can meet."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.core.domain.accounts.shops import DEFAULT_SHOP_NAME, Shop
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ids import canonical_uuid
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import (
    create_shop,
    disable_shop,
    enable_shop,
    list_shops,
    rename_shop,
    set_shop,
)
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports


@pytest.fixture
async def ports() -> AsyncIterator[Ports]:
    async with open_app(Settings(database_url="memory://"), clock=VirtualClock(), ids=SeededIds()) as app:
        yield app.ports


@pytest.fixture
async def account_id(ports: Ports) -> str:
    return (await create_account(ports, "Merchant")).account_id


async def _stored(ports: Ports, shop_id: str) -> Shop:
    async with ports.storage.unit() as unit:
        shop = await unit[Shop].get(shop_id)
    assert shop is not None
    return shop


async def test_new_shop_is_enabled_has_a_bare_uuid_and_no_default_markup(ports: Ports, account_id: str) -> None:
    plain = await create_shop(ports, account_id, "Tea")
    marked = await create_shop(ports, account_id, "Coffee", "0.05")
    assert canonical_uuid(plain.id) == plain.id
    assert (plain.enabled, plain.markup, marked.markup) == (True, None, "0.05")
    assert await _stored(ports, plain.id) == plain


async def test_a_name_is_trimmed_and_kept_as_written(ports: Ports, account_id: str) -> None:
    assert (await create_shop(ports, account_id, "  Чай & Кофе ")).name == "Чай & Кофе"


@pytest.mark.parametrize("name", ["", "  ", "x" * 121, "Te\x00a", "Te\x7fa", "Te\x85a", "Te\na"], ids=ascii)
async def test_a_name_has_1_to_120_characters_and_no_control_characters(
    ports: Ports, account_id: str, name: str
) -> None:
    shop = await create_shop(ports, account_id, "Tea")
    for work in (create_shop(ports, account_id, name), rename_shop(ports, shop.id, name)):
        with pytest.raises(Refusal) as caught:
            await work
        assert caught.value.code == "VALIDATION_ERROR"
    assert (await _stored(ports, shop.id)).name == "Tea"


@pytest.mark.parametrize(("first", "second"), [("Tea", "TEA"), ("чай", " ЧАЙ "), ("Straße", "STRASSE")])
async def test_a_name_is_unique_in_the_account_ignoring_case(
    ports: Ports, account_id: str, first: str, second: str
) -> None:
    await create_shop(ports, account_id, first)
    with pytest.raises(Refusal, match="shop of this name") as caught:
        await create_shop(ports, account_id, second)
    assert (caught.value.code, caught.value.status) == ("VALIDATION_ERROR", 400)
    assert len(await list_shops(ports, account_id)) == 2


async def test_renaming_obeys_the_same_rule_and_keeps_the_id(ports: Ports, account_id: str) -> None:
    tea = await create_shop(ports, account_id, "Tea")
    await create_shop(ports, account_id, "Coffee")
    with pytest.raises(Refusal, match="shop of this name"):
        await rename_shop(ports, tea.id, "COFFEE")
    with pytest.raises(Refusal, match="shop of this name"):
        await rename_shop(ports, tea.id, DEFAULT_SHOP_NAME.upper())
    renamed = await rename_shop(ports, tea.id, "Mate")
    assert (renamed.id, renamed.name) == (tea.id, "Mate")
    assert (await create_shop(ports, account_id, "tea")).name == "tea"


async def test_a_shop_may_change_the_case_of_its_own_name(ports: Ports, account_id: str) -> None:
    tea = await create_shop(ports, account_id, "Tea")
    assert (await rename_shop(ports, tea.id, "TEA")).name == "TEA"


async def test_two_accounts_may_use_one_name(ports: Ports, account_id: str) -> None:
    other = await create_account(ports, "Other")
    await create_shop(ports, account_id, "Tea")
    assert (await create_shop(ports, other.account_id, "Tea")).account_id == other.account_id


async def test_simultaneous_shops_of_one_name_make_one(ports: Ports, account_id: str) -> None:
    results = await asyncio.gather(
        *(create_shop(ports, account_id, name) for name in ("Tea", "TEA", "tea")), return_exceptions=True
    )
    assert sum(isinstance(result, Shop) for result in results) == 1
    assert sum(isinstance(result, Refusal) for result in results) == 2


async def test_the_default_shop_cannot_be_disabled_but_renamed(ports: Ports, account_id: str) -> None:
    """Every account has a default shop that cannot be disabled (docs/concepts.md "Shops")."""
    default = (await list_shops(ports, account_id))[0]
    with pytest.raises(Refusal, match="default shop") as caught:
        await disable_shop(ports, default.id)
    assert caught.value.code == "INVALID_STATE"
    assert (await _stored(ports, default.id)).enabled
    renamed = await rename_shop(ports, default.id, "Main")
    with pytest.raises(Refusal, match="default shop"):
        await disable_shop(ports, renamed.id)


async def test_another_shop_is_disabled_and_enabled_as_often_as_one_likes(ports: Ports, account_id: str) -> None:
    tea = await create_shop(ports, account_id, "Tea", "0.03")
    for _ in range(2):
        assert not (await disable_shop(ports, tea.id)).enabled
        assert not (await disable_shop(ports, tea.id)).enabled
        assert (await enable_shop(ports, tea.id)).enabled
        assert (await enable_shop(ports, tea.id)).enabled
    stored = await _stored(ports, tea.id)
    assert (stored.id, stored.name, stored.markup) == (tea.id, "Tea", "0.03")


async def test_markup_and_return_address_are_set_and_cleared(ports: Ports, account_id: str) -> None:
    tea = await create_shop(ports, account_id, "Tea")
    shop = await set_shop(ports, tea.id, {"markup": "0.025", "return_url": "https://shop.example/back"})
    assert (shop.markup, shop.return_url) == ("0.025", "https://shop.example/back")
    shop = await set_shop(ports, tea.id, {"markup": "", "return_url": ""})
    assert (shop.markup, shop.return_url) == (None, None)


@pytest.mark.parametrize(
    "texts", [{}, {"name": "Tea"}, {"enabled": "false"}, {"markup": "1"}, {"return_url": "javascript:x"}], ids=str
)
async def test_a_wrong_setting_of_a_shop_is_refused(ports: Ports, account_id: str, texts: dict[str, str]) -> None:
    tea = await create_shop(ports, account_id, "Tea")
    with pytest.raises(Refusal) as caught:
        await set_shop(ports, tea.id, texts)
    assert caught.value.code == "VALIDATION_ERROR"
    assert await _stored(ports, tea.id) == tea


async def test_a_wrong_markup_creates_no_shop(ports: Ports, account_id: str) -> None:
    with pytest.raises(Refusal, match="fraction"):
        await create_shop(ports, account_id, "Tea", "3%")
    assert len(await list_shops(ports, account_id)) == 1


async def test_shops_are_listed_per_account_the_default_one_first(ports: Ports, account_id: str) -> None:
    other = await create_account(ports, "Other")
    await create_shop(ports, account_id, "B")
    await create_shop(ports, other.account_id, "Foreign")
    await create_shop(ports, account_id, "A")
    assert [shop.name for shop in await list_shops(ports, account_id)] == [DEFAULT_SHOP_NAME, "B", "A"]


@pytest.mark.parametrize("unknown", ["", "00000000-0000-4000-8000-000000000000", "\0", "\ud800"], ids=ascii)
async def test_an_unknown_shop_or_account_is_refused_whatever_was_typed(ports: Ports, unknown: str) -> None:
    for work in (
        rename_shop(ports, unknown, "Tea"),
        disable_shop(ports, unknown),
        enable_shop(ports, unknown),
        set_shop(ports, unknown, {"markup": "0.03"}),
    ):
        with pytest.raises(Refusal) as caught:
            await work
        assert caught.value.code == "SHOP_NOT_FOUND"
    for creating in (create_shop(ports, unknown, "Tea"), list_shops(ports, unknown)):
        with pytest.raises(Refusal) as caught:
            await creating
        assert caught.value.code == "ACCOUNT_NOT_FOUND"
