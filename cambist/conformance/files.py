"""The suite that is run by `pytest --pyargs cambist.conformance.files` (docs/adapters.md)."""

from cambist.frontends.conformance.files import *  # noqa: F403 - its tests and fixtures
