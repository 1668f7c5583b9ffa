"""Our own storages keep the contract of units, as it is shipped for those of others."""

from cambist.frontends.conformance.storage_units import *  # noqa: F403 - its tests
