"""The suite that is run by `pytest --pyargs cambist.conformance.charges` (docs/adapters.md)."""

from cambist.frontends.conformance.charges import *  # noqa: F403 - its tests and fixtures
