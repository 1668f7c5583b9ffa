"""API keys of an account and their rotation. Secrets are not stored: a new one is shown once."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec import UNSET

from ....core.domain.accounts.accounts import ApiKey, KeyUse
from ....core.domain.accounts.key_terms import Right
from ....core.domain.operators.guarded import Guarded
from ....core.usecases.accounts.keys import LONGEST_KEY_OVERLAP, end_key, rotate_key, set_key
from ....core.usecases.browse.browse import merged
from ....core.usecases.browse.leaves import Way
from ....core.usecases.browse.timeline import Moment, read_timeline
from ....ports.bundle import Ports
from ..columns import Column, merchant
from .kinds import ACCOUNT, MODE, Change, ConsoleAction, Doing, Entry, Kind, Once, Wish, by_id

_ALL = "all"
_OVERLAPS = {
    "at once": timedelta(0),
    "after 1 hour": timedelta(hours=1),
    "after 24 hours": timedelta(hours=24),
    "after 7 days": timedelta(days=7),
    "after 30 days": LONGEST_KEY_OVERLAP,
}


async def _read(ports: Ports, wish: Wish, after: ApiKey | None, limit: int) -> list[ApiKey]:
    wishes = {"account_id": wish.of("account"), "mode": wish.of("mode")}
    criteria = {name: value for name, value in wishes.items() if value is not None}
    async with ports.storage.unit() as unit:
        return await merged(unit, [Way(ApiKey, criteria)], after, limit, by="id", newest_first=False)


_get = by_id(ApiKey)


def _facts(key: ApiKey) -> list[tuple[str, Any]]:
    return [
        ("X-Api-Key", key.id),
        ("mode", key.mode),
        ("account", key.account_id),
        ("created", key.created_at),
        ("ends", key.ends_at or "in force"),
        ("name", key.name or "the mode's own"),
        ("rights", _all_or(key.rights)),
        ("addresses", _all_or(key.addresses)),
        ("secret", "not kept; only a digest of it"),
    ]


async def _rotate(doing: Doing) -> Once:
    key: ApiKey = doing.record
    overlap = _OVERLAPS[doing.given["overlap"]]
    made = await rotate_key(doing.ports, key.account_id, key.mode, overlap, name=key.name)
    return Once(
        text="The new pair works. Its secret is shown this once: copy it now.",
        secrets=(("X-Api-Key", made.pair.api_key), ("X-Api-Secret", made.pair.api_secret)),
    )


async def _set(doing: Doing) -> str:
    given = {name: doing.given[name].replace(",", " ").split() for name in ("rights", "addresses")}
    terms = {name: None if words == [_ALL] else words for name, words in given.items()}
    await set_key(doing.ports, doing.record.id, rights=terms["rights"] or UNSET, addresses=terms["addresses"] or UNSET)
    return "Every process goes by it within seconds."


async def _end(doing: Doing) -> str:
    ended = await end_key(doing.ports, doing.record.id, _OVERLAPS[doing.given["overlap"]])
    return f"It ends at {ended.ends_at}."


def _all_or(words: tuple[str, ...] | None) -> str:
    return _ALL if words is None else " ".join(words)


def _becomes(key: ApiKey, given: Mapping[str, str]) -> list[Change]:
    stands = {"rights": _all_or(key.rights), "addresses": _all_or(key.addresses)}
    return [Change(name, word, given.get(name) or word) for name, word in stands.items()]


async def _timeline(ports: Ports, key: ApiKey) -> list[Moment]:
    found = await read_timeline(ports, key)
    use = await ports.storage.get(KeyUse, key.id)
    used = [] if use is None else [Moment(at=use.used_at, source="key", text="last used, to the minute")]
    return sorted([*found, *used], key=lambda moment: moment.at)


KEYS = Kind(
    name="key",
    title="API keys",
    key="",
    columns=(
        Column(title="X-Api-Key", cell=lambda each: each.id, width=42),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="ends", cell=lambda each: each.ends_at or "in force", width=16, broad=19),
        merchant(9, 24),
        Column(title="created", cell=lambda each: each.created_at, width=19, wide=True),
        Column(title="name", cell=lambda each: each.name or "-", width=16, wide=True),
        Column(title="rights", cell=lambda each: _all_or(each.rights), width=20, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE, ACCOUNT),
    orders=("by key",),
    timeline=_timeline,
    actions=(
        ConsoleAction(
            name="key.rotate",
            title="Rotate",
            key="t",
            ends=True,
            allowed=lambda each: each.ends_at is None,
            entries=(Entry(name="overlap", label="This pair ends", choices=tuple(_OVERLAPS), default="at once"),),
            changes=lambda each: [Change("key", each.id, "a new pair")],
            follows=lambda each, given: [
                Change("key", each.id, "a new pair"),
                Change("this pair", "in force", f"ends {given.get('overlap', 'at once')}"),
            ],
            run=_rotate,
            by_two=lambda *_: Guarded.KEYS,
        ),
        ConsoleAction(
            name="key.set",
            title="Rights",
            key="i",
            allowed=lambda each: each.ends_at is None,
            entries=(
                Entry(name="rights", label=f"{_ALL}, or some of: {' '.join(Right)}; empty: as they are"),
                Entry(name="addresses", label=f"{_ALL}, or addresses and networks; empty: as they are"),
            ),
            changes=lambda each: _becomes(each, {}),
            follows=_becomes,
            run=_set,
            by_two=lambda *_: Guarded.KEYS,
        ),
        ConsoleAction(
            name="key.end",
            title="End",
            key="e",
            ends=True,
            allowed=lambda each: each.ends_at is None and each.name is not None,
            entries=(Entry(name="overlap", label="It ends", choices=tuple(_OVERLAPS), default="at once"),),
            changes=lambda _: [Change("this pair", "in force", "ends")],
            follows=lambda _, given: [Change("this pair", "in force", f"ends {given.get('overlap', 'at once')}")],
            run=_end,
        ),
    ),
)
