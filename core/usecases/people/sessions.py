"""Sessions of merchants' people: started, read at every request, changed, ended (docs/dashboard.md "Sessions").

A token is random and exists only in the browser's cookie. Every request reads session, person, membership and account,
so a removed person is out at once.
"""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.accounts.key_terms import KeyTerms
from ...domain.errors import Refusal
from ...domain.operators.audit import OperatorAction
from ...domain.operators.pending_actions import PendingAction
from ...domain.payments.payments import Payment
from ...domain.people.people import (
    SEEN_EVERY,
    SESSIONS_MOST,
    STEP_UP_LIVES,
    Membership,
    Session,
    User,
    absolute_limit,
    idle_limit,
    membership_id,
    token_digest,
)
from ...domain.people.roles import MONEY_ROLES, PersonRight, Role, api_rights, grant
from ..actions.audit import acting
from ..common.units import retrying, unit_of_work

_TOKEN_BYTES = 32
_DEVICE_LONGEST = 120


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """The browser of a sign-in, for the person's list of sessions."""

    name: str = ""
    network: str = ""


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """A signed-in person within one account and mode."""

    session: Session
    user: User
    membership: Membership
    account: Account
    caller: Caller
    """The person as a caller of merchants' use cases: rights and shops are those of the role."""
    stepped_up: bool
    request: PendingAction | None = None
    """The request for a second person that this person approves or completes now (second_person.py)."""

    @property
    def role(self) -> Role:
        return self.membership.role

    @property
    def mode(self) -> Mode:
        return self.session.mode


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session and its token, which is shown only to the browser."""

    token: str
    session: Session

    def __repr__(self) -> str:
        return "NewSession(***)"


def may(actor: Actor, right: PersonRight, *, confirmed: bool = True) -> bool:
    """Return whether the person may do what needs this right. With `confirmed=False`, whether the role has it at all,
    for menus and buttons."""
    found = grant(actor.role, right, actor.mode)
    if found is None or (actor.mode is Mode.LIVE and lacks_factor(actor)):
        return found is not None and right is PersonRight.READ
    return not (confirmed and found.step_up and not actor.stepped_up)


def lacks_factor(actor: Actor) -> bool:
    """Return whether a person with a money role has neither passkey nor authenticator app. Such a person only reads in
    live mode."""
    by_passkey = actor.session.method == "passkey"
    return actor.role in MONEY_ROLES and not by_passkey and not actor.user.has_second_factor


def require(actor: Actor, right: PersonRight) -> None:
    """Raise Refusal PERSON_RIGHT_MISSING, SECOND_FACTOR_NEEDED or STEP_UP_NEEDED unless the person may."""
    if may(actor, right):
        return
    if grant(actor.role, right, actor.mode) is None:
        raise Refusal(
            "PERSON_RIGHT_MISSING", f"Your role, {actor.role}, lacks the right {right}", details={"right": right.value}
        )
    if actor.mode is Mode.LIVE and lacks_factor(actor):
        raise Refusal("SECOND_FACTOR_NEEDED", "Set up an authenticator app first: your role works with live money")
    raise Refusal("STEP_UP_NEEDED", "Confirm that it is you: enter your password again")


def by_person(ports: Ports, actor: Actor, name: str, object_id: str | None = None, reason: str = "") -> Ports:
    """Return ports by which the person does one action. The audit log gets its row in the same unit. What the
    installation guards by two operators waits for one of them (`Waits`). Raises: Refusal VALIDATION_ERROR."""
    return acting(ports, OperatorAction(operator=actor.user.id, name=name, object_id=object_id, reason=reason))


async def start_session(
    ports: Ports,
    user_id: str,
    *,
    method: str,
    account_id: str | None = None,
    mode: Mode | None = None,
    device: Device | None = None,
    stepped_up: bool = True,
) -> NewSession:
    """Start a session in an account of the person: the named one, else the one of the last visit. Without `mode`, in
    live mode if the person may enter it, unless only test mode has payments.

    Raises: Refusal NO_ACCOUNT when the person belongs to no account, or not to the named one.
    """
    token = ports.ids.secret(_TOKEN_BYTES)

    async def work(unit: Unit) -> Session:
        now = ports.clock.real()
        user = await unit[User].get(user_id)
        found = await unit[Membership].find(user_id=user_id, order="id", limit=1000)
        found = [each for each in found if account_id in (None, each.account_id)]
        if user is None or user.disabled_at is not None or not found:
            raise Refusal("NO_ACCOUNT", "You belong to no account here: ask an owner of the account for an invitation")
        chosen = max(found, key=lambda each: (each.seen_at or each.created_at, each.id))
        wanted = mode or await _busy_mode(unit, chosen.account_id)
        if wanted is Mode.LIVE and not chosen.live:
            wanted = Mode.TEST
        older = await unit[Session].find(user_id=user_id, order="created_at", limit=10 * SESSIONS_MOST)
        for each in older[: max(0, len(older) - SESSIONS_MOST + 1)]:
            unit[Session].remove(each)
        unit[Membership].save(msgspec.structs.replace(chosen, seen_at=now))
        return unit[Session].add(
            Session(
                id=token_digest(token),
                user_id=user_id,
                account_id=chosen.account_id,
                mode=wanted,
                created_at=now,
                seen_at=now,
                method=method,
                security=user.security,
                stepped_up_at=now if stepped_up else None,
                device="" if device is None else device.name[:_DEVICE_LONGEST],
                network="" if device is None else device.network,
            )
        )

    return NewSession(token=token, session=await retrying(ports.storage, work))


async def _busy_mode(unit: Unit, account_id: str) -> Mode:
    """Return the mode that has payments; live mode if both have some, or neither."""
    is_live = await _has_payments(unit, account_id, Mode.LIVE) or not await _has_payments(unit, account_id, Mode.TEST)
    return Mode.LIVE if is_live else Mode.TEST


async def modes_with_payments(ports: Ports, account_id: str) -> frozenset[Mode]:
    """Return the modes in which the account has payments."""
    async with ports.storage.unit() as unit:
        return frozenset([mode for mode in Mode if await _has_payments(unit, account_id, mode)])


async def _has_payments(unit: Unit, account_id: str, mode: Mode) -> bool:
    return bool(await unit[Payment].find(account_id=account_id, mode=mode, order="-created_at", limit=1))


async def find_actor(ports: Ports, token: str, *, is_active: bool = True) -> Actor | None:
    """Return the person of a session. None: the session is unknown, ended or expired, or the person was removed.

    `is_active` False: the page asks by itself, which does not keep the session alive.
    """
    now = ports.clock.real()
    async with ports.storage.unit() as unit:
        session = await unit[Session].get(token_digest(token))
        if session is None:
            return None
        user = await unit[User].get(session.user_id)
        membership = await unit[Membership].get(membership_id(session.account_id, session.user_id))
        account = await unit[Account].get(session.account_id)
    if user is None or membership is None or account is None or not _is_alive(session, user, membership, now):
        return None
    if is_active and now - session.seen_at >= SEEN_EVERY:
        session = await _seen(ports, session, now)
    since = session.stepped_up_at
    return Actor(
        session=session,
        user=user,
        membership=membership,
        account=account,
        caller=caller_of(account, membership, session.mode),
        stepped_up=since is not None and now - since < STEP_UP_LIVES,
    )


def caller_of(account: Account, membership: Membership, mode: Mode) -> Caller:
    """Return the member as a caller of merchants' use cases: rights and shops are those of the membership."""
    return Caller(
        account=account,
        mode=mode,
        key_id=membership.user_id,
        terms=KeyTerms(rights=api_rights(membership.role, mode)),
        shops=membership.shops,
        is_person=True,
    )


