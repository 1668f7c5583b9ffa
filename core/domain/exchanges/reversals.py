"""RUB that the payer's bank takes back: while an exchange holds them, which is the purpose of the hold
(docs/exchanges.md "RUB to USDT"), and after its end, which is a loss.

USDT cannot be taken back: a final transfer on chain stays.
"""

from collections.abc import Sequence

import msgspec

from .exchanges import Exchange, ExchangeStatus, asked_units
from .funds import ExchangeTransfer, Incoming, transfer_id
from .returns import UNDER_WAY

_S = ExchangeStatus

HELD = (_S.RUB_RECEIVED, _S.PARTIAL)
"""Statuses before anything was given for the money. While the payout is in progress nothing is decided, since it may
still fail. Money taken back later is the service's loss, never a merchant's."""

LOST = "lost"
"""The `reason` of a transfer that was taken back at the service's loss."""


class TakenBack(msgspec.Struct, frozen=True, kw_only=True):
    """Effect of transfers that were taken back. Other transfers of the exchange fill the gap."""

    lost: tuple[ExchangeTransfer, ...]
    """The transfers that were taken back, before the change."""
    changed: tuple[ExchangeTransfer, ...]
    """All transfers to save, including those."""
    received: int
    """Total that came in time and is still there."""
    held: int
    """The part of it that the exchange holds."""
    counted: int
    """Decrease of the held amount."""
    suspended: int
    """Decrease of the suspended amount; below zero: an increase."""
    loss: int = 0
    """Loss of the service."""


def judge_taken_back(
    exchange: Exchange, seen: Sequence[Incoming], transfers: Sequence[ExchangeTransfer]
) -> TakenBack | None:
    """Return the effect on an exchange's transfers when the bank has taken some of them back; None without an
    effect."""
    if exchange.takes_usdt:
        return None
    gone = {transfer_id(exchange.id, each.source) for each in seen if each.is_taken_back}
    lost = tuple(each for each in transfers if each.id in gone and not each.taken_back)
    if exchange.is_final:
        # A return in progress must end first.
        over = tuple(each for each in lost if each.sent_back is None or each.sent_back.status not in UNDER_WAY)
        return _lost_at_the_end(exchange, over) if over else None
    if not lost or exchange.status not in HELD:
        return None
    # Transfers that were taken back no longer count.
    after = {
        each.id: msgspec.structs.replace(each, counted=0, suspended=0, reason=None, taken_back=each.amount)
        for each in lost
    }
    # Distribute the remaining timely transfers anew, the oldest first: an earlier excess now fills the gap.
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
    """Return a transfer that our bank returned after the payer's bank had taken it back: nothing was left to return."""
    return msgspec.structs.replace(transfer, reason=LOST)


def _lost_at_the_end(exchange: Exchange, lost: Sequence[ExchangeTransfer]) -> TakenBack:
    """Return the effect after the end of the exchange. Money that waits in suspense is gone; money that was used by
    the exchange, or already returned to the payer, is lost. Other money in suspense fills no gap: it belongs to its
    payer."""
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
