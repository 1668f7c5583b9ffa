"""A chain on which clients send USDT to the service: each address is one operation's, and a block can be taken back
before it is final."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from cambist.core.domain.tron import tron_address
from cambist.ports.chain import Network
from cambist.ports.deposits import Deposit

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.outside import Now, Soon


@dataclass
class DepositRow:
    """A transaction that a client sent."""

    tx_hash: str
    address: str
    units: int
    included_at: datetime | None = None
    is_final: bool = False
    reorganisations: int = 0


class OwnDeposits:
    """Deposits by address, as the network knows them."""

    FINALITY = timedelta(seconds=60)
    GONE = 0.2
    """Probability that a transaction of a replaced block never gets into another one."""

    def __init__(
        self, name: str, now: "Now", soon: "Soon", chance: random.Random, strikes: "Callable[[str], bool]"
    ) -> None:
        """`strikes`: whether a fault of this kind happens now."""
        self.name = name
        self.network = Network.TRON
        self.rows: list[DepositRow] = []
        self._now, self._soon, self._chance, self._strikes = now, soon, chance, strikes

    def address(self, operation: str) -> str:
        return tron_address(sha256(f"{self.name}/{operation}".encode()).digest()[:20])

    def deposits(self, address: str) -> list[Deposit]:
        """Return deposits in any order, some of them twice, as the port allows."""
        found = [
            Deposit(tx_hash=row.tx_hash, index=0, units=row.units, at=row.included_at, is_final=row.is_final)
            for row in self.rows
            if row.address == address and row.included_at is not None
        ]
        found += [each for each in found if self._chance.random() < 0.1]
        self._chance.shuffle(found)
        return found

    def send(self, address: str, units: int) -> None:
        """Let a client send so much; some seconds later a block contains it."""
        row = DepositRow(sha256(self._chance.randbytes(16)).hexdigest(), address, units)
        self.rows.append(row)
        self._soon(self._chance.uniform(0.5, 6.0), lambda: self._include(row))

    def _include(self, row: DepositRow) -> None:
        row.included_at = included = self._now()
        if row.reorganisations < 3 and self._strikes("reorganised"):
            self._soon(self._chance.uniform(1.0, self.FINALITY.total_seconds() - 1), lambda: self._take_back(row))
        else:
            self._soon(self.FINALITY.total_seconds(), lambda: self._finish(row, included))

    def _take_back(self, row: DepositRow) -> None:
        row.included_at = None
        row.reorganisations += 1
        if self._chance.random() >= self.GONE:
            self._soon(self._chance.uniform(0.5, 90.0), lambda: self._include(row))

    def _finish(self, row: DepositRow, included: datetime) -> None:
        row.is_final = row.included_at == included

    def final(self, address: str) -> list[DepositRow]:
        """Return the final deposits to the address."""
        return [row for row in self.rows if row.address == address and row.is_final]
