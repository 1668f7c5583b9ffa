"""The suite that is run by `pytest --pyargs cambist.conformance.rates` (docs/adapters.md)."""

from cambist.frontends.conformance.rates import *  # noqa: F403 - its tests and fixtures
