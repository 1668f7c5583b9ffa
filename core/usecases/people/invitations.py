"""Invitations: an owner, an admin or an operator makes one, and the person with its link accepts it
(docs/dashboard.md "People")."""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Account
from ...domain.accounts.shops import Shop
from ...domain.errors import Refusal
from ...domain.people.passwords import new_password
from ...domain.people.people import (
    INVITATION,
    INVITATION_LIVES,
    MEMBERS_MOST,
    Invitation,
    Membership,
    User,
    membership_id,
    read_email,
    token_digest,
)
from ...domain.people.roles import PersonRight, Role, may_manage
from ..common.encrypted import invitation_email_aad, password_aad
from ..common.units import retrying
from .letters import add_letter
from .second_person import Asked, asking
from .sessions import Actor, by_person, require
from .sign_in import require_password
from .users import EMAIL_TAKEN, email_digest, invited_email, new_user, secured, user_by_email

_TOKEN_BYTES = 32


class NewInvitation(msgspec.Struct, frozen=True, kw_only=True):
    """An invitation and its link, which is shown only once."""

    invitation: Invitation
    link: str
    is_mailed: bool

    def __repr__(self) -> str:
        return f"NewInvitation({self.invitation!r}, ***)"


class ShownInvitation(msgspec.Struct, frozen=True, kw_only=True):
    """An open invitation as its holder sees it."""

    invitation: Invitation
    account: Account
    email: str
    has_password: bool
    """Whether the person exists and has a password: then the password is asked for, not chosen."""


async def invite(
    ports: Ports,
    account_id: str,
    address: str,
    role: Role,
    *,
    shops: tuple[str, ...] | None = None,
    live: bool = True,
    language: str = "ru",
    inviter: Actor | None = None,
) -> NewInvitation:
    """Invite a person to an account. An earlier open invitation of the same address becomes void.

    Without `inviter`, an operator invites. Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, VALIDATION_ERROR,
    ACCOUNT_NOT_FOUND, SHOP_NOT_FOUND, INVALID_STATE for a member, and when the account has MEMBERS_MOST people;
    Requested.
    """
    email = read_email(address)
    if inviter is not None:
        require(inviter, PersonRight.PEOPLE)
        _may_give(inviter, role)
        account_id = inviter.account.id
        given = {"address": email, "role": role.value, "shops": shops, "live": live, "language": language}
        asked = Asked(use_case="person.invite", right=PersonRight.PEOPLE, object_id=account_id, arguments=given)
        ports = asking(ports, inviter, "person.invite", asked)
    token = ports.ids.secret(_TOKEN_BYTES)
    invitation_id = ids.prefixed(INVITATION, ports.ids.uuid())
    digest = email_digest(ports, email)
    link = f"{ports.urls.app_url}/invite?token={token}"

    async def work(unit: Unit) -> NewInvitation:
        now = ports.clock.real()
        account = await unit[Account].get(account_id) if ids.is_prefixed(ids.ACCOUNT, account_id) else None
        if account is None:
            raise Refusal("ACCOUNT_NOT_FOUND", "There is no account of this id")
        for shop_id in shops or ():
            shop = await unit[Shop].get(shop_id)
            if shop is None or shop.account_id != account_id:
                raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this id")
        user = await user_by_email(ports, unit, email)
        # An unknown address costs the same reads as a known one.
        if await unit[Membership].get(membership_id(account_id, "-" if user is None else user.id)) is not None:
            raise Refusal("INVALID_STATE", "This person belongs to the account already: change the role instead")
        if len(await unit[Membership].find(account_id=account_id, order="id", limit=MEMBERS_MOST)) >= MEMBERS_MOST:
            raise Refusal("INVALID_STATE", f"The account has {MEMBERS_MOST} people already: remove one first")
        for earlier in await open_invitations(unit, account_id, now):
            if earlier.email_digest == digest:
                unit[Invitation].save(msgspec.structs.replace(earlier, revoked_at=now))
        made = unit[Invitation].add(
            Invitation(
                id=invitation_id,
                account_id=account_id,
                email=ports.vault.encrypt(email.encode(), invitation_email_aad(invitation_id)),
                email_digest=digest,
                token_digest=bytes.fromhex(token_digest(token)),
                role=role,
                created_at=now,
                expires_at=now + INVITATION_LIVES,
                shops=shops,
                live=live,
                invited_by=None if inviter is None else inviter.user.id,
            )
        )
        spoken = language if user is None else user.language
        values = {"account": account.name, "role": role.value, "link": link}
        is_mailed = add_letter(ports, unit, email, "invitation", spoken, values)
        return NewInvitation(invitation=made, link=link, is_mailed=is_mailed)

    return await retrying(ports.storage, work)


def _may_give(inviter: Actor, role: Role) -> None:
    if not may_manage(inviter.role, role):
        raise Refusal("PERSON_RIGHT_MISSING", "Only an owner can make another person an owner")


