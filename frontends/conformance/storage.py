"""What every storage must do (ports/storage.py): `pytest --pyargs cambist.conformance.storage`.

Your conftest.py gives a fixture `place`: an empty Place of storage_kit.py, which opens storages on one database,
several at a time where the storage can; `storage` is one of them. Tables are made of KIT_CATALOGUE, which declares two
records beside the real ones.
"""

from collections.abc import AsyncIterator

import pytest

from ...ports.storage import Storage
from .storage_asking import *  # noqa: F403 - their tests
from .storage_jobs import *  # noqa: F403
from .storage_kit import StoragePlace
from .storage_leases import *  # noqa: F403
from .storage_long_units import *  # noqa: F403
from .storage_races import *  # noqa: F403
from .storage_reads import *  # noqa: F403
from .storage_recent import *  # noqa: F403
from .storage_rules import *  # noqa: F403
from .storage_sums import *  # noqa: F403
from .storage_tallies import *  # noqa: F403
from .storage_units import *  # noqa: F403
from .storage_values import *  # noqa: F403


@pytest.fixture
async def storage(place: StoragePlace) -> AsyncIterator[Storage]:
    """A storage, empty."""
    yield await place.open()
    await place.close()


@pytest.fixture
async def shared_place(place: StoragePlace) -> AsyncIterator[StoragePlace]:
    """A place that several storages may be open on."""
    if not place.is_shared:
        pytest.skip("this place takes one storage at a time")
    yield place
    await place.close()
