"""The suite that is run by `pytest --pyargs cambist.conformance.registers` (docs/adapters.md)."""

from cambist.frontends.conformance.registers import *  # noqa: F403 - its tests and fixtures
