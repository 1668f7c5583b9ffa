"""What is known of one address: in memory, and on the page that outlives the process."""

import msgspec

from ...ports.deposits import Deposit


class AddressPage(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept of an address. It is behind: whatever is missing is read from the network again."""

    since: int
    """All blocks up to this one are read, and final."""
    found: tuple[Deposit, ...] = ()
    """What came in them, and in final ones since."""
    is_used: bool = False
    """It held USDT before it was given out: by a database that this one is an older copy of, or by hand. It is given to
    nobody."""


class WatchedAddress:
    """An address that is asked about."""

    __slots__ = (
        *("address", "asked_at", "claimed", "failed_at", "fault", "found", "kept", "payload", "pending", "seen_at"),
        "since",
    )

    def __init__(self, address: str, payload: bytes, page: AddressPage) -> None:
        self.address = address
        self.payload = payload
        self.since = page.since
        self.claimed = frozenset(each.tx_hash for each in page.found)
        """Transactions that the page says brought something. The network is asked for them once more: who can write
        to the database is not to make money."""
        self.found: tuple[Deposit, ...] = ()
        self.kept = (page.since, len(page.found))
        """How the page stands."""
        self.pending: tuple[Deposit, ...] = ()
        """Not final at the last look."""
        self.asked_at = self.seen_at = self.failed_at = float("-inf")
        self.fault: Exception | None = None

    def add(self, deposit: Deposit) -> None:
        """A final one; a second time it is known."""
        if all((each.tx_hash, each.index) != (deposit.tx_hash, deposit.index) for each in self.found):
            self.found = (*self.found, deposit)

    def deposits(self) -> list[Deposit]:
        """As the port has it."""
        final = {(each.tx_hash, each.index) for each in self.found}
        return [*self.found, *(each for each in self.pending if (each.tx_hash, each.index) not in final)]

    def merged(self, page: AddressPage) -> AddressPage:
        """The page with what is known here, too; another process may have written it meanwhile."""
        both = {(each.tx_hash, each.index): each for each in (*page.found, *self.found)}
        return msgspec.structs.replace(page, since=max(page.since, self.since), found=tuple(both.values()))
