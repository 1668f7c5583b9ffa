"""Sign-in of merchants' people by password and one-time code (docs/dashboard.md "Sign-in").

Guesses are limited without locking anybody out: a browser that signed in before has a budget of its own, and all others
share one for each person.
"""

from datetime import timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ....ports.vault import VaultError
from ...domain.days import iso
from ...domain.errors import Refusal
from ...domain.people.guesses import GuessCount, budget_of, counted
from ...domain.people.passwords import given_password, recovery_digest, totp_step
from ...domain.people.people import User, read_email
from ..common.encrypted import password_aad, totp_aad
from ..common.units import retrying, unit_of_work
from .users import email_digest, user_by_email, warn_of_change, write_to

_DEVICE = "people.device"
_HALF = "people.half"
_HALF_LIVES = timedelta(minutes=10)
_SPREAD = 4096


class PasswordPassed(msgspec.Struct, frozen=True, kw_only=True):
    """The password was right. `needs_code`: a code of the authenticator app is needed, too."""

    user: User
    needs_code: bool


def device_token(ports: Ports, user_id: str) -> str:
    """Return a token by which the browser is known as one in which the person signed in."""
    nonce = ports.ids.secret(16)
    return f"{user_id}.{nonce}.{ports.vault.tag(f'{user_id}.{nonce}'.encode(), _DEVICE).hex()}"


def is_known_device(ports: Ports, user_id: str, token: str) -> bool:
    """Return whether the person signed in with this browser before."""
    said, _, tag = token.rpartition(".")
    return said.partition(".")[0] == user_id and _fits(ports, tag, said, _DEVICE)


def half_token(ports: Ports, user: User) -> str:
    """Return a token of a person whose password was right, for the step that asks for a code."""
    until = int((ports.clock.real() + _HALF_LIVES).timestamp())
    said = f"{user.id}.{user.security}.{until}"
    return f"{said}.{ports.vault.tag(said.encode(), _HALF).hex()}"


async def half_signed_in(ports: Ports, token: str) -> User | None:
    """Return the person of such a token. None: it is invalid or expired."""
    said, _, tag = token.rpartition(".")
    parts = said.split(".")
    if len(parts) != 3 or not _fits(ports, tag, said, _HALF) or int(parts[2]) < ports.clock.real().timestamp():
        return None
    user = await ports.storage.get(User, parts[0])
    return user if user is not None and str(user.security) == parts[1] and user.disabled_at is None else None


def _fits(ports: Ports, tag: str, said: str, place: str) -> bool:
    try:
        return ports.vault.fits(bytes.fromhex(tag), said.encode(), place)
    except (ValueError, VaultError):
        return False


async def check_password(ports: Ports, address: str, password: str, device: str) -> PasswordPassed:
    """Check address and password. `device`: the token of the browser, empty if it has none.

    Raises: Refusal SIGN_IN_FAILED, the same for an unknown address, a wrong password and a disabled person;
    TOO_MANY_GUESSES; Unavailable.
    """
    try:
        email = read_email(address)
    except Refusal:
        email = ""
    async with ports.storage.unit() as unit:
        user = await user_by_email(ports, unit, email) if email else None
    budget = _budget(ports, email, user, device)
    await take_attempt(ports, budget)
    fits = await ports.passwords.verify(_stored(ports, user), given_password(password))
    if user is None or not fits or user.disabled_at is not None:
        raise Refusal("SIGN_IN_FAILED", "Address or password is wrong")
    await _give_back(ports, budget)
    return PasswordPassed(user=await _rehashed(ports, user, password), needs_code=user.has_second_factor)


async def require_password(ports: Ports, user: User, password: str) -> None:
    """Check the password of a person who is known, for a confirmation. Raises: as `check_password`."""
    budget = f"confirm:{user.id}"
    await take_attempt(ports, budget)
    if not await ports.passwords.verify(_stored(ports, user), given_password(password)):
        raise Refusal("SIGN_IN_FAILED", "The password is wrong")
    await _give_back(ports, budget)


