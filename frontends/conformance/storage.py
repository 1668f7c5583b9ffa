"""What every storage must do (ports/storage.py): `pytest --pyargs cambist.frontends.conformance.storage`.

Your conftest.py gives a fixture `place`: an empty Place of storage_kit.py, which opens storages on one database,
several at a time where the storage can; `storage` is one of them. Tables are made of KIT_CATALOGUE, which declares two
records beside the real ones.
"""

import pytest

from ...ports.storage import Storage
from .storage_jobs import *  # noqa: F403 - their tests
from .storage_kit import Place
from .storage_leases import *  # noqa: F403
from .storage_reads import *  # noqa: F403
from .storage_tallies import *  # noqa: F403
from .storage_units import *  # noqa: F403


@pytest.fixture
async def storage(place: Place) -> Storage:
    """A storage, empty."""
    return await place.open()
