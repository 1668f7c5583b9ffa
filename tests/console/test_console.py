"""The operators' console, by its keys, on the smallest terminal and on a wide one."""

from typing import Any

import pytest
from textual.widgets import Input, Select

from cambist.core.usecases.actions.audit import list_audit
from cambist.core.usecases.refunds.refunds import approve_refund
from cambist.frontends.console.catalogue import KINDS
from cambist.frontends.console.columns import Column
from cambist.frontends.console.detail import DetailScreen
from cambist.frontends.console.home import HomeScreen
from cambist.frontends.console.kinds.kinds import ConsoleAction, Kind, Part
from cambist.frontends.console.listing import ListScreen
from cambist.frontends.console.pages import PAGE
from tests.console.kit import SIZES, both, sitting, waiting
from tests.refund_app import RefundApp


@pytest.mark.parametrize("size", SIZES)
async def test_a_walk_from_home_and_back(size: tuple[int, int]) -> None:
    async with sitting(size, both) as shared:
        assert "60.00 RUB came" in shared.shown()
        assert "awaits approval" in shared.shown()
        assert "Next settlement" in shared.shown()
        await shared.press("1", "enter")
        assert isinstance(shared.app.screen, DetailScreen)
        assert "created" in shared.shown()
        await shared.press("escape", "f", "down", "enter", *("down",) * 8, "enter")
        assert isinstance(shared.app.screen, ListScreen)
        assert [each.status for each in shared.app.screen.records] == ["amount_mismatch"]
        await shared.press("m")
        assert "mode live" in shared.shown()
        await shared.press("m")
        assert shared.app.screen.records == []
        await shared.press("slash", *"order-7", "enter")
        assert isinstance(shared.app.screen, DetailScreen)
        await shared.press("question_mark", "escape", "g", "enter")
        assert isinstance(shared.app.screen, HomeScreen)
        await shared.press("ctrl+t")
        assert shared.app.theme == "textual-light"


@pytest.mark.parametrize("size", SIZES)
async def test_two_operators_at_one_refund_have_one_winner_and_one_refusal(size: tuple[int, int]) -> None:
    async with sitting(size, waiting) as shared:
        await shared.press("enter")
        screen = shared.app.screen
        assert isinstance(screen, DetailScreen)
        await shared.pilot.press("j", *"fraud")
        await approve_refund(shared.ports, screen.record.id)
        await shared.press("ctrl+s")
        assert "Not done. INVALID_STATE: The object was changed meanwhile" in shared.shown()
        assert await shared.refunds.status(screen.record.id) == "pending"
        assert await list_audit(shared.ports, limit=10) == []
        await shared.press("escape")
        assert screen.record.approved_at is not None


async def test_settling_and_personal_data_and_a_storage_that_is_gone() -> None:
    async def paid(refunds: RefundApp) -> None:
        await refunds.paid("1000.00", mode="live", client_phone="+79005551234")
        await refunds.app.clock.advance(1)

    async with sitting(SIZES[1], paid) as shared:
        await shared.press("1", "enter")
        assert "+79005551234" not in shared.shown()
        await shared.pilot.press("p", *"the payer called")
        await shared.press("ctrl+s")
        assert "+79005551234" in shared.shown()
        await shared.press("escape", "4", "s")
        for entry, value in (("mode", "live"), ("what", "all paid by now")):
            select = shared.app.screen.query_one(f"#entry-{entry}")
            assert isinstance(select, Select)
            select.value = value
        shared.app.screen.query_one("#reason", Input).value = "asked for"
        await shared.press("ctrl+s")
        assert "1 payment, 1,000.00 RUB" in shared.shown()
        await shared.press("escape")
        rows = await list_audit(shared.ports, limit=10)
        assert [(row.action, row.reason) for row in rows] == [
            ("settle", "asked for"),
            ("private.show", "the payer called"),
        ]
        shared.storage.gone = True
        await shared.press("1")
        assert "the database does not answer" in shared.shown()
        shared.storage.gone = False
        await shared.press("r")
        assert "does not answer" not in shared.shown()
        assert "settled" in shared.shown()


class Row:
    """One row of a very long list."""

    version = 0

    def __init__(self, number: int) -> None:
        self.id = f"row-{number:06}"


async def test_a_list_of_100_000_is_read_page_by_page() -> None:
    """However far the cursor is, only the pages up to there were read."""
    asked: list[tuple[str | None, int]] = []

    async def read(_ports: Any, _wish: Any, after: Row | None, limit: int) -> list[Row]:
        asked.append((None if after is None else after.id, limit))
        start = 0 if after is None else int(after.id[4:]) + 1
        return [Row(number) for number in range(start, min(start + limit, 100_000))]

    async def get(_ports: Any, _id: str) -> None:
        return None

    kind = Kind(
        name="row",
        title="Rows",
        key="z",
        columns=(Column(title="row", cell=lambda each: each.id, width=10),),
        read=read,
        get=get,
        facts=lambda _: [],
        filters=(),
    )
    async with sitting(SIZES[0]) as shared:
        shared.app.push_screen(ListScreen(shared.app.shared, kind))
        await shared.settle()
        assert asked == [(None, PAGE)]
        screen = shared.app.screen
        assert isinstance(screen, ListScreen)
        for _ in range(20):
            await shared.press("pagedown")
        assert [each.id for each in screen.records] == [f"row-{number:06}" for number in range(len(screen.records))]
        assert screen.table.cursor_row < len(screen.records) < screen.table.cursor_row + 2 * PAGE
        await shared.press("ctrl+end")
        assert len(asked) * PAGE == len(screen.records) < 1000
        assert not screen.pages.complete


def test_every_kind_and_action_has_a_key_of_its_own() -> None:
    """The letters of actions differ from those of the screens."""
    listed = [kind.key for kind in KINDS if kind.key]
    assert len(set(listed)) == len(listed)
    for kind in KINDS:
        of_one = [action.key for action in kind.actions] + [part.key for part in kind.parts]
        for keys in (of_one, [action.key for action in kind.list_actions]):
            assert len(set(keys)) == len(keys)
            assert not set(keys) & {*"fmoyprgqwx0", *listed}


def test_a_letter_is_one_of_its_title_and_the_same_everywhere() -> None:
    """`n` is "the next" of an object, so what makes a new one has it on lists alone."""
    letters: dict[str, str] = {}
    for kind in KINDS:
        of_one: list[ConsoleAction | Part] = [*kind.actions, *kind.parts]
        for each in (*of_one, *kind.list_actions):
            assert each.key in each.title.lower(), (kind.name, each.title)
            assert letters.setdefault(each.title, each.key) == each.key, (kind.name, each.title)
        assert "n" not in {each.key for each in of_one}, kind.name
