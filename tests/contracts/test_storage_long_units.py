"""Our own storages keep the contract of long units, as it is shipped for those of others."""

from cambist.frontends.conformance.storage.long_units import *  # noqa: F403 - its tests
