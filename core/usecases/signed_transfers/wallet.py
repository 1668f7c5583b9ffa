"""What is asked of a wallet, and what its answers say (ports/payouts.py).

Before anything is signed the wallet is asked what it sent for the operation: what we know may have been restored from a
backup that is older than the transfer. What it sent is taken over and followed like our own.
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
    """How the network sees a transfer, and whether it took it just now."""

    state: TransferState
    taken: bool = False
    by: SignedTransfer | None = None
    """The transfer that is final, where it is another than was asked about: the wallet put it in its place."""


async def sign(sender: UsdtSender, network: str, operation: str, wallet: str, units: int) -> SignedTransfer:
    """The operation's transfer: the one that the wallet sent for it before, or one that is made and signed now. Nothing
    is sent.

    Raises: Refused for good; Unavailable, OutcomeUnknown: try again. Unavailable, too, while the wallet says that it
    sent something else for the operation: that is for an operator, and nothing is ever signed over it.
    """
    if not is_wallet_on(network, wallet):
        # Checked when it was set, and again here: nobody can fetch back what went to a wrong address.
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
    """What the wallet sent for the operation; None, too, for a wallet that cannot be asked. Raises: Unavailable when it
    gave no answer."""
    if not isinstance(sender, FindingSender):
        return None
    try:
        return await sender.find(operation)
    except (Refused, OutcomeUnknown) as fault:
        # A read that failed says nothing, in whatever words: least of all that the operation is refused.
        raise Unavailable(f"the wallet does not say what it sent for {operation}: {fault}") from fault


def is_same_address(one: str, other: str) -> bool:
    """Whether two addresses are one. On some networks the case of hex digits is only a checksum."""
    return one == other or (one.startswith("0x") and one.lower() == other.lower())


async def look(ports: Ports, sender: UsdtSender, transfer: SignedTransfer) -> Seen:
    """Ask the network, and send the transfer once more where it does not know it and still may take it.

    Raises: Unavailable, OutcomeUnknown, Refused when it could not be asked, which says nothing about the transfer.
    """
    state = await sender.state(transfer)
    if state is TransferState.UNSEEN and (transfer.expires_at is None or ports.clock.now() < transfer.expires_at):
        return Seen(state, taken=await broadcast(sender, transfer))
    if state is TransferState.FINAL and isinstance(sender, ReplacingSender):
        by = await sender.in_place(transfer)
        return Seen(state, by=None if by.tx_hash == transfer.tx_hash else by)
    return Seen(state, taken=state is TransferState.IN_BLOCK)


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
