"""Gate before actions that need two operators (docs/operations.md "Two pairs of eyes").

A use case that may need two operators declares itself by `gated`. All its rules run as usual. Only when its unit is
about to commit, and the installation requires two operators for its decisions, the gate stores a pending action
instead. pending_actions.py carries it out after the confirmation. The gate reads the decisions from the unit's records.
"""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ....ports.vault import Vault
from ...domain import ids
from ...domain.errors import Refusal
from ...domain.operators.audit import OperatorAction
from ...domain.operators.guarded import Decision
from ...domain.operators.pending_actions import (
    ACTION,
    ActionStatus,
    Line,
    PendingAction,
    decided,
    expiry,
    is_same_operator,
    is_waiting,
    moved,
    slot_of,
)
from ..common.encrypted import action_fits, tag_action
from ..common.units import retrying_within
from .audit import NOBODY, AuditedStorage, add_row, behind, unaudited
from .decisions import CODE, Decided, Waits, Written, needs_second, read_decisions

RACES = ("pending_actions_slot",)
ASK, CONFIRM = "action.ask", "action.confirm"


def gated(
    ports: Ports, use_case: str, object_id: str, declares: Decision | None = None, **arguments: str | None
) -> Ports:
    """Return the ports for a use case that may need two operators, named as in pending_actions.py: `CARRIED_OUT`.

    With these ports the use case does its work, or raises Waits, or Refusal SECOND_OPERATOR_NEEDED when a program calls
    it without naming an operator. `declares`: a decision that its records do not show. `arguments`: its arguments
    except the object; null values are dropped.
    """
    declared = () if declares is None else (declares,)
    storage = ports.storage
    if not isinstance(storage, AuditedStorage):
        if not ports.four_eyes.actions:
            return ports
        ports = behind(ports, NOBODY, None)
        storage = ports.storage
    if isinstance(storage, AuditedStorage) and ports.four_eyes.actions:
        if isinstance(storage.gate, Confirming):
            storage.gate.declared = declared
        else:
            given = {name: value for name, value in arguments.items() if value is not None}
            storage.gate = Asking(ports, storage.action, use_case, object_id, given, declared)
    return ports


class Asking:
    """Lets actions pass that one operator may do alone, and stores all others as pending."""

    once = False

    def __init__(
        self,
        ports: Ports,
        action: OperatorAction,
        use_case: str,
        object_id: str,
        arguments: dict[str, str],
        declared: tuple[Decision, ...],
    ) -> None:
        self._ports = unaudited(ports)
        self._action = action
        self._use_case = use_case
        self._object_id = object_id
        self._arguments = arguments
        self._declared = declared

    async def __call__(self, unit: Unit, written: Written) -> None:
        """Let the unit commit. Raises: Waits; Refusal SECOND_OPERATOR_NEEDED, INVALID_STATE when another action on the
        object is pending."""
        found = await read_decisions(unit, written, self._declared)
        if not await needs_second(self._ports, unit, found):
            return
        if self._action is NOBODY:
            raise Refusal(CODE, "This needs two operators: name the one who requests it (docs/embedding.md)")
        raise Waits(await self._written_down(found))

    async def _written_down(self, found: Decided) -> PendingAction:
        """Return the pending action, stored once however often it is requested. An expired action, or a different one
        by the same operator, is replaced."""
        slot = slot_of(self._use_case, self._object_id)
        action_id = ids.prefixed(ACTION, self._ports.ids.uuid())

        async def make_room(unit: Unit) -> PendingAction | None:
            now = self._ports.clock.now()
            for each in await unit[PendingAction].find(slot=slot, limit=1):
                if not is_waiting(each, now):
                    unit[PendingAction].save(decided(each, ActionStatus.EXPIRED, None, now))
                elif self._asks_for(each, found) or not is_same_operator(each.operator, self._action.operator):
                    return self._same(each, found)
                else:
                    unit[PendingAction].save(decided(each, ActionStatus.WITHDRAWN, self._action.operator, now))
            return None

        async def write(unit: Unit) -> PendingAction:
            now = self._ports.clock.now()
            for each in await unit[PendingAction].find(slot=slot, limit=1):
                return self._same(each, found)
            asked = self._asked(action_id, slot, found, now)
            told = msgspec.structs.replace(self._action, name=ASK, object_id=self._object_id)
            add_row(
                self._ports, unit, told, account_id=asked.account_id, after=f"action={asked.id} does={asked.action}"
            )
            return unit[PendingAction].add(tag_action(self._ports.vault, asked))

        storage = self._ports.storage
        waits = await retrying_within(storage, make_room)
        return await retrying_within(storage, write, again_on=RACES) if waits is None else waits

    def _asks_for(self, action: PendingAction, found: Decided) -> bool:
        return (action.arguments, action.shown) == (self._arguments, found.lines)

    def _same(self, action: PendingAction, found: Decided) -> PendingAction:
        """Return the pending action, if it is the same. Raises: Refusal INVALID_STATE."""
        if not self._asks_for(action, found):
            raise Refusal(
                "INVALID_STATE", f"Another action on the same object waits for a second operator: {action.id}"
            )
        return action

    def _asked(self, action_id: str, slot: str, found: Decided, now: datetime) -> PendingAction:
        first = found.decisions[0]
        return PendingAction(
            id=action_id,
            use_case=self._use_case,
            action=self._action.name,
            object_id=self._object_id,
            account_id=first.account_id,
            mode=first.mode,
            arguments=self._arguments,
            shown=found.lines,
            operator=self._action.operator,
            reason=self._action.reason,
            created_at=now,
            expires_at=expiry(now, self._ports.four_eyes.days),
            slot=slot,
        )


