"""Resetting a password by a link in a letter (docs/dashboard.md "A forgotten password")."""

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.errors import Refusal
from ...domain.people.passwords import new_password
from ...domain.people.people import RESET_LIVES, Letter, ResetToken, User, read_email, token_digest
from ..common.encrypted import letter_aad, password_aad
from ..common.schedule import FollowUp, reschedule_at
from ..common.units import retrying, unit_of_work
from .letters import PREFIX
from .users import email_of, secured, user_by_email, warn_of_change, write_to

RESET = FollowUp("person.reset")
_TOKEN_BYTES = 32
_OPEN_MOST = 3
"""Links of one person that are open at once; further requests send nothing until the first expires."""


@unit_of_work()
async def request_reset(ports: Ports, unit: Unit, address: str) -> None:
    """Send the person with this address a link to set a new password. A job looks for the person, so that the request
    does the same for an unknown address."""
    try:
        email = read_email(address)
    except Refusal:
        return
    if ports.mailer is None:
        return
    now, letter_id = ports.clock.real(), f"{PREFIX}{ports.ids.uuid()}"
    body = ports.vault.encrypt(email.encode(), letter_aad(letter_id))
    unit[Letter].add(Letter(id=letter_id, body=body, created_at=now))
    unit[Job].add(RESET.first(letter_id, now, now))


async def send_reset(ports: Ports, job: Job) -> None:
    """Send the link of a request, if somebody has the address."""
    token = ports.ids.secret(_TOKEN_BYTES)

    async def work(unit: Unit) -> None:
        asked = await unit[Letter].get(job.argument)
        if asked is None:
            return
        email = ports.vault.decrypt(asked.body, letter_aad(asked.id)).decode()
        await _add_link(ports, unit, email, token, mails=True)
        unit[Letter].remove(asked)

    await retrying(ports.storage, work)
    await reschedule_at(ports, job, None)


async def new_reset_link(ports: Ports, email: str) -> str | None:
    """Make a reset link, for an operator. None: nobody has the address, or there are enough open links."""
    token = ports.ids.secret(_TOKEN_BYTES)
    return await retrying(ports.storage, lambda unit: _add_link(ports, unit, email, token, mails=False))


async def _add_link(ports: Ports, unit: Unit, email: str, token: str, *, mails: bool) -> str | None:
    """Add a reset link to the unit, and its letter with `mails`."""
    link = f"{ports.urls.app_url}/reset?token={token}"
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
