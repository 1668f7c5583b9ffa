"""The table of lists, timelines and home, and the bars of possible actions: keys, mouse, and drawing."""

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rich.text import Text
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from cambist.frontends.console.app import Console
from cambist.frontends.console.facts import Facts
from cambist.frontends.console.offers import Offer, Offers
from cambist.frontends.console.rows import Rows
from tests.console.kit import prompt

SIZE = (30, 6)


class Shown(App[None]):
    """A table of two columns, facts and offers, and the messages they sent."""

    CSS_PATH = Path(inspect.getfile(Console)).with_name("console.tcss")

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def compose(self) -> ComposeResult:
        yield Offers(id="offers")
        yield Facts(id="told-of")
        yield Rows(id="rows")

    @property
    def rows(self) -> Rows:
        return self.query_one(Rows)

    def on_rows_highlighted(self, message: Rows.Highlighted) -> None:
        self.told.append(f"at {message.cursor_row}")

    def on_rows_selected(self, message: Rows.Selected) -> None:
        self.told.append(f"open {message.cursor_row}")

    def on_offers_taken(self, message: Offers.Taken) -> None:
        self.told.append(f"take {message.key}")

    def lines(self) -> list[str]:
        """Return the lines on the screen."""
        return [strip.text.rstrip() for strip in self.screen._compositor.render_strips()]


@asynccontextmanager
async def shown(count: int) -> AsyncIterator[tuple[Shown, Pilot[None]]]:
    """The table with so many lines; five of them are seen below the head."""
    console = Shown()
    with prompt(console):
        async with console.run_test(size=SIZE) as pilot:
            console.query_one(Facts).display = console.query_one(Offers).display = False
            console.rows.rule([(Text("name"), 8), (Text("n", justify="right"), 4)])
            console.rows.show(map(line, range(count)))
            console.rows.focus()
            await pilot.pause()
            console.told.clear()
            yield console, pilot


def line(number: int) -> list[Text]:
    return [Text(f"row-{number}"), Text(str(number), justify="right")]


async def test_the_cursor_goes_by_lines_and_pages_and_is_always_seen() -> None:
    async with shown(20) as (console, pilot):
        for keys, row, seen in (
            (["up"], 0, 0), (["down"] * 5, 5, 1), (["pagedown"], 10, 6), (["pageup"] * 3, 0, 0),
            (["ctrl+end"], 19, 15), (["down", "pagedown"], 19, 15), (["ctrl+home"], 0, 0),
        ):  # fmt: skip
            await pilot.press(*keys)
            assert (console.rows.cursor_row, console.rows.scroll_offset.y) == (row, seen), keys
            assert console.lines()[0].startswith(" name         n"), "the head stays"
            assert f" row-{row} " in "\n".join(console.lines())
        await pilot.press("ctrl+end")
        await pilot.resize_terminal(30, 3)
        await pilot.pause()
        assert " row-19 " in "\n".join(console.lines())
        console.told.clear()
        await pilot.press("up", "enter")
        assert console.told == ["at 18", "open 18"]


async def test_exactly_one_painted_line_is_the_cursors() -> None:
    """The line that the cursor left is painted anew, too."""
    async with shown(20) as (console, pilot):
        ground = console.rows.get_component_rich_style("rows--cursor").bgcolor
        for keys in ([], ["down"], ["down"], ["up"], ["pagedown"], ["ctrl+end"], ["ctrl+home"], ["down"]):
            await pilot.press(*keys)
            await pilot.pause()
            painted = [next(iter(strip)).style for strip in console.screen._compositor.render_strips()]
            marked = [y for y, style in enumerate(painted) if style is not None and style.bgcolor == ground]
            assert marked == [console.rows.cursor_row - console.rows.scroll_offset.y + 1], keys


async def test_a_click_goes_to_a_line_and_another_opens_it() -> None:
    async with shown(3) as (console, pilot):
        for y, told in ((0, []), (5, []), (2, ["at 1"]), (2, ["open 1"]), (1, ["at 0"])):
            console.told.clear()
            await pilot.click(Rows, offset=(3, y))
            assert console.told == told, y
        plain = console.rows.render_line(3)
        await pilot.hover(Rows, offset=(3, 3))
        assert console.rows.render_line(3) != plain
        await pilot.press("down")
        assert console.rows.render_line(3) == plain, "the mouse is not looked at while one types"
        await pilot.hover(Rows, offset=(3, 3))
        await pilot.hover(Rows, offset=(3, 0))
        assert console.rows.render_line(3) == plain


