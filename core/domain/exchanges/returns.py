"""Sending back what came for an exchange and could move nothing: late, too much, or left over by an exchange that ended
without it (docs/exchanges.md "Rules").

It is a provider's operation like any other: written down before anybody is asked, with an end that is done, refused for
certain, or not known yet. RUB go back through the bank that took them, to who paid. Of USDT the sender's address says
nothing about who owns them (an exchange's wallet sends for many), so an operator names the address.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from .. import ids
from ..machine import IllegalMove, Move, Moves


class ReturnStatus(StrEnum):
    """How a return stands."""

    PLANNED = "planned"
    """Decided; nobody was asked, and no signed transfer is stored."""
    SENDING = "sending"
    """Bank or network may have it."""
    RETURNED = "returned"
    FAILED = "failed"
    """The money is in suspense still; an operator may decide anew."""
    REVERSED = "reversed"
    """The payer's bank gave it back: it is in suspense again."""


class ReturnTrigger(StrEnum):
    """What moves a return."""

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
"""Attempts for one transfer; what goes back no way by then is for people to settle."""

UNDER_WAY = (_S.PLANNED, _S.SENDING)


class MoneyReturn(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to send the suspended money of a transfer back."""

    operation: str
    """Of the bank or wallet; another one at each attempt, because a bank answers a known one as it did before."""
    number: int
    """Of the attempt, from 1."""
    amount: int
    """What goes: all that is suspended, down to what the network can move."""
    created_at: datetime
    status: ReturnStatus = ReturnStatus.PLANNED
    sent_at: datetime | None = None
    """Of RUB: since when the bank may have it."""
    address: str | None = None
    """Where USDT go to."""
    sender: str | None = None
    """The name of the wallet that sends them."""
    tx_hash: str | None = None
    blob: bytes | None = None
    """The signed transfer, while it may have to be broadcast again. Whoever has it can send it."""
    signed_until: datetime | None = None
    failure: str | None = None

    def __repr__(self) -> str:
        return f"<{self.status} return {self.operation}>"


_RETURN = "ret_"


def rub_return_operation(transfer_id: str, number: int) -> str:
    """The operation id of a return by a bank (docs/adapters.md "Operation ids"). It names the exchange, and tells its
    transfers apart."""
    return ids.operation(_RETURN, transfer_id.partition(":")[0], ids.tail(transfer_id, number))


def usdt_return_operation(transfer_id: str, number: int) -> str:
    """The operation id of a return by a wallet; of a bank's, too, in earlier versions."""
    return f"{transfer_id}#{number}"


def returning_exchange(operation: str) -> str | None:
    """The exchange whose money a bank sends back by an operation; None for what `rub_return_operation` never makes."""
    found = ids.read_operation(_RETURN, operation)
    return None if found is None else f"{ids.EXCHANGE}{found[0]}"


def former_return(transfer_id: str, operation: str) -> str | None:
    """How earlier versions called the return of this transfer; None where the operation is none of it, or has that
    name."""
    found = ids.read_operation(_RETURN, operation)
    number = None if found is None else ids.tail_number(transfer_id, found[1])
    return None if number is None else usdt_return_operation(transfer_id, number)


def returned_transfer(operation: str) -> str | None:
    """The id of the transfer that an operation sends back by a wallet, or in earlier versions by a bank; None for what
    is no such operation."""
    transfer_id, _, number = operation.rpartition("#")
    is_ours = (
        ids.is_prefixed(ids.EXCHANGE, transfer_id.partition(":")[0])
        and transfer_id.isascii()
        and transfer_id.isprintable()
    )
    return transfer_id if is_ours and number.isascii() and number.isdecimal() else None


def return_moved(of: MoneyReturn, trigger: ReturnTrigger, failure: str | None = None) -> MoneyReturn:
    """The return one move further; a signed transfer is forgotten where it can have no effect any more. Nobody else
    writes a return's status.

    Raises: IllegalMove.
    """
    after = msgspec.structs.replace(of, status=RETURN_MOVES.move(of.status, trigger), failure=failure)
    if after.status is _S.PLANNED:
        return msgspec.structs.replace(after, tx_hash=None, blob=None, signed_until=None)
    return after if after.status is _S.SENDING else msgspec.structs.replace(after, blob=None)


def return_signed(of: MoneyReturn, tx_hash: str, blob: bytes, until: datetime | None) -> MoneyReturn:
    """The return with its signed transfer, as it must be stored before the first broadcast. Raises: IllegalMove for one
    that has a signed transfer: a second would pay twice."""
    if of.tx_hash is not None:
        raise IllegalMove(f"{of.operation} is signed already")
    return msgspec.structs.replace(return_moved(of, _T.SENT), tx_hash=tx_hash, blob=blob, signed_until=until)


def return_signed_anew(of: MoneyReturn, tx_hash: str, blob: bytes, until: datetime | None) -> MoneyReturn:
    """The return whose wallet put another transfer in the place of the signed one: of both one alone can move."""
    return msgspec.structs.replace(of, tx_hash=tx_hash, blob=blob, signed_until=until)
