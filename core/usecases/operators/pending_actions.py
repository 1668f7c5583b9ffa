"""Decisions about pending operator actions: the second operator lists, confirms or rejects them; the first one
withdraws them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.fingerprints import Beside
from ....ports.storage import AtLeast, Unit
from ...domain import ids
from ...domain.account_settings import WEBHOOK_SECRET
from ...domain.errors import Refusal
from ...domain.masked import Masked
from ...domain.money import Rub
from ...domain.operators.audit import OperatorAction
from ...domain.operators.pending_actions import (
    ACTION,
    ActionStatus,
    PendingAction,
    decided,
    is_same_operator,
    is_waiting,
)
from ..accounts.accounts import set_settings, waited_texts
from ..accounts.keys import NewKey, create_waited_key, rotate_waited_key, set_waited_key
from ..accounts.shops import create_shop, set_shop
from ..actions.audit import AuditedStorage, acting, add_row, unaudited
from ..actions.four_eyes import Confirming, require_confirmable
from ..common.units import retrying
from ..exchanges.returns import return_money
from ..installation.resume import resume_confirmed
from ..refunds.refunds import approve_refund, create_refund_for
from ..refunds.suspense_return import return_suspense
from ..settlement.withdrawals import accept_sent
from .operators import NewOperator, create_operator, end_operator
from .review import resolve_mismatch
from .unanswered import end_unanswered

REJECT = "action.reject"
MOST = 1000
"""Maximum number of actions in one answer."""


def _amount(action: PendingAction) -> Rub | None:
    return Rub.parse(action.arguments["amount"]) if "amount" in action.arguments else None


CARRIED_OUT: Mapping[str, Callable[[Ports, PendingAction, Beside | None], Awaitable[Any]]] = {
    "set_settings": lambda ports, action, _: set_settings(
        ports, action.object_id, waited_texts(ports, action.object_id, action.arguments)
    ),
    "create_shop": lambda ports, action, _: create_shop(
        ports, action.object_id, action.arguments["name"], action.arguments.get("markup")
    ),
    "set_shop": lambda ports, action, _: set_shop(ports, action.object_id, action.arguments),
    "create_key": lambda ports, action, _: create_waited_key(ports, action.object_id, action.arguments),
    "rotate_key": lambda ports, action, _: rotate_waited_key(ports, action.object_id, action.arguments),
    "set_key": lambda ports, action, _: set_waited_key(ports, action.object_id, action.arguments),
    "accept_sent": lambda ports, action, _: accept_sent(ports, action.object_id),
    "end_unanswered": lambda ports, action, _: end_unanswered(ports, action.object_id, action.arguments["outcome"]),
    "approve_refund": lambda ports, action, _: approve_refund(ports, action.object_id),
    "create_refund_for": lambda ports, action, _: create_refund_for(ports, action.object_id, **action.arguments),
    "return_suspense": lambda ports, action, _: return_suspense(ports, action.object_id),
    "return_money": lambda ports, action, _: return_money(ports, action.object_id, action.arguments.get("address")),
    "resolve_mismatch": lambda ports, action, _: resolve_mismatch(
        ports, action.object_id, action.arguments["outcome"], amount=_amount(action)
    ),
    "create_operator": lambda ports, action, _: create_operator(ports, action.object_id),
    "end_operator": lambda ports, action, _: end_operator(ports, action.object_id),
    "resume": lambda ports, action, beside: resume_confirmed(ports, beside, action.arguments.get("not_ours")),
}
"""Function that carries out each use case that may need a second operator."""


class Confirmed(Masked, frozen=True, kw_only=True):
    """An action that was carried out. Its repr hides the secrets."""

    _shown = ("action",)

    action: PendingAction
    secrets: Mapping[str, str]
    """Secrets that the action created, by name. They exist in plain text only here."""


def _secrets(ports: Ports, action: PendingAction, made: Any) -> dict[str, str]:
    if isinstance(made, NewKey):
        return {"api_key": made.pair.api_key, "api_secret": made.pair.api_secret}
    if isinstance(made, NewOperator):
        return {"operator_key": made.key.text}
    if action.use_case == "set_settings" and WEBHOOK_SECRET in action.arguments:
        return {WEBHOOK_SECRET: waited_texts(ports, action.object_id, action.arguments)[WEBHOOK_SECRET]}
    return {}


async def list_actions(ports: Ports, *, waiting: bool = True, limit: int = MOST) -> list[PendingAction]:
    """Return pending actions, oldest first. With `waiting` False, return the newest actions in any state."""
    async with ports.storage.unit() as unit:
        if not waiting:
            return await unit[PendingAction].find(order="-id", limit=limit, readable=True)
        now = ports.clock.now()
        found = await unit[PendingAction].find(
            status=ActionStatus.WAITING, expires_at=AtLeast(now), order="expires_at", limit=limit, readable=True
        )
    return [action for action in found if is_waiting(action, now)]


async def get_action(ports: Ports, action_id: str) -> PendingAction:
    """Return an action in any state. Raises: Refusal ACTION_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        return await _found(unit, action_id)


