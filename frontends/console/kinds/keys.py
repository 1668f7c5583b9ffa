"""API keys of an account, and their rotation. Secrets are kept nowhere: a new one is shown once."""

from datetime import timedelta
from typing import Any

from ....core.domain.accounts.accounts import ApiKey
from ....core.usecases.accounts.accounts import LONGEST_KEY_OVERLAP, rotate_key
from ....core.usecases.browse.browse import Way, merged
from ....ports.bundle import Ports
from ..columns import Column, merchant
from .kinds import ACCOUNT, MODE, Change, ConsoleAct, Doing, Entry, Kind, Once, Wish, by_id

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
        ("secret", "not kept; only a digest of it"),
    ]


async def _rotate(doing: Doing) -> Once:
    key: ApiKey = doing.record
    made = await rotate_key(doing.ports, key.account_id, key.mode, _OVERLAPS[doing.given["overlap"]])
    return Once(
        text="The new pair works. Its secret is shown this once: copy it now.",
        secrets=(("X-Api-Key", made.pair.api_key), ("X-Api-Secret", made.pair.api_secret)),
    )


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
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE, ACCOUNT),
    orders=("by key",),
    acts=(
        ConsoleAct(
            name="key.rotate",
            title="Rotate",
            key="t",
            allowed=lambda each: each.ends_at is None,
            entries=(Entry(name="overlap", label="This pair ends", choices=tuple(_OVERLAPS), default="at once"),),
            changes=lambda each: [Change("key", each.id, "a new pair")],
            follows=lambda each, given: [
                Change("key", each.id, "a new pair"),
                Change("this pair", "in force", f"ends {given.get('overlap', 'at once')}"),
            ],
            run=_rotate,
        ),
    ),
)
