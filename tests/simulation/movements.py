"""A merchant's movements as he reads them: they sum to the balance, have no gaps, and never change
(docs/settlement.md "Movements")."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.merchants import Merchant
    from tests.simulation.world import World

_BALANCE_TYPES = ("available_usdt", "reserved_usdt", "pending_rub")
_PAGE = 100


class Statement:
    """The movements that one merchant has read so far."""

    def __init__(self, world: "World", merchant: "Merchant") -> None:
        self._world = world
        self._merchant = merchant
        self.read: dict[int, dict[str, Any]] = {}
        """By number."""

    async def look(self) -> None:
        """Read the new movements, and compare them with the earlier ones."""
        found: list[dict[str, Any]] = []
        number = 1
        while True:
            path = f"/api/v1/balance/movements?per_page={_PAGE}&page={number}"
            answer = await self._merchant.insist("GET", path, None, None)
            page = answer.json["data"]
            found += page
            if len(page) < _PAGE or page[-1]["number"] in self.read:
                break
            number += 1
        if self._world.database.damage.befalls(self._merchant.account.account_id):
            return  # an unreadable object has movements without events
        for row in reversed(found):
            known = self.read.setdefault(row["number"], row)
            if known != row:
                self._wrong(f"movement {row['number']} changed: {known}, and {row} later")
        self._judge()

    def _judge(self) -> None:
        numbers = sorted(self.read)
        if numbers != list(range(1, len(numbers) + 1)):
            self._wrong(f"movements {numbers} have gaps")
            return
        for balance_type in _BALANCE_TYPES:
            total = Decimal(0)
            for number in numbers:
                total += Decimal(self.read[number][balance_type])
                if total != Decimal(self.read[number][f"balance_{balance_type}"]):
                    self._wrong(f"movement {number}: {balance_type} sums to {total}, and {self.read[number]} is said")
                    return

    async def judge_end(self, balance: dict[str, Decimal]) -> None:
        """The last one's balance is that of GET /balance."""
        await self.look()
        last = self.read.get(len(self.read), {})
        for balance_type in _BALANCE_TYPES:
            if Decimal(last.get(f"balance_{balance_type}", "0")) != balance[balance_type]:
                shown = last.get(f"balance_{balance_type}")
                self._wrong(f"{balance_type} is {balance[balance_type]}, and {shown} by the last movement")

    def _wrong(self, what: str) -> None:
        self._world.fault(f"merchant {self._merchant.number}: {what}")
