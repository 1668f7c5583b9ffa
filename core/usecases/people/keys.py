"""API keys that a merchant's people make, change and end (docs/dashboard.md "API keys")."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ...domain.accounts.accounts import ApiKey, Mode
from ...domain.accounts.key_terms import Right, read_rights
from ...domain.errors import Refusal
from ...domain.people.roles import PersonRight, key_rights
from ..accounts.accounts import get_account
from ..accounts.keys import NewKey, create_key, end_key, rotate_key
from .second_person import Asked, asking
from .sessions import Actor, by_person, require


class KeyInForce(msgspec.Struct, frozen=True, kw_only=True):
    """A key pair that works now, and when it was last used."""

    key: ApiKey
    used_at: datetime | None
    is_within: bool
    """Whether the person may rotate and end it: it has no right that the person's keys may not have."""


async def list_keys(ports: Ports, actor: Actor) -> list[KeyInForce]:
    """Return the account's key pairs of the present mode that work now, newest first. Raises: Refusal
    PERSON_RIGHT_MISSING."""
    require_keys(actor)
    view = await get_account(ports, actor.account.id)
    now = ports.clock.real()
    return [
        KeyInForce(key=key, used_at=view.uses.get(key.id), is_within=_is_within(actor, key.rights))
        for key in view.keys
        if key.mode is actor.mode and (key.ends_at is None or key.ends_at > now)
    ]


def require_keys(actor: Actor) -> None:
    """Raise Refusal PERSON_RIGHT_MISSING unless the role works with keys."""
    require(msgspec.structs.replace(actor, stepped_up=True), PersonRight.KEYS)


def _is_within(actor: Actor, rights: Sequence[str] | None) -> bool:
    wanted = {each.value for each in Right} if rights is None else set(rights)
    return wanted <= set(key_rights(actor.role, actor.mode))


async def make_key(ports: Ports, actor: Actor, name: str, rights: Sequence[str], addresses: Sequence[str]) -> NewKey:
    """Create a key pair in the present mode with some of the rights that the person may give.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, VALIDATION_ERROR, INVALID_STATE; Requested; Waits when two
    operators guard live keys.
    """
    require(actor, PersonRight.KEYS)
    wanted = read_rights(rights)
    if not _is_within(actor, wanted):
        raise Refusal("PERSON_RIGHT_MISSING", "A key has at most the rights of your role", details={"right": "keys"})
    account_id, maker = actor.account.id, actor.user.id
    given = {"name": name, "rights": [*wanted], "addresses": [*addresses]}
    ports = _asking(ports, actor, "key.create", account_id, given)
    return await create_key(
        ports, account_id, actor.mode, name, rights=wanted, addresses=addresses or None, made_by=maker
    )


async def roll_key(ports: Ports, actor: Actor, key_id: str, overlap: timedelta) -> NewKey:
    """Replace a key pair; the old one works for `overlap` more. Raises: as `make_key`; KEY_NOT_FOUND."""
    require(actor, PersonRight.KEYS)
    found = await _own(ports, actor, key_id)
    account_id, maker = actor.account.id, actor.user.id
    given = {"key_id": key_id, "overlap": int(overlap.total_seconds())}
    ports = _asking(ports, actor, "key.rotate", account_id, given)
    return await rotate_key(ports, account_id, actor.mode, overlap, name=found.key.name, made_by=maker)


async def stop_key(ports: Ports, actor: Actor, key_id: str) -> ApiKey:
    """End a named key pair at once. Raises: as `make_key`; KEY_NOT_FOUND; INVALID_STATE for the mode's own pair."""
    require(actor, PersonRight.KEYS)
    await _own(ports, actor, key_id)
    return await end_key(by_person(ports, actor, "key.end", key_id), key_id)


def _asking(ports: Ports, actor: Actor, name: str, account_id: str, given: Mapping[str, Any]) -> Ports:
    """Return the ports for a change of keys. Live keys need a second person where the account asks for it."""
    if actor.mode is not Mode.LIVE:
        return by_person(ports, actor, name, account_id)
    asked = Asked(use_case=name, right=PersonRight.KEYS, object_id=account_id, arguments=given, mode=actor.mode)
    return asking(ports, actor, name, asked, object_id=account_id)


async def _own(ports: Ports, actor: Actor, key_id: str) -> KeyInForce:
    for each in await list_keys(ports, actor):
        if each.key.id == key_id and each.key.ends_at is None:
            if not each.is_within:
                raise Refusal(
                    "PERSON_RIGHT_MISSING", "This key has rights that your role lacks", details={"right": "keys"}
                )
            return each
    raise Refusal("KEY_NOT_FOUND", "There is no such key in force")
