"""Queries and checks that the wallets of all networks share."""

from typing import Protocol

from ...ports.faults import Refused
from ...ports.payouts import TransferState
from ..nodes.networks import Chain
from ..nodes.nodes import Nodes, View, quantity_at
from ..nodes.records import Receipt, topic_of

_BALANCE_OF = "0x70a08231"


class Moved(Protocol):
    """Movement that a transfer declares. Addresses are their 20 bytes."""

    @property
    def owner(self) -> bytes: ...
    @property
    def recipient(self) -> bytes: ...
    @property
    def amount(self) -> int: ...


def seen(view: View, receipt: Receipt, chain: Chain, made: Moved) -> TransferState:
    """Return the state of a transfer with this receipt.

    A successful one has moved what it declares; a final transfer that moved nothing has failed.
    """
    if receipt.height > view.final:
        return TransferState.IN_BLOCK
    write, units = chain.spelling.write, chain.units(made.amount)
    moved = any(
        (each.sender, each.recipient, each.units) == (write(made.owner), write(made.recipient), units)
        for each in receipt.transfers
    )
    return TransferState.FINAL if moved and not receipt.is_reverted else TransferState.FAILED


def recipient_of(chain: Chain, address: str, owner: bytes) -> bytes:
    """Return the 20 bytes of an address.

    Raises: Refused for a text that is no address on the network, or is the wallet's own.
    """
    try:
        payload = chain.spelling.read(address)
    except ValueError:
        raise Refused(f"no address of {chain.network}", reason="address") from None
    if payload in (bytes.fromhex(chain.usdt[2:]), owner, bytes(len(payload))):
        raise Refused("the address of the token's contract, of the wallet itself, or of nobody", reason="address")
    return payload


def is_address_of(chain: Chain, address: str, owner: bytes) -> bool:
    """Return whether a text is the address of these 20 bytes on the network."""
    try:
        return chain.spelling.read(address) == owner
    except ValueError:
        return False


async def usdt_of(nodes: Nodes, view: View, owner: bytes) -> int:
    """Return an address's balance in the token's smallest units. Raises: Unavailable, NotConfigured."""
    call = {"to": nodes.chain.usdt, "data": f"{_BALANCE_OF}{topic_of(owner)[2:]}"}
    return await _least(nodes, view, "eth_call", call, "latest")


async def coins_of(nodes: Nodes, view: View, owner: bytes) -> int:
    """Return an address's balance in the smallest units of the network's own coin.

    Raises: Unavailable, NotConfigured.
    """
    return await _least(nodes, view, "eth_getBalance", f"0x{owner.hex()}", "latest")


async def _least(nodes: Nodes, view: View, method: str, *params: object) -> int:
    """Return the lowest balance that the required number of nodes report, because a single node could overstate it."""
    return min(await nodes.agreed(view, "balances", lambda node: quantity_at(node, method, *params)))
