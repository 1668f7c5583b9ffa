"""Confirmation dialog of every operator action: changes, reason and outcome, including the case that another operator
was faster."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Button, Input, Label, Select, Static

from ...core.domain.accounts.accounts import Mode
from ...core.domain.money import Rub
from ...core.domain.operators.audit import REASON_LONGEST, OperatorAction
from ...core.domain.operators.guarded import Guarded
from ...core.usecases.accounts.accounts import list_accounts
from ...core.usecases.actions.audit import acting, has_written, note
from ...core.usecases.actions.decisions import Waits
from ...ports.faults import OutcomeUnknown
from .asking import NO_ANSWER, AskingDialog, background, note_slip, words
from .context import ConsoleContext
from .facts import Facts
from .kinds.kinds import Change, ConsoleAction, Doing, Entry, Once, Tells
from .texts import amounts_grouped, brief, plain

_ID = 24
"""Width of an object's id above its changes when the dialog covers several objects."""
_SCROLLS = {"up": -1, "down": 1, "pageup": -10, "pagedown": 10}


class ActionDialog(AskingDialog[bool]):
    """Dialog that returns whether the action was tried. If it was, the screen behind it reads its data again."""

    AUTO_FOCUS = "Input, Select"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close"),
        Binding("ctrl+s", "confirm", "Confirm", priority=True),
        Binding("ctrl+l", "last_reason", "Last reason", priority=True, show=False),
        *(Binding(key, f"scroll({lines})", show=False) for key, lines in _SCROLLS.items()),
    ]

    def __init__(self, shared: ConsoleContext, action: ConsoleAction, *records: Any) -> None:
        """`records`: objects to act on, one after the other. A single None stands for an action of the list."""
        super().__init__()
        self._shared = shared
        self._action = action
        self._records = records
        self._record = record = records[0]
        self._entries = [entry for entry in action.entries if entry.wanted(record)]
        self._tried = False
        self._busy = False
        self._secrets: tuple[tuple[str, str], ...] = ()

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="dialog", can_focus=False):
            count = len(self._records)
            yield Label(
                self._action.title if count == 1 else f"{self._action.title} · {count}", id="title", markup=False
            )
            if self._record is not None and count == 1:
                yield Label(plain(self._record.id), id="subject", markup=False)
            if self._action.tells is not None:
                yield Facts("looking how much…", id="stakes")
            yield Static(_table(self._changes()), id="changes")
            for entry in self._entries:
                with Horizontal(classes="entry"):
                    yield Label(entry.label, classes="label", markup=False)
                    yield _field(entry)
            with Horizontal(classes="entry"):
                yield Label(f"Reason{'' if self._action.reason_needed else ' (may be empty)'}", classes="label")
                last = self._shared.reasons.get(self._action.name)
                offered = "" if last is None else f"^l: {plain(last)}"
                yield Input(id="reason", max_length=REASON_LONGEST, placeholder=offered, compact=True)
            yield Static("", id="outcome", markup=False)
            yield Vertical(id="secrets")
            with Horizontal(id="buttons"):
                yield Button(f"{self._action.title} ^s", id="confirm", variant="warning", compact=True)
                yield Button("Close esc", id="leave", compact=True)

    def on_mount(self) -> None:
        if any(entry.accounts for entry in self._entries):
            self._offer_accounts()
        self._tell_stakes()

    @background("accounts")
    async def _offer_accounts(self) -> None:
        """Fill in the account names. If they cannot be read, the selection stays empty and the dialog asks for an
        account."""
        found = await self.answer(list_accounts(self._shared.ports))
        pairs = [(f"{plain(each.name)}  {each.id}", each.id) for each in found]
        for entry in self._entries:
            if entry.accounts:
                self.query_one(f"#entry-{entry.name}", Select).set_options(pairs)

    def _tell_stakes(self) -> None:
        """Read again what the action affects, from the values entered so far."""
        if self._action.tells is not None and not self._busy and not self._tried:
            self._read_stakes(self._action.tells, self._given())

    @background("stakes", exclusive=True)
    async def _read_stakes(self, tells: Tells, given: Mapping[str, str]) -> None:
        """Show the amount, the merchant and the remaining balance. If they cannot be read, the dialog says so and still
        allows the action."""
        try:
            found: list[tuple[str, Any]] = []
            for record in self._records:
                found += [("", plain(record.id))] if len(self._records) > 1 else []
                found += await self.answer(tells(self._shared.ports, record, given))
        except NO_ANSWER as fault:
            found = [("", f"how much could not be read: {words(fault)}")]
        if not self._tried:
            self.query_one("#stakes", Facts).show(found)

    @on(Input.Changed)
    @on(Select.Changed)
    def _follow(self, event: Input.Changed | Select.Changed) -> None:
        """Show the changes that follow from the values entered so far."""
        if self._action.follows is not None and not self._tried:
            given = self._given()
            changes = [*self._action.follows(self._record, given), *self._by_two(self._record, given)]
            self.query_one("#changes", Static).update(_table(changes))
        if event.control.id != "reason":
            self._tell_stakes()

    def _changes(self) -> list[Change]:
        """Return the values before and after the action. With several objects, each object's id precedes its
        changes."""
        found = []
        for record in self._records:
            found += [Change(brief(plain(record.id), _ID), "", "")] if len(self._records) > 1 else []
            found += [*self._action.changes(record), *self._by_two(record, {})]
        return found

    def _by_two(self, record: Any, given: Mapping[str, str]) -> list[Change]:
        """Return a line that says that a second operator must confirm, if that is so."""
        guarded, rules = self._action.by_two(record, given), self._shared.ports.four_eyes
        if guarded is None or guarded not in rules.actions or getattr(record, "mode", Mode.LIVE) is not Mode.LIVE:
            return []
        when = f" (above {Rub(rules.refund_above)} RUB)" if guarded is Guarded.REFUNDS and rules.refund_above else ""
        return [Change("takes effect", "-", f"once another operator confirms it{when}")]

    @on(Button.Pressed, "#leave")
    def action_leave(self) -> None:
        """Close the dialog, unless the action is still running: its outcome would go unseen."""
        if not self._busy:
            self.dismiss(self._tried)

    def action_scroll(self, lines: int) -> None:
        """Scroll the dialog, because its text may be longer than the screen."""
        self.query_one("#dialog", VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_last_reason(self) -> None:
        """Copy the last reason used for this action."""
        reason = self.query_one("#reason", Input)
        reason.value = self._shared.reasons.get(self._action.name, reason.value)
        reason.focus()

    @on(Button.Pressed, "#confirm")
    @on(Input.Submitted)
    def action_confirm(self) -> None:
        """Run the action once."""
        if self._busy or self._tried:
            return
        given = self._given()
        missing = [entry.label for entry in self._entries if entry.needed and not given[entry.name].strip()]
        if self._action.reason_needed and not given["reason"].strip():
            missing.append("Reason")
        if missing:
            self._say(f"Still needed: {', '.join(missing)}", bad=True)
            return
        self._busy = True
        self._say("working…")
        self._do(given)

    def fail(self, fault: Exception) -> None:
        """Show the fault below the entries."""
        self._say(f"{words(fault)}: close, and try again", bad=True)

    @background("action")
    async def _do(self, given: Mapping[str, str]) -> None:
        """Run the action and show its outcome. The dialog stays open until then; if the console ends first, the outcome
        is not shown."""
        if given["reason"].strip():
            self._shared.reasons[self._action.name] = given["reason"]
        if len(self._records) == 1:
            outcome, good = await self.answer(self._outcome(self._record, given))
        else:
            outcome, good = await self._each(given)
        self._busy, self._tried = False, True
        self._say(outcome.text if isinstance(outcome, Once) else outcome, good=good, bad=not good)
        if isinstance(outcome, Once):
            await self._show(outcome)
        self.query_one("#confirm", Button).display = False
        self.query_one("#secrets Button" if self._secrets else "#leave", Button).focus()

    async def _each(self, given: Mapping[str, str]) -> tuple[str, bool]:
        """Run the action on each object and return a summary. Each is a separate action, so one refusal does not stop
        the rest."""
        count, well = len(self._records), True
        told: dict[str, list[str]] = {}
        """Ids of the objects that did not succeed, by outcome."""
        counts = Counter[str]()
        for number, record in enumerate(self._records, 1):
            self._say(f"{number} of {count}…")
            outcome, good = await self.answer(self._outcome(record, given))
            told.setdefault(str(outcome), []).extend([] if good else [plain(record.id)])
            counts[str(outcome)] += 1
            well = well and good
        return "\n".join(f"{counts[text]} of {count}: {' '.join([text, *ids])}" for text, ids in told.items()), well

    async def _outcome(self, record: Any, given: Mapping[str, str]) -> tuple[str | Once, bool]:
        """Run the action on one object. Return the outcome and whether it succeeded."""
        action = self._action
        wanted = OperatorAction(
            operator=self._shared.operator,
            name=action.name,
            object_id=None if record is None else record.id,
            reason=given["reason"],
            seen_version=record.version if action.guarded and record is not None else None,
        )
        try:
            ports = acting(self._shared.ports, wanted)
            if action.reads:
                await note(self._shared.ports, wanted, account_id=getattr(record, "account_id", None))
                ports = self._shared.ports
            outcome = await action.run(Doing(ports=ports, record=record, given=given, tell=self._say))
        except Waits as waiting:
            until = f"{waiting.action.expires_at:%d %b %H:%M}"
            return f"Not done yet: it waits until {until} UTC for another operator, on home and in W.", True
        except OutcomeUnknown as fault:
            return f"It may have been done: look before you try again. {words(fault)}", False
        except (*NO_ANSWER, ValueError) as fault:
            return f"Not done. {words(fault)}", False
        except Exception as fault:  # noqa: BLE001 - as above, and who asked must hear that nobody knows
            note_slip(action.name, fault)
            return f"It may have been done: look before you try again. {words(fault)}", False
        if action.guarded and not action.reads and not has_written(ports):
            return "Nothing was done: it is so already. A colleague was quicker, it seems.", True
        return outcome, True

    async def _show(self, outcome: Once) -> None:
        """Show the secrets this one time in place of the entries."""
        self._secrets = outcome.secrets
        self.query("#changes, #stakes, .entry").set(display=False)
        await self.query_one("#secrets", Vertical).mount_all(
            Vertical(
                Label(name, classes="label", markup=False),
                Static(secret, markup=False),
                Button("Copy", name=str(number), compact=True),
                classes="secret",
            )
            for number, (name, secret) in enumerate(self._secrets)
        )

    @on(Button.Pressed, "#secrets Button")
    def _copy(self, event: Button.Pressed) -> None:
        name, secret = self._secrets[int(event.button.name or 0)]
        self.app.copy_to_clipboard(secret)
        self.notify(f"Copied: {name}")

    def _given(self) -> dict[str, str]:
        given = dict.fromkeys((entry.name for entry in self._action.entries), "")
        given["reason"] = self.query_one("#reason", Input).value
        for entry in self._entries:
            field = self.query_one(f"#entry-{entry.name}")
            value = field.value if isinstance(field, Input | Select) else ""
            given[entry.name] = value if isinstance(value, str) else ""
        return given

    def _say(self, text: str, *, good: bool = False, bad: bool = False) -> None:
        if not self.is_running:
            return
        outcome = self.query_one("#outcome", Static)
        outcome.set_class(good, "good")
        outcome.set_class(bad, "bad")
        outcome.update(amounts_grouped(text))


def _field(entry: Entry) -> Widget:
    if entry.accounts:
        return Select[str]([], prompt="choose one", id=f"entry-{entry.name}", compact=True)
    if entry.choices:
        pairs = [(choice, choice) for choice in entry.choices]
        return Select(pairs, value=entry.default, allow_blank=False, id=f"entry-{entry.name}", compact=True)
    return Input(entry.default, id=f"entry-{entry.name}", compact=True, password=entry.is_secret)


def _table(changes: list[Change]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    for style in ("", "dim", "bold"):
        table.add_column(style=style, overflow="fold")
    for change in changes:
        arrow = "→" if change.before or change.after else ""
        table.add_row(Text(change.field), Text(plain(change.before)), Text(arrow), Text(plain(change.after)))
    return table
