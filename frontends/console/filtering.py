"""What a list is asked for: its filters and its order (docs/console.md "Filters")."""

from textual.widgets import Label

from ...core.usecases.accounts.accounts import list_accounts
from ...core.usecases.browse.browse import LOOKED_AT
from .asking import background
from .choose_dialog import AskDialog, ChooseDialog
from .context import ConsoleContext
from .kinds.kinds import Filter, Kind, Wish
from .marks import MarkingScreen
from .texts import plain

_WALKED = f" (in the next {LOOKED_AT:,})"
"""Said of a filter that has no index: of how many records it shows what fits."""


class FilteringScreen(MarkingScreen):
    """A screen that reads what one asks for."""

    def __init__(self, shared: ConsoleContext, kind: Kind, wish: Wish | None = None) -> None:
        super().__init__(shared, kind.title)
        self.kind = kind
        self.wish = wish or Wish(order=kind.orders[0])

    def tell_wish(self) -> None:
        """Show what is asked for."""
        walked = {each.name for each in self.kind.filters if each.is_walked}
        told = [
            f"{name} {plain(self.shared.names.of(value))}{_WALKED if name in walked else ''}"
            for name, value in self.wish.filters.items()
            if value
        ]
        self.query_one("#wish", Label).update(" · ".join([f"order: {self.wish.order}", *told]))

    def ask_for(self, name: str, value: str) -> None:
        """Filter by one more thing, or, with an empty value, by one less."""
        filters = {**self.wish.filters, name: value}
        self.wish = Wish(filters=filters, order=self.wish.order)
        self.action_reload()

    def action_mode(self) -> None:
        """Both modes, live, test, and round."""
        self._next_value(next((each for each in self.kind.filters if each.name == "mode"), None))

    def _next_value(self, asked: Filter | None) -> None:
        if asked is not None:
            choices = ("", *asked.choices)
            present = self.wish.filters.get(asked.name, "")
            self.ask_for(asked.name, choices[(choices.index(present) + 1) % len(choices)])

    def action_order(self) -> None:
        """The next of the kind's orders."""
        orders = self.kind.orders
        at = orders.index(self.wish.order) if self.wish.order in orders else 0
        self.wish = Wish(filters=self.wish.filters, order=orders[(at + 1) % len(orders)])
        self.action_reload()

    @background("filter", exclusive=True)
    async def action_filter(self) -> None:
        """Choose a filter, then its value."""
        filters = self.kind.filters
        if not filters:
            return
        titles = [f"{each.name}: {plain(self.wish.filters.get(each.name) or 'all')}" for each in filters]
        at = await self.answer(self.app.push_screen_wait(ChooseDialog("Filter by", titles)))
        if at is None:
            return
        values, shown = list(filters[at].choices), list(filters[at].choices)
        if filters[at].hint:
            present = self.wish.filters.get(filters[at].name, "")
            asked = AskDialog(filters[at].name, filters[at].hint, present)
            text = await self.answer(self.app.push_screen_wait(asked))
            if text is not None:
                self.ask_for(filters[at].name, text.strip())
            return
        if not values:
            accounts = await self.ask(list_accounts(self.shared.ports))
            if accounts is None or not self.is_current:
                return
            values, shown = [each.id for each in accounts], [f"{each.name}  {each.id}" for each in accounts]
        offered = ChooseDialog(filters[at].name, ["all", *map(plain, shown)])
        taken = await self.answer(self.app.push_screen_wait(offered))
        if taken is not None:
            self.ask_for(filters[at].name, ["", *values][taken])
