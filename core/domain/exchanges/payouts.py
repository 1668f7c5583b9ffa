"""The payout of an exchange's RUB to the client: in parts, if a provider's limit is below the amount
(docs/exchanges.md "Rules").

All parts are stored before the first is sent, with their operation ids. They are sent one after another, so that a
refusal leaves as little as possible half done.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from .. import ids
from ..machine import Move, Moves
from ..money import Rub


class PartStatus(StrEnum):
    """State of one part."""

    PLANNED = "planned"
    """Never sent."""
    SENT = "sent"
    """Stored before the request to the bank: the bank may have it. Only the same operation may be repeated or
    queried."""
    DONE = "done"
    FAILED = "failed"


class PartTrigger(StrEnum):
    """Cause of a part's move."""

    ASKED = "about to ask the bank"
    DELIVERED = "the client has it"
    REFUSED = "the bank refused for good"


_S = PartStatus
_T = PartTrigger

PART_MOVES: Moves[PartStatus, PartTrigger] = Moves(
    (
        Move(_S.PLANNED, _S.SENT, _T.ASKED),
        Move(_S.SENT, _S.DONE, _T.DELIVERED),
        Move(_S.SENT, _S.FAILED, _T.REFUSED),
    )
)


class PayoutPart(msgspec.Struct, frozen=True, kw_only=True):
    """One remittance of an exchange."""

    operation: str
    amount: Rub
    status: PartStatus = PartStatus.PLANNED
    failure: str | None = None
    sent_at: datetime | None = None
    """Since when the bank may have it."""


Parts = tuple[PayoutPart, ...]

_PART = "rem_"


def part_operation(exchange_id: str, number: int) -> str:
    """Return the operation id of a part, from 1 (docs/adapters.md "Operation ids")."""
    return ids.operation(_PART, exchange_id, number)


def read_part(operation: str) -> tuple[str, int] | None:
    """Return the exchange and the number of a part from its operation; None for any other operation."""
    found = ids.read_operation(_PART, operation)
    number = None if found is None or len(found[1]) > 9 else ids.read_number(found[1])
    return None if found is None or number is None else (f"{ids.EXCHANGE}{found[0]}", number)


def payout_parts(exchange_id: str, amount: Rub, cap: Rub | None) -> Parts:
    """Return the remittances that bring `amount` to the client, none above `cap`: as few as possible, the last one the
    smallest.

    Raises ValueError for an amount or a cap that is not above zero.
    """
    most = amount.kopecks if cap is None else cap.kopecks
    if most <= 0 or amount.kopecks <= 0:
        raise ValueError("a payout is of more than nothing")
    starts = range(0, amount.kopecks, most)
    return tuple(
        PayoutPart(operation=part_operation(exchange_id, number), amount=Rub(min(most, amount.kopecks - start)))
        for number, start in enumerate(starts, 1)
    )


def part_moved(parts: Parts, operation: str, trigger: PartTrigger, failure: str | None = None) -> Parts:
    """Return the parts with this one moved; unchanged if the trigger was already applied.

    Raises: IllegalMove; KeyError if none has this operation.
    """
    if all(part.operation != operation for part in parts):
        raise KeyError(operation)
    return tuple(_moved_to(part, trigger, failure) if part.operation == operation else part for part in parts)


def part_asked(parts: Parts, operation: str, now: datetime) -> Parts:
    """Return the parts with the note that the bank may have this one from now on. Raises as `part_moved`."""
    moved = part_moved(parts, operation, PartTrigger.ASKED)
    return tuple(
        msgspec.structs.replace(part, sent_at=part.sent_at or now) if part.operation == operation else part
        for part in moved
    )


def next_part(parts: Parts) -> PayoutPart | None:
    """Return the part to send or query now; None if nothing is left to do: all are done, or one was refused and nothing
    is sent after it."""
    sent = [part for part in parts if part.status is _S.SENT]
    if sent:
        return sent[0]
    if any(part.status is _S.FAILED for part in parts):
        return None
    return next((part for part in parts if part.status is _S.PLANNED), None)


def all_delivered(parts: Parts) -> bool | None:
    """Return True if the client has everything, False if a part was refused and none is open, None while that is
    unknown."""
    if not parts or next_part(parts) is not None:
        return None
    return all(part.status is _S.DONE for part in parts)


def paid_out(parts: Parts) -> Rub:
    """Return the amount that the client certainly has."""
    return Rub(sum(part.amount.kopecks for part in parts if part.status is _S.DONE))


def _moved_to(part: PayoutPart, trigger: PartTrigger, failure: str | None) -> PayoutPart:
    if PART_MOVES.has_led(trigger, part.status):
        return part
    return msgspec.structs.replace(part, status=PART_MOVES.move(part.status, trigger), failure=failure)
