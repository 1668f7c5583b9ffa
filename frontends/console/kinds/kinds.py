"""What a screen of the console is made of: a kind of object, told in data. Lists, details, filters and dialogs are the
same for all kinds (listing.py, detail.py, dialogs); a new kind is one file with one `Kind`, named in catalogue.py."""

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
"""Says how far an act is."""
Told = list[tuple[str, str]]
"""Lines of a name and a value."""
Tells = Callable[[Ports, Any, Mapping[str, str]], Awaitable[Told]]
"""Reads what is at stake, of a record and what was entered so far."""

ANY = ""
"""The choice of a filter that asks for everything."""


Offered = list[tuple[str, str]]
"""Values to choose from, each with how it is shown."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """One way to ask for less: by one of the `choices`, of what is `offered`, or, with a `hint`, by any text."""

    name: str
    choices: tuple[str, ...] = ()
    hint: str = ""
    """What a text may be."""
    offered: Callable[[Ports, "Wish"], Awaitable[Offered]] | None = None
    """Reads the values that there are, by what is asked for already."""
    is_walked: bool = False
    """No index has it: so many records as one page may cost are looked at one by one."""


MODE = Filter(name="mode", choices=("live", "test"))


async def _accounts(ports: Ports, _wish: "Wish") -> Offered:
    return [(each.id, f"{each.name}  {each.id}") for each in await list_accounts(ports)]


ACCOUNT = Filter(name="account", offered=_accounts)


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a list is asked for."""

    filters: Mapping[str, str] = {}
    order: str = ""
    """One of the kind's `orders`."""

    def of(self, name: str) -> str | None:
        """What the filter asks for; None: everything."""
        return self.filters.get(name) or None


class Change(msgspec.Struct, frozen=True):
    """One line of an act's confirmation: what stands before, and after."""

    field: str
    before: str
    after: str


def _always(_record: Any) -> bool:
    return True


def _by_one(_record: Any, _given: Mapping[str, str]) -> Guarded | None:
    return None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One value that an act asks for. With `choices` it is one of them."""

    name: str
    label: str
    default: str = ""
    choices: tuple[str, ...] = ()
    accounts: bool = False
    """It is one of the accounts, chosen by name; the value is its id."""
    needed: bool = False
    wanted: Callable[[Any], bool] = _always
    """Whether the act on this record asks for it; where it does not, the value is empty."""
    is_secret: bool = False
    """It is not seen while it is typed."""


class Once(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome with secrets that are shown this one time, each with a button that copies it. Its repr hides them."""

    text: str
    secrets: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return f"Once(text={self.text!r}, …)"


class Doing(msgspec.Struct, frozen=True, kw_only=True):
    """What an act has when it is done."""

    ports: Ports
    """They write the audit row with whatever the act writes."""
    record: Any
    """As the operator saw it; None for an act of the list."""
    given: Mapping[str, str]
    """The entries' values and `reason`."""
    tell: Tell


