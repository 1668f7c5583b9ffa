"""Our storages pass the shipped contract of concurrency."""

from cambist.frontends.conformance.storage.races import *  # noqa: F403 - its tests