async def open_invitations(unit: Unit, account_id: str, now: datetime) -> list[Invitation]:
    """Return the account's invitations that can still be accepted, newest first."""
    found = await unit[Invitation].find(account_id=account_id, order="-created_at", limit=1000)
    return [each for each in found if each.is_open(now)]


async def list_invitations(ports: Ports, account_id: str) -> list[tuple[Invitation, str]]:
    """Return the open invitations of an account with their addresses, newest first."""
    async with ports.storage.unit() as unit:
        found = await open_invitations(unit, account_id, ports.clock.real())
    return [(each, invited_email(ports, each)) for each in found]


async def revoke_invitation(ports: Ports, actor: Actor, invitation_id: str) -> Invitation:
    """Make an open invitation void. Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, INVITATION_NOT_FOUND."""
    require(actor, PersonRight.PEOPLE)
    ports = by_person(ports, actor, "person.revoke_invitation", invitation_id)

    async def work(unit: Unit) -> Invitation:
        now = ports.clock.real()
        found = await unit[Invitation].get(invitation_id) if ids.is_prefixed(INVITATION, invitation_id) else None
        if found is None or found.account_id != actor.account.id or not found.is_open(now):
            raise _no_invitation()
        _may_give(actor, found.role)
        return unit[Invitation].save(msgspec.structs.replace(found, revoked_at=now))

    return await retrying(ports.storage, work)


async def show_invitation(ports: Ports, token: str) -> ShownInvitation:
    """Return an open invitation. It is not spent. Raises: Refusal INVITATION_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        invitation, account = await _find(ports, unit, token)
        email = invited_email(ports, invitation)
        user = await user_by_email(ports, unit, email)
    has_password = user is not None and user.password is not None
    return ShownInvitation(invitation=invitation, account=account, email=email, has_password=has_password)


async def accept_invitation(ports: Ports, token: str, password: str, language: str) -> User:
    """Accept an invitation: make the person if needed, and the membership. The `password` of a new person is set; an
    existing one must give the present password.

    The inviter must still have the right to invite for this role. Raises: Refusal INVITATION_NOT_FOUND,
    VALIDATION_ERROR, SIGN_IN_FAILED for a wrong password.
    """
    shown = await show_invitation(ports, token)
    hashed = None
    if not shown.has_password:
        hashed = await ports.passwords.hash(new_password(password, (shown.email, shown.account.name)))
    else:
        async with ports.storage.unit() as unit:
            user = await user_by_email(ports, unit, shown.email)
        if user is None:
            raise _no_invitation()
        await require_password(ports, user, password)

    async def work(unit: Unit) -> User:
        now = ports.clock.real()
        invitation, account = await _find(ports, unit, token)
        await _require_inviter(unit, invitation)
        user = await user_by_email(ports, unit, shown.email)
        if (user is not None and user.password is not None) is not shown.has_password:
            raise _no_invitation()
        if user is not None and user.disabled_at is not None:
            raise _no_invitation()
        if hashed is not None:
            fresh = user or new_user(ports, shown.email, language)
            sealed = ports.vault.encrypt(hashed.encode(), password_aad(fresh.id))
            changed = secured(fresh, password=sealed)
            user = unit[User].add(changed) if user is None else unit[User].save(changed)
        if user is None:
            raise _no_invitation()
        if await unit[Membership].get(membership_id(account.id, user.id)) is None:
            unit[Membership].add(
                Membership(
                    id=membership_id(account.id, user.id),
                    account_id=account.id,
                    user_id=user.id,
                    role=invitation.role,
                    created_at=now,
                    shops=invitation.shops,
                    live=invitation.live,
                    invited_by=invitation.invited_by,
                )
            )
        unit[Invitation].save(msgspec.structs.replace(invitation, accepted_at=now))
        return user

    return await retrying(ports.storage, work, again_on=(EMAIL_TAKEN, "memberships_id"))


async def _require_inviter(unit: Unit, invitation: Invitation) -> None:
    """Raise Refusal INVITATION_NOT_FOUND if the inviter has since lost the right to invite for this role."""
    if invitation.invited_by is None:
        return
    inviter = await unit[Membership].get(membership_id(invitation.account_id, invitation.invited_by))
    if inviter is None or not may_manage(inviter.role, invitation.role):
        raise _no_invitation()


async def _find(ports: Ports, unit: Unit, token: str) -> tuple[Invitation, Account]:
    found = await unit[Invitation].find(token_digest=bytes.fromhex(token_digest(token)), limit=1)
    account = await unit[Account].get(found[0].account_id) if found else None
    if not found or account is None or not found[0].is_open(ports.clock.real()):
        raise _no_invitation()
    return found[0], account


def _no_invitation() -> Refusal:
    return Refusal("INVITATION_NOT_FOUND", "This invitation is void: ask for a new one")
