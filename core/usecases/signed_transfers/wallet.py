"""How USDT get onto the chain, whoever they are for: signed once, stored by the caller, broadcast as stored, and
followed to the network's proof (docs/settlement.md "Payouts"; ports/payouts.py).

Before anything is signed the wallet is asked what it sent for the operation: what we know may have been restored from a
backup that is older than the transfer. What it sent is taken over and followed like our own.
"""

import logging
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.chain import Network
from ....ports.faults import OutcomeUnknown, Refused, Unavailable
from ....ports.payouts import FindingSender, SentTransfer, SignedTransfer, TransferState, UsdtSender
from ...domain.tron import is_tron_address

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
    """The operation's transfer: the one that the wallet sent for it before, or one that is made and signed now. Nothing
    is sent.

    Raises: Refused for good; Unavailable, OutcomeUnknown: try again. Unavailable, too, while the wallet says that it
    sent something else for the operation: that is for an operator, and nothing is ever signed over it.
    """
    if network == Network.TRON and not is_tron_address(wallet):
        # Checked when it was set, and again here: nobody can fetch back what went to a wrong address.
        raise Refused("the checksum of the address is wrong", reason="address")
    known = await sent_before(sender, operation)
    if known is None:
        return await sender.sign(operation, wallet, units)
    if known.units != units or not _is_same(known.address, wallet):
        log.error(
            "%s: the wallet sent %s units to %s for it before (%s), but %s units are owed to %s: it is for an operator",
            *(operation, known.units, known.address, known.signed.tx_hash, units, wallet),
        )
        raise Unavailable(f"the wallet sent something else for {operation}: {known.signed.tx_hash}")
    log.warning("%s: the wallet sent it before, as %s; it is not signed again", operation, known.signed.tx_hash)
    return known.signed


async def sent_before(sender: UsdtSender, operation: str) -> SentTransfer | None:
    """What the wallet sent for the operation; None, too, for a wallet that cannot be asked. Raises: Unavailable when it
    gave no answer."""
    if not isinstance(sender, FindingSender):
        return None
    try:
        return await sender.find(operation)
    except (Refused, OutcomeUnknown) as fault:
        # A read that failed says nothing, in whatever words: least of all that the operation is refused.
        raise Unavailable(f"the wallet does not say what it sent for {operation}: {fault}") from fault


def _is_same(one: str, other: str) -> bool:
    """Whether two addresses are one. Hex digits have a case on some networks that only checks them."""
    return one == other or (one.startswith("0x") and one.lower() == other.lower())


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
    if not transfer.blob:
        return False  # the wallet sent it, and keeps no copy
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
