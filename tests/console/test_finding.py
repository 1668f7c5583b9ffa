"""What was found says whose it is, what the merchant calls it, and since when (docs/console.md "Keys")."""

import pytest

from cambist.core.usecases.accounts.accounts import list_accounts
from cambist.core.usecases.browse.search import search
from cambist.frontends.console.search_dialog import SearchDialog
from cambist.frontends.console.texts import moment
from tests.console.kit import SIZES, sitting
from tests.refund_house import RefundHouse


async def twice(refunds: RefundHouse) -> None:
    """An order of a merchant in both modes."""
    for mode in ("test", "live"):
        await refunds.paid("12345.00", mode=mode, external_id="order-7")
        await refunds.house.clock.advance(3600)


@pytest.mark.parametrize("size", SIZES)
async def test_each_that_was_found_tells_whose_it_is_and_since_when(size: tuple[int, int]) -> None:
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
