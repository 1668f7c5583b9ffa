"""Two pairs of eyes: operators' acts that wait until another operator confirms them. guarded.py says which."""

import unicodedata
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode

ACT = "act_"


class ActStatus(StrEnum):
    """Where an act stands. One whose time is over still says `waiting` until somebody asks for the same."""

    WAITING = "waiting"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    """By who asked for it."""
    EXPIRED = "expired"


class Line(msgspec.Struct, frozen=True):
    """One field as it stood, and as the act makes it; the same twice where the act leaves it."""

    field: str
    before: str
    after: str


class PendingAct(msgspec.Struct, frozen=True, kw_only=True):
    """One act that an operator asked for. It takes effect with its confirmation, in one commit."""

    id: str
    """`act_<uuid>`; rises with time."""
    use_case: str
    """What carries it out (core/usecases/operators/pending_acts.py)."""
    act: str
    """The audit log's word for it: `refund.approve`."""
    object_id: str
    account_id: str | None
    mode: Mode | None
    """Null: of both modes."""
    arguments: dict[str, str]
    """What the use case is told besides the object."""
    shown: tuple[Line, ...]
    """What it decides, as it was when it was asked for."""
    operator: str
    """Who asked."""
    reason: str
    created_at: datetime
    expires_at: datetime
    status: ActStatus = ActStatus.WAITING
    decided_by: str | None = None
    decided_at: datetime | None = None
    slot: str | None = None
    """Use case and object, while it waits: no second one waits beside it."""
    tag: bytes | None = None
    """The vault's, over who asked for what, when and why."""
    version: int = 0


def slot_of(use_case: str, object_id: str) -> str:
    """The one place in which an act of this kind on this object waits."""
    return f"{use_case}:{object_id}"


def is_waiting(act: PendingAct, now: datetime) -> bool:
    """It can be confirmed."""
    return act.status is ActStatus.WAITING and now < act.expires_at


def status_at(act: PendingAct, now: datetime) -> ActStatus:
    """Its status, which time may have ended."""
    return ActStatus.EXPIRED if act.status is ActStatus.WAITING and now >= act.expires_at else act.status


def decided(act: PendingAct, status: ActStatus, operator: str | None, now: datetime) -> PendingAct:
    """The act at its end."""
    return msgspec.structs.replace(act, status=status, decided_by=operator, decided_at=now, slot=None)


def expiry(now: datetime, days: int) -> datetime:
    """Until when an act of now waits."""
    return now + timedelta(days=days)


def is_same_operator(one: str, other: str) -> bool:
    """Whether two names are one person's: capitals, blanks and ways of writing a letter make no second one."""
    return _folded(one) == _folded(other)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()


def moved(shown: tuple[Line, ...], present: tuple[Line, ...]) -> str:
    """What is otherwise than it was shown, for operators."""
    there = {line.field: line for line in present}
    for line in shown:
        found = there.get(line.field)
        if found is None:
            return f"{line.field} is not to be decided any more"
        if found != line:
            return f"{line.field} was {line.before} → {line.after}, and is {found.before} → {found.after}"
    return "more would be decided than was shown"
