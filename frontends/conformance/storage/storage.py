"""Contract of a storage (ports/storage.py): `pytest --pyargs cambist.conformance.storage`.

Your conftest.py provides a fixture `place`: an empty StorageLocation (kit.py) that opens storages on one database,
several at a time if the storage allows it. `storage` is one of them. Its tables are those of KIT_CATALOGUE, which
declares two records beside the real ones (docs/adapters.md "A storage").
"""

from collections.abc import AsyncIterator

import pytest

from ....ports.storage import Storage
from .asking import *  # noqa: F403 - their tests
from .durability import *  # noqa: F403
from .jobs import *  # noqa: F403
from .kit import StorageLocation
from .leases import *  # noqa: F403
from .long_units import *  # noqa: F403
from .races import *  # noqa: F403
from .reads import *  # noqa: F403
from .recent import *  # noqa: F403
from .rules import *  # noqa: F403
from .snapshots import *  # noqa: F403
from .sums import *  # noqa: F403
from .tallies import *  # noqa: F403
from .units import *  # noqa: F403
from .values import *  # noqa: F403


@pytest.fixture
async def storage(place: StorageLocation) -> AsyncIterator[Storage]:
    """Yield an empty storage."""
    yield await place.open()
    await place.close()


@pytest.fixture
async def shared_location(place: StorageLocation) -> AsyncIterator[StorageLocation]:
    """Yield a place that allows several open storages. Skips if it does not."""
    if not place.is_shared:
        pytest.skip("this place takes one storage at a time")
    yield place
    await place.close()
