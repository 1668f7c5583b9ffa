"""A cell as the move of an account sees it."""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Storage


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One open installation."""

    name: str
    ports: Ports
    storage: Storage
    """The storage itself, without the fence and other layers of use cases: rows are copied as they are."""

    def now(self) -> datetime:
        """Return the time of this cell."""
        return self.ports.clock.now()
