"""`?` lists the keys of the current screen, all lists, and the keys that work everywhere (docs/console.md "Keys")."""

import pytest

from cambist.frontends.console.catalogue import KINDS
from cambist.frontends.console.context import ConsoleScreen
from cambist.frontends.console.help_dialog import HelpDialog
from tests.console.kit import SIZES, Sitting, both, sitting


async def helped(shared: Sitting) -> dict[str, str]:
    """Return the help of `?` for the screen in front, by key, and close the dialog."""
    behind = shared.front()
    await shared.press("question_mark")
    dialog = shared.front()
    assert isinstance(dialog, HelpDialog)
    assert "Keys · " in shared.shown()
    told = dict(dialog.rows)
    await shared.press("question_mark")
    assert shared.front() is behind
    return told


@pytest.mark.parametrize("size", SIZES)
async def test_each_screen_lists_exactly_its_own_keys(size: tuple[int, int]) -> None:
    async with sitting(size, both) as shared:
        at_home = await helped(shared)
        await shared.press("question_mark", "end")
        assert "works with shift held." in shared.shown(), "no line is cut"
        await shared.press("question_mark")
        assert at_home["space"] == "Mark"
        for kind in KINDS:
            if kind.key:
                assert at_home[kind.key] == kind.title
        assert at_home["q"] == "Quit"
        assert "n" not in at_home
        await shared.press("2", "enter")
        front = shared.front()
        assert isinstance(front, ConsoleScreen)
        at_refund = await helped(shared)
        assert {action.key: action.title for action in front.actions()}.items() <= at_refund.items()
        assert at_refund["w"] == "Whose"
        assert "n" not in at_refund, "it is the only one"
        await shared.press("w")
        at_account = await helped(shared)
        assert at_account["a"] == "Payments"
        assert "w" not in at_account
        await shared.press("slash", "question_mark")
        assert not isinstance(shared.front(), HelpDialog), "in a field it is a letter"
