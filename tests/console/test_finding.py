"""A search result shows its merchant, the merchant's own id, and its age (docs/console.md "Keys")."""

import pytest

from cambist.core.usecases.accounts.accounts import create_account, list_accounts
from cambist.core.usecases.browse.search import search
from cambist.frontends.console.search_dialog import SearchDialog
from cambist.frontends.console.texts import moment
from tests.console.kit import SIZES, sitting
from tests.refund_app import RefundApp, open_refund_app


async def twice(refunds: RefundApp) -> None:
    """An order of a merchant in both modes."""
    for mode in ("test", "live"):
        await refunds.paid("12345.00", mode=mode, external_id="order-7")
        await refunds.app.clock.advance(3600)


@pytest.mark.parametrize("size", SIZES)
async def test_each_hit_shows_its_merchant_and_time(size: tuple[int, int]) -> None:
    async with sitting(size, twice) as shared:
        await shared.press("slash", *"order-7", "enter")
        assert isinstance(shared.app.screen, SearchDialog)
        shown = shared.shown()
        assert shown.count("paid · 12,345.00 RUB") == 2
        (merchant,) = await list_accounts(shared.ports)
        hits = await search(shared.ports, "order-7")
        assert len({each.at for each in hits}) == 2
        for each in hits:
            assert each.at is not None
            assert f"{merchant.name} · order order-7 · {moment(each.at)} UTC" in shown


async def several(refunds: RefundApp) -> None:
    """Make orders with similar names, and one with a different name."""
    for name in ("order-43", "order-430", "order-431", "order-44", "Order-430", "заказ-43"):
        await refunds.paid("100.00", external_id=name)


async def test_search_offers_orders_that_begin_with_the_text() -> None:
    async with sitting(SIZES[0], several) as shared:
        assert [each.external_id for each in await search(shared.ports, "order-43")] == ["order-43"]
        found = await search(shared.ports, "order-4")
        assert [each.external_id for each in found] == ["order-43", "order-430", "order-431", "order-44"]
        assert all(each.begins for each in found)
        assert [each.external_id for each in await search(shared.ports, "заказ")] == ["заказ-43"]
        assert await search(shared.ports, "rder-43") == []
        await shared.press("slash", *"order-431"[:-1], "backspace", "backspace", "enter")
        assert "No order is named so; 4 that begin with it" in shared.shown()
        assert "order order-44" in shared.shown()
        await shared.press("enter")
        assert shared.front().record.external_id == "order-43", "the first is at the cursor"


async def test_search_puts_the_merchant_of_exactly_that_name_first() -> None:
    async with open_refund_app() as refunds:
        for name in ("Corner", "The Corner", "Corner House"):
            await create_account(refunds.ports, name)
        found = await search(refunds.ports, "corner")
        assert [each.text for each in found] == ["Corner", "The Corner", "Corner House"]


async def test_search_does_not_open_a_single_prefix_match() -> None:
    async with sitting(SIZES[0], several) as shared:
        await shared.press("slash", *"Order", "enter")
        assert isinstance(shared.app.screen, SearchDialog)
        assert "No order is named so; 1 that begin with it" in shared.shown()
