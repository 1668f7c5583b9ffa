"""Alarm channels for tests: they record the messages they get, and fail on request."""

from cambist.ports.alarms import Alarm


class Listener:
    """A channel (ports/alarms.py) that answers every message well until `faults` holds one: then it raises them."""

    def __init__(self, name: str = "listener", *, mirrors: bool = False) -> None:
        self.name = name
        self.mirrors = mirrors
        self.heard: list[Alarm] = []
        self.asked: list[Alarm] = []
        self.faults: list[Exception | BaseException] = []

    async def tell(self, alarm: Alarm) -> None:
        """Keep it, unless a fault is next."""
        self.asked.append(alarm)
        if self.faults:
            raise self.faults.pop(0)
        self.heard.append(alarm)

    @property
    def news(self) -> list[tuple[list[str], list[str]]]:
        """Return the ids of started and of ended alarms, for each message."""
        return [([line.id for line in each.begun], [line.id for line in each.over]) for each in self.heard]


class Postbox(Listener):
    """The same of a channel that reaches merchants."""

    def __init__(self, name: str = "postbox") -> None:
        super().__init__(name)
        self.letters: list[tuple[str, Alarm]] = []

    async def tell_merchant(self, address: str, alarm: Alarm) -> None:
        """Keep it with its address, unless a fault is next."""
        self.asked.append(alarm)
        if self.faults:
            raise self.faults.pop(0)
        self.letters.append((address, alarm))
