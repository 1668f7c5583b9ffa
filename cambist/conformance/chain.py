"""The suite that is run by `pytest --pyargs cambist.conformance.chain` (docs/adapters.md)."""

from cambist.frontends.conformance.chain import *  # noqa: F403 - its tests and fixtures
