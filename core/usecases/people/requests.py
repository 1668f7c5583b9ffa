"""Requests for a second person: listed, approved, rejected, completed (docs/dashboard.md "A second person")."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain import ids
from ...domain.errors import Refusal
from ...domain.operators.audit import OperatorAction
from ...domain.operators.pending_actions import (
    ACTION,
    ActionStatus,
    PendingAction,
    approved,
    decided,
    is_open_request,
)
from ...domain.people.roles import PersonRight, Role
from ..actions.audit import add_row
from ..common.encrypted import action_fits
from ..common.units import retrying
from .invitations import invite
from .keys import make_key, roll_key
from .members import change_member
from .own_account import change_settings, roll_endpoint_secret, roll_webhook_secret
from .second_person import APPROVE, REJECT, Rehearsed, arguments_of, open_requests
from .sessions import Actor, may, require

Arguments = Mapping[str, Any]


def _shops(given: Arguments) -> tuple[str, ...] | None:
    return None if given["shops"] is None else tuple(given["shops"])


COMPLETED: Mapping[str, Callable[[Ports, Actor, Arguments], Awaitable[Any]]] = {
    "key.create": lambda ports, actor, given: make_key(
        ports, actor, given["name"], given["rights"], given["addresses"]
    ),
    "key.rotate": lambda ports, actor, given: roll_key(
        ports, actor, given["key_id"], timedelta(seconds=given["overlap"])
    ),
    "account.set": lambda ports, actor, given: change_settings(ports, actor, given["texts"]),
    "webhook.secret": lambda ports, actor, _: roll_webhook_secret(ports, actor),
    "endpoint.secret": lambda ports, actor, given: roll_endpoint_secret(ports, actor, given["endpoint_id"]),
    "person.role": lambda ports, actor, given: change_member(
        ports,
        actor,
        given["user_id"],
        role=Role(given["role"]),
        shops=_shops(given),
        live=given["live"],
        version=given["version"],
    ),
    "person.invite": lambda ports, actor, given: invite(
        ports,
        actor.account.id,
        given["address"],
        Role(given["role"]),
        shops=_shops(given),
        live=given["live"],
        language=given["language"],
        inviter=actor,
    ),
}
"""Use cases that a second person may have to approve."""


def is_own(action: PendingAction, actor: Actor) -> bool:
    """Return whether the person requested it."""
    return action.operator == actor.user.id


def may_decide(action: PendingAction, actor: Actor) -> bool:
    """Return whether the person may approve or reject it, as far as the role says."""
    return not is_own(action, actor) and may(actor, _right(action), confirmed=False)


def _right(action: PendingAction) -> PersonRight:
    return PersonRight(action.needs_right or PersonRight.OWNER)


def _is_visible(action: PendingAction, actor: Actor) -> bool:
    in_mode = action.mode is None or action.mode is actor.mode
    return in_mode and (is_own(action, actor) or may_decide(action, actor))


async def list_requests(ports: Ports, actor: Actor) -> list[PendingAction]:
    """Return the open requests that the person made or may decide, oldest first."""
    async with ports.storage.unit() as unit:
        found = await open_requests(ports, unit, actor.account.id)
    return [each for each in found if _is_visible(each, actor)]


def awaits(action: PendingAction, actor: Actor) -> bool:
    """Return whether the request waits for this person: for the approval, or for the completion."""
    wanted = ActionStatus.APPROVED if is_own(action, actor) else ActionStatus.REQUESTED
    return action.status is wanted


async def get_request(ports: Ports, actor: Actor, action_id: str) -> PendingAction:
    """Return a request that the person made or may decide, in any state. Raises: Refusal REQUEST_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        return await _get(unit, actor, action_id)


async def _get(unit: Unit, actor: Actor, action_id: str) -> PendingAction:
    found = await unit[PendingAction].get(action_id) if ids.is_prefixed(ACTION, action_id) else None
    if (
        found is None
        or found.account_id != actor.account.id
        or found.use_case not in COMPLETED
        or not _is_visible(found, actor)
    ):
        raise Refusal("REQUEST_NOT_FOUND", "There is no request of this id")
    return found


