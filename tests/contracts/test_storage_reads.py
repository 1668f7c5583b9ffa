"""Our own storages keep the contract of reads, as it is shipped for those of others."""

from cambist.frontends.conformance.storage.reads import *  # noqa: F403 - its tests
from cambist.frontends.conformance.storage.snapshots import *  # noqa: F403
