"""Location of a Postgres database, which tells a copy from the original: cluster, timeline and table."""

from ....ports.fingerprints import Fingerprints
from ...postgres_sessions import asking
from .marks import ACCEPT, place_of


class PostgresFingerprints:
    """Implementation of the port Beside. Nothing is stored beside the database: its location alone identifies it."""

    keeps = False

    def __init__(self, url: str) -> None:
        """Remember the URL. Each read makes its own connection."""
        self._url = url

    async def place(self) -> str | None:
        """Return the location; None if the server hides it or is a replica.

        Restoring a dump creates the table again, another cluster has another identifier, and a base backup or a
        promoted replica starts a timeline. Raises: Unavailable.
        """
        async with asking(self._url) as connection:
            return await place_of(connection)

    async def read(self) -> Fingerprints | None:
        """Return None, because nothing is stored."""
        return None

    async def write(self, marks: Fingerprints) -> None:
        """Do nothing."""

    async def accept(self) -> None:
        """Accept what processes miss here. Raises: Unavailable."""
        async with asking(self._url) as connection:
            await connection.execute(ACCEPT)
