"""Gate before changes that another person of the account has to approve, where the account asks for that
(docs/dashboard.md "A second person").

A use case declares its change by `asking`. Its rules run as usual. When its unit is about to commit, the gate stores a
request instead. Another person who may make the same change approves it: the use case runs with the rights of that
person and stops before the commit. The first person then completes the request, so that a secret is shown to nobody
else. Refunds are approved by a second person, too (approvals.py); their approval sends the money at once.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ....ports.vault import Vault
from ...domain import ids
from ...domain.accounts.accounts import Mode
from ...domain.errors import Refusal
from ...domain.operators.audit import OperatorAction, changed_fields
from ...domain.operators.pending_actions import (
    ACTION,
    ActionStatus,
    Line,
    PendingAction,
    decided,
    expiry,
    is_open_request,
    moved,
)
from ...domain.people.guesses import GuessCount, budget_of, counted
from ...domain.people.letters import REQUESTS
from ...domain.people.people import MEMBERS_MOST, Membership, User
from ...domain.people.roles import PersonRight, grant
from ..actions.audit import acting, add_row, unaudited
from ..actions.decisions import Written
from ..actions.four_eyes import RACES
from ..common.encrypted import action_fits, asked_arguments_aad, tag_action
from ..common.units import retrying_within
from .sessions import Actor
from .users import email_of, write_to

CODE = "SECOND_PERSON_NEEDED"
ASK, APPROVE, COMPLETE, REJECT = "request.ask", "request.approve", "request.complete", "request.reject"
DAYS = 3
"""How long a request can be approved and completed."""
OPEN_MOST = 20
"""Open requests of one person in one account, at most."""
_SEALED = "sealed"


class Requested(Refusal):
    """Nothing was changed: the change waits for another person."""

    def __init__(self, action: PendingAction) -> None:
        super().__init__(CODE, "Another person of the account has to approve it")
        self.action = action


class Rehearsed(Exception):
    """The approving person may make the change, and it still is as it was shown."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A change that may need a second person."""

    use_case: str
    """Name in requests.py: `COMPLETED`."""
    right: PersonRight
    object_id: str
    arguments: Mapping[str, Any]
    """Arguments of the use case, as JSON."""
    mode: Mode | None = None
    """Mode of the change; None: both."""
    lines: tuple[Line, ...] = ()
    """Lines for the approving person beside those of the changed records."""


def asking(ports: Ports, actor: Actor, name: str, asked: Asked, *, object_id: str | None = None) -> Ports:
    """Return the ports for a change by the person, which another person has to approve if the account asks for it.

    With these ports the use case makes the change, or raises Requested. Raises: Refusal VALIDATION_ERROR.
    """
    action = OperatorAction(operator=actor.user.id, name=name, object_id=object_id)
    needed = actor.account.settings.second_person or actor.request is not None
    return acting(ports, action, approval=_Approval(ports, actor, name, asked) if needed else None)


def arguments_of(vault: Vault, action: PendingAction) -> dict[str, Any]:
    """Return the arguments of a request. Raises: VaultError."""
    sealed = bytes.fromhex(action.arguments[_SEALED])
    found: dict[str, Any] = msgspec.json.decode(vault.decrypt(sealed, asked_arguments_aad(action.id)))
    return found