async def test_other_lines_leave_the_cursor_as_near_as_there_is_one() -> None:
    async with shown(20) as (console, pilot):
        await pilot.press("ctrl+end")
        console.rows.show(map(line, range(5)))
        assert console.rows.cursor_row == 4
        console.rows.show([])
        assert (console.rows.cursor_row, console.rows.row_count) == (-1, 0)
        await pilot.pause()
        console.told.clear()
        await pilot.press("enter", "down", "up", "pagedown", "ctrl+end", "ctrl+home")
        assert console.told == []
        assert console.rows.cursor_row == -1
        console.rows.show(map(line, range(3)))
        await pilot.pause()
        assert console.told == ["at 0"]
        console.rows.show(map(line, range(20)), 2)
        console.rows.add(map(line, range(20, 40)))
        assert (console.rows.cursor_row, console.rows.row_count) == (2, 40)
        await pilot.pause()
        console.told.clear()
        console.rows.show(map(line, range(20)))
        await pilot.pause()
        assert console.told == ["at 2"], "the line at the cursor may be another"
        console.rows.rule([(Text("name"), 10)])
        console.rows.show([Text(f"row-{number}")] for number in range(20))
        assert console.rows.cursor_row == 2


async def test_cells_are_cut_to_their_columns_whatever_letters_are_in_them() -> None:
    async with shown(0) as (console, pilot):
        console.rows.show([[Text("far too long"), Text("7", justify="right")], [Text("漢字漢字漢字"), Text("12345")]])
        await pilot.pause()
        assert console.lines()[1:3] == [" far too…     7", " 漢字漢 …  123…"]
        console.rows.put(1, [Text("put"), Text("8")])
        assert console.lines()[2] == " put       8"
        console.rows.rule([(Text("first"), 20), (Text("last"), 20)])
        console.rows.show([[Text("one"), Text("x" * 20)]])
        await pilot.pause()
        await pilot.press("end")
        assert console.lines()[1].endswith("x" * 20)
        await pilot.press("home")
        assert console.lines()[1].startswith(" one ")


async def test_a_line_has_its_own_colours_and_at_the_cursor_those_of_the_cursor() -> None:
    async with shown(0) as (console, pilot):
        text = Text("paid", style="green").append(" by card", style="italic")
        console.rows.rule([(Text("status"), 12)])
        console.rows.show([[text], [text]])
        await pilot.pause()
        cursor, other = ({s.text: s.style for s in console.rows.render_line(y) if s.text.strip()} for y in (1, 2))
        colours = [None if style is None or style.color is None else style.color.name for style in other.values()]
        assert colours == ["green", "green"]
        assert [bool(style and style.italic) for style in other.values()] == [False, True]
        assert not {"green"} & {style.color.name for style in cursor.values() if style and style.color}


async def test_offers_take_as_many_lines_as_they_need_and_are_clicked() -> None:
    async with shown(1) as (console, pilot):
        offers = console.query_one(Offers)
        offers.show([Offer("Approve", "a"), Offer("Note", "t"), Offer("Reject", "j", ends=True)], 30)
        await pilot.pause()
        assert console.lines()[:2] == ["  Approve [a]    Note [t]", "  Reject [j]"]
        for x, y in ((0, 0), (3, 0), (15, 0), (18, 0), (4, 1), (20, 1)):
            await pilot.click(Offers, offset=(x, y))
        assert console.told == ["take a", "take t", "take j"]
        plain = offers.render()
        await pilot.hover(Offers, offset=(3, 0))
        assert offers.render() != plain
        offers.show([], 30)
        await pilot.pause()
        assert "Approve" not in "\n".join(console.lines())


async def test_facts_stand_under_one_another_and_a_long_one_goes_on_below_itself() -> None:
    async with shown(0) as (console, pilot):
        facts = console.query_one(Facts)
        facts.display = True
        facts.show([("status", "paid"), ("none", None), ("address", "https://example.org/a/very/long/path")])
        await pilot.pause()
        assert console.lines()[:3] == ["status   paid", "address  https://example.org/a", "         /very/long/path"]
        assert facts.size.height == 3
        await pilot.resize_terminal(60, 6)
        await pilot.pause()
        assert facts.size.height == 2
        facts.say("There is none.")
        await pilot.pause()
        assert (console.lines()[0], facts.size.height) == ("There is none.", 1)