async def approve_request(ports: Ports, actor: Actor, action_id: str) -> PendingAction:
    """Approve another person's request. The approving person must be allowed to make the same change.

    Raises: Refusal REQUEST_NOT_FOUND, PERSON_RIGHT_MISSING, STEP_UP_NEEDED; INVALID_STATE for one's own, when it is not
    open, or when the object changed since; any refusal of the change itself.
    """
    asked = await get_request(ports, actor, action_id)
    require(actor, _right(asked))
    _require_approvable(ports, asked, actor)
    try:
        await COMPLETED[asked.use_case](
            ports, msgspec.structs.replace(actor, request=asked), arguments_of(ports.vault, asked)
        )
    except Rehearsed:
        return await _decide(ports, actor, action_id, ActionStatus.APPROVED, APPROVE)
    raise Refusal("INVALID_STATE", "There is nothing left to approve: the change was made otherwise")


def _require_approvable(ports: Ports, asked: PendingAction, actor: Actor) -> None:
    if is_own(asked, actor):
        raise Refusal("INVALID_STATE", "You requested it: another person must approve it")
    if asked.status is not ActionStatus.REQUESTED or not is_open_request(asked, ports.clock.real()):
        raise Refusal("INVALID_STATE", "The request has expired or was decided already")
    if not action_fits(ports.vault, asked):
        raise Refusal("INVALID_STATE", "The request was altered in the database: reject it, and tell the operator")


async def reject_request(ports: Ports, actor: Actor, action_id: str) -> PendingAction:
    """Reject another person's request, or withdraw one's own. Also an approved one, until it is completed.

    Raises: Refusal REQUEST_NOT_FOUND; STEP_UP_NEEDED for another's; INVALID_STATE when it was decided.
    """
    asked = await get_request(ports, actor, action_id)
    if is_own(asked, actor):
        return await _decide(ports, actor, action_id, ActionStatus.WITHDRAWN, REJECT)
    require(actor, _right(asked))
    return await _decide(ports, actor, action_id, ActionStatus.REJECTED, REJECT)


async def _decide(ports: Ports, actor: Actor, action_id: str, status: ActionStatus, name: str) -> PendingAction:
    async def work(unit: Unit) -> PendingAction:
        now = ports.clock.real()
        asked = await _get(unit, actor, action_id)
        if status is ActionStatus.APPROVED:
            _require_approvable(ports, asked, actor)
        elif not is_open_request(asked, now):
            raise Refusal("INVALID_STATE", "The request has expired or was decided already")
        told = OperatorAction(operator=actor.user.id, name=name, object_id=asked.object_id)
        after = f"action={asked.id} does={asked.action} asked_by={asked.operator} status={status}"
        add_row(ports, unit, told, account_id=asked.account_id, after=after)
        by = actor.user.id
        is_approval = status is ActionStatus.APPROVED
        return unit[PendingAction].save(approved(asked, by, now) if is_approval else decided(asked, status, by, now))

    return await retrying(ports.storage, work)


async def complete_request(ports: Ports, actor: Actor, action_id: str) -> Any:
    """Make the change of one's own approved request, once, with the rights that the person has now, and return what the
    use case returns.

    Raises: Refusal REQUEST_NOT_FOUND, PERSON_RIGHT_MISSING, STEP_UP_NEEDED; INVALID_STATE when it is not approved, has
    expired, or the object changed since; any refusal of the change itself; Waits.
    """
    asked = await get_request(ports, actor, action_id)
    if not is_own(asked, actor):
        raise Refusal("INVALID_STATE", "Only the person who requested it can complete it")
    if asked.status is not ActionStatus.APPROVED or not is_open_request(asked, ports.clock.real()):
        raise Refusal("INVALID_STATE", "The request is not approved, was completed already, or has expired")
    if not action_fits(ports.vault, asked):
        raise Refusal("INVALID_STATE", "The request was altered in the database: reject it, and tell the operator")
    given = arguments_of(ports.vault, asked)
    return await COMPLETED[asked.use_case](ports, msgspec.structs.replace(actor, request=asked), given)
