"""Resetting a password by a link in a letter (docs/dashboard.md "A forgotten password")."""

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.errors import Refusal
from ...domain.people.passwords import new_password
from ...domain.people.people import RESET_LIVES, ResetToken, User, read_email, token_digest
from ..common.encrypted import password_aad
from ..common.units import retrying
from .users import email_of, secured, user_by_email, warn_of_change, write_to

_TOKEN_BYTES = 32
_OPEN_MOST = 3
"""Links of one person that are open at once; further requests send nothing until the first expires."""


async def request_reset(ports: Ports, address: str) -> None:
    """Send the person with this address a link to set a new password. An unknown address gives no sign."""
    try:
        email = read_email(address)
    except Refusal:
        return
    await new_reset_link(ports, email, mails=True)


async def new_reset_link(ports: Ports, email: str, *, mails: bool) -> str | None:
    """Make a reset link, and send it with `mails`. None: nobody has the address, or there are enough open links."""
    token = ports.ids.secret(_TOKEN_BYTES)
    link = f"{ports.urls.app_url}/reset?token={token}"

    async def work(unit: Unit) -> str | None:
        now = ports.clock.real()
        user = await user_by_email(ports, unit, email)
        if user is None or user.disabled_at is not None:
            return None
        earlier = await unit[ResetToken].find(user_id=user.id, order="id", limit=100)
        for each in earlier:
            if each.expires_at <= now or each.security != user.security:
                unit[ResetToken].remove(each)
        if sum(each.expires_at > now and each.security == user.security for each in earlier) >= _OPEN_MOST:
            return None
        unit[ResetToken].add(
            ResetToken(
                id=token_digest(token),
                user_id=user.id,
                email_digest=user.email_digest,
                security=user.security,
                expires_at=now + RESET_LIVES,
            )
        )
        if mails:
            write_to(ports, unit, user, "reset", {"link": link})
        return link

    return await retrying(ports.storage, work)


async def is_reset_open(ports: Ports, token: str) -> bool:
    """Return whether a reset link can still be used. It is not spent."""
    async with ports.storage.unit() as unit:
        return await _find(ports, unit, token) is not None


async def reset_password(ports: Ports, token: str, password: str) -> User:
    """Set a new password by a link. All sessions and all other links end; the authenticator app stays.

    Raises: Refusal RESET_VOID, VALIDATION_ERROR.
    """
    async with ports.storage.unit() as unit:
        user = await _find(ports, unit, token)
    if user is None:
        raise _void()
    hashed = await ports.passwords.hash(new_password(password, (email_of(ports, user),)))

    async def work(unit: Unit) -> User:
        present = await _find(ports, unit, token)
        if present is None:
            raise _void()
        sealed = ports.vault.encrypt(hashed.encode(), password_aad(present.id))
        for each in await unit[ResetToken].find(user_id=present.id, order="id", limit=100):
            unit[ResetToken].remove(each)
        warn_of_change(ports, unit, present, "password")
        return unit[User].save(secured(present, password=sealed))

    return await retrying(ports.storage, work)


async def _find(ports: Ports, unit: Unit, token: str) -> User | None:
    found = await unit[ResetToken].get(token_digest(token))
    if found is None or found.expires_at <= ports.clock.real():
        return None
    user = await unit[User].get(found.user_id)
    if user is None or user.disabled_at is not None:
        return None
    return user if (user.security, user.email_digest) == (found.security, found.email_digest) else None


def _void() -> Refusal:
    return Refusal("RESET_VOID", "This link is void: ask for a new one")
