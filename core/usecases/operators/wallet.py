"""Wallet that receives clients' USDT in live mode: comparison of our addresses with the wallet's own display
(docs/providers/chains.md "Addresses")."""

from collections.abc import Sequence

import msgspec

from ....ports.bundle import Ports
from ....ports.deposits import CountedWallet, WalletAddress
from ....ports.faults import NotConfigured
from ...domain.accounts.accounts import Mode
from ...domain.errors import Refusal
from ..actions.audit import note_outside

SHOWN = 5
"""Number of addresses to show without a comparison."""
MOST = 1000


class ComparedAddress(msgspec.Struct, frozen=True, kw_only=True):
    """An address of ours. `is_same`: whether the wallet shows the same address at this number; None without a
    comparison."""

    number: int
    address: str
    is_same: bool | None = None


async def compare_wallet(ports: Ports, shown: Sequence[str]) -> list[ComparedAddress]:
    """Compare our first addresses with the wallet's, given in its order. Raises: Refusal; Unavailable."""
    ours = await _wallet(ports).addresses(0, len(shown) or SHOWN)
    theirs: Sequence[str | None] = shown or [None] * len(ours)
    return [
        ComparedAddress(
            number=each.number, address=each.address, is_same=None if said is None else said == each.address
        )
        for each, said in zip(ours, theirs, strict=True)
    ]


async def list_wallet(ports: Ports, first: int, most: int) -> Sequence[WalletAddress]:
    """List addresses from a number on, for sweeping them. Raises: Refusal; Unavailable."""
    return await _wallet(ports).addresses(first, most)


async def skip_wallet(ports: Ports, number: int) -> int:
    """Skip the addresses below `number` and return the next number to use. Raises: Refusal; Unavailable."""
    wallet = _wallet(ports)
    await note_outside(ports, str(number))
    return await wallet.skip(number)


def _wallet(ports: Ports) -> CountedWallet:
    try:
        watcher = ports.deposits.of_mode(Mode.LIVE.value)
    except NotConfigured as fault:
        raise Refusal("PROVIDER_NOT_CONFIGURED", str(fault)) from None
    if not isinstance(watcher, CountedWallet):
        raise Refusal("PROVIDER_NOT_CONFIGURED", f"The deposits of live mode ({watcher.name}) have no wallet's xpub")
    return watcher