class ConsoleAct(msgspec.Struct, frozen=True, kw_only=True):
    """Something an operator can do, behind one confirmation."""

    name: str
    """The audit log's word, as on the command line: `refund.approve`."""
    title: str
    key: str
    """The letter that begins it on the detail or list screen."""
    run: Callable[[Doing], Awaitable[str | Once]]
    """Does it; returns the outcome in words. Raises: Refusal, which the dialog shows."""
    changes: Callable[[Any], list[Change]]
    follows: Callable[[Any, Mapping[str, str]], list[Change]] | None = None
    """The same by what was entered so far, where that says what changes."""
    allowed: Callable[[Any], bool] = _always
    tells: Tells | None = None
    """What stands in the dialog of an act that moves money: how much, whose, and what will be left; read when it opens,
    and again by what was entered. (kinds/stakes.py)"""
    entries: tuple[Entry, ...] = ()
    reason_needed: bool = True
    reads: bool = False
    """It changes nothing, and is audited before it is done: showing personal data."""
    by_two: Callable[[Any, Mapping[str, str]], Guarded | None] = _by_one
    """What of it an installation may have confirmed by a second operator, by what was entered so far."""
    guarded: bool = True
    """It is refused when the object was changed since the operator saw it."""
    ends: bool = False
    """It takes something away from somebody, or cannot be taken back: it stands apart, after the others."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A list that belongs to an object: the shops of an account, the items of a statement."""

    title: str
    key: str
    """The letter that opens it on the detail screen."""
    of: str
    """The kind that is listed."""
    by: str
    """The filter that asks for the object's id."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of object."""

    name: str
    """As `ActionItem.of` and `Hit.kind` say."""
    title: str
    key: str
    """Opens its list from everywhere; empty: it is opened as a part of other objects only."""
    columns: tuple[Column, ...]
    read: Callable[[Ports, Wish, Any, int], Awaitable[list[Any]]]
    """The records that follow one (None: the first), at most so many."""
    get: Callable[[Ports, str], Awaitable[Any]]
    """The record of an id, or None."""
    facts: Callable[[Any], list[tuple[str, Any]]]
    """What the detail shows, by name. No personal data: see `private`."""
    figures: Callable[[Ports, Any], Awaitable[Told]] | None = None
    """Lines that stand above the facts and are read with them, as an account's balance."""
    body: Callable[[Any], str] | None = None
    """Text of several lines that stands below the facts, as a webhook's JSON. No personal data."""
    filters: tuple[Filter, ...] = (MODE, ACCOUNT)
    orders: tuple[str, ...] = ("newest", "oldest")
    acts: tuple[ConsoleAct, ...] = ()
    list_acts: tuple[ConsoleAct, ...] = ()
    """Acts on no object: making one, settling."""
    parts: tuple[Part, ...] = ()
    headline: Callable[[Ports], Awaitable[str]] | None = None
    """What stands above the list, and is read with it."""
    private: Callable[[Ports, Any], dict[str, str]] | None = None
    """The personal data in plain; shown when asked for, and audited."""
    timeline: Callable[[Ports, Any], Awaitable[list[Moment]]] = read_timeline


Link = Callable[[Any], tuple[datetime | None, str, str, str | None]]
"""Of a record: since when, what another object is to it, that object's kind, and its id or None."""


def story(*links: Link) -> Callable[[Ports, Any], Awaitable[list[Moment]]]:
    """The usual timeline, and lines that open the objects that a record names."""

    async def timeline(ports: Ports, record: Any) -> list[Moment]:
        found = await read_timeline(ports, record)
        for link in links:
            at, text, of, object_id = link(record)
            if at is not None and object_id is not None:
                found.append(Moment(at=at, source=of, text=text, detail=object_id, of=of, object_id=object_id))
        return sorted(found, key=lambda moment: moment.at)

    return timeline


def by_id(kind: type[R]) -> Callable[[Ports, str], Awaitable[R | None]]:
    """How a list reads the one record of an id; what cannot be an id is nobody's."""

    async def get(ports: Ports, record_id: str) -> R | None:
        return await ports.storage.get(kind, record_id) if storable(record_id) else None

    return get


def switches(
    name: str,
    disable: Callable[[Ports, str], Awaitable[Any]],
    enable: Callable[[Ports, str], Awaitable[Any]],
    *,
    ends: str,
) -> tuple[ConsoleAct, ConsoleAct]:
    """The acts `name.disable` and `name.enable` of what is on or off; `ends` says what there is no more while off."""

    async def off(doing: Doing) -> str:
        await disable(doing.ports, doing.record.id)
        return f"Disabled: {ends}; what exists goes on."

    async def on(doing: Doing) -> str:
        await enable(doing.ports, doing.record.id)
        return "Enabled."

    return (
        ConsoleAct(
            name=f"{name}.disable",
            title="Disable",
            key="d",
            ends=True,
            allowed=lambda each: each.enabled,
            changes=lambda _: [Change("enabled", "yes", f"no: {ends}")],
            run=off,
        ),
        ConsoleAct(
            name=f"{name}.enable",
            title="Enable",
            key="e",
            allowed=lambda each: not each.enabled,
            changes=lambda _: [Change("enabled", "no", "yes")],
            run=on,
        ),
    )