async def _found(unit: Unit, action_id: str) -> PendingAction:
    action = await unit[PendingAction].get(action_id) if ids.is_prefixed(ACTION, action_id) else None
    if action is None:
        raise Refusal("ACTION_NOT_FOUND", "No action of this id")
    return action


def _deciding(ports: Ports) -> OperatorAction:
    """Return the deciding operator's action. Raises: Refusal VALIDATION_ERROR for ports without an operator."""
    if not isinstance(ports.storage, AuditedStorage):
        raise Refusal("VALIDATION_ERROR", "The operator who decides about an action must be named")
    return ports.storage.action


async def confirm_action(ports: Ports, action_id: str, beside: Beside | None = None) -> Confirmed:
    """Carry out an action that another operator requested, once, if it is still as it was shown. The same commit writes
    both names to the audit log. `beside`: the files beside the database, which the end of a quarantine changes.

    Raises: Refusal ACTION_NOT_FOUND; INVALID_STATE when the action is no longer pending, was requested by the same
    operator, would decide something else than was shown, or ends a quarantine without `beside`; any refusal of the
    action itself.
    """
    confirming = _deciding(ports)
    asked = await get_action(ports, action_id)
    require_confirmable(ports.vault, asked, confirming.operator, ports.clock.now())
    if beside is None and asked.use_case == "resume":
        raise Refusal("INVALID_STATE", "Only the command line can end a hold: cambist action confirm")
    first = OperatorAction(operator=asked.operator, name=asked.action, object_id=asked.object_id, reason=asked.reason)
    try:
        made = await CARRIED_OUT[asked.use_case](
            acting(ports, first, Confirming(ports, asked, confirming)), asked, beside
        )
    except Refusal:
        # Another confirmation a moment ago may have left nothing to do.
        require_confirmable(ports.vault, await get_action(ports, action_id), confirming.operator, ports.clock.now())
        raise
    return Confirmed(action=await get_action(ports, action_id), secrets=_secrets(ports, asked, made))


async def reject_action(ports: Ports, action_id: str) -> PendingAction:
    """Reject a pending action, or withdraw it if the same operator requested it. This also works on an expired one.

    Raises: Refusal ACTION_NOT_FOUND; INVALID_STATE when it is no longer pending.
    """
    deciding, ports = _deciding(ports), unaudited(ports)

    async def work(unit: Unit) -> PendingAction:
        action = await _found(unit, action_id)
        if action.status is not ActionStatus.WAITING:
            raise Refusal("INVALID_STATE", f"The action was {action.status} already")
        is_own = is_same_operator(action.operator, deciding.operator)
        status = ActionStatus.WITHDRAWN if is_own else ActionStatus.REJECTED
        told = msgspec.structs.replace(deciding, name=REJECT, object_id=action.object_id)
        after = f"action={action.id} does={action.action} asked_by={action.operator} status={status}"
        add_row(ports, unit, told, account_id=action.account_id, after=after)
        return unit[PendingAction].save(decided(action, status, deciding.operator, ports.clock.now()))

    return await retrying(ports.storage, work)
