"""Our own storages keep the contract of sums, as it is shipped for those of others."""

from cambist.frontends.conformance.storage.tallies import *  # noqa: F403 - its tests
