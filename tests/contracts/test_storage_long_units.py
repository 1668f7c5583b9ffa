"""Our storages pass the shipped contract of long units."""

from cambist.frontends.conformance.storage.long_units import *  # noqa: F403 - its tests
