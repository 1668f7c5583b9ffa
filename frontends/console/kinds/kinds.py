"""Description of a kind of object as data. Lists, details, filters and dialogs are the same for all kinds (listing.py,
detail.py, dialogs); a new kind is one file with one `Kind`, named in catalogue.py."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ....core.domain.operators.guarded import Guarded
from ....core.usecases.accounts.accounts import list_accounts, storable
from ....core.usecases.browse.timeline import Moment, read_timeline
from ....ports.bundle import Ports
from ....ports.storage import R
from ..columns import Column

Tell = Callable[[str], None]
"""Reports the progress of an action."""
Told = list[tuple[str, str]]
"""Pairs of a name and a value."""
Tells = Callable[[Ports, Any, Mapping[str, str]], Awaitable[Told]]
"""Reads the effects of an action from the record and the values entered so far."""

ANY = ""
"""Filter value for no restriction."""


Offered = list[tuple[str, str]]
"""Values to choose from, each with its display text."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter by one of the `choices`, by a value from `offered`, or, with a `hint`, by any text."""

    name: str
    choices: tuple[str, ...] = ()
    hint: str = ""
    """Describes the expected text."""
    offered: Callable[[Ports, "Wish"], Awaitable[Offered]] | None = None
    """Reads the available values, which may depend on the other filters."""
    is_walked: bool = False
    """No index supports this filter, so a page scans a limited number of records."""
    walked: tuple[str, ...] = ()
    """The choices that no index supports."""

    def walks(self, value: str) -> bool:
        """Return whether a page by this value scans records."""
        return self.is_walked or value in self.walked


MODE = Filter(name="mode", choices=("live", "test"))


async def _accounts(ports: Ports, _wish: "Wish") -> Offered:
    return [(each.id, f"{each.name}  {each.id}") for each in await list_accounts(ports)]


ACCOUNT = Filter(name="account", offered=_accounts)


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """Filters and order of a list."""

    filters: Mapping[str, str] = {}
    order: str = ""
    """One of the kind's `orders`."""

    def of(self, name: str) -> str | None:
        """Return the value of a filter, or None if it is not set."""
        return self.filters.get(name) or None


class Change(msgspec.Struct, frozen=True):
    """One line of a confirmation: the value before and after the action."""

    field: str
    before: str
    after: str


def _always(_record: Any) -> bool:
    return True


def _by_one(_record: Any, _given: Mapping[str, str]) -> Guarded | None:
    return None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One value that the operator enters for an action. With `choices` it is one of them."""

    name: str
    label: str
    default: str = ""
    choices: tuple[str, ...] = ()
    accounts: bool = False
    """The value is the id of an account, chosen by name."""
    needed: bool = False
    wanted: Callable[[Any], bool] = _always
    """Returns whether the action needs this entry for the record. Otherwise its value is empty."""
    is_secret: bool = False
    """The text is hidden while it is typed."""


class Once(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome with secrets, shown this one time with a copy button each. Its repr hides them."""

    text: str
    secrets: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return f"Once(text={self.text!r}, …)"


class Doing(msgspec.Struct, frozen=True, kw_only=True):
    """Input of a running action."""

    ports: Ports
    """Ports that write the audit entry together with the action's changes."""
    record: Any
    """The record as the operator saw it, or None for an action of the list."""
    given: Mapping[str, str]
    """Values of the entries, and `reason`."""
    tell: Tell


