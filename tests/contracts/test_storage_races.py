"""Our own storages keep the contract under concurrency, as it is shipped for those of others."""

from cambist.frontends.conformance.storage.races import *  # noqa: F403 - its tests
