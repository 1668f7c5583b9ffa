"""Our storages pass the shipped contract of units, unique rules and sums."""

from cambist.frontends.conformance.storage.rules import *  # noqa: F403 - its tests
from cambist.frontends.conformance.storage.sums import *  # noqa: F403
from cambist.frontends.conformance.storage.units import *  # noqa: F403
