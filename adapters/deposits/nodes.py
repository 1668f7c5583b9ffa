"""Deposits of USDT, seen by the nodes of a network, at addresses of a wallet that the service cannot spend from
(docs/providers/chains.md "Deposits").
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

from ...ports.chain import Network
from ...ports.checking import Shortage
from ...ports.clock import Clock
from ...ports.deposits import Deposit, WalletAddress
from ...ports.faults import NO_ANSWER, Unavailable
from ...ports.operation_log import NumberedOperations, OperationLog
from ..nodes.logs import SPAN
from ..nodes.nodes import Nodes, quantity_at
from ..nodes.records import topic_of
from .derived import AccountKey
from .passes import Passes
from .watched import AddressPage, WatchedAddress

FRESH = 5.0
"""Seconds for which a read counts as current. Requests in that time share its result."""
LAG = timedelta(seconds=30)
"""Time from a block until a read shows it: nodes receive it late, and the read may be some seconds old."""
_ACTIVE = 60.0
"""Seconds after its last request in which an address is read together with the others."""
_WATCHED_MOST = 100_000
"""Addresses in memory. The pages of others are loaded again."""
_KEPT_AT_ONCE = 64
"""Pages that one pass stores at most. The rest is only read again."""
_ROUNDS = 3
_NEXT = 100
"""Addresses of the wallet that are not assigned yet, and still count as its own."""
_USED_MOST = 100
_BALANCE_OF = "0x70a08231"

log = logging.getLogger("cambist.providers")


class NodesDeposits:
    """Implementation of the ports DepositWatcher, LateDeposits and CountedWallet."""

    def __init__(
        self,
        name: str,
        nodes: Nodes,
        key: AccountKey,
        pages: OperationLog[AddressPage],
        numbers: NumberedOperations,
        clock: Clock,
        *,
        span: int = SPAN,
    ) -> None:
        """Set up the watcher. `numbers`: the counter for the addresses of `key` only."""
        self._name = name
        self._nodes = nodes
        self._key = key
        self._pages = pages
        self._numbers = numbers
        self._clock = clock
        self._span = span
        self._passes = Passes(nodes, span=span)
        self._watched: dict[str, WatchedAddress] = {}
        """Watched addresses. The last requested one comes last."""
        self._reading: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """Name of the watcher, which is stored with exchanges."""
        return self._name

    @property
    def network(self) -> Network:
        return self._nodes.chain.network

    @property
    def lag(self) -> timedelta:
        return LAG

    def __repr__(self) -> str:
        return f"<NodesDeposits {self._name}>"

    async def address(self, operation: str) -> str:
        """Return the wallet's next address that never held USDT.

        The same operation gets the same address as long as the wallet's xpub stays the same. Raises: Unavailable,
        NotConfigured.
        """
        for turn in range(_USED_MOST):
            number = await self._numbers.number(operation if turn == 0 else f"{operation}~{turn}")
            address = self._nodes.chain.spelling.write(self._key.payload(number))
            page = await self._pages.read(address) or await self._begin(address)
            if not page.is_used:
                return address
            log.warning("%s: address %s of the wallet held USDT before it was given out: passed over", self, number)
        raise Unavailable(f"{self._name}: {_USED_MOST} addresses in a row held USDT before they were given out")

    async def deposits(self, address: str) -> Sequence[Deposit]:
        """Return the deposits, as the port defines it, at most some seconds old. Raises: Unavailable, NotConfigured."""
        watched = await self._of(address)
        asked_at = watched.asked_at = self._clock.monotonic()
        for _ in range(_ROUNDS):
            if watched.seen_at >= asked_at - FRESH:
                return watched.deposits()
            if watched.fault is not None and watched.failed_at >= asked_at:
                raise _anew(watched.fault)
            if self._reading is None:
                self._reading = asyncio.create_task(self._read())
                self._reading.add_done_callback(self._was_read)
            # A cancelled caller must not cancel the read for the others.
            await asyncio.shield(self._reading)
        raise Unavailable(f"{self._name}: the address was not read in time")

    async def addresses(self, first: int, most: int) -> Sequence[WalletAddress]:
        """List addresses of the wallet, as the port defines it."""
        return [await self._shown(number) for number in range(first, first + most)]

    async def skip(self, number: int) -> int:
        """Skip addresses, as the port defines it."""
        following = await self._numbers.next_number()
        while following < number:
            following = await self._numbers.number(f"skipped~{following}") + 1
        return following

    async def _shown(self, number: int) -> WalletAddress:
        address = self._nodes.chain.spelling.write(self._key.payload(number))
        page = await self._pages.read(address)
        if page is None:
            return WalletAddress(number=number, address=address, is_given=number < await self._numbers.next_number())
        units = sum(each.units for each in page.found)
        return WalletAddress(number=number, address=address, is_given=True, units=units)

    async def check(self) -> None:
        """Check that all nodes belong to the network. Raises: NotConfigured, Unavailable."""
        await self._nodes.check()

    async def shortages(self) -> Sequence[Shortage]:
        """Return shortages of nodes, as the port defines it."""
        shortage = await self._nodes.shortage()
        return [] if shortage is None else [shortage]

    async def owns(self, address: str) -> bool:
        """Return whether the address is ours, as the port defines it: assigned by this wallet or a former one, or
        among this wallet's next ones.
        """
        if await self._pages.read(address) is not None:
            return True
        try:
            payload = self._nodes.chain.spelling.read(address)
        except ValueError:
            return False
        following = await self._numbers.next_number()
        return any(self._key.payload(number) == payload for number in range(following + _NEXT))

    async def close(self) -> None:
        """Close all connections."""
        await self._nodes.close()
        if self._reading is not None:
            await asyncio.wait([self._reading])

    async def _begin(self, address: str) -> AddressPage:
        """Return the page of a newly assigned address: deposits before it belong to no client.

        The required number of nodes report its balance and the final block.
        """
        view, chain = await self._nodes.view(), self._nodes.chain
        call = {"to": chain.usdt, "data": _BALANCE_OF + topic_of(chain.spelling.read(address))[2:]}
        held = max(
            await self._nodes.agreed(view, "balances", lambda node: quantity_at(node, "eth_call", call, "latest"))
        )
        since = max(0, min(view.final, view.latest - chain.reread))
        page, _ = await self._pages.start(address, AddressPage(since=since, is_used=held > 0))
        return page

    async def _of(self, address: str) -> WatchedAddress:
        watched = self._watched.pop(address, None)
        if watched is None:
            try:
                payload = self._nodes.chain.spelling.read(address)
            except ValueError:
                raise Unavailable(f"{self._name}: no address of {self.network}") from None
            page = await self._pages.read(address)
            if page is None:
                raise Unavailable(f"{self._name}: the address was not given out here")
            watched = self._watched.pop(address, None) or WatchedAddress(address, payload, page)
        self._watched[address] = watched
        if len(self._watched) > _WATCHED_MOST:
            del self._watched[next(iter(self._watched))]
        return watched

    async def _read(self) -> None:
        now = self._clock.monotonic()
        # Also read the addresses that are nearly due, so that all of them are soon read together.
        active = [
            each
            for each in self._watched.values()
            if now - each.asked_at <= _ACTIVE and now - each.seen_at >= FRESH / 2
        ]
        await self._passes.read(active, now)
        await self._keep(active)

    async def _keep(self, read: Sequence[WatchedAddress]) -> None:
        """Store progress that would take long to read again; pages with deposits first."""
        richer = [each for each in read if len(each.found) > each.kept[1]]
        further = (each for each in read if each.since - each.kept[0] >= self._span and len(each.found) == each.kept[1])
        changed = [*richer, *further]
        for each in changed[:_KEPT_AT_ONCE]:
            known = (each.since, len(each.found))
            try:
                await self._pages.change(each.address, each.merged)
            except NO_ANSWER as fault:
                log.warning("%s: what was read could not be kept: %s", self, fault)
                return
            each.kept = known

    def _was_read(self, task: asyncio.Task[None]) -> None:
        self._reading = None
        # Fetch the exception, because there may be no caller left to get it.
        if not task.cancelled():
            task.exception()


def _anew(fault: Exception) -> Exception:
    """Return a copy of the fault, so that each of several waiting callers raises its own."""
    if isinstance(fault, Unavailable):
        return type(fault)(str(fault), retry_after=fault.retry_after)
    return type(fault)(str(fault))
