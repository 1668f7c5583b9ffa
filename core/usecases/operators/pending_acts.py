"""Decisions about pending operator actions: the second operator lists, confirms or rejects them; the first one
withdraws them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.marks import Beside
from ....ports.storage import AtLeast, Unit
from ...domain import ids
from ...domain.account_settings import WEBHOOK_SECRET
from ...domain.errors import Refusal
from ...domain.masked import Masked
from ...domain.money import Rub
from ...domain.operators.audit import Act
from ...domain.operators.pending_acts import ACT, ActStatus, PendingAct, decided, is_same_operator, is_waiting
from ..accounts.accounts import set_settings, waited_texts
from ..accounts.keys import NewKey, create_waited_key, rotate_waited_key, set_waited_key
from ..accounts.shops import create_shop, set_shop
from ..acts.audit import AuditedStorage, acting, add_row, unaudited
from ..acts.four_eyes import Confirming, require_confirmable
from ..exchanges.returns import return_money
from ..installation.resume import resume_confirmed
from ..refunds.refunds import approve_refund, create_refund_for
from ..refunds.suspense_return import return_suspense
from ..settlement.withdrawals import accept_sent
from ..units import retrying
from .operators import NewOperator, create_operator, end_operator
from .review import resolve_mismatch
from .unanswered import end_unanswered

REJECT = "act.reject"
MOST = 1000
"""Maximum number of actions in one answer."""


def _amount(act: PendingAct) -> Rub | None:
    return Rub.parse(act.arguments["amount"]) if "amount" in act.arguments else None


CARRIED_OUT: Mapping[str, Callable[[Ports, PendingAct, Beside | None], Awaitable[Any]]] = {
    "set_settings": lambda ports, act, _: set_settings(
        ports, act.object_id, waited_texts(ports, act.object_id, act.arguments)
    ),
    "create_shop": lambda ports, act, _: create_shop(
        ports, act.object_id, act.arguments["name"], act.arguments.get("markup")
    ),
    "set_shop": lambda ports, act, _: set_shop(ports, act.object_id, act.arguments),
    "create_key": lambda ports, act, _: create_waited_key(ports, act.object_id, act.arguments),
    "rotate_key": lambda ports, act, _: rotate_waited_key(ports, act.object_id, act.arguments),
    "set_key": lambda ports, act, _: set_waited_key(ports, act.object_id, act.arguments),
    "accept_sent": lambda ports, act, _: accept_sent(ports, act.object_id),
    "end_unanswered": lambda ports, act, _: end_unanswered(ports, act.object_id, act.arguments["outcome"]),
    "approve_refund": lambda ports, act, _: approve_refund(ports, act.object_id),
    "create_refund_for": lambda ports, act, _: create_refund_for(ports, act.object_id, **act.arguments),
    "return_suspense": lambda ports, act, _: return_suspense(ports, act.object_id),
    "return_money": lambda ports, act, _: return_money(ports, act.object_id, act.arguments.get("address")),
    "resolve_mismatch": lambda ports, act, _: resolve_mismatch(
        ports, act.object_id, act.arguments["outcome"], amount=_amount(act)
    ),
    "create_operator": lambda ports, act, _: create_operator(ports, act.object_id),
    "end_operator": lambda ports, act, _: end_operator(ports, act.object_id),
    "resume": lambda ports, act, beside: resume_confirmed(ports, beside, act.arguments.get("not_ours")),
}
"""Function that carries out each use case that may need a second operator."""


class Confirmed(Masked, frozen=True, kw_only=True):
    """An action that was carried out. Its repr hides the secrets."""

    _shown = ("act",)

    act: PendingAct
    secrets: Mapping[str, str]
    """Secrets that the action created, by name. They exist in plain text only here."""


def _secrets(ports: Ports, act: PendingAct, made: Any) -> dict[str, str]:
    if isinstance(made, NewKey):
        return {"api_key": made.pair.api_key, "api_secret": made.pair.api_secret}
    if isinstance(made, NewOperator):
        return {"operator_key": made.key.text}
    if act.use_case == "set_settings" and WEBHOOK_SECRET in act.arguments:
        return {WEBHOOK_SECRET: waited_texts(ports, act.object_id, act.arguments)[WEBHOOK_SECRET]}
    return {}


async def list_acts(ports: Ports, *, waiting: bool = True, limit: int = MOST) -> list[PendingAct]:
    """Return pending actions, oldest first. With `waiting` False, return the newest actions in any state."""
    async with ports.storage.unit() as unit:
        if not waiting:
            return await unit[PendingAct].find(order="-id", limit=limit, readable=True)
        now = ports.clock.now()
        found = await unit[PendingAct].find(
            status=ActStatus.WAITING, expires_at=AtLeast(now), order="expires_at", limit=limit, readable=True
        )
    return [act for act in found if is_waiting(act, now)]


async def get_act(ports: Ports, act_id: str) -> PendingAct:
    """Return an action in any state. Raises: Refusal ACT_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        return await _found(unit, act_id)


