"""Our own storages keep the contract of the leases of jobs, as it is shipped for those of others."""

from cambist.frontends.conformance.storage.leases import *  # noqa: F403 - its tests