class _Approval:
    """Stores the change as a request; or rehearses or completes the request of the actor."""

    once = True

    def __init__(self, ports: Ports, actor: Actor, name: str, asked: Asked) -> None:
        self._ports = unaudited(ports)
        self._actor = actor
        self._name = name
        self._asked = asked

    async def __call__(self, unit: Unit, written: Written) -> None:
        """Let the unit commit if it completes an approved request. Raises: Requested; Rehearsed; Refusal INVALID_STATE
        when the change differs from the request."""
        lines = await self._lines(unit, written)
        request = self._actor.request
        if request is None:
            if lines:
                raise Requested(await self._written_down(lines))
            return
        if request.shown != lines:
            raise Refusal("INVALID_STATE", f"It changed since it was requested: {moved(request.shown, lines)}")
        if request.operator != self._actor.user.id:
            raise Rehearsed
        present = await unit[PendingAction].get(request.id)
        if present is None or present.status is not ActionStatus.APPROVED or present.decided_by is None:
            raise Refusal("INVALID_STATE", "The request is not approved, or was completed already")
        now = self._ports.clock.real()
        unit[PendingAction].save(decided(present, ActionStatus.CONFIRMED, present.decided_by, now))
        self._log(unit, COMPLETE, f"action={present.id} does={present.action} approved_by={present.decided_by}")

    async def _lines(self, unit: Unit, written: Written) -> tuple[Line, ...]:
        """Return what changes, without moments: they are others when the request is completed."""
        found = list(self._asked.lines)
        for kind, after in sorted(written, key=lambda each: (each[0].__name__, str(each[1].id))):
            for name, was, becomes in changed_fields(await unit[kind].get(after.id), after):
                if not name.endswith("_at") and (was or "-") != becomes:
                    found.append(Line(name, was or "-", becomes))
        return tuple(found)

    def _log(self, unit: Unit, name: str, after: str) -> None:
        told = OperatorAction(operator=self._actor.user.id, name=name, object_id=self._asked.object_id)
        add_row(self._ports, unit, told, account_id=self._actor.account.id, after=after)

    async def _write_to_approvers(self, unit: Unit, made: PendingAction) -> None:
        """Add a letter to each other member whose role may approve the request."""
        ports, account = self._ports, self._actor.account
        mode = made.mode or Mode.LIVE
        for each in await unit[Membership].find(account_id=account.id, order="id", limit=MEMBERS_MOST):
            is_able = grant(each.role, self._asked.right, mode) is not None and (each.live or mode is Mode.TEST)
            user = await unit[User].get(each.user_id) if is_able and each.user_id != made.operator else None
            if user is None or user.disabled_at is not None:
                continue
            values = {
                "account": account.name,
                "person": email_of(ports, self._actor.user),
                "what": REQUESTS[user.language][made.use_case],
                "link": f"{ports.urls.app_url}/approvals/{made.id}",
            }
            write_to(ports, unit, user, "approval", values)

    async def _written_down(self, lines: tuple[Line, ...]) -> PendingAction:
        """Return the request, stored once however often the person asks for the same."""
        ports, person = self._ports, self._actor.user.id
        fingerprint = ports.vault.fingerprint(msgspec.json.encode(self._asked.arguments, order="sorted").decode())
        slot = f"{self._asked.use_case}:{self._asked.object_id}:{person}:{fingerprint.hex()[:32]}"
        action_id = ids.prefixed(ACTION, ports.ids.uuid())

        async def make_room(unit: Unit) -> PendingAction | None:
            now = ports.clock.real()
            for each in await unit[PendingAction].find(slot=slot, limit=1):
                if is_open_request(each, now) and each.shown == lines and action_fits(ports.vault, each):
                    return each
                unit[PendingAction].save(decided(each, ActionStatus.EXPIRED, each.decided_by, now))
            return None

        async def write(unit: Unit) -> PendingAction:
            now = ports.clock.real()
            for each in await unit[PendingAction].find(slot=slot, limit=1):
                return each
            own = [each for each in await open_requests(ports, unit, self._actor.account.id) if each.operator == person]
            if len(own) >= OPEN_MOST:
                raise Refusal("INVALID_STATE", f"{OPEN_MOST} of your requests are open: withdraw one first")
            sealed = ports.vault.encrypt(msgspec.json.encode(self._asked.arguments), asked_arguments_aad(action_id))
            made = PendingAction(
                id=action_id,
                use_case=self._asked.use_case,
                action=self._name,
                object_id=self._asked.object_id,
                account_id=self._actor.account.id,
                mode=self._asked.mode,
                arguments={_SEALED: sealed.hex()},
                shown=lines,
                operator=person,
                reason="",
                needs_right=self._asked.right.value,
                created_at=now,
                expires_at=expiry(now, DAYS),
                status=ActionStatus.REQUESTED,
                slot=slot,
            )
            self._log(unit, ASK, f"action={made.id} does={made.action}")
            # Repeated requests and withdrawals must not flood the others with letters.
            if ports.mailer is not None and await _is_within_budget(unit, person, now):
                await self._write_to_approvers(unit, made)
            return unit[PendingAction].add(tag_action(ports.vault, made))

        waits = await retrying_within(ports.storage, make_room)
        if waits is not None:
            return waits
        return await retrying_within(ports.storage, write, again_on=(*RACES, "guess_counts_id"))


async def _is_within_budget(unit: Unit, user_id: str, now: datetime) -> bool:
    """Return whether a request may still cause letters, and count it."""
    name = f"ask:{user_id}"
    found = await unit[GuessCount].get(name)
    if found is not None and found.is_spent(budget_of(name), now):
        return False
    after = counted(found, name, now)
    if found is None:
        unit[GuessCount].add(after)
    else:
        unit[GuessCount].save(after)
    return True


async def open_requests(ports: Ports, unit: Unit, account_id: str) -> list[PendingAction]:
    """Return the account's requests that can still be approved or completed, oldest first."""
    now = ports.clock.real()
    found = [
        each
        for status in (ActionStatus.REQUESTED, ActionStatus.APPROVED)
        for each in await unit[PendingAction].find(account_id=account_id, status=status, order="-id", limit=1000)
    ]
    return sorted((each for each in found if is_open_request(each, now)), key=lambda each: each.id)
