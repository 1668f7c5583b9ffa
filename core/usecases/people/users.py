"""People by address and id, and letters to them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Snapshot, Unit
from ...domain import ids
from ...domain.days import iso
from ...domain.errors import Refusal
from ...domain.people.letters import CHANGES
from ...domain.people.people import USER, Invitation, User, read_email
from ..common.encrypted import invitation_email_aad, user_email_aad
from .letters import add_letter

EMAIL_TAKEN = "users_email"
"""Unique rule of the storage: an address belongs to one person."""


def email_digest(ports: Ports, address: str) -> bytes:
    """Return the keyed digest by which an address is found."""
    return ports.vault.fingerprint(f"person:{address}")


def email_of(ports: Ports, user: User) -> str:
    """Return the person's address. Raises: VaultError."""
    return ports.vault.decrypt(user.email, user_email_aad(user.id)).decode()


def invited_email(ports: Ports, invitation: Invitation) -> str:
    """Return the address that was invited. Raises: VaultError."""
    return ports.vault.decrypt(invitation.email, invitation_email_aad(invitation.id)).decode()


async def user_by_email(ports: Ports, unit: Unit | Snapshot, address: str) -> User | None:
    """Return the person with this address, as `read_email` returns it."""
    found = await unit[User].find(email_digest=email_digest(ports, address), limit=1)
    return found[0] if found else None


async def find_user(ports: Ports, unit: Unit | Snapshot, named: str) -> User:
    """Return the person with this id or address, for operators. Raises: Refusal USER_NOT_FOUND, VALIDATION_ERROR."""
    if "@" in named:
        found = await user_by_email(ports, unit, read_email(named))
    else:
        found = await unit[User].get(named) if ids.is_prefixed(USER, named) else None
    if found is None:
        raise Refusal("USER_NOT_FOUND", "There is no person of this id or address")
    return found


def new_user(ports: Ports, address: str, language: str) -> User:
    """Return a new person, without a password yet."""
    user_id = ids.prefixed(USER, ports.ids.uuid())
    return User(
        id=user_id,
        email=ports.vault.encrypt(address.encode(), user_email_aad(user_id)),
        email_digest=email_digest(ports, address),
        created_at=ports.clock.real(),
        language=language,
    )


def secured(user: User, **changes: Any) -> User:
    """Return the person with changed means to sign in. All earlier sessions and e-mailed links become void."""
    return msgspec.structs.replace(user, security=user.security + 1, **changes)


def write_to(ports: Ports, unit: Unit, user: User, kind: str, values: Mapping[str, str]) -> bool:
    """Add a letter to the person to the unit. Return False if e-mail is not connected."""
    return add_letter(ports, unit, email_of(ports, user), kind, user.language, values)


def warn_of_change(ports: Ports, unit: Unit, user: User, change: str) -> None:
    """Add the letter that tells the person of a changed sign-in; `change` is a key of CHANGES."""
    link = f"{ports.urls.app_url}/profile"
    what = CHANGES[user.language][change]
    write_to(ports, unit, user, "security", {"what": what, "when": iso(ports.clock.real()), "link": link})
