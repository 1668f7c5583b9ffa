"""Histories of units, drawn from a seed: the operations on a storage, step by step, as plain data. Each step has its
own random generator, so leaving one out changes no other step."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from cambist.adapters.storage.table.catalogue import Table
from cambist.adapters.storage.table.codec import Codec, Storing
from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE, Sample, Tally
from cambist.ports.jobs import Job
from cambist.ports.storage import AtLeast, AtMost, Below, Between, OneOf
from tests.histories.values import drawn_field, drawn_id, drawn_record

_TABLES = {table.kind: table for table in KIT_CATALOGUE}
_STEPS = (6, 14)


@dataclass(frozen=True)
class Write:
    """One write of a unit. `offset`: added to the version to make it wrong."""

    verb: str
    record: Any
    changes: dict[str, Any] = field(default_factory=dict)
    offset: int = 0
    by: int = 0


@dataclass(frozen=True)
class Ask:
    """One question."""

    verb: str
    kind: type[Any]
    given: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """A unit: its reads, its writes, and whether it is committed."""

    asks: tuple[Ask, ...]
    writes: tuple[Write, ...]
    durable: bool
    is_left: bool = False


@dataclass(frozen=True)
class Both:
    """Two units, which both read before either commits: one after the other, or, of the same unit, at once."""

    one: Work
    other: Work
    at_once: bool


@dataclass(frozen=True)
class Seen:
    """A snapshot, before and after a unit."""

    asks: tuple[Ask, ...]
    work: Work


@dataclass(frozen=True)
class Claim:
    """Jobs are taken."""

    limit: int
    lease: float
    which: dict[str, str]


@dataclass(frozen=True)
class Keep:
    """Extend the leases of the jobs claimed last."""

    lease: float


@dataclass(frozen=True)
class End:
    """Remove the jobs claimed last, or free them for later."""

    removes: bool
    later: float


@dataclass(frozen=True)
class Pass:
    """Time goes by."""

    seconds: float


Step = Ask | Work | Both | Seen | Claim | Keep | End | Pass


@dataclass(frozen=True)
class History:
    """The steps of a seed, or those of them that are left."""

    seed: int
    numbers: tuple[int, ...]
    steps: tuple[Step, ...]
    tables: frozenset[str]
    """Names of the tables that it may write to."""


def drawn(seed: int, only: Sequence[int] | None = None) -> History:
    """Return the history of a seed. `only`: keep the steps with these numbers."""
    chance = random.Random(f"history/{seed}")
    kinds = _drawn_kinds(seed, chance)
    numbers = tuple(range(chance.randint(*_STEPS))) if only is None else tuple(only)
    steps = tuple(_drawn_step(kinds, random.Random(f"history/{seed}/{number}")) for number in numbers)
    return History(seed, numbers, steps, frozenset(_TABLES[kind].name for kind in kinds))


def _drawn_kinds(seed: int, chance: random.Random) -> tuple[type[Any], ...]:
    """Three kinds: each of the catalogue in its turn, jobs or one of the kit, and any."""
    every = tuple(_TABLES)
    return every[seed % len(every)], chance.choice((Job, Job, Sample, Tally)), chance.choice(every)


def _drawn_step(kinds: Sequence[type[Any]], chance: random.Random) -> Step:
    lot = chance.random()
    if lot < 0.45:
        return _drawn_work(kinds, chance)
    if lot < 0.60:
        return _drawn_ask(kinds, chance)
    if lot < 0.72:
        one = _drawn_work(kinds, chance)
        at_once = chance.random() < 0.5
        return Both(one, one if at_once else _drawn_work(kinds, chance), at_once)
    if lot < 0.78:
        return Seen(tuple(_drawn_ask(kinds, chance) for _ in range(2)), _drawn_work(kinds, chance))
    if lot < 0.86:
        which = chance.choice(({}, {}, {"kind": "b"}, {"but_kind": "b"}, {"kind": "watch"}))
        return Claim(chance.choice((0, 1, 2, 10)), chance.choice((1.0, 10.0, 60.0, 0.0)), which)
    if lot < 0.90:
        return Keep(chance.choice((5.0, 60.0)))
    if lot < 0.95:
        return End(chance.random() < 0.5, chance.choice((0.0, 5.0)))
    return Pass(chance.choice((0.000001, 1.0, 10.0, 60.0)))


def _drawn_work(kinds: Sequence[type[Any]], chance: random.Random) -> Work:
    writes = tuple(_drawn_write(_TABLES[chance.choice(kinds)], chance) for _ in range(chance.choice((1, 1, 2, 3, 5))))
    asks = tuple(_drawn_ask(kinds, chance) for _ in range(chance.choice((0, 0, 1))))
    return Work(asks, writes, durable=chance.random() < 0.3, is_left=chance.random() < 0.05)


def _drawn_write(table: Table, chance: random.Random) -> Write:
    verbs = ["add", "add", "save", "save", "change", "remove"]
    if table.sums:
        verbs += ["increase", "increase"]
    if table.sums and not table.uniques:
        verbs += ["accrue", "accrue", "accrue"]
    verb = chance.choice(verbs)
    # A removed record was read before, so it must be one that can be stored.
    record = drawn_record(table.kind, chance, storable=verb in ("remove", "increase"))
    if verb == "increase":
        return Write(verb, record, {chance.choice(table.sums): None}, by=chance.choice((1, -1, 5, 100, 2**63 - 3)))
    staying = {"id", "version", *table.fixed, *table.sums, *(("leased_until",) if table.kind is Job else ())}
    names = [name for name in type(record).__struct_fields__ if name not in staying]
    changed = chance.sample(names, min(len(names), chance.choice((1, 1, 2, 4))))
    if verb == "change" and table.set_later and chance.random() < 0.7:
        changed = list(table.set_later)
    changes = {name: drawn_field(table.kind, name, chance) for name in changed}
    offset = chance.choice((-1, 1, 2)) if chance.random() < 0.12 else 0
    return Write(verb, record, changes if verb in ("save", "change") else {}, offset)


def _drawn_ask(kinds: Sequence[type[Any]], chance: random.Random) -> Ask:
    kind = chance.choice(kinds)
    verb = chance.choice(("get", "recent", "find", "find", "find", "page", "total", "sums", "scan", "next_due"))
    match verb:
        case "get" | "recent":
            return Ask(verb, kind, (chance.choice((drawn_id(kind, chance), drawn_id(kind, chance), "x\0", "")),))
        case "next_due":
            return Ask(verb, Job)
        case "find":
            named = _criteria(kind, chance) | {"order": _order(kind, chance), "quick": chance.random() < 0.3}
            named |= chance.choice(({}, {}, {"limit": 2}, {"limit": 0}, {"offset": 1}, {"limit": 1, "offset": 2}))
            return Ask(verb, kind, (), named)
        case "page":
            page = chance.choice((1, 1, 2, 3, 0)), chance.choice((1, 2, 10))
            return Ask(verb, kind, page, _criteria(kind, chance) | {"order": _order(kind, chance)})
        case "sums":
            fields = chance.choice(_TABLES[kind].sums or ("version",)), _field(kind, chance)
            return Ask(verb, kind, fields[:1], _criteria(kind, chance) | {"by": fields[1]})
        case "scan":
            return Ask(verb, kind, (), _criteria(kind, chance) | {"batch": chance.choice((1, 2, 100))})
        case _:
            return Ask(verb, kind, (), _criteria(kind, chance))


def _order(kind: type[Any], chance: random.Random) -> str:
    return chance.choice(("", "-")) + chance.choice(("id", _field(kind, chance)))


def _criteria(kind: type[Any], chance: random.Random) -> dict[str, Any]:
    """None to two, mostly along an index."""
    found = {}
    for _ in range(chance.choice((0, 1, 1, 2))):
        name = _field(kind, chance)
        found[name] = _criterion(kind, name, chance)
    return found


def _criterion(kind: type[Any], name: str, chance: random.Random) -> Any:
    def value() -> Any:
        drawn = drawn_id(kind, chance) if name == "id" else drawn_field(kind, name, chance)
        return drawn if drawn is not None or chance.random() < 0.5 else None

    def some() -> Any:
        for _ in range(8):
            found = value()
            if found is not None:
                return found
        return None

    form: Any = chance.choice(("is", "is", "is", AtMost, AtLeast, Below, Between, OneOf))
    if form == "is":
        return value()
    if form is OneOf:
        return OneOf(tuple(value() for _ in range(chance.choice((0, 1, 2, 3)))))
    if form is Between:
        return Between(some() if chance.random() < 0.7 else None, some() if chance.random() < 0.7 else None)
    end = some()
    return None if end is None else form(end)


def _field(kind: type[Any], chance: random.Random) -> str:
    """Return a field to query: mostly an indexed one, seldom an unknown field or a structure."""
    if chance.random() < 0.02:
        return chance.choice(("garbage", kind.__struct_fields__[-2]))
    table = _TABLES[kind]
    indexed = {name.removeprefix("-") for index in (*table.indexes, *table.sparse, *table.unset) for name in index}
    plain = [column.name for column in Codec(kind).columns if column.storing is not Storing.JSON]
    wanted = sorted({"id"} | (indexed & set(plain))) if chance.random() < 0.7 else plain
    return chance.choice(wanted)


def after(seconds: float) -> timedelta:
    """A span."""
    return timedelta(seconds=seconds)