def _is_alive(session: Session, user: User, membership: Membership, now: datetime) -> bool:
    return (
        user.disabled_at is None
        and session.security == user.security
        and (membership.live or session.mode is Mode.TEST)
        and now - session.seen_at < idle_limit(membership.role)
        and now - session.created_at < absolute_limit(membership.role)
    )


@unit_of_work()
async def _seen(_: Ports, unit: Unit, session: Session, now: datetime) -> Session:
    present = await unit[Session].get(session.id)
    if present is None:
        return session
    return unit[Session].save(msgspec.structs.replace(present, seen_at=max(now, present.seen_at)))


async def change_session(
    ports: Ports, actor: Actor, *, account_id: str | None = None, mode: Mode | None = None, steps_up: bool = False
) -> NewSession:
    """Continue the session under a new token, in another account or mode, or with a fresh confirmation. The old token
    is void at once. Raises: Refusal NO_ACCOUNT, LIVE_MODE_DENIED."""
    token = ports.ids.secret(_TOKEN_BYTES)

    async def work(unit: Unit) -> Session:
        now = ports.clock.real()
        before = await unit[Session].get(actor.session.id)
        wanted = account_id or actor.session.account_id
        membership = await unit[Membership].get(membership_id(wanted, actor.user.id))
        if before is None or membership is None:
            raise Refusal("NO_ACCOUNT", "You do not belong to this account")
        target = mode or before.mode
        if target is Mode.LIVE and not membership.live:
            if mode is not None:
                raise Refusal("LIVE_MODE_DENIED", "You may work in test mode only: ask an owner for live mode")
            target = Mode.TEST
        if wanted != before.account_id:
            unit[Membership].save(msgspec.structs.replace(membership, seen_at=now))
        unit[Session].remove(before)
        after = msgspec.structs.replace(
            before,
            id=token_digest(token),
            account_id=wanted,
            mode=target,
            seen_at=now,
            stepped_up_at=now if steps_up else before.stepped_up_at,
            version=0,
        )
        return unit[Session].add(after)

    return NewSession(token=token, session=await retrying(ports.storage, work))


@unit_of_work()
async def end_session(_: Ports, unit: Unit, user_id: str, session_id: str) -> None:
    """End a session of the person; an unknown one is ended already."""
    found = await unit[Session].get(session_id)
    if found is not None and found.user_id == user_id:
        unit[Session].remove(found)


@unit_of_work()
async def end_other_sessions(_: Ports, unit: Unit, actor: Actor) -> int:
    """End all sessions of the person except this one, and return their number."""
    found = await unit[Session].find(user_id=actor.user.id, order="created_at", limit=10 * SESSIONS_MOST)
    others = [each for each in found if each.id != actor.session.id]
    for each in others:
        unit[Session].remove(each)
    return len(others)


async def list_sessions(ports: Ports, user_id: str) -> list[Session]:
    """Return the person's sessions, newest first."""
    async with ports.storage.unit() as unit:
        return await unit[Session].find(user_id=user_id, order="-created_at", limit=10 * SESSIONS_MOST)


async def list_accounts_of(ports: Ports, user_id: str) -> list[tuple[Membership, Account]]:
    """Return the person's memberships with their accounts, by account name."""
    async with ports.storage.unit() as unit:
        found = await unit[Membership].find(user_id=user_id, order="id", limit=1000)
        pairs = [(each, await unit[Account].get(each.account_id)) for each in found]
    known = [(membership, account) for membership, account in pairs if account is not None]
    return sorted(known, key=lambda pair: (pair[1].name.casefold(), pair[1].id))
