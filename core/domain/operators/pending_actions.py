"""Actions that wait until a second operator confirms them, or a second person of the merchant approves them. guarded.py
decides which of the operators' actions do; people ask for an approval in core/usecases/people/second_person.py."""

import unicodedata
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode

ACTION = "action_"


class ActionStatus(StrEnum):
    """State of a pending action. An expired one keeps its state until the same action is requested again."""

    WAITING = "waiting"
    """An operator's action waits for a second operator."""
    REQUESTED = "requested"
    """A person's action waits for another person of the account."""
    APPROVED = "approved"
    """Another person approved it; the person who requested it has not completed it yet."""
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    """Withdrawn by the operator or person who requested it."""
    EXPIRED = "expired"


class Line(msgspec.Struct, frozen=True):
    """One field before and after the action; equal values if the action does not change it."""

    field: str
    before: str
    after: str


class PendingAction(msgspec.Struct, frozen=True, kw_only=True):
    """One requested action. It takes effect with its confirmation, in one commit."""

    id: str
    """`action_<uuid>`; rises with time."""
    use_case: str
    """The use case that performs it (core/usecases/operators/pending_actions.py)."""
    action: str
    """Name in the audit log: `refund.approve`."""
    object_id: str
    account_id: str | None
    mode: Mode | None
    """Null: both modes."""
    arguments: dict[str, str]
    """Arguments of the use case besides the object."""
    shown: tuple[Line, ...]
    """The decision as it was when requested."""
    operator: str
    """Operator or person who requested it."""
    reason: str
    created_at: datetime
    expires_at: datetime
    status: ActionStatus = ActionStatus.WAITING
    decided_by: str | None = None
    decided_at: datetime | None = None
    slot: str | None = None
    """Use case and object, while it waits: no second one can wait at the same time. A person's slot also has the person
    and the arguments."""
    needs_right: str | None = None
    """Right that a person needs to approve it (people/roles.py: `PersonRight`); None: it waits for an operator."""
    tag: bytes | None = None
    """The vault's tag of operator, action, time and reason."""
    version: int = 0


def slot_of(use_case: str, object_id: str) -> str:
    """Return the unique slot in which an action of this kind on this object waits."""
    return f"{use_case}:{object_id}"


def is_waiting(action: PendingAction, now: datetime) -> bool:
    """Return whether it can be confirmed."""
    return action.status is ActionStatus.WAITING and now < action.expires_at


OPEN = (ActionStatus.WAITING, ActionStatus.REQUESTED, ActionStatus.APPROVED)


def is_open_request(action: PendingAction, now: datetime) -> bool:
    """Return whether a person's action can still be approved or completed."""
    return action.status in (ActionStatus.REQUESTED, ActionStatus.APPROVED) and now < action.expires_at


def status_at(action: PendingAction, now: datetime) -> ActionStatus:
    """Return its status, including expiry."""
    return ActionStatus.EXPIRED if action.status in OPEN and now >= action.expires_at else action.status


def decided(action: PendingAction, status: ActionStatus, operator: str | None, now: datetime) -> PendingAction:
    """Return the action with its final status."""
    return msgspec.structs.replace(action, status=status, decided_by=operator, decided_at=now, slot=None)


def approved(action: PendingAction, person: str, now: datetime) -> PendingAction:
    """Return a person's request with the approval of another person; it keeps its slot until it is completed."""
    return msgspec.structs.replace(action, status=ActionStatus.APPROVED, decided_by=person, decided_at=now)


def expiry(now: datetime, days: int) -> datetime:
    """Return when an action requested now expires."""
    return now + timedelta(days=days)


def is_same_operator(one: str, other: str) -> bool:
    """Return whether two names belong to one person: case, surrounding blanks and Unicode forms make no difference."""
    return _folded(one) == _folded(other)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()


def moved(shown: tuple[Line, ...], present: tuple[Line, ...]) -> str:
    """Describe the difference from the lines shown, for operators."""
    there = {line.field: line for line in present}
    for line in shown:
        found = there.get(line.field)
        if found is None:
            return f"{line.field} is not to be decided any more"
        if found != line:
            return f"{line.field} was {line.before} → {line.after}, and is {found.before} → {found.after}"
    return "more would be decided than was shown"
