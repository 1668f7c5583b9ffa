"""How many letters may be under way at once."""

from typing import Protocol


class Customer(Protocol):
    """Who takes slots. Told when its turn has come."""

    def stir(self) -> None: ...


class Slots:
    """How many letters may be under way: in all, and to one receiver. Who finds none free gets one in turn."""

    def __init__(self, total: int, per_receiver: int) -> None:
        self.per_receiver = per_receiver
        self._free = total
        self._waiting: dict[Customer, None] = {}
        self._granted: set[Customer] = set()
        """Their turn came, and they have not taken the slot yet."""

    @property
    def wanted(self) -> bool:
        """Somebody waits: a slot that becomes free goes round."""
        return bool(self._waiting)

    def share(self) -> int:
        """How many one receiver may take: the fewer are free, the fewer, so that some are left for the next one. Who
        has more keeps them."""
        return max(1, min(self.per_receiver, self._free // self.per_receiver))

    def take(self, customer: Customer) -> bool:
        """A slot, or a place in the queue for one."""
        if customer in self._granted:
            self._granted.remove(customer)
        elif self._free:
            self._free -= 1
        else:
            self._waiting[customer] = None
            return False
        return True

    def give(self) -> None:
        """A slot is free again: the first who waits may take it."""
        if not self._waiting:
            self._free += 1
            return
        first = next(iter(self._waiting))
        del self._waiting[first]
        self._granted.add(first)
        first.stir()

    def decline(self, customer: Customer) -> None:
        """It wants no slot now; if its turn has come, the next one may."""
        self._waiting.pop(customer, None)
        if customer in self._granted:
            self._granted.remove(customer)
            self.give()
