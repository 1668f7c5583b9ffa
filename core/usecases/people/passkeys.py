"""Passkeys of merchants' people: made, used to sign in without a name, removed (docs/dashboard.md "Passkeys").

A challenge carries its own tag, so that showing a page stores nothing. Answering it stores a mark before anything else
is checked, so that each challenge is answered once.
"""

import hmac
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Conflict
from ....ports.passkeys import PasskeyRefused, PasskeyReply
from ....ports.storage import AtMost, Unit
from ....ports.vault import VaultError
from ...domain.errors import Refusal
from ...domain.people.people import PASSKEY_NAME_LONGEST, PASSKEYS_MOST, Passkey, UsedChallenge, User
from ...domain.shapes import has_control
from ..common.units import retrying, unit_of_work
from .sessions import Actor, by_person
from .users import email_of, warn_of_change

REGISTER, SIGN_IN, CONFIRM = "register", "sign_in", "confirm"
_LIVES = timedelta(minutes=5)
_NONCE = 16
_TIME = 8
_TAG_AAD = "people.passkey"


def _challenge(ports: Ports, purpose: str, bound: str) -> bytes:
    """Return a challenge for a purpose, bound to a session or a browser."""
    until = int((ports.clock.real() + _LIVES).timestamp())
    head = bytes.fromhex(ports.ids.secret(_NONCE)) + until.to_bytes(_TIME, "big")
    return head + ports.vault.tag(head + f"{purpose}:{bound}".encode(), _TAG_AAD)


def sign_in_options(ports: Ports, browser: str) -> str | None:
    """Return the options for a sign-in in this browser, as JSON. None if passkeys are not offered here."""
    if ports.passkeys.rp_id is None:
        return None
    return ports.passkeys.request_options(challenge=_challenge(ports, SIGN_IN, browser))


async def confirm_options(ports: Ports, actor: Actor) -> str | None:
    """Return the options for a confirmation of this session, as JSON. None if the person has no passkey here."""
    if all(each.rp_id != ports.passkeys.rp_id for each in await list_passkeys(ports, actor.user.id)):
        return None
    return ports.passkeys.request_options(challenge=_challenge(ports, CONFIRM, actor.session.id))


async def creation_options(ports: Ports, actor: Actor) -> str | None:
    """Return the options for a new passkey of the person, as JSON. None if passkeys are not offered here."""
    if ports.passkeys.rp_id is None:
        return None
    known = [each.id for each in await list_passkeys(ports, actor.user.id)]
    return ports.passkeys.creation_options(
        challenge=_challenge(ports, REGISTER, actor.session.id),
        user_id=actor.user.id,
        user_name=email_of(ports, actor.user),
        known=known,
    )


async def add_passkey(ports: Ports, actor: Actor, reply: str, name: str) -> Passkey:
    """Add a passkey by the browser's reply.

    Raises: Refusal STEP_UP_NEEDED; SIGN_IN_FAILED for a reply that does not verify; VALIDATION_ERROR for the name;
    INVALID_STATE for a passkey that is known, and when the person has PASSKEYS_MOST.
    """
    if not actor.stepped_up:
        raise Refusal("STEP_UP_NEEDED", "Confirm that it is you: enter your password again")
    label = name.strip() or "Passkey"
    if len(label) > PASSKEY_NAME_LONGEST or has_control(label):
        raise Refusal("VALIDATION_ERROR", f"A name has at most {PASSKEY_NAME_LONGEST} characters")
    try:
        read = ports.passkeys.read(reply)
        await _spend(ports, read.challenge, REGISTER, actor.session.id)
        made = ports.passkeys.register(reply, read.challenge)
    except PasskeyRefused:
        raise _failed() from None
    ports = by_person(ports, actor, "person.passkey")

    async def work(unit: Unit) -> Passkey:
        if len(await unit[Passkey].find(user_id=actor.user.id, order="id", limit=PASSKEYS_MOST)) >= PASSKEYS_MOST:
            raise Refusal("INVALID_STATE", f"You have {PASSKEYS_MOST} passkeys already: remove one first")
        if await unit[Passkey].get(made.credential_id) is not None:
            raise Refusal("INVALID_STATE", "This passkey is registered already")
        user = await unit[User].get(actor.user.id)
        if user is None or user.security != actor.user.security:
            raise _failed()
        warn_of_change(ports, unit, user, "passkey")
        unit[User].save(user)  # so that the change is in the audit log with the person
        return unit[Passkey].add(
            Passkey(
                id=made.credential_id,
                user_id=user.id,
                rp_id=ports.passkeys.rp_id or "",
                public_key=made.public_key,
                sign_count=made.sign_count,
                name=label,
                is_synced=made.is_synced,
                created_at=ports.clock.real(),
            )
        )

    return await retrying(ports.storage, work, again_on=("passkeys_id",))


