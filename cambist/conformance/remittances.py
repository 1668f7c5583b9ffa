"""The suite that is run by `pytest --pyargs cambist.conformance.remittances` (docs/adapters.md)."""

from cambist.frontends.conformance.remittances import *  # noqa: F403 - its tests and fixtures
