"""Filters and order of a list (docs/console.md "Filters")."""

from textual.widgets import Label

from ...core.usecases.browse.browse import LOOKED_AT
from .asking import background
from .choose_dialog import AskDialog, ChooseDialog
from .context import ConsoleContext
from .facts import tell
from .kinds.kinds import Filter, Kind, Offered, Wish
from .marks import MarkingScreen
from .texts import plain

_WALKED = f" (in about the next {LOOKED_AT:,})"
"""Suffix of a filter without an index: the number of records that it scans for matches."""


class FilteringScreen(MarkingScreen):
    """A screen whose content depends on filters and an order."""

    def __init__(self, shared: ConsoleContext, kind: Kind, wish: Wish | None = None) -> None:
        super().__init__(shared, kind.title)
        self.kind = kind
        self.wish = wish or Wish(order=kind.orders[0])

    def tell_wish(self) -> None:
        """Show the current filters and order."""
        walked = {each.name for each in self.kind.filters if each.walks(self.wish.filters.get(each.name, ""))}
        told = [
            f"{name} {plain(self.shared.names.of(value))}{_WALKED if name in walked else ''}"
            for name, value in self.wish.filters.items()
            if value
        ]
        tell(self.query_one("#wish", Label), " · ".join([f"order: {self.wish.order}", *told]))

    def ask_for(self, name: str, value: str) -> None:
        """Set a filter, or remove it with an empty value."""
        filters = {**self.wish.filters, name: value}
        self.wish = Wish(filters=filters, order=self.wish.order)
        self.action_reload()

    def action_mode(self) -> None:
        """Switch from both modes to live, to test, and back to both."""
        self._next_value(next((each for each in self.kind.filters if each.name == "mode"), None))

    def _next_value(self, asked: Filter | None) -> None:
        if asked is not None:
            choices = ("", *asked.choices)
            present = self.wish.filters.get(asked.name, "")
            self.ask_for(asked.name, choices[(choices.index(present) + 1) % len(choices)])

    def action_order(self) -> None:
        """Switch to the next order of the kind."""
        orders = self.kind.orders
        at = orders.index(self.wish.order) if self.wish.order in orders else 0
        self.wish = Wish(filters=self.wish.filters, order=orders[(at + 1) % len(orders)])
        self.action_reload()

    @background("filter", exclusive=True)
    async def action_filter(self) -> None:
        """Let the operator choose a filter and then its value."""
        filters = self.kind.filters
        if not filters:
            return
        titles = [self._titled(each) for each in filters]
        if any(self.wish.filters.values()):
            titles.append("take all filters away")
        at = await self.answer(self.app.push_screen_wait(ChooseDialog("Filter by", titles)))
        if at == len(filters):
            self.wish = Wish(order=self.wish.order)
            self.action_reload()
        elif at is not None:
            await self._ask_value(filters[at])

    def _titled(self, asked: Filter) -> str:
        return f"{asked.name}: {plain(self.shared.names.of(self.wish.of(asked.name) or 'all'))}"

    async def _ask_value(self, asked: Filter) -> None:
        if asked.hint:
            dialog = AskDialog(asked.name, asked.hint, self.wish.of(asked.name) or "")
            text = await self.answer(self.app.push_screen_wait(dialog))
            if text is not None:
                self.ask_for(asked.name, text.strip())
            return
        values: Offered | None = [(each, each) for each in asked.choices]
        if asked.offered is not None:
            values = await self.ask(asked.offered(self.shared.ports, self.wish))
        if values is None or not self.is_active:
            return
        offered = ChooseDialog(asked.name, ["all", *(plain(shown) for _, shown in values)])
        taken = await self.answer(self.app.push_screen_wait(offered))
        if taken is not None:
            self.ask_for(asked.name, "" if taken == 0 else values[taken - 1][0])
