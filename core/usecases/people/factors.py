"""Password, authenticator app and recovery codes of a signed-in person (docs/dashboard.md "Your profile")."""

from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.errors import Refusal
from ...domain.people.passwords import (
    RECOVERY_CODES,
    TOTP_SECRET_BYTES,
    new_password,
    recovery_digest,
    recovery_text,
    totp_address,
    totp_step,
)
from ...domain.people.people import Session, User
from ..common.encrypted import password_aad, totp_aad
from ..common.units import retrying
from .sessions import Actor, by_person
from .sign_in import require_password
from .users import email_of, secured, warn_of_change


class Enrolment(msgspec.Struct, frozen=True, kw_only=True):
    """The secret of an authenticator app, shown until its first code is confirmed."""

    address: str
    """For the QR code."""
    secret: str
    """To type where no camera is at hand."""

    def __repr__(self) -> str:
        return "Enrolment(***)"


async def change_password(ports: Ports, actor: Actor, present: str, wanted: str) -> User:
    """Set a new password. All other sessions end.

    Raises: Refusal SIGN_IN_FAILED for a wrong present password, VALIDATION_ERROR, TOO_MANY_GUESSES.
    """
    if actor.user.password is not None:
        await require_password(ports, actor.user, present)
    elif not actor.stepped_up:
        raise Refusal("STEP_UP_NEEDED", "Confirm that it is you first")
    email = email_of(ports, actor.user)
    hashed = await ports.passwords.hash(new_password(wanted, (email, actor.account.name)))
    sealed = ports.vault.encrypt(hashed.encode(), password_aad(actor.user.id))
    return await _secure(by_person(ports, actor, "person.password"), actor, "password", password=sealed)


async def begin_totp(ports: Ports, actor: Actor) -> Enrolment:
    """Create a secret for an authenticator app; it counts once `confirm_totp` has seen its first code. A second call
    replaces it. Raises: Refusal STEP_UP_NEEDED."""
    _require_step_up(actor)
    secret = bytes.fromhex(ports.ids.secret(TOTP_SECRET_BYTES))
    sealed = ports.vault.encrypt(secret, totp_aad(actor.user.id))

    async def work(unit: Unit) -> User:
        return unit[User].save(msgspec.structs.replace(await _present(unit, actor), totp_pending=sealed))

    await retrying(ports.storage, work)
    return _enrolment(ports, actor, secret)


async def pending_totp(ports: Ports, actor: Actor) -> Enrolment | None:
    """Return the secret that awaits its first code, if any."""
    if actor.user.totp_pending is None:
        return None
    return _enrolment(ports, actor, ports.vault.decrypt(actor.user.totp_pending, totp_aad(actor.user.id)))


def _enrolment(ports: Ports, actor: Actor, secret: bytes) -> Enrolment:
    address = totp_address(secret, email_of(ports, actor.user), "cambist")
    return Enrolment(address=address, secret=address.partition("secret=")[2].partition("&")[0])


async def confirm_totp(ports: Ports, actor: Actor, code: str) -> tuple[str, ...]:
    """Switch the authenticator app on by its first code, and return new recovery codes. All other sessions end.

    Raises: Refusal STEP_UP_NEEDED; SIGN_IN_FAILED for a wrong code; INVALID_STATE when none was begun.
    """
    _require_step_up(actor)
    pending = actor.user.totp_pending
    if pending is None:
        raise Refusal("INVALID_STATE", "Request a new secret first")
    secret = ports.vault.decrypt(pending, totp_aad(actor.user.id))
    step = totp_step(secret, code, ports.clock.real().timestamp(), 0)
    if step is None:
        raise Refusal("SIGN_IN_FAILED", "The code is wrong: check the time of your phone, and enter the present code")
    codes = _new_codes(ports)
    changes: dict[str, Any] = {
        "totp": pending,
        "totp_pending": None,
        "totp_step": step,
        "recovery": tuple(recovery_digest(each) for each in codes),
    }
    await _secure(by_person(ports, actor, "person.totp"), actor, "totp", **changes)
    return codes


async def remove_totp(ports: Ports, actor: Actor) -> User:
    """Switch the authenticator app off. Raises: Refusal STEP_UP_NEEDED, INVALID_STATE without one."""
    _require_step_up(actor)
    if actor.user.totp is None:
        raise Refusal("INVALID_STATE", "No authenticator app is set up")
    changes: dict[str, Any] = {"totp": None, "totp_pending": None, "totp_step": 0, "recovery": ()}
    return await _secure(by_person(ports, actor, "person.totp_off"), actor, "totp_removed", **changes)


async def renew_recovery_codes(ports: Ports, actor: Actor) -> tuple[str, ...]:
    """Replace all recovery codes. Raises: Refusal STEP_UP_NEEDED, INVALID_STATE without an authenticator app."""
    _require_step_up(actor)
    if actor.user.totp is None:
        raise Refusal("INVALID_STATE", "No authenticator app is set up")
    codes = _new_codes(ports)
    digests = tuple(recovery_digest(each) for each in codes)
    ports = by_person(ports, actor, "person.recovery_codes")

    async def work(unit: Unit) -> User:
        return unit[User].save(msgspec.structs.replace(await _present(unit, actor), recovery=digests))

    await retrying(ports.storage, work)
    return codes


async def set_language(ports: Ports, actor: Actor, language: str) -> User:
    """Set the person's language, `en` or `ru`. Raises: Refusal VALIDATION_ERROR."""
    if language not in ("en", "ru"):
        raise Refusal("VALIDATION_ERROR", "The language is en or ru")

    async def work(unit: Unit) -> User:
        return unit[User].save(msgspec.structs.replace(await _present(unit, actor), language=language))

    return await retrying(ports.storage, work)


def _new_codes(ports: Ports) -> tuple[str, ...]:
    return tuple(recovery_text(bytes.fromhex(ports.ids.secret(16))) for _ in range(RECOVERY_CODES))


def _require_step_up(actor: Actor) -> None:
    if not actor.stepped_up:
        raise Refusal("STEP_UP_NEEDED", "Confirm that it is you: enter your password again")


async def _present(unit: Unit, actor: Actor) -> User:
    found = await unit[User].get(actor.user.id)
    if found is None or found.security != actor.user.security:
        raise Refusal("INVALID_STATE", "Your sign-in changed meanwhile: sign in again")
    return found


async def _secure(ports: Ports, actor: Actor, change: str, **changes: Any) -> User:
    """Change the means to sign in. Other sessions end, this one continues."""

    async def work(unit: Unit) -> User:
        before = await _present(unit, actor)
        after = unit[User].save(secured(before, **changes))
        session = await unit[Session].get(actor.session.id)
        if session is not None:
            unit[Session].save(msgspec.structs.replace(session, security=after.security))
        warn_of_change(ports, unit, after, change)
        return after

    return await retrying(ports.storage, work)
