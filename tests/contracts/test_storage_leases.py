"""Our storages pass the shipped contract of leases of jobs."""

from cambist.frontends.conformance.storage.leases import *  # noqa: F403 - its tests
