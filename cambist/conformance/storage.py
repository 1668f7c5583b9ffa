"""The suite that is run by `pytest --pyargs cambist.conformance.storage` (docs/adapters.md)."""

from cambist.frontends.conformance.storage.storage import *  # noqa: F403 - its tests and fixtures
