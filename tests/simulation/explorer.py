"""The chains on which merchants give clients USDT, as a public explorer shows them: a transaction is in no block, in a
block that may be reverted, or final."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cambist.ports.chain import Final, InBlock, Network, NotFound, Reverted, Sighting, UsdtTransfer
from tests.simulation.proof_plans import Fate

if TYPE_CHECKING:
    from tests.simulation.outside import Now, Soon

NETWORKS = {"TRC20": Network.TRON, "ERC20": Network.ETHEREUM, "BEP20": Network.BSC}
"""Networks by the names of their tokens."""


@dataclass
class SentRow:
    """A transaction that a merchant sent."""

    network: Network
    tx_hash: str
    moves: tuple[int, ...]
    """Units of 0.00000001 USDT, of each transfer."""
    fate: Fate
    included_at: datetime | None = None
    final_at: datetime | None = None
    reorganisations: int = 0


class OwnExplorer:
    """Transactions on the chains, and which of them are final."""

    FINALITY = timedelta(seconds=60)

    def __init__(
        self, name: str, now: "Now", soon: "Soon", chance: random.Random, strikes: Callable[[str], bool]
    ) -> None:
        """`strikes`: whether a fault of this kind happens now."""
        self.name = name
        self.rows: dict[tuple[Network, str], SentRow] = {}
        self._now, self._soon, self._chance, self._strikes = now, soon, chance, strikes

    def lookup(self, network: Network, tx_hash: str) -> Sighting:
        """Return the state of a transaction."""
        row = self.rows.get((network, tx_hash))
        if row is None or row.included_at is None:
            return NotFound()
        if row.final_at is None:
            return InBlock()
        if row.fate is Fate.REVERTED:
            return Reverted()
        return Final(
            tuple(
                UsdtTransfer(index=index, sender="merchant", recipient="client", units=units)
                for index, units in enumerate(row.moves)
            )
        )

    def send(self, network: Network, tx_hash: str, moves: tuple[int, ...], fate: Fate) -> None:
        """A merchant sends it, and a block has it, unless it never gets into one."""
        row = self.rows[network, tx_hash] = SentRow(network, tx_hash, moves, fate)
        if fate is not Fate.NEVER:
            self._include(row)

    def _include(self, row: SentRow) -> None:
        row.included_at = included = self._now()
        if row.reorganisations < 3 and self._strikes("reorganised"):
            self._soon(self._chance.uniform(1.0, self.FINALITY.total_seconds() - 1), lambda: self._take_back(row))
        else:
            self._soon(self.FINALITY.total_seconds(), lambda: self._finish(row, included))

    def _take_back(self, row: SentRow) -> None:
        row.included_at = None
        row.reorganisations += 1
        self._soon(self._chance.uniform(0.5, 90.0), lambda: self._include(row))

    def _finish(self, row: SentRow, included: datetime) -> None:
        if row.included_at == included:
            row.final_at = self._now()