class Confirming:
    """Lets a requested action pass once, if it is as shown. Its confirmation is written in the first unit that writes;
    later units pass."""

    once = True

    def __init__(self, ports: Ports, asked: PendingAction, confirming: OperatorAction) -> None:
        self._ports = unaudited(ports)
        self._asked = asked
        self._confirming = confirming
        self.declared: tuple[Decision, ...] = ()

    async def __call__(self, unit: Unit, written: Written) -> None:
        """Check and save the confirmation. Raises: Refusal INVALID_STATE."""
        now = self._ports.clock.now()
        present = await unit[PendingAction].get(self._asked.id)
        present = require_confirmable(self._ports.vault, present, self._confirming.operator, now)
        found = await read_decisions(unit, written, self.declared)
        require_as_shown(present, found.lines)
        unit[PendingAction].save(decided(present, ActionStatus.CONFIRMED, self._confirming.operator, now))
        told = msgspec.structs.replace(self._confirming, name=CONFIRM, object_id=self._asked.object_id)
        after = f"action={self._asked.id} does={self._asked.action} asked_by={self._asked.operator}"
        add_row(self._ports, unit, told, account_id=self._asked.account_id, after=after)


def require_as_shown(asked: PendingAction, present: tuple[Line, ...]) -> None:
    """Raise Refusal INVALID_STATE, naming the changes, if the decisions differ from those shown at the request."""
    if asked.shown != present:
        raise Refusal(
            "INVALID_STATE", f"The object changed since the action was requested: {moved(asked.shown, present)}"
        )


def require_confirmable(vault: Vault, action: PendingAction | None, operator: str, now: datetime) -> PendingAction:
    """Return the action if this operator may confirm it now. Raises: Refusal ACTION_NOT_FOUND; INVALID_STATE when it is
    no longer pending, was requested by the same operator, or was altered in the database."""
    if action is None:
        raise Refusal("ACTION_NOT_FOUND", "No action of this id")
    if action.status is not ActionStatus.WAITING:
        by = "" if action.decided_by is None else f" by {action.decided_by}"
        raise Refusal("INVALID_STATE", f"The action was {action.status} already{by}")
    if not is_waiting(action, now):
        raise Refusal("INVALID_STATE", "The action has expired: request it again")
    if is_same_operator(action.operator, operator):
        raise Refusal("INVALID_STATE", f"{action.operator} requested it, so another operator must confirm it")
    if not action_fits(vault, action):
        raise Refusal(
            "INVALID_STATE", "The action is not what the vault tagged: reject it, and find out who altered it"
        )
    return action
