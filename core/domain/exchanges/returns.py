"""Returns of a client's money that an exchange could not use: late, too much, or left over when the exchange ended
(docs/exchanges.md "Rules").

A return is a provider's operation like any other: stored before the request, with an outcome that is done, certainly
refused, or unknown. RUB go back to their payer through the bank that received them. For USDT the sender's address does
not identify the owner (the wallet of a trading platform sends for many people), so an operator enters the address.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from .. import ids
from ..machine import IllegalMove, Move, Moves


class ReturnStatus(StrEnum):
    """State of a return."""

    PLANNED = "planned"
    """Decided; no request was made, and no signed transfer is stored."""
    SENDING = "sending"
    """The bank or the network may have it."""
    RETURNED = "returned"
    FAILED = "failed"
    """The money is still in suspense; an operator may decide again."""
    REVERSED = "reversed"
    """The payer's bank sent it back: it is in suspense again."""


class ReturnTrigger(StrEnum):
    """Cause of a return's move."""

    SENT = "about to ask the bank, or signed"
    UNSIGNED = "the wallet refuses to sign for good"
    DISPROVED = "the network proved that the transfer never moves"
    ARRIVED = "the client has it"
    REFUSED = "the bank refused for good"
    CAME_BACK = "the payer's bank gave it back"


_S = ReturnStatus
_T = ReturnTrigger

RETURN_MOVES: Moves[ReturnStatus, ReturnTrigger] = Moves(
    (
        Move(_S.PLANNED, _S.SENDING, _T.SENT),
        Move(_S.PLANNED, _S.FAILED, _T.UNSIGNED),
        Move(_S.SENDING, _S.PLANNED, _T.DISPROVED),
        Move(_S.SENDING, _S.RETURNED, _T.ARRIVED),
        Move(_S.SENDING, _S.FAILED, _T.REFUSED),
        Move(_S.SENDING, _S.REVERSED, _T.CAME_BACK),
        Move(_S.FAILED, _S.RETURNED, _T.ARRIVED),
        Move(_S.RETURNED, _S.REVERSED, _T.CAME_BACK),
    )
)

MOST_TRIES = 10
"""Attempts for one transfer; if all fail, people must settle it."""

UNDER_WAY = (_S.PLANNED, _S.SENDING)


class MoneyReturn(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to return the suspended money of a transfer."""

    operation: str
    """Operation id at the bank or wallet; different for each attempt, because a bank answers a known one as before."""
    number: int
    """Number of the attempt, from 1."""
    amount: int
    """Amount to return: the suspended amount, rounded down to a multiple that the network can move."""
    created_at: datetime
    status: ReturnStatus = ReturnStatus.PLANNED
    sent_at: datetime | None = None
    """For RUB: since when the bank may have it."""
    address: str | None = None
    """Destination of the USDT."""
    sender: str | None = None
    """Name of the sending wallet."""
    tx_hash: str | None = None
    blob: bytes | None = None
    """The signed transfer, while it may have to be broadcast again. Anybody who has it can send it."""
    signed_until: datetime | None = None
    failure: str | None = None

    def __repr__(self) -> str:
        return f"<{self.status} return {self.operation}>"


_RETURN = "ret_"


def rub_return_operation(transfer_id: str, number: int) -> str:
    """Return the operation id of a return by a bank (docs/adapters.md "Operation ids"). It contains the exchange, and
    distinguishes its transfers."""
    return ids.operation(_RETURN, transfer_id.partition(":")[0], ids.tail(transfer_id, number))


def usdt_return_operation(transfer_id: str, number: int) -> str:
    """Return the operation id of a return by a wallet."""
    return f"{transfer_id}#{number}"


def returning_exchange(operation: str) -> str | None:
    """Return the exchange whose money an operation of a bank returns; None for ids that are not from
    `rub_return_operation`."""
    found = ids.read_operation(_RETURN, operation)
    return None if found is None else f"{ids.EXCHANGE}{found[0]}"


def return_number(transfer_id: str, operation: str) -> int | None:
    """Return the attempt number of an operation from `rub_return_operation` for this transfer; None: it is for another
    one."""
    found = ids.read_operation(_RETURN, operation)
    return None if found is None else ids.tail_number(transfer_id, found[1])


def returned_transfer(operation: str) -> str | None:
    """Return the id of the transfer that an operation returns by a wallet; None for any other operation."""
    transfer_id, _, number = operation.rpartition("#")
    is_ours = (
        ids.is_prefixed(ids.EXCHANGE, transfer_id.partition(":")[0])
        and transfer_id.isascii()
        and transfer_id.isprintable()
    )
    return transfer_id if is_ours and number.isascii() and number.isdecimal() else None


def return_moved(of: MoneyReturn, trigger: ReturnTrigger, failure: str | None = None) -> MoneyReturn:
    """Return the attempt after one move; a signed transfer that can no longer have an effect is deleted. Nothing else
    writes a return's status.

    Raises: IllegalMove.
    """
    after = msgspec.structs.replace(of, status=RETURN_MOVES.move(of.status, trigger), failure=failure)
    if after.status is _S.PLANNED:
        return msgspec.structs.replace(after, tx_hash=None, blob=None, signed_until=None)
    return after if after.status is _S.SENDING else msgspec.structs.replace(after, blob=None)


def return_signed(of: MoneyReturn, tx_hash: str, blob: bytes, until: datetime | None) -> MoneyReturn:
    """Return the attempt with its signed transfer, which must be stored before the first broadcast. Raises: IllegalMove
    if it already has one: a second transfer would pay twice."""
    if of.tx_hash is not None:
        raise IllegalMove(f"{of.operation} is signed already")
    return msgspec.structs.replace(return_moved(of, _T.SENT), tx_hash=tx_hash, blob=blob, signed_until=until)


def return_signed_anew(of: MoneyReturn, tx_hash: str, blob: bytes, until: datetime | None) -> MoneyReturn:
    """Return the attempt with the wallet's replacement of the signed transfer: only one of the two can ever take
    effect."""
    return msgspec.structs.replace(of, tx_hash=tx_hash, blob=blob, signed_until=until)
