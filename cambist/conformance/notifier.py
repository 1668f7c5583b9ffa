"""The suite that is run by `pytest --pyargs cambist.conformance.notifier` (docs/adapters.md)."""

from cambist.frontends.conformance.notifier import *  # noqa: F403 - its tests and fixtures
