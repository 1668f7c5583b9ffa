"""State of one address: in memory, and on the page that outlives the process."""

import msgspec

from ...ports.deposits import Deposit


class AddressPage(msgspec.Struct, frozen=True, kw_only=True):
    """Stored state of an address. It may be behind: missing parts are read from the network again."""

    since: int
    """Block up to which all blocks are read, and final."""
    found: tuple[Deposit, ...] = ()
    """Deposits in these blocks, and in final blocks since."""
    is_used: bool = False
    """Whether it held USDT before it was assigned, by a database of which this one is an older copy, or by hand.

    It is never assigned.
    """


class WatchedAddress:
    """Watched address."""

    __slots__ = (
        *("address", "asked_at", "claimed", "failed_at", "fault", "found", "kept", "payload", "pending", "seen_at"),
        "since",
    )

    def __init__(self, address: str, payload: bytes, page: AddressPage) -> None:
        self.address = address
        self.payload = payload
        self.since = page.since
        self.claimed = frozenset(each.tx_hash for each in page.found)
        """Transactions that the page shows as deposits.

        The network is asked for them again, so that write access to the database does not create money.
        """
        self.found: tuple[Deposit, ...] = ()
        self.kept = (page.since, len(page.found))
        """Content of the stored page."""
        self.pending: tuple[Deposit, ...] = ()
        """Deposits that were not final at the last read."""
        self.asked_at = self.seen_at = self.failed_at = float("-inf")
        self.fault: Exception | None = None

    def add(self, deposit: Deposit) -> None:
        """Add a final deposit, unless it is known."""
        if all((each.tx_hash, each.index) != (deposit.tx_hash, deposit.index) for each in self.found):
            self.found = (*self.found, deposit)

    def deposits(self) -> list[Deposit]:
        """Return the deposits, as the port defines it."""
        final = {(each.tx_hash, each.index) for each in self.found}
        return [*self.found, *(each for each in self.pending if (each.tx_hash, each.index) not in final)]

    def merged(self, page: AddressPage) -> AddressPage:
        """Return the page merged with this state, because another process may have written it meanwhile."""
        both = {(each.tx_hash, each.index): each for each in (*page.found, *self.found)}
        return msgspec.structs.replace(page, since=max(page.since, self.since), found=tuple(both.values()))
