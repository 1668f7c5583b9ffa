"""Networks for the tests of watchers."""

from collections.abc import Iterator

import pytest

from tests.chains.world import ChainWorld, chain_world


@pytest.fixture(scope="session")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChainWorld]:
    """A node of each network, for one test after the other."""
    with chain_world(tmp_path_factory.mktemp("networks")) as world:
        yield world
