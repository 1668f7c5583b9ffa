"""Changing a person's e-mail address by a link in a letter to the new one (docs/dashboard.md "Your profile").

The link is an encrypted text, so the storage has nothing of it. It is void after any other change of the sign-in.
"""

import base64
import binascii
from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Conflict
from ....ports.storage import Unit
from ....ports.vault import VaultError
from ...domain.errors import Refusal
from ...domain.people.people import EMAIL_CHANGE_LIVES, Session, User, masked_email, read_email
from ..common.encrypted import user_email_aad
from ..common.units import retrying
from .letters import add_letter
from .sessions import Actor, by_person
from .sign_in import take_attempt
from .users import EMAIL_TAKEN, email_digest, email_of, secured, user_by_email, warn_of_change, write_to

_PLACE = "people.email_change"


class EmailChange(msgspec.Struct, frozen=True, kw_only=True):
    """A wished address, as its link carries it."""

    user_id: str
    address: str
    security: int
    """The person's security number at the request."""
    expires_at: datetime

    def __repr__(self) -> str:
        return f"EmailChange({self.user_id}, ***)"


async def request_email_change(ports: Ports, actor: Actor, address: str) -> None:
    """Send a link to the new address, and a warning to the present one. An address that another person has gets no
    letter, and the requester no sign of it.

    Raises: Refusal STEP_UP_NEEDED, VALIDATION_ERROR; INVALID_STATE for the present address, and without e-mail;
    TOO_MANY_GUESSES.
    """
    if not actor.stepped_up:
        raise Refusal("STEP_UP_NEEDED", "Confirm that it is you: enter your password again")
    wanted, present = read_email(address), email_of(ports, actor.user)
    if wanted == present:
        raise Refusal("INVALID_STATE", "This is your address already")
    if ports.mailer is None:
        raise Refusal("INVALID_STATE", "This service has no e-mail connected: ask its operator")
    # Otherwise the service would write to strangers as often as somebody likes.
    await take_attempt(ports, f"email:{actor.user.id}", message="Too many requests for a new address: try again later")
    change = EmailChange(
        user_id=actor.user.id,
        address=wanted,
        security=actor.user.security,
        expires_at=ports.clock.real() + EMAIL_CHANGE_LIVES,
    )
    sealed = ports.vault.encrypt(msgspec.json.encode(change), _PLACE)
    link = f"{ports.urls.app_url}/profile/email?token={base64.urlsafe_b64encode(sealed).decode().rstrip('=')}"

    async def work(unit: Unit) -> None:
        if await user_by_email(ports, unit, wanted) is None:
            add_letter(ports, unit, wanted, "email_link", actor.user.language, {"link": link})
        values = {"address": masked_email(wanted), "link": f"{ports.urls.app_url}/profile"}
        write_to(ports, unit, actor.user, "email_asked", values)

    await retrying(ports.storage, work)


def show_email_change(ports: Ports, actor: Actor, token: str) -> EmailChange:
    """Return the wish of a link that this person may confirm. It is not spent. Raises: Refusal RESET_VOID for an
    expired or altered link, one of another person, and one from before another change of the sign-in."""
    try:
        padded = f"{token}{'=' * (-len(token) % 4)}".encode("ascii")
        plain = ports.vault.decrypt(base64.b64decode(padded, b"-_", validate=True), _PLACE)
        change = msgspec.json.decode(plain, type=EmailChange)
    except (VaultError, binascii.Error, ValueError):
        raise _void() from None
    is_own = (change.user_id, change.security) == (actor.user.id, actor.user.security)
    if not is_own or change.expires_at <= ports.clock.real():
        raise _void()
    return change


async def confirm_email_change(ports: Ports, actor: Actor, token: str) -> User:
    """Give the person the new address. All other sessions and links end; both addresses get a letter.

    Raises: Refusal RESET_VOID; INVALID_STATE when another person has the address by now.
    """
    change = show_email_change(ports, actor, token)
    ports = by_person(ports, actor, "person.email")

    async def work(unit: Unit) -> User:
        before = await unit[User].get(actor.user.id)
        if before is None or before.security != change.security:
            raise _void()
        warn_of_change(ports, unit, before, "email")
        after = secured(
            before,
            email=ports.vault.encrypt(change.address.encode(), user_email_aad(before.id)),
            email_digest=email_digest(ports, change.address),
        )
        after = unit[User].save(after)
        session = await unit[Session].get(actor.session.id)
        if session is not None:
            unit[Session].save(msgspec.structs.replace(session, security=after.security))
        warn_of_change(ports, unit, after, "email")
        return after

    try:
        return await retrying(ports.storage, work)
    except Conflict as conflict:
        if conflict.rule != EMAIL_TAKEN:
            raise
        raise Refusal("INVALID_STATE", "Another person here has this address: use a different one") from None


def _void() -> Refusal:
    return Refusal("RESET_VOID", "This link is void: ask for a new one")
