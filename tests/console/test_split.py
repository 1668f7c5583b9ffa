"""On a wide terminal the object at the cursor is shown beside its list (docs/console.md "Side by side")."""

from textual.binding import Binding

from cambist.core.usecases.actions.audit import list_audit
from cambist.core.usecases.refunds.refunds import approve_refund
from cambist.frontends.console.action_dialog import ActionDialog
from cambist.frontends.console.catalogue import KINDS
from cambist.frontends.console.detail import DetailScreen
from cambist.frontends.console.listing import ListScreen
from cambist.frontends.console.object_pane import ObjectPane
from tests.console.kit import Sitting, sitting, waiting
from tests.console.test_left import Edge
from tests.refund_app import RefundApp

WIDE, NARROW = (200, 50), (120, 30)


async def three(refunds: RefundApp) -> None:
    for _ in range(3):
        await waiting(refunds)
        await refunds.app.clock.advance(1)


def front(shared: Sitting) -> ListScreen:
    screen = shared.front()
    assert isinstance(screen, ListScreen)
    return screen


def pane(shared: Sitting) -> ObjectPane:
    beside = front(shared).beside
    assert beside is not None
    return beside


def at_cursor(shared: Sitting) -> str:
    return str(front(shared).records[front(shared).table.cursor_row].id)


def test_no_letter_means_two_things_beside_a_list() -> None:
    of_the_screen = {each.key for each in ListScreen.BINDINGS if isinstance(each, Binding)}
    of_marks = {"u"}  # keys that the object handles while nothing is marked
    for kind in KINDS:
        of_the_list = {each.key for each in kind.list_actions}
        of_the_object = {action.key for action in kind.actions} | {part.key for part in kind.parts}
        assert not of_the_object & of_the_list, kind.name
        assert not (of_the_object | of_the_list) & (of_the_screen - of_marks), kind.name


async def test_object_at_the_cursor_is_shown_with_all_its_actions() -> None:
    async with sitting(WIDE, three) as shared:
        await shared.press("2")
        assert pane(shared).record.id == at_cursor(shared)
        await shared.press("down")
        chosen = at_cursor(shared)
        assert pane(shared).record.id == chosen == front(shared).records[1].id
        assert chosen in shared.shown()
        assert "Approve [a]" in shared.shown()
        await shared.press("a")
        assert isinstance(shared.front(), ActionDialog)
        await shared.confirm("asked by phone", {})
        await shared.press("escape")
        assert [row.object_id for row in await list_audit(shared.ports, limit=10)] == [chosen]
        assert pane(shared).record.approved_at
        assert front(shared).records[1] == pane(shared).record
        assert at_cursor(shared) == chosen, "the cursor stays"
        await shared.press("question_mark")
        assert "Whose" in shared.shown()
        await shared.press("escape", "enter")
        screen = shared.front()
        assert isinstance(screen, DetailScreen)
        assert screen.record.id == chosen
        await shared.press("escape", "w")
        assert shared.front().record.id == shared.refunds.app.account.account_id
        await shared.press("escape")
        pane(shared).timeline.focus()
        of = [moment.of for moment in pane(shared).moments]
        pane(shared).timeline.cursor_row = of.index("payment")
        await shared.press("enter")
        assert isinstance(shared.front(), DetailScreen), "a line of the timeline opens what it tells of"
        assert shared.front().record.id == front_of(shared).records[1].payment_id


async def test_letters_act_on_the_marked_objects() -> None:
    async with sitting(WIDE, three) as shared:
        await shared.press("2", "space")
        assert "1 marked: unmark [u]" in shared.shown()
        assert shared.shown().count("Approve [a]") == 1
        await shared.press("a")
        assert shared.front()._record.id == front_of(shared).records[0].id
        await shared.press("escape", "u")
        assert shared.shown().count("Approve [a]") == 1
        assert pane(shared).record.id == at_cursor(shared) == front(shared).records[1].id


def front_of(shared: Sitting) -> ListScreen:
    """The list under the dialog."""
    screen = shared.app.screen_stack[-2]
    assert isinstance(screen, ListScreen)
    return screen


async def test_a_terminal_becomes_narrow_and_wide_again_and_the_cursor_stays() -> None:
    async with sitting(NARROW, three) as shared:
        await shared.press("2", "down", "down")
        chosen = at_cursor(shared)
        assert front(shared).beside is None
        assert "Approve" not in shared.shown()
        await shared.press("a", "w")
        assert isinstance(shared.front(), ListScreen), "nothing is begun with what does not stand there"
        for _ in range(2):
            await shared.pilot.resize_terminal(*WIDE)
            await shared.settle()
            assert pane(shared).record.id == at_cursor(shared) == chosen
            assert "Approve [a]" in shared.shown()
            await shared.press("tab")
            await shared.pilot.resize_terminal(*NARROW)
            await shared.settle()
            assert front(shared).beside is None
            assert at_cursor(shared) == chosen
            assert "Approve [a]" not in shared.shown()
            assert front(shared).focused is front(shared).table


async def test_new_rows_at_the_top_do_not_move_the_selected_object() -> None:
    async with sitting(WIDE, three) as shared:
        await shared.press("2", "down")
        chosen = at_cursor(shared)
        added = await waiting(shared.refunds)
        await approve_refund(shared.ports, chosen)  # a colleague acts
        front(shared)._refresh()
        await shared.settle()
        assert front(shared).records[0].id == added
        assert at_cursor(shared) == pane(shared).record.id == chosen
        assert pane(shared).record.approved_at


async def test_keys_work_while_an_object_loads_and_the_last_one_is_shown() -> None:
    async with sitting(WIDE, three) as shared:
        await shared.press("1")
        edge = shared.storage.gate = Edge()
        front(shared).refresh_beside()
        await shared.pilot.press("down", "down")
        assert front(shared).table.cursor_row == 2
        assert pane(shared).record is None
        assert at_cursor(shared) in shared.shown(), "its id is told at once"
        await shared.pilot.press("a")
        assert isinstance(shared.front(), ListScreen), "nothing is done with what is not read yet"
        shared.storage.gate = None
        edge.open()
        await shared.settle()
        assert pane(shared).record.id == at_cursor(shared) == front(shared).records[2].id


async def test_a_list_of_nothing_has_nothing_beside_it() -> None:
    async with sitting(WIDE, three) as shared:
        await shared.press("2")
        front(shared).ask_for("status", "failed")
        await shared.settle()
        assert not front(shared).records
        assert pane(shared).object_id == ""
        assert "Approve" not in shared.shown()
        assert pane(shared).timeline.row_count == 0
        await shared.press("a", "p", "w", "enter")
        assert isinstance(shared.front(), ListScreen)


async def test_an_object_whose_screen_is_left_while_it_is_laid_out_ends_nothing() -> None:
    """Its widgets are gone before its mount or resize events arrive."""
    async with sitting(WIDE, three) as shared:
        await shared.press("2")
        beside = pane(shared)
        await beside.remove_children()
        beside.on_mount()
        await shared.pilot.resize_terminal(180, 50)
        beside.withhold(True)
        front(shared).follow()
        beside.forget()
        await shared.press("escape")
        assert not isinstance(shared.front(), ListScreen)
