"""The suite that is run by `pytest --pyargs cambist.conformance.mandates` (docs/adapters.md)."""

from cambist.frontends.conformance.mandates import *  # noqa: F403 - its tests and fixtures
