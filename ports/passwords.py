"""The port that hashes passwords slowly, with bounded memory and processor time."""

from typing import Protocol


class PasswordHasher(Protocol):
    """Hashes of people's passwords. A call takes tens of milliseconds outside the event loop."""

    async def hash(self, password: str, /) -> str:
        """Return a salted hash with its parameters. Raises: Unavailable when too many calls wait."""
        ...

    async def verify(self, stored: str | None, password: str, /) -> bool:
        """Return whether the password belongs to the hash. With None it takes the same time and returns False, so that
        unknown people cannot be told apart. Raises: Unavailable when too many calls wait."""
        ...

    def is_outdated(self, stored: str, /) -> bool:
        """Return whether the hash should be made anew, because the parameters changed."""
        ...
