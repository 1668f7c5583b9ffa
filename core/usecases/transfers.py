"""How USDT get onto the chain, whoever they are for: signed once, stored by the caller, broadcast as stored, and
followed to the network's proof (DECISIONS 4 "Withdrawals"; ports/payouts.py)."""

import logging
from datetime import datetime, timedelta

import msgspec

from ...ports.bundle import Ports
from ...ports.chain import Network
from ...ports.faults import OutcomeUnknown, Refused, Unavailable
from ...ports.payouts import SignedTransfer, TransferState, UsdtSender
from ..domain.tron import is_tron_address

SIGN_LADDER = (
    timedelta(seconds=10),
    timedelta(seconds=30),
    timedelta(minutes=2),
    timedelta(minutes=10),
    timedelta(hours=1),
)
"""When what could not be signed is tried again; after the last of them every hour. Nothing was sent, so there is no end
to it but an operator's."""

NOT_WIRED = timedelta(hours=1)
_LOOKS = ((timedelta(minutes=5), timedelta(seconds=5)), (timedelta(hours=1), timedelta(minutes=1)))
"""Until so long after the end of the signed transfer, it is looked at so often."""
_LATE_LOOKS = timedelta(minutes=10)

PROVEN_NOT_SENT = "the network proved that the transfer did not move the USDT and never will"

log = logging.getLogger("cambist.payouts")


class Followed(msgspec.Struct, frozen=True):
    """How the network sees a transfer, and whether it took it just now."""

    state: TransferState
    taken: bool = False


async def sign(sender: UsdtSender, network: str, operation: str, wallet: str, units: int) -> SignedTransfer:
    """Make and sign a transfer; nothing is sent. Raises: Refused for good; Unavailable, OutcomeUnknown: try again."""
    if network == Network.TRON and not is_tron_address(wallet):
        # Checked when it was set, and again here: nobody can fetch back what went to a wrong address.
        raise Refused("the checksum of the address is wrong", reason="address")
    return await sender.sign(operation, wallet, units)


def stored(operation: str, tx_hash: str | None, blob: bytes | None, until: datetime | None) -> SignedTransfer:
    """The transfer as it was stored. Raises: LookupError when there is none."""
    if tx_hash is None or blob is None or until is None:
        raise LookupError(f"{operation} has no signed transfer")
    return SignedTransfer(operation=operation, tx_hash=tx_hash, blob=blob, expires_at=until)


async def follow(ports: Ports, sender: UsdtSender, transfer: SignedTransfer) -> Followed:
    """Ask the network, and send the transfer once more where it does not know it and still may take it.

    Raises: Unavailable, OutcomeUnknown, Refused when it could not be asked, which says nothing about the transfer.
    """
    state = await sender.state(transfer)
    if state is TransferState.UNSEEN and ports.clock.now() < transfer.expires_at:
        return Followed(state, taken=await broadcast(sender, transfer))
    return Followed(state)


async def broadcast(sender: UsdtSender, transfer: SignedTransfer) -> bool:
    """Send what is stored; whether the network took it. Where that fails, in whatever way, nothing is said of the
    transfer: only the network's state tells, because an earlier broadcast may have arrived."""
    try:
        await sender.broadcast(transfer)
    except (Refused, OutcomeUnknown, Unavailable) as fault:
        log.warning("%s: its transfer was not taken for certain: %s", transfer.operation, fault)
        return False
    return True


def sign_pause(attempts: int, fault: Exception) -> timedelta:
    """How long until signing is tried again, after so many attempts."""
    return later(SIGN_LADDER[min(max(attempts, 1), len(SIGN_LADDER)) - 1], fault)


def look_pause(signed_until: datetime | None, now: datetime) -> timedelta:
    """How long until the network is asked again: every 5 seconds while the transfer moves, then less and less."""
    passed = timedelta() if signed_until is None else now - signed_until
    return next((pause for until, pause in _LOOKS if passed < until), _LATE_LOOKS)


def later(pause: timedelta, fault: Exception) -> timedelta:
    """The pause, or what the provider asked for where that is longer."""
    asked = fault.retry_after if isinstance(fault, Unavailable) else None
    return pause if asked is None else max(pause, timedelta(seconds=asked))
