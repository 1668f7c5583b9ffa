"""Members of an account: listed, changed and removed by its people or by operators (docs/dashboard.md "People")."""

from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.shops import Shop
from ...domain.errors import Refusal
from ...domain.people.people import MEMBERS_MOST, Membership, Session, User, membership_id
from ...domain.people.roles import PersonRight, Role, may_manage
from ..common.units import retrying, unit_of_work
from .notifications import forget_preferences
from .resets import new_reset_link
from .second_person import Asked, asking
from .sessions import Actor, by_person, require
from .users import email_of, find_user, secured, warn_of_change, write_to
from .views import forget_views


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member with the address of the person."""

    membership: Membership
    user: User
    email: str


async def list_members(ports: Ports, account_id: str) -> list[Member]:
    """Return the members of an account, owners first."""
    async with ports.storage.unit() as unit:
        found = await unit[Membership].find(account_id=account_id, order="id", limit=MEMBERS_MOST)
        users = [await unit[User].get(each.user_id) for each in found]
    members = [
        Member(membership=each, user=user, email=email_of(ports, user))
        for each, user in zip(found, users, strict=True)
        if user is not None
    ]
    order = list(Role)
    return sorted(members, key=lambda each: (order.index(each.membership.role), each.email))


async def list_users(ports: Ports) -> list[tuple[User, str, list[Membership]]]:
    """Return all people with address and memberships, oldest first, for operators."""
    found: list[tuple[User, str, list[Membership]]] = []
    async for batch in ports.storage.scan(User, readable=True):
        for user in batch:
            async with ports.storage.unit() as unit:
                memberships = await unit[Membership].find(user_id=user.id, order="id", limit=1000)
            found.append((user, email_of(ports, user), memberships))
    return found


async def change_member(
    ports: Ports,
    actor: Actor,
    user_id: str,
    *,
    role: Role,
    shops: tuple[str, ...] | None,
    live: bool,
    version: int | None = None,
) -> Membership:
    """Change a member's role, shops and access to live mode. The member's sessions in this account end.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED; USER_NOT_FOUND; SHOP_NOT_FOUND; LAST_OWNER; INVALID_STATE when
    the membership changed since the `version` that the person saw; Requested.
    """
    require(actor, PersonRight.PEOPLE)
    given = {"user_id": user_id, "role": role.value, "shops": shops, "live": live, "version": version}
    asked = Asked(use_case="person.role", right=PersonRight.PEOPLE, object_id=user_id, arguments=given)
    ports = asking(ports, actor, "person.role", asked, object_id=user_id)

    async def work(unit: Unit) -> Membership:
        before = await _member(unit, actor, user_id)
        if version is not None and before.version != version:
            raise Refusal("INVALID_STATE", "The membership was changed meanwhile: read it again")
        if not may_manage(actor.role, role):
            raise Refusal("PERSON_RIGHT_MISSING", "Only an owner can make another person an owner")
        for shop_id in shops or ():
            shop = await unit[Shop].get(shop_id)
            if shop is None or shop.account_id != before.account_id:
                raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this id")
        if before.role is Role.OWNER and role is not Role.OWNER:
            await _keep_an_owner(unit, before)
        await _end_sessions(unit, before)
        after = unit[Membership].save(msgspec.structs.replace(before, role=role, shops=shops, live=live))
        user = await unit[User].get(user_id)
        if user is not None and role is not before.role:
            link = f"{ports.urls.app_url}/home"
            write_to(ports, unit, user, "role", {"account": actor.account.name, "role": role.value, "link": link})
        return after

    return await retrying(ports.storage, work)


async def remove_member(ports: Ports, actor: Actor, user_id: str) -> None:
    """Remove a member from the account; the member's sessions there end. A person may also leave alone.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED; USER_NOT_FOUND; LAST_OWNER.
    """
    if user_id != actor.user.id:
        require(actor, PersonRight.PEOPLE)
    ports = by_person(ports, actor, "person.remove", user_id)

    async def work(unit: Unit) -> None:
        before = await _member(unit, actor, user_id)
        if before.role is Role.OWNER:
            await _keep_an_owner(unit, before)
        await _end_sessions(unit, before)
        unit[Membership].remove(before)
        await forget_preferences(unit, before)
        await forget_views(unit, before.account_id, user_id)
        user = await unit[User].get(user_id)
        if user is not None:
            write_to(ports, unit, user, "removed", {"account": actor.account.name})

    await retrying(ports.storage, work)


async def _member(unit: Unit, actor: Actor, user_id: str) -> Membership:
    found = await unit[Membership].get(membership_id(actor.account.id, user_id))
    if found is None:
        raise Refusal("USER_NOT_FOUND", "The account has no such member")
    if user_id != actor.user.id and not may_manage(actor.role, found.role):
        raise Refusal("PERSON_RIGHT_MISSING", "Only an owner can change or remove an owner")
    return found


async def _keep_an_owner(unit: Unit, leaving: Membership) -> None:
    """Raise Refusal LAST_OWNER unless another owner stays. That owner's row is written, so that two owners who leave at
    once cannot both succeed."""
    found = await unit[Membership].find(account_id=leaving.account_id, order="id", limit=MEMBERS_MOST)
    others = [each for each in found if each.role is Role.OWNER and each.id != leaving.id]
    if not others:
        raise Refusal("LAST_OWNER", "The account would have no owner: make another person an owner first")
    unit[Membership].save(others[0])


async def _end_sessions(unit: Unit, membership: Membership) -> None:
    for each in await unit[Session].find(user_id=membership.user_id, order="created_at", limit=1000):
        if each.account_id == membership.account_id:
            unit[Session].remove(each)


@unit_of_work()
async def switch_user(ports: Ports, unit: Unit, named: str, *, enabled: bool) -> User:
    """Disable a person in all accounts, or enable the person again, as an operator. `named`: id or address. All
    sessions end. Raises: Refusal USER_NOT_FOUND."""
    found = await find_user(ports, unit, named)
    if (found.disabled_at is None) is enabled:
        return found
    return unit[User].save(secured(found, disabled_at=None if enabled else ports.clock.real()))


async def reset_user(ports: Ports, named: str) -> tuple[User, str]:
    """Remove password, authenticator app and recovery codes of a person, as an operator, and return a link to set a new
    password. All sessions end. Raises: Refusal USER_NOT_FOUND, INVALID_STATE for a disabled person."""
    empty: dict[str, Any] = {"password": None, "totp": None, "totp_pending": None, "totp_step": 0, "recovery": ()}

    async def work(unit: Unit) -> User:
        found = await find_user(ports, unit, named)
        if found.disabled_at is not None:
            raise Refusal("INVALID_STATE", "The person is disabled: enable first")
        warn_of_change(ports, unit, found, "reset")
        return unit[User].save(secured(found, **empty))

    user = await retrying(ports.storage, work)
    link = await new_reset_link(ports, email_of(ports, user))
    if link is None:
        raise Refusal("INVALID_STATE", "The person was disabled meanwhile")
    return user, link
