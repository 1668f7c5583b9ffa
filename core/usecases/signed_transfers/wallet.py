"""Calls to a wallet, and the meaning of its answers (ports/payouts.py).

Before signing, the service queries the wallet for transfers that it sent for the operation, because our database may be
a backup older than such a transfer. A found transfer is stored and followed like our own.
"""

import logging

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import OutcomeUnknown, Refused, Unavailable
from ....ports.payouts import (
    FindingSender,
    ReplacingSender,
    SentTransfer,
    SignedTransfer,
    TransferState,
    UsdtSender,
)
from ...domain.wallets import is_nobodys, is_wallet_on

log = logging.getLogger("cambist.payouts")


class Seen(msgspec.Struct, frozen=True):
    """State of a transfer on the network, and whether the network accepted it just now."""

    state: TransferState
    taken: bool = False
    by: SignedTransfer | None = None
    """The final transfer, if the wallet replaced the queried one by it."""


async def sign(sender: UsdtSender, network: str, operation: str, wallet: str, units: int) -> SignedTransfer:
    """Return the operation's signed transfer: the one the wallet sent for it earlier, or a new one. Nothing is sent.

    Raises: Refused for good; Unavailable, OutcomeUnknown: try again. Unavailable also when the wallet reports a
    different transfer for the operation. An operator has to decide then, and nothing is signed.
    """
    if not is_wallet_on(network, wallet):
        # The address was checked when it was set. Check it again, because money sent to a wrong address is lost.
        raise Refused("the checksum of the address is wrong", reason="address")
    if is_nobodys(wallet):
        raise Refused("nobody has the key of the address", reason="address")
    known = await sent_before(sender, operation)
    if known is None:
        return await sender.sign(operation, wallet, units)
    if known.units != units or not is_same_address(known.address, wallet):
        log.error(
            "%s: the wallet sent %s units to %s for it before (%s), but %s units are owed to %s: it is for an operator",
            *(operation, known.units, known.address, known.signed.tx_hash, units, wallet),
        )
        raise Unavailable(f"the wallet sent something else for {operation}: {known.signed.tx_hash}")
    log.warning("%s: the wallet sent it before, as %s; it is not signed again", operation, known.signed.tx_hash)
    return known.signed


async def sent_before(sender: UsdtSender, operation: str) -> SentTransfer | None:
    """Return the wallet's transfer for the operation. None also for a wallet that cannot be queried. Raises:
    Unavailable without an answer."""
    if not isinstance(sender, FindingSender):
        return None
    try:
        return await sender.find(operation)
    except (Refused, OutcomeUnknown) as fault:
        # A failed read proves nothing, whatever the error: least of all that the operation is refused.
        raise Unavailable(f"the wallet does not say what it sent for {operation}: {fault}") from fault


def is_same_address(one: str, other: str) -> bool:
    """Return whether two addresses are the same. On some networks the case of hex digits is only a checksum."""
    return one == other or (one.startswith("0x") and one.lower() == other.lower())


async def look(ports: Ports, sender: UsdtSender, transfer: SignedTransfer) -> Seen:
    """Query the network, and broadcast the transfer again if the network does not know it and may still accept it.

    Raises: Unavailable, OutcomeUnknown, Refused when the query failed, which proves nothing about the transfer.
    """
    state = await sender.state(transfer)
    if state is TransferState.UNSEEN and (transfer.expires_at is None or ports.clock.now() < transfer.expires_at):
        return Seen(state, taken=await broadcast(sender, transfer))
    if state is TransferState.FINAL and isinstance(sender, ReplacingSender):
        by = await sender.in_place(transfer)
        return Seen(state, by=None if by.tx_hash == transfer.tx_hash else by)
    return Seen(state, taken=state is TransferState.IN_BLOCK)


async def broadcast(sender: UsdtSender, transfer: SignedTransfer) -> bool:
    """Broadcast the stored transfer and return whether the network accepted it. A failure proves nothing about the
    transfer, because an earlier broadcast may have arrived; only the network's state decides."""
    if not transfer.blob:
        return False  # The wallet sent it and has no copy.
    try:
        await sender.broadcast(transfer)
    except (Refused, OutcomeUnknown, Unavailable) as fault:
        log.warning("%s: its transfer was not taken for certain: %s", transfer.operation, fault)
        return False
    return True