async def sign_in_by_passkey(ports: Ports, reply: str, browser: str) -> User:
    """Return the person of a passkey. Raises: Refusal SIGN_IN_FAILED, the same for every failure."""
    try:
        read = ports.passkeys.read(reply)
        await _spend(ports, read.challenge, SIGN_IN, browser)
        return await _signed_in(ports, reply, read)
    except PasskeyRefused:
        raise _failed() from None


async def confirm_by_passkey(ports: Ports, actor: Actor, reply: str) -> None:
    """Check that the person holds one of their passkeys. Raises: Refusal SIGN_IN_FAILED, the same for every failure."""
    try:
        read = ports.passkeys.read(reply)
        await _spend(ports, read.challenge, CONFIRM, actor.session.id)
        user = await _signed_in(ports, reply, read)
    except PasskeyRefused:
        raise _failed() from None
    if user.id != actor.user.id:
        raise _failed()


@unit_of_work()
async def _signed_in(ports: Ports, unit: Unit, reply: str, read: PasskeyReply) -> User:
    found = await unit[Passkey].get(read.credential_id) if read.credential_id.isascii() else None
    user = None if found is None else await unit[User].get(found.user_id)
    if found is None or user is None or user.disabled_at is not None:
        raise PasskeyRefused("unknown")
    # The library checks neither that the handle is there nor that it names the owner.
    if read.user_handle is None or not hmac.compare_digest(read.user_handle, user.id):
        raise PasskeyRefused("another person's")
    if found.rp_id != ports.passkeys.rp_id:
        raise PasskeyRefused("of another host")
    used = ports.passkeys.check(reply, read.challenge, public_key=found.public_key, sign_count=found.sign_count)
    unit[Passkey].save(
        msgspec.structs.replace(
            found,
            sign_count=max(found.sign_count, used.sign_count),
            is_synced=used.is_synced,
            used_at=ports.clock.real(),
        )
    )
    return user


async def list_passkeys(ports: Ports, user_id: str) -> list[Passkey]:
    """Return the person's passkeys, oldest first."""
    async with ports.storage.unit() as unit:
        found = await unit[Passkey].find(user_id=user_id, order="id", limit=PASSKEYS_MOST)
    return sorted(found, key=lambda each: each.created_at)


async def remove_passkey(ports: Ports, actor: Actor, passkey_id: str) -> None:
    """Remove a passkey of the person. Raises: Refusal STEP_UP_NEEDED; USER_NOT_FOUND for an unknown one; INVALID_STATE
    for the last means to sign in."""
    if not actor.stepped_up:
        raise Refusal("STEP_UP_NEEDED", "Confirm that it is you: enter your password again")
    ports = by_person(ports, actor, "person.passkey_off")

    async def work(unit: Unit) -> None:
        found = await unit[Passkey].get(passkey_id) if passkey_id.isascii() else None
        if found is None or found.user_id != actor.user.id:
            raise Refusal("USER_NOT_FOUND", "You have no such passkey")
        user = await unit[User].get(actor.user.id)
        others = await unit[Passkey].find(user_id=actor.user.id, order="id", limit=2)
        if user is None or (user.password is None and len(others) < 2):
            raise Refusal("INVALID_STATE", "This is your last means to sign in: set a password first")
        warn_of_change(ports, unit, user, "passkey_removed")
        unit[User].save(user)
        unit[Passkey].remove(found)

    await retrying(ports.storage, work)


async def _spend(ports: Ports, challenge: bytes, purpose: str, bound: str) -> None:
    """Check a challenge and mark it as answered. Raises: PasskeyRefused."""
    head, tag = challenge[: _NONCE + _TIME], challenge[_NONCE + _TIME :]
    try:
        fits = ports.vault.fits(tag, head + f"{purpose}:{bound}".encode(), _TAG_AAD)
    except VaultError:
        fits = False
    now = ports.clock.real()
    if not fits or int.from_bytes(head[_NONCE:], "big") < now.timestamp():
        raise PasskeyRefused("a challenge of another page, or an old one")
    async with ports.storage.unit() as unit:
        for old in await unit[UsedChallenge].find(expires_at=AtMost(now), order="expires_at", limit=20):
            unit[UsedChallenge].remove(old)
        unit[UsedChallenge].add(UsedChallenge(id=sha256(challenge).hexdigest(), expires_at=_end(now)))
        try:
            await unit.commit()
        except Conflict:
            raise PasskeyRefused("answered already") from None


def _end(now: datetime) -> datetime:
    return now + 2 * _LIVES


def _failed() -> Refusal:
    return Refusal("SIGN_IN_FAILED", "The passkey was not accepted")
