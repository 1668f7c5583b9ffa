"""The suite that is run by `pytest --pyargs cambist.conformance.alarms` (docs/adapters.md)."""

from cambist.frontends.conformance.alarms import *  # noqa: F403 - its tests and fixtures
