"""Price of gas, and the limit on what a wallet may spend on it."""

import msgspec

from ....ports.faults import Unavailable
from ...nodes.nodes import Nodes, View, quantity_at
from ...nodes.records import quantity
from ...nodes.rpc import Node, NodeRefused
from ..shared import coins_of
from .transaction import Fees

GWEI = 10**9
_COIN = 10**18
_GAS_MOST = 1_000_000
"""Upper limit for gas. A transfer of USDT uses some 65 000, so a node that reports more than this is wrong."""
_MARGIN = 4
"""Safety margin: one more for every four.

The gas of a transfer depends on the recipient's balance, which may change before the block.
"""


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    base_fee_per_gas: str | None = None


async def _base_fee(node: Node) -> int | None:
    head = await node.ask("eth_getBlockByNumber", _Head, "latest", False)
    return None if head.base_fee_per_gas is None else quantity(head.base_fee_per_gas)


class Market:
    """Price of gas on one network, as its nodes report it."""

    def __init__(self, nodes: Nodes, limit: int) -> None:
        """Set up the market. `limit`: highest price of one gas, in wei."""
        self._nodes = nodes
        self.limit = limit

    async def fees(self, view: View) -> Fees:
        """Return fees that the next blocks accept, even if the base fee doubles.

        Raises: Unavailable, also if the price is above the limit; NotConfigured.
        """
        base = await self._nodes.first(view, "fees", _base_fee)
        if base is None:
            price = await self._price(view)
            self._check(price)
            return Fees(max(price, 1))
        tip = await self._tip(view, base)
        self._check(base + tip)
        return Fees(min(2 * base + tip, self.limit), tip)

    async def raised(self, view: View, last: Fees) -> Fees | None:
        """Return fees to replace a transaction with these fees; None if they are above the limit.

        Raises: Unavailable, NotConfigured.
        """
        least = last.raised
        if least.most > self.limit:
            return None
        try:
            now = await self.fees(view)
        except Unavailable:
            return least  # even at the limit it is accepted sooner than with less
        most = max(least.most, now.most)
        return Fees(most, None if least.tip is None else min(most, max(least.tip, now.tip or 0)))

    async def gas(self, view: View, call: dict[str, str]) -> int:
        """Return the gas limit for a call.

        Raises: Unavailable, also if the contract would not execute it; NotConfigured.
        """
        try:
            used = await self._nodes.first(view, "gas", lambda node: quantity_at(node, "eth_estimateGas", call))
        except NodeRefused as fault:
            raise Unavailable(f"the contract of USDT would not do this transfer: {fault}") from None
        if not 0 < used <= _GAS_MOST:
            raise Unavailable(f"a node says that a transfer uses {used} gas")
        return used + used // _MARGIN

    async def check_coins(self, view: View, owner: bytes, needed: int) -> None:
        """Check the wallet's balance of the network's own coin.

        Raises: Unavailable if it is less than needed; NotConfigured.
        """
        coins = await coins_of(self._nodes, view, owner)
        if coins < needed:
            wallet = self._nodes.chain.spelling.write(owner)
            raise Unavailable(
                f"the wallet {wallet} lacks coins for gas: it has {coins / _COIN:.6f}, and what is on its way may need "
                f"{needed / _COIN:.6f}"
            )

    async def _tip(self, view: View, base: int) -> int:
        try:
            said = await self._nodes.first(view, "tips", lambda node: quantity_at(node, "eth_maxPriorityFeePerGas"))
        except Unavailable:
            # Not every kind of node supports this method.
            return max(1, await self._price(view) - base)
        return max(1, said)

    async def _price(self, view: View) -> int:
        return await self._nodes.first(view, "fees", lambda node: quantity_at(node, "eth_gasPrice"))

    def _check(self, price: int) -> None:
        if price > self.limit:
            raise Unavailable(f"gas costs {price / GWEI:.2f} gwei, above the limit of {self.limit / GWEI:.2f}")
