"""Our storages pass the shipped contract of reads."""

from cambist.frontends.conformance.storage.reads import *  # noqa: F403 - its tests
from cambist.frontends.conformance.storage.snapshots import *  # noqa: F403