async def _found(unit: Unit, act_id: str) -> PendingAct:
    act = await unit[PendingAct].get(act_id) if ids.is_prefixed(ACT, act_id) else None
    if act is None:
        raise Refusal("ACT_NOT_FOUND", "No act of this id waits or waited")
    return act


def _deciding(ports: Ports) -> Act:
    """Return the deciding operator's action. Raises: Refusal VALIDATION_ERROR for ports without an operator."""
    if not isinstance(ports.storage, AuditedStorage):
        raise Refusal("VALIDATION_ERROR", "Who decides about an act is to be named")
    return ports.storage.act


async def confirm_act(ports: Ports, act_id: str, beside: Beside | None = None) -> Confirmed:
    """Carry out an action that another operator requested, once, if it is still as it was shown. The same commit writes
    both names to the audit log. `beside`: the files beside the database, which the end of a quarantine changes.

    Raises: Refusal ACT_NOT_FOUND; INVALID_STATE when the action is no longer pending, was requested by the same
    operator, would decide something else than was shown, or ends a quarantine without `beside`; any refusal of the
    action itself.
    """
    confirming = _deciding(ports)
    asked = await get_act(ports, act_id)
    require_confirmable(ports.vault, asked, confirming.operator, ports.clock.now())
    if beside is None and asked.use_case == "resume":
        raise Refusal("INVALID_STATE", "Only the command line can end a hold: cambist act confirm")
    first = Act(operator=asked.operator, name=asked.act, object_id=asked.object_id, reason=asked.reason)
    try:
        made = await CARRIED_OUT[asked.use_case](
            acting(ports, first, Confirming(ports, asked, confirming)), asked, beside
        )
    except Refusal:
        # Another confirmation a moment ago may have left nothing to do.
        require_confirmable(ports.vault, await get_act(ports, act_id), confirming.operator, ports.clock.now())
        raise
    return Confirmed(act=await get_act(ports, act_id), secrets=_secrets(ports, asked, made))


async def reject_act(ports: Ports, act_id: str) -> PendingAct:
    """Reject a pending action, or withdraw it if the same operator requested it. This also works on an expired one.

    Raises: Refusal ACT_NOT_FOUND; INVALID_STATE when it is no longer pending.
    """
    deciding, ports = _deciding(ports), unaudited(ports)

    async def work(unit: Unit) -> PendingAct:
        act = await _found(unit, act_id)
        if act.status is not ActStatus.WAITING:
            raise Refusal("INVALID_STATE", f"The act was {act.status} already")
        is_own = is_same_operator(act.operator, deciding.operator)
        status = ActStatus.WITHDRAWN if is_own else ActStatus.REJECTED
        told = msgspec.structs.replace(deciding, name=REJECT, object_id=act.object_id)
        after = f"act={act.id} does={act.act} asked_by={act.operator} status={status}"
        add_row(ports, unit, told, account_id=act.account_id, after=after)
        return unit[PendingAct].save(decided(act, status, deciding.operator, ports.clock.now()))

    return await retrying(ports.storage, work)
