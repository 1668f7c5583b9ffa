"""Keys of an account: rotated, created with fewer rights, and revoked by an operator (docs/concepts.md "Accounts, keys,
modes", "Keys with fewer rights")."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET, UnsetType

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Unit
from ...domain.accounts.accounts import ApiKey, Mode
from ...domain.accounts.key_terms import KeyTerms, key_name, read_addresses, read_rights
from ...domain.errors import Refusal
from ..actions.four_eyes import gated
from ..common.encrypted import key_fits, tag_key
from ..common.units import retrying
from .accounts import KeyPair, find_account, new_key, storable

LONGEST_KEY_OVERLAP = timedelta(days=30)

MOST_KEYS = 50
"""Maximum number of active pairs in a mode beside the mode's own."""


class ReplacedKey(msgspec.Struct, frozen=True, kw_only=True):
    """An older key and its end."""

    api_key: str
    ends_at: datetime


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """The new active pair, and the older keys with their new ends."""

    pair: KeyPair
    replaced: tuple[ReplacedKey, ...]


_ALL = "all"


def _joined(terms: Sequence[str] | None) -> str | None:
    """Return rights or addresses as a pending action stores them."""
    return None if terms is None else ",".join(terms)


def _parted(text: str | None) -> Sequence[str] | None:
    return None if text is None or text == _ALL else text.split(",")


async def create_waited_key(ports: Ports, account_id: str, kept: Mapping[str, str]) -> NewKey:
    """Carry out a pending `create_key` after its confirmation."""
    rights, addresses = _parted(kept.get("rights")), _parted(kept.get("addresses"))
    mode, name, maker = Mode(kept["mode"]), kept["name"], kept.get("made_by")
    return await create_key(ports, account_id, mode, name, rights=rights, addresses=addresses, made_by=maker)


async def rotate_waited_key(ports: Ports, account_id: str, kept: Mapping[str, str]) -> NewKey:
    """Carry out a pending `rotate_key` after its confirmation."""
    overlap = timedelta(seconds=int(kept["overlap"]))
    name, maker = kept.get("name"), kept.get("made_by")
    return await rotate_key(ports, account_id, Mode(kept["mode"]), overlap, name=name, made_by=maker)


async def set_waited_key(ports: Ports, api_key: str, kept: Mapping[str, str]) -> ApiKey:
    """Carry out a pending `set_key` after its confirmation."""
    given = {name: _parted(kept[name]) for name in ("rights", "addresses") if name in kept}
    return await set_key(ports, api_key, **given)


def _check_overlap(overlap: timedelta | None) -> timedelta:
    if overlap is not None and not timedelta(0) <= overlap <= LONGEST_KEY_OVERLAP:
        raise Refusal("VALIDATION_ERROR", f"overlap is from 0 to {LONGEST_KEY_OVERLAP.days} days")
    return overlap or timedelta(0)


def _on_terms(key: ApiKey, terms: KeyTerms) -> ApiKey:
    """Return the key with other terms."""
    return msgspec.structs.replace(key, rights=terms.rights, addresses=terms.addresses)


async def rotate_key(
    ports: Ports,
    account_id: str,
    mode: Mode,
    overlap: timedelta | None = None,
    *,
    name: str | None = None,
    made_by: str | None = None,
) -> NewKey:
    """Create a new pair for a mode, or for the key with a name, with the rights and addresses of the active one. Every
    older valid pair ends now, or after `overlap` unless it ends earlier. `made_by`: the person who gets the secret.

    Raises: Refusal ACCOUNT_NOT_FOUND; VALIDATION_ERROR for an overlap below zero or above 30 days; KEY_NOT_FOUND when
    no active key has the name; INVALID_STATE when the active one was altered outside of the service, because the new
    pair would take over its rights.
    """
    pause = _check_overlap(overlap)
    seconds = str(int(pause.total_seconds()))
    ports = gated(ports, "rotate_key", account_id, mode=mode, overlap=seconds, name=name, made_by=made_by)
    pair, fresh = new_key(ports, account_id, mode)
    ends_at = fresh.created_at + pause

    async def work(unit: Unit) -> NewKey:
        await find_account(unit, account_id)
        # One pair is active at any time. When two rotations run at once, one goes stale, reads again, and ends the
        # other's pair.
        in_force = await unit[ApiKey].find(account_id=account_id, mode=mode, name=name, ends_at=None)
        ending = await unit[ApiKey].find(account_id=account_id, mode=mode, name=name, ends_at=AtLeast(ends_at))
        if name is not None and not in_force:
            raise _no_key()
        if not all(key_fits(ports.vault, key) for key in in_force):
            raise _altered()
        terms = in_force[0].terms if in_force else KeyTerms()
        replaced = [unit[ApiKey].save(_changed(ports, key, ends_at=ends_at)) for key in (*in_force, *ending)]
        made = msgspec.structs.replace(_on_terms(fresh, terms), name=name, made_by=made_by)
        unit[ApiKey].add(tag_key(ports.vault, made))
        return NewKey(pair=pair, replaced=tuple(ReplacedKey(api_key=key.id, ends_at=ends_at) for key in replaced))

    return await retrying(ports.storage, work)