async def check_code(ports: Ports, user: User, code: str) -> User:
    """Check a code of the authenticator app, or a recovery code, and spend it. Raises: Refusal SIGN_IN_FAILED;
    TOO_MANY_GUESSES."""
    budget = f"code:{user.id}"
    await take_attempt(ports, budget)

    async def work(unit: Unit) -> User | None:
        present = await unit[User].get(user.id)
        if present is None or present.totp is None:
            return None
        secret = ports.vault.decrypt(present.totp, totp_aad(present.id))
        step = totp_step(secret, code, ports.clock.real().timestamp(), present.totp_step)
        if step is not None:
            return unit[User].save(msgspec.structs.replace(present, totp_step=step))
        digest = recovery_digest(code)
        if digest not in present.recovery:
            return None
        left = tuple(each for each in present.recovery if each != digest)
        warn_of_change(ports, unit, present, "recovery")
        return unit[User].save(msgspec.structs.replace(present, recovery=left))

    found = await retrying(ports.storage, work)
    if found is None:
        raise Refusal("SIGN_IN_FAILED", "The code is wrong or was used already: wait for the next one")
    await _give_back(ports, budget)
    return found


def _stored(ports: Ports, user: User | None) -> str | None:
    if user is None or user.password is None:
        return None
    return ports.vault.decrypt(user.password, password_aad(user.id)).decode()


async def _rehashed(ports: Ports, user: User, password: str) -> User:
    """Return the person, with a new hash if the parameters changed since."""
    stored = _stored(ports, user)
    if stored is None or not ports.passwords.is_outdated(stored):
        return user
    sealed = ports.vault.encrypt((await ports.passwords.hash(given_password(password))).encode(), password_aad(user.id))

    async def work(unit: Unit) -> User:
        present = await unit[User].get(user.id)
        if present is None or present.password != user.password:
            return user
        return unit[User].save(msgspec.structs.replace(present, password=sealed))

    return await retrying(ports.storage, work)


def _budget(ports: Ports, email: str, user: User | None, device: str) -> str:
    """Return the name of the budget that pays for a wrong password. Unknown addresses share some thousand budgets, so
    that guesses of strangers cannot fill the storage."""
    if user is None:
        return f"stranger:{int.from_bytes(email_digest(ports, email)[:4], 'big') % _SPREAD}"
    return f"known:{user.id}" if is_known_device(ports, user.id, device) else f"unknown:{user.id}"


_TOO_MANY = "Too many attempts: try again later, or reset your password by e-mail"


@unit_of_work(again_on=("guess_counts_id",))
async def take_attempt(
    ports: Ports, unit: Unit, name: str, *, code: str = "TOO_MANY_GUESSES", message: str = _TOO_MANY
) -> None:
    """Take one attempt from a budget, before the attempt, so that many at once cannot exceed it. The budget's time is
    real, whatever a test clock shows. Raises: Refusal `code` when the budget is spent."""
    now = ports.clock.real()
    found = await unit[GuessCount].get(name)
    if found is not None and found.is_spent(budget_of(name), now):
        raise Refusal(code, message, retry_after=max(1, int((found.until - now).total_seconds())))
    after = counted(found, name, now)
    if found is None:
        unit[GuessCount].add(after)
    else:
        unit[GuessCount].save(after)


@unit_of_work()
async def _give_back(_: Ports, unit: Unit, name: str) -> None:
    """Return an attempt that was right."""
    found = await unit[GuessCount].get(name)
    if found is not None and found.count:
        unit[GuessCount].save(msgspec.structs.replace(found, count=found.count - 1))


async def warn_of_sign_in(ports: Ports, user: User, device: str, network: str) -> None:
    """Write to the person about a sign-in in a browser that was not seen before."""

    async def work(unit: Unit) -> None:
        values = {"when": iso(ports.clock.real()), "device": device, "network": network}
        write_to(ports, unit, user, "new_device", {**values, "link": f"{ports.urls.app_url}/profile"})

    if ports.mailer is not None:
        await retrying(ports.storage, work)
