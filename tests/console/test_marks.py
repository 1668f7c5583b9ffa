"""Many objects at once, one after the other, and a reason given again (docs/console.md "Many at once")."""

import pytest
from textual.widgets import Input, Label

from cambist.core.usecases.actions.audit import list_audit
from cambist.core.usecases.refunds.refunds import approve_refund
from cambist.frontends.console import marks
from cambist.frontends.console.action_dialog import ActionDialog
from cambist.frontends.console.detail import DetailScreen
from cambist.frontends.console.home import HomeScreen
from cambist.frontends.console.listing import ListScreen
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from tests.console.kit import SIZES, mismatch, sitting, waiting
from tests.refund_app import RefundApp


async def three(refunds: RefundApp) -> None:
    """Three refunds that await approval, and then a payment of another amount than was asked for."""
    for wait in (waiting, waiting, waiting, mismatch):
        await wait(refunds)
        await refunds.app.clock.advance(1)


@pytest.mark.parametrize("size", SIZES)
async def test_marked_items_are_decided_one_by_one_with_one_reason(size: tuple[int, int]) -> None:
    async with sitting(size, three) as shared:
        home = shared.front()
        assert isinstance(home, HomeScreen)
        refunds = [each.object_id for each in home.items if each.of == "refund"]
        await shared.press("space", "space", "space")
        assert "3 marked: unmark [u]" in shared.shown()
        assert "Approve [a]" in shared.shown()
        assert shared.shown().count("●") == 3
        await shared.press("a")
        assert isinstance(shared.front(), ActionDialog)
        assert "Approve · 3" in str(shared.front().query_one("#title", Label).content)
        await shared.press("pagedown", "pagedown")
        assert "awaiting_approval" in shared.shown(), "what stands before is not folded"
        await approve_refund(shared.ports, refunds[1])  # a colleague acts meanwhile
        said = await shared.confirm("asked by phone", {})
        assert said.splitlines()[0].startswith("2 of 3: ")
        assert said.splitlines()[1].startswith("1 of 3: Not done. INVALID_STATE")
        assert said.endswith(refunds[1])
        rows = await list_audit(shared.ports, limit=10)
        assert {(row.action, row.reason, row.object_id) for row in rows} == {
            ("refund.approve", "asked by phone", each) for each in (refunds[0], refunds[2])
        }
        await shared.press("escape")
        assert "marked" not in shared.shown()
        assert [each.kind for each in home.items] == ["mismatch"]


async def test_objects_with_no_action_in_common_can_be_unmarked_and_nothing_else() -> None:
    async with sitting(SIZES[0], three) as shared:
        await shared.press("ctrl+end", "space", "ctrl+home", "space")
        assert "2 marked, nothing can be done with all of them" in shared.shown()
        await shared.press("a")
        assert isinstance(shared.front(), HomeScreen)
        await shared.press("u")
        assert "marked" not in shared.shown()


async def test_no_more_are_marked_than_one_action_may_be_done_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MOST", 2)
    async with sitting(SIZES[0], three) as shared:
        await shared.press("2")
        await shared.press("space", "space", "space")
        front = shared.front()
        assert isinstance(front, ListScreen)
        assert len(front.marks) == 2
        await shared.press("up", "up", "space")
        assert len(front.marks) == 1


@pytest.mark.parametrize("size", SIZES)
async def test_the_next_and_the_one_before_come_in_the_order_of_the_list(size: tuple[int, int]) -> None:
    async with sitting(size, three) as shared:
        expected = [each.object_id for each in shared.front().items]
        await shared.press("enter")
        seen = []
        for number in range(len(expected)):
            front = shared.front()
            assert isinstance(front, DetailScreen)
            assert f"· {number + 1} of 4" in shared.shown()
            seen.append(front.record.id)
            await shared.press("n")
        assert seen == expected
        assert shared.front().record.id == expected[-1]
        await shared.press("N")
        assert shared.front().record.id == expected[-2]
        await shared.press("escape")
        assert isinstance(shared.front(), HomeScreen)


async def test_home_shows_live_mode_first_and_one_mode_where_it_is_asked_for() -> None:
    async def older_test(refunds: RefundApp) -> None:
        made = (await refunds.app.create({}, mode="test")).json()["id"]
        await refunds.app.told(made, Simulation(status=InvoiceStatus.PAID, amount_kopecks=60_00))
        await refunds.app.clock.advance(3 * 86_400)
        await waiting(refunds)

    async with sitting(SIZES[0], older_test) as shared:
        assert [each.mode for each in shared.front().items] == ["live", "test"]
        assert "3 d" in shared.shown()
        await shared.press("m")
        assert [each.mode for each in shared.front().items] == ["live"]
        await shared.press("m")
        assert [each.mode for each in shared.front().items] == ["test"]


async def test_the_last_reason_of_an_action_is_offered_for_the_next() -> None:
    async with sitting(SIZES[0], three) as shared:
        await shared.press("enter")
        await shared.action("a", "agreed with the merchant")
        await shared.press("n", "a")
        assert "^l: agreed with the merchant" in shared.shown()
        await shared.press("ctrl+l")
        assert shared.front().query_one("#reason", Input).value == "agreed with the merchant"
        await shared.press("ctrl+s")
        assert [row.reason for row in await list_audit(shared.ports, limit=10)] == ["agreed with the merchant"] * 2
