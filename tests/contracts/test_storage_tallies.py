"""Our storages pass the shipped contract of sums."""

from cambist.frontends.conformance.storage.tallies import *  # noqa: F403 - its tests