class ConsoleAction(msgspec.Struct, frozen=True, kw_only=True):
    """An operator action with its confirmation."""

    name: str
    """Name in the audit log, as on the command line: `refund.approve`."""
    title: str
    key: str
    """Letter that starts it on the detail or list screen."""
    run: Callable[[Doing], Awaitable[str | Once]]
    """Runs the action and returns the outcome as text. Raises: Refusal, which the dialog shows."""
    changes: Callable[[Any], list[Change]]
    follows: Callable[[Any, Mapping[str, str]], list[Change]] | None = None
    """Returns the changes for the values entered so far, if they depend on those."""
    allowed: Callable[[Any], bool] = _always
    tells: Tells | None = None
    """Reads the facts shown for an action that moves money: amount, merchant, and remaining balance. Read when the
    dialog opens and again after each entry (kinds/stakes.py)."""
    entries: tuple[Entry, ...] = ()
    reason_needed: bool = True
    reads: bool = False
    """The action changes nothing and is audited before it runs, such as showing personal data."""
    by_two: Callable[[Any, Mapping[str, str]], Guarded | None] = _by_one
    """Returns the guarded effect for the values entered so far, which an installation may require a second operator
    for."""
    guarded: bool = True
    """Refuse the action if the object changed since the operator saw it."""
    ends: bool = False
    """The action takes something away or cannot be undone. It is shown apart, after the others."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A list that belongs to an object, such as the shops of an account or the items of a statement."""

    title: str
    key: str
    """Letter that opens it on the detail screen."""
    of: str
    """Name of the listed kind."""
    by: str
    """Name of the filter that takes the object's id."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of object."""

    name: str
    """The same name as in `ActionItem.of` and `Hit.kind`."""
    title: str
    key: str
    """Key that opens its list from everywhere. If empty, the list opens only as a part of other objects."""
    columns: tuple[Column, ...]
    read: Callable[[Ports, Wish, Any, int], Awaitable[list[Any]]]
    """Reads the records after a given one (None: from the start), up to a limit."""
    get: Callable[[Ports, str], Awaitable[Any]]
    """Returns the record with this id, or None."""
    facts: Callable[[Any], list[tuple[str, Any]]]
    """Returns the names and values of the detail, without personal data: see `private`."""
    figures: Callable[[Ports, Any], Awaitable[Told]] | None = None
    """Reads lines shown above the facts, such as an account's balance."""
    body: Callable[[Any], str] | None = None
    """Returns a text of several lines shown below the facts, such as a webhook's JSON. No personal data."""
    filters: tuple[Filter, ...] = (MODE, ACCOUNT)
    orders: tuple[str, ...] = ("newest", "oldest")
    actions: tuple[ConsoleAction, ...] = ()
    list_actions: tuple[ConsoleAction, ...] = ()
    """Actions without an object, such as creating one or settling."""
    parts: tuple[Part, ...] = ()
    headline: Callable[[Ports], Awaitable[str]] | None = None
    """Reads the line above the list."""
    private: Callable[[Ports, Any], dict[str, str]] | None = None
    """Returns the personal data in plain text. Showing it is a separate, audited action."""
    timeline: Callable[[Ports, Any], Awaitable[list[Moment]]] = read_timeline


Link = Callable[[Any], tuple[datetime | None, str, str, str | None]]
"""Returns a link to another object: time, description, kind, and id or None."""


def story(*links: Link) -> Callable[[Ports, Any], Awaitable[list[Moment]]]:
    """Return the usual timeline extended by links to the objects that a record names."""

    async def timeline(ports: Ports, record: Any) -> list[Moment]:
        found = await read_timeline(ports, record)
        for link in links:
            at, text, of, object_id = link(record)
            if at is not None and object_id is not None:
                found.append(Moment(at=at, source=of, text=text, detail=object_id, of=of, object_id=object_id))
        return sorted(found, key=lambda moment: moment.at)

    return timeline


def by_id(kind: type[R]) -> Callable[[Ports, str], Awaitable[R | None]]:
    """Return a reader of one record by id. It returns None for a text that cannot be an id."""

    async def get(ports: Ports, record_id: str) -> R | None:
        return await ports.storage.get(kind, record_id) if storable(record_id) else None

    return get


def switches(
    name: str,
    disable: Callable[[Ports, str], Awaitable[Any]],
    enable: Callable[[Ports, str], Awaitable[Any]],
    *,
    ends: str,
) -> tuple[ConsoleAction, ConsoleAction]:
    """Return the actions `name.disable` and `name.enable`. `ends` names what stops while the object is disabled."""

    async def off(doing: Doing) -> str:
        await disable(doing.ports, doing.record.id)
        return f"Disabled: {ends}; what exists goes on."

    async def on(doing: Doing) -> str:
        await enable(doing.ports, doing.record.id)
        return "Enabled."

    return (
        ConsoleAction(
            name=f"{name}.disable",
            title="Disable",
            key="d",
            ends=True,
            allowed=lambda each: each.enabled,
            changes=lambda _: [Change("enabled", "yes", f"no: {ends}")],
            run=off,
        ),
        ConsoleAction(
            name=f"{name}.enable",
            title="Enable",
            key="e",
            allowed=lambda each: not each.enabled,
            changes=lambda _: [Change("enabled", "no", "yes")],
            run=on,
        ),
    )
