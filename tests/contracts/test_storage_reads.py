"""Our own storages keep the contract of reads, as it is shipped for those of others."""

from cambist.frontends.conformance.storage_reads import *  # noqa: F403 - its tests
