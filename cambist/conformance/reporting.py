"""The suite that is run by `pytest --pyargs cambist.conformance.reporting` (docs/adapters.md)."""

from cambist.frontends.conformance.reporting import *  # noqa: F403 - its tests and fixtures