async def create_key(
    ports: Ports,
    account_id: str,
    mode: Mode,
    name: str,
    *,
    rights: Sequence[str] | None = None,
    addresses: Sequence[str] | None = None,
    made_by: str | None = None,
) -> NewKey:
    """Create a further pair of a mode, beside the mode's own. None: all rights, from any address. `made_by`: the person
    who gets the secret.

    Raises: Refusal ACCOUNT_NOT_FOUND; VALIDATION_ERROR for an invalid name, right or address; INVALID_STATE for the
    name of an active key, and when there are already MOST_KEYS.
    """
    wanted = key_name(name)
    terms = KeyTerms(
        rights=None if rights is None else read_rights(rights),
        addresses=None if addresses is None else read_addresses(addresses),
    )
    kept_rights, kept_addresses = _joined(rights), _joined(addresses)
    ports = gated(
        ports,
        "create_key",
        account_id,
        mode=mode,
        name=name,
        rights=kept_rights,
        addresses=kept_addresses,
        made_by=made_by,
    )
    pair, fresh = new_key(ports, account_id, mode)
    fresh = msgspec.structs.replace(_on_terms(fresh, terms), name=wanted, made_by=made_by)

    async def work(unit: Unit) -> NewKey:
        await find_account(unit, account_id)
        in_force = await unit[ApiKey].find(account_id=account_id, mode=mode, ends_at=None)
        if any(key.name == wanted for key in in_force):
            raise Refusal("INVALID_STATE", "A key of this name is in force: rotate it, or end it first")
        if sum(key.name is not None for key in in_force) >= MOST_KEYS:
            raise Refusal("INVALID_STATE", f"{MOST_KEYS} keys are in force in this mode already: end one first")
        unit[ApiKey].add(tag_key(ports.vault, fresh))
        for own in [key for key in in_force if key.name is None][:1]:
            unit[ApiKey].save(own)  # its version rises, so of two concurrent calls one goes stale and reads again
        return NewKey(pair=pair, replaced=())

    return await retrying(ports.storage, work)


async def set_key(
    ports: Ports,
    api_key: str,
    *,
    rights: Sequence[str] | None | UnsetType = UNSET,
    addresses: Sequence[str] | None | UnsetType = UNSET,
) -> ApiKey:
    """Change the rights of an active pair; its secret stays. None: all rights, from any address. UNSET: unchanged.
    Every process applies the change within seconds.

    Raises: Refusal KEY_NOT_FOUND; VALIDATION_ERROR as `create_key`; INVALID_STATE when the key was altered outside of
    the service; Waits when a second operator has to confirm.
    """
    new_rights = read_rights(rights) if isinstance(rights, Sequence) else rights
    new_addresses = read_addresses(addresses) if isinstance(addresses, Sequence) else addresses
    given = {
        name: _joined(terms) or _ALL
        for name, terms in (("rights", rights), ("addresses", addresses))
        if terms is not UNSET
    }
    ports = gated(ports, "set_key", api_key, None, **given)

    async def work(unit: Unit) -> ApiKey:
        key = await _in_force(ports, unit, api_key)
        if not key_fits(ports.vault, key):
            raise _altered()
        terms = KeyTerms(
            rights=key.rights if new_rights is UNSET else new_rights,
            addresses=key.addresses if new_addresses is UNSET else new_addresses,
        )
        return unit[ApiKey].save(tag_key(ports.vault, _on_terms(key, terms)))

    return await retrying(ports.storage, work)


async def end_key(ports: Ports, api_key: str, overlap: timedelta | None = None) -> ApiKey:
    """Revoke a pair that was created beside the mode's own, now or after `overlap`.

    Raises: Refusal KEY_NOT_FOUND; VALIDATION_ERROR for an overlap below zero or above 30 days; INVALID_STATE for the
    mode's own pair, which can only be rotated, unless it was altered outside of the service.
    """
    pause = _check_overlap(overlap)

    async def work(unit: Unit) -> ApiKey:
        key = await _in_force(ports, unit, api_key)
        if key.name is None and key_fits(ports.vault, key):
            raise Refusal("INVALID_STATE", "It is the mode's own key: rotate it")
        return unit[ApiKey].save(_changed(ports, key, ends_at=ports.clock.now() + pause))

    return await retrying(ports.storage, work)


def _changed(ports: Ports, key: ApiKey, *, ends_at: datetime) -> ApiKey:
    """Return the key with another end. The tag of a key that was altered outside of the service still does not fit."""
    after = msgspec.structs.replace(key, ends_at=ends_at)
    return tag_key(ports.vault, after) if key_fits(ports.vault, key) else after


async def _in_force(ports: Ports, unit: Unit, api_key: str) -> ApiKey:
    key = await unit[ApiKey].get(api_key) if storable(api_key) else None
    if key is None or (key.ends_at is not None and key.ends_at <= ports.clock.now()):
        raise _no_key()
    return key


def _altered() -> Refusal:
    return Refusal("INVALID_STATE", "The key was altered outside of the service: end it, and make or rotate another")


def _no_key() -> Refusal:
    return Refusal("KEY_NOT_FOUND", "There is no such key in force")
