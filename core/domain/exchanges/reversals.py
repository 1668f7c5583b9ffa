"""RUB that the payer's bank takes back: while an exchange holds them, which is what the hold is there for
(docs/exchanges.md "RUB to USDT"), and once it is over, which is a loss.

USDT know no such thing: what is final on chain stays.
"""

from collections.abc import Sequence

import msgspec

from .exchanges import Exchange, ExchangeStatus, asked_units
from .funds import ExchangeTransfer, Incoming, transfer_id
from .returns import UNDER_WAY

_S = ExchangeStatus

HELD = (_S.RUB_RECEIVED, _S.PARTIAL)
"""Until something was given for the money. While it is being given nothing is decided: it may yet fail. What is taken
back later is the service's loss, and no merchant's."""

LOST = "lost"
"""The `reason` of a transfer that was taken back at the service's loss."""


class TakenBack(msgspec.Struct, frozen=True, kw_only=True):
    """What follows. What came beside it fills the gap it left."""

    lost: tuple[ExchangeTransfer, ...]
    """Those that are gone, as they were."""
    changed: tuple[ExchangeTransfer, ...]
    """All that are to be saved, those included."""
    received: int
    """All that came in time and is still there."""
    held: int
    """Of it for the exchange."""
    counted: int
    """By how much less is held than before."""
    suspended: int
    """By how much less is suspended; below zero it is more."""
    loss: int = 0
    """What is nobody's but the service's to bear."""


def judge_taken_back(
    exchange: Exchange, seen: Sequence[Incoming], transfers: Sequence[ExchangeTransfer]
) -> TakenBack | None:
    """What the transfers of an exchange are worth once those are gone that were seen to be; None when none is."""
    if exchange.takes_usdt:
        return None
    gone = {transfer_id(exchange.id, each.source) for each in seen if each.is_taken_back}
    lost = tuple(each for each in transfers if each.id in gone and not each.taken_back)
    if exchange.is_final:
        # What is being sent back ends first.
        over = tuple(each for each in lost if each.sent_back is None or each.sent_back.status not in UNDER_WAY)
        return _lost_at_the_end(exchange, over) if over else None
    if not lost or exchange.status not in HELD:
        return None
    after = {
        each.id: msgspec.structs.replace(each, counted=0, suspended=0, reason=None, taken_back=each.amount)
        for each in lost
    }
    held, asked = 0, asked_units(exchange)
    left = [each for each in transfers if each.id not in gone and not each.taken_back]
    in_time = sorted(
        (each for each in left if each.reason in (None, "excess")), key=lambda each: (each.received_at, each.id)
    )
    for each in in_time:
        part = min(each.amount, asked - held)
        held += part
        reason = "excess" if part < each.amount else None
        after[each.id] = msgspec.structs.replace(each, counted=part, suspended=each.amount - part, reason=reason)
    return TakenBack(
        lost=lost,
        changed=tuple(after[each.id] for each in transfers if after.get(each.id, each) != each),
        received=sum(each.amount for each in in_time),
        held=held,
        counted=sum(each.counted - after[each.id].counted for each in transfers if each.id in after),
        suspended=sum(each.suspended - after[each.id].suspended for each in transfers if each.id in after),
    )


def returned_in_vain(transfer: ExchangeTransfer) -> ExchangeTransfer:
    """A transfer that went back by our bank once the payer's had taken it: nothing of it waited any more."""
    return msgspec.structs.replace(transfer, reason=LOST)


def _lost_at_the_end(exchange: Exchange, lost: Sequence[ExchangeTransfer]) -> TakenBack:
    """The exchange is over. What waits in suspense is there no more; what went into the exchange, or back to the payer
    already, is lost. Other money in suspense fills no gap: it is its payer's."""
    waiting = sum(each.suspended for each in lost if each.resolved_at is None)
    loss = sum(each.amount for each in lost) - waiting
    return TakenBack(
        lost=tuple(lost),
        changed=tuple(
            msgspec.structs.replace(
                each,
                counted=0,
                suspended=0,
                reason=LOST if each.counted or each.resolved_at is not None else None,
                resolved_at=None,
                taken_back=each.amount,
            )
            for each in lost
        ),
        received=exchange.amount_rub_received.kopecks,
        held=0,
        counted=0,
        suspended=waiting,
        loss=loss,
    )
