"""The suite that is run by `pytest --pyargs cambist.conformance.deposits` (docs/adapters.md)."""

from cambist.frontends.conformance.deposits import *  # noqa: F403 - its tests and fixtures
